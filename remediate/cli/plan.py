"""`remediate plan` and `remediate show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from remediate.cli import options

if TYPE_CHECKING:
    from remediate.model import Artifact


def plan(
    *,
    folder: options.FolderOption = Path(),
    profile: options.ProfileOption = None,
    python: options.PythonOption = None,
    script: options.ScriptOption = None,
    requirements: options.RequirementsOption = None,
    gpu: options.GpuOption = None,
    board: options.BoardOption = None,
    facts: options.FactsOption = None,
    only: options.OnlyOption = None,
    unsafe_fixes: options.UnsafeOption = False,
    json: options.JsonOption = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Save the plan for `remediate apply FILE`.")
    ] = None,
    out_dir: Annotated[
        Path | None,
        typer.Option("--out-dir", metavar="DIR", help="Write the rendered files there, and touch nothing else."),
    ] = None,
    installer: options.InstallerOption = None,
    prune: options.PruneOption = False,
    smoke: options.SmokeOption = False,
    check: Annotated[bool, typer.Option("--check", help="Exit 3 where differences remain, 4 where unclear.")] = False,
    sample: options.SampleOption = 0.0,
    state_dir: options.StateOption = None,
) -> None:
    """Show what differs from the profile and the changes that would close the gap.

    Nothing is changed. The plan can be saved with -o and applied later as exactly those bytes.

    \b
    remediate plan                              this folder, the profile that fits
    remediate plan --profile incident-a100      a profile by name
    remediate plan --facts host7.json           from facts recorded elsewhere
    remediate plan --only gpu --check           for a script: exit 3 if it differs

    Marks: = agrees, ~ differs, ? could not tell, ! not supported here, i advice.
    """
    from remediate.cli.confirm import warn_of_unsettled
    from remediate.cli.console import Console
    from remediate.cli.report import print_plan
    from remediate.cli.session import check_code, get_plan, print_document
    from remediate.documents import encode_plan
    from remediate.effects import write_file
    from remediate.runs.store import Store

    scripts, gpus = tuple(script or ()), tuple(gpu or ())
    target = options.Target(folder, python, scripts, requirements, gpus, board, options.names(only), state_dir, sample)
    target = replace(target, install=options.install_options(installer, prune=prune, smoke=smoke))
    if facts is None:
        warn_of_unsettled(Store(state_dir))
    made = get_plan(target, profile, facts, unsafe_fixes=unsafe_fixes)
    if out_dir is not None:
        write_artifacts(out_dir, made.artifacts)
    if output is not None:
        write_file(output, encode_plan(made))
    if json:
        print_document(encode_plan(made))
    else:
        print_plan(Console(), made)
        _say_where(output, out_dir, len(made.artifacts))
    if check:
        raise typer.Exit(check_code(made))


def _say_where(output: Path | None, out_dir: Path | None, count: int) -> None:
    from remediate.cli.console import Console
    from remediate.cli.report import plural

    if output is not None:
        Console().text(f"The plan is saved as `{output}`; `remediate apply {output}` makes exactly these changes.")
    if out_dir is not None:
        Console().text(f"{plural(count, 'file')} written to `{out_dir}`.")


def write_artifacts(folder: Path, artifacts: tuple[Artifact, ...]) -> None:
    """Write rendered files below `folder`, which is created where needed.

    Raises:
        ApplyError: it can't be created or written.
    """
    from remediate.effects import file_error, write_file

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise file_error(folder, error) from error
    for artifact in artifacts:
        write_file(folder / artifact.name, artifact.content, mode=0o755 if artifact.executable else 0o644)


def show(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan saved with `remediate plan -o`.")],
    json: options.JsonOption = False,
) -> None:
    """Show a saved plan again, also one that is stale by now."""
    from remediate.cli.console import Console
    from remediate.cli.report import print_plan
    from remediate.cli.session import print_document
    from remediate.documents import decode_plan, encode_plan, read_document

    made = decode_plan(read_document(plan_file), str(plan_file))
    if json:
        print_document(encode_plan(made))
    else:
        print_plan(Console(), made)
