"""`remediate demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    folder: Annotated[
        Path | None, typer.Option("--folder", "-C", help="Lay the sandbox out there and keep it.", show_default=False)
    ] = None,
) -> None:
    """Walk through the incident on a simulated A100: plan, apply, verify, apply again, rollback.

    Lays out the incident's sandbox (script, requirements, an environment with the metadata of the incident's
    versions, a board that heats up under load) in a temporary folder. Needs no GPU, no network and no root, and
    touches nothing else.
    """
    from remediate.cli.console import Console
    from remediate.demo.walk import run_demo

    raise typer.Exit(run_demo(Console(), folder))
