"""`remediate facts`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from remediate.cli import options


def facts(
    *,
    folder: options.FolderOption = Path(),
    python: options.PythonOption = None,
    script: options.ScriptOption = None,
    requirements: options.RequirementsOption = None,
    gpu: options.GpuOption = None,
    board: options.BoardOption = None,
    only: options.OnlyOption = None,
    json: options.JsonOption = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the JSON document there.")
    ] = None,
    state_dir: options.StateOption = None,
) -> None:
    """Show what is installed, how the GPUs are set and how the script is laid out.

    Reads only: no import of torch, no run of the script, no setting. The JSON document carries everything that
    `plan` and `verify` need, so it can be taken on one host and looked at on another; it holds the text of the
    requirements file and of the scripts.
    """
    from remediate.cli.console import Console
    from remediate.cli.report import print_choices
    from remediate.cli.session import get_facts, print_document
    from remediate.documents import encode
    from remediate.effects import write_file

    target = options.Target(
        folder, python, tuple(script or ()), requirements, tuple(gpu or ()), board, options.names(only), state_dir
    )
    observed = get_facts(target)
    if output is not None:
        write_file(output, encode(observed))
    if json:
        print_document(encode(observed))
        return
    console = Console()
    print_choices(console, observed.choices)
    _print_sections(console, observed)
    if output is not None:
        console.text(f"The facts are saved as `{output}`.")


def _print_sections(console: Any, observed: Any) -> None:
    from remediate.registry import subject_named

    for name in observed.sections:
        subject = subject_named(name)
        console.heading(subject.title)
        for label, value in subject.describe(observed):
            console.labelled(f"{label}:", value, indent=2)
