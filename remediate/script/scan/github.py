"""Findings as workflow commands, which GitHub Actions shows beside the lines.

Format and escapes: GitHub documentation, "Workflow commands for GitHub Actions", and escapeData and escapeProperty in
`packages/core/src/command.ts` of actions/toolkit.
"""

from __future__ import annotations

from collections.abc import Iterable

from remediate.script.scan.judge import Judged
from remediate.script.scan.levels import Level, level_of, message_of

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def workflow_commands(judged: Iterable[Judged]) -> str:
    """One line a finding, in the order given."""
    lines = []
    for item in judged:
        for spot in item.spots:
            finding = spot.finding
            text = f"{message_of(finding)}. {finding.reason}" if finding.reason else message_of(finding)
            places = f"file={_property(item.name)},line={spot.line},title={_property(finding.code)}"
            lines.append(f"::{_COMMANDS[level_of(finding)]} {places}::{_data(text)}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
