"""`remediate demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remediate.cli.console import Console
    from remediate.errors import RemediateError
    from remediate.model import Plan
    from remediate.runs.events import Events


def demo(
    *,
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

    raise typer.Exit(run_demo(TerminalSight(Console()), folder))


class TerminalSight:
    """Prints the walk on a terminal; implements `remediate.demo.sight.Sight`."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._count = 0

    def step(self, title: str, what: str) -> None:
        """A numbered heading."""
        self._count += 1
        if self._count > 1:
            self.console.line()
        self.console.rule(f"{self._count}. {title}: {what}")

    def say(self, text: str) -> None:
        """A wrapped paragraph."""
        self.console.text(text)

    def command(self, line: str) -> None:
        """The line behind a prompt."""
        self.console.line(f"$ {line}", "bold")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns as wide as their widest entry."""
        self.console.table(head, rows)

    def plan(self, plan: Plan) -> None:
        """As `remediate plan`."""
        from remediate.cli.report import print_plan

        print_plan(self.console, plan)

    def findings(self, plan: Plan) -> None:
        """As `remediate verify`."""
        from remediate.cli.report import print_findings
        from remediate.cli.verify import verdict

        print_findings(self.console, plan.findings)
        self.console.line()
        self.console.text(verdict(plan), style="bold")

    def events(self, verb: str) -> Events:
        """Each step as a line."""
        from remediate.cli.steps import StepPrinter

        return StepPrinter(self.console, verb)

    def failure(self, error: RemediateError) -> None:
        """The error on standard error."""
        from remediate.cli.console import print_error

        print_error(error)
