"""How applying and undoing read while they go on."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from remediate.cli.console import Console
from remediate.cli.report import command_line
from remediate.model import Change, Performed


class StepPrinter:
    """Events as lines: results on standard output, progress on standard error and only on a terminal."""

    def __init__(self, console: Console, verb: str) -> None:
        self.console = console
        self.verb = verb
        self.shows_progress = sys.stderr.isatty()

    def starting(self, change: Change) -> None:
        """Say what comes next, where somebody is watching."""
        self.progress(f"{self.verb} {change.title} ...")

    def finished(self, change: Change, performed: Performed) -> None:
        """Say what was done."""
        mark, colour = ("+", "green") if performed.changed else ("=", "green")
        self.console.item(mark, colour, f"{change.title}: {performed.detail}")

    def progress(self, line: str) -> None:
        """A line about something that takes long."""
        if self.shows_progress:
            Console(sys.stderr).text(line, indent=4, style="dim")


def print_root_lines(console: Console, changes: Iterable[Change], command: str) -> None:
    """The exact lines that need root; a file is only named, for its bytes are in the plan."""
    console.heading("These need root and were not tried; run them yourself, or the whole as root:")
    for change in changes:
        line = f"sudo {command_line(change)}" if change.command else f"# {change.title}: only with the whole"
        console.line(line, indent=2)
    console.line(f"sudo {command}", indent=2)
