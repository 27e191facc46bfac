"""`remediate facts` and `remediate facts import`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediate.cli import options
from remediate.reports import NOT_IN_REPORT

if TYPE_CHECKING:
    from remediate.cli.console import Console
    from remediate.model import Facts

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]}, rich_markup_mode=None, invoke_without_command=True
)

OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the JSON document there.")
]
RedactOption = Annotated[
    bool,
    typer.Option("--redact", help="Take out UUIDs, host and user names, home folders and credentials; say what."),
]


@app.callback()
def facts(
    context: typer.Context,
    *,
    folder: options.FolderOption = Path(),
    python: options.PythonOption = None,
    script: options.ScriptOption = None,
    requirements: options.RequirementsOption = None,
    gpu: options.GpuOption = None,
    board: options.BoardOption = None,
    only: options.OnlyOption = None,
    redact: RedactOption = False,
    json: options.JsonOption = False,
    output: OutputOption = None,
    sample: options.SampleOption = 0.0,
    check_files: options.CheckFilesOption = False,
    state_dir: options.StateOption = None,
) -> None:
    """Show what is installed, how the GPUs are set and how the script is laid out.

    Reads only: no import of torch, no run of the script, no setting. The JSON document carries everything that
    `plan` and `verify` need, so it can be taken on one host and looked at on another; it holds the text of the
    requirements file and of the scripts.
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    from msgspec.structs import replace

    from remediate.cli.session import get_facts

    scripts, gpus = tuple(script or ()), tuple(gpu or ())
    target = options.Target(folder, python, scripts, requirements, gpus, board, options.names(only), state_dir, sample)
    target = replace(target, check_files=check_files)
    observed = get_facts(target)
    if redact:
        import platform

        observed = _redacted(observed, hosts=(platform.node(),))
    _show(observed, json=json, output=output)


def _refuse_options(context: typer.Context) -> None:
    """An option before the subcommand would do nothing: `--redact` must not be lost that way.

    Raises:
        UsageError: one was given.
    """
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            from remediate.errors import UsageError

            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"`{option}` stands before `{context.invoked_subcommand}`",
                cause="there it is an option of `remediate facts`, which looks at this machine",
                hint=f"put it behind `{context.invoked_subcommand}`, if that has it",
            )


@app.command("import", short_help="Make facts from what nvidia-smi, pip or torch printed.")
def import_(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Outputs in any mixture; - for standard input.")
    ],
    *,
    query_gpu: Annotated[
        str | None,
        typer.Option(
            "--query-gpu", metavar="FIELDS", help="Columns of a CSV without a header, as nvidia-smi names them."
        ),
    ] = None,
    redact: RedactOption = False,
    json: options.JsonOption = False,
    output: OutputOption = None,
) -> None:
    """Make a facts document from what nvidia-smi, pip or torch printed, as in a bug report.

    \b
    nvidia-smi -q               as text, or as XML with -x
    nvidia-smi --query-gpu=...  --format=csv, with and without header and units
    nvidia-smi                  the table; little of it is taken, for it rounds and cuts
    pip freeze, pip list        columns or JSON
    python -m torch.utils.collect_env

    They are recognised by their content, alone or several in one file, and have to be of one machine and one time.
    What they don't say is unknown, and nothing is concluded from it. This machine is not looked at.

    \b
    remediate facts import smi.txt freeze.txt -o ticket.json
    remediate plan --facts ticket.json
    """
    from remediate.importing import import_reports

    imported = import_reports(files, csv_fields=options.names([query_gpu] if query_gpu else None))
    made = imported.facts
    if redact:
        made = _redacted(made, files=tuple(Path(name).name for name in files))
    for note in imported.notes:
        _on_stderr().text(f"note: {note}")
    _show(made, json=json, output=output)


def _show(made: Facts, *, json: bool, output: Path | None) -> None:
    from remediate.cli.console import Console
    from remediate.cli.report import print_choices
    from remediate.cli.session import print_document
    from remediate.documents import encode
    from remediate.effects import write_file

    if output is not None:
        write_file(output, encode(made))
    if json:
        print_document(encode(made))
        return
    console = Console()
    print_choices(console, made.choices)
    _print_sections(console, made)
    if output is not None:
        console.text(f"The facts are saved as `{output}`.")


def _redacted(made: Facts, *, hosts: tuple[str, ...] = (), files: tuple[str, ...] = ()) -> Facts:
    """Without identity; what was replaced is told on standard error."""
    from remediate.cli.report import plural
    from remediate.importing import redact

    result = redact(made, hosts=hosts, files=files)
    counts = ", ".join(plural(count, kind) for kind, count in result.replaced.items())
    _on_stderr().text(f"Replaced: {counts or 'nothing'}. Look through the document before you give it away.")
    return result.facts


def _on_stderr() -> Console:
    import sys

    from remediate.cli.console import Console

    return Console(sys.stderr)


def _print_sections(console: Console, made: Facts) -> None:
    from remediate.registry import subject_named

    for name in made.sections:
        subject = subject_named(name)
        console.heading(subject.title)
        rows = subject.describe(made)
        told = [(label, value) for label, value in rows if not _is_unsaid(value)]
        for label, value in told:
            console.labelled(f"{label}:", value, indent=2)
        if len(told) < len(rows):
            console.text(f"{len(rows) - len(told)} more are {NOT_IN_REPORT.reason}.", indent=2, style="dim")


def _is_unsaid(value: str) -> bool:
    """Whether a line says no more than that a report does not say it."""
    text = str(NOT_IN_REPORT)
    return value.startswith(text) and not any(character.isdecimal() for character in value)
