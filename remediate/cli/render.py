"""`remediate render inference`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from remediate.cli import options

app = typer.Typer(no_args_is_help=True, help="Write files from the templates.")


@app.callback()
def _render() -> None:
    """Write files from the templates."""


@app.command(short_help="Write a complete inference script for the profile.")
def inference(
    *,
    folder: options.FolderOption = Path(),
    profile: options.ProfileOption = None,
    script: Annotated[
        str | None,
        typer.Option(
            "--script", metavar="FILE", help="Take model, prompts and arguments from it. Default: the only one."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME|PATH", help="Another model.")] = None,
    python: options.PythonOption = None,
    board: options.BoardOption = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write it there. Default: standard output."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE where it is there already.")] = False,
) -> None:
    """Write a complete, self-contained inference script, laid out as the profile wants it.

    Model, revision, prompts and arguments of `generate` come from the script that is there, as far as its text tells
    them; what is not taken over stands in a comment. dtype, its keyword and the device follow the profile and the
    versions. The result needs torch and transformers and nothing else.

    \b
    remediate render inference                              to standard output
    remediate render inference --script old.py -o new.py    from one script
    remediate render inference --model org/name -o new.py   from none
    """
    from remediate.cli.session import print_document
    from remediate.effects import write_file
    from remediate.errors import UsageError
    from remediate.inference import make_inference_script

    if output is not None and output.exists() and not force:
        raise UsageError(
            f"`{output}` is there already", cause="it would be replaced", hint="name another file, or add `--force`"
        )
    content = make_inference_script(folder, profile=profile, script=script, model=model, python=python, board=board)
    if output is None:
        print_document(content)
        return
    write_file(output, content)
    sys.stderr.write(f"written to {output}\n")
