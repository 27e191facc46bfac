"""How much a finding weighs, in the words of each format that a CI reads."""

from __future__ import annotations

import enum

from remediate.model import Finding, Outcome


class Level(enum.StrEnum):
    """From what a check fails on down to what is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


def level_of(finding: Finding) -> Level:
    """A difference is an error, what could not be judged a warning, advice a note."""
    if finding.is_advice:
        return Level.NOTE
    return Level.ERROR if finding.outcome is Outcome.DIFFERS else Level.WARNING


def message_of(finding: Finding) -> str:
    """What is said about the place, without the place."""
    text = finding.summary.removeprefix(f"{finding.target}: ")
    cell = finding.target.rpartition(":cell ")[2]
    where = f"cell {cell.replace(':', ', line ')}: " if cell != finding.target else ""
    return f"{where}{text}"
