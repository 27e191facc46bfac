"""What the walk needs of whoever prints it; the command line implements it, so that the walk knows no terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from remediate.errors import RemediateError
from remediate.model import Plan
from remediate.runs.events import Events


class Sight(Protocol):
    """Prints the walk."""

    def step(self, title: str, what: str) -> None:
        """A heading: the step's name, and what happens in it."""
        ...

    def say(self, text: str) -> None:
        """A paragraph."""
        ...

    def command(self, line: str) -> None:
        """A command line, as a person would type it."""
        ...

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table with a head."""
        ...

    def plan(self, plan: Plan) -> None:
        """A plan as `remediate plan` prints it."""
        ...

    def findings(self, plan: Plan) -> None:
        """Findings as `remediate verify` prints them."""
        ...

    def events(self, verb: str) -> Events:
        """Receiver for the steps of a run."""
        ...

    def failure(self, error: RemediateError) -> None:
        """An error that stopped a step."""
        ...
