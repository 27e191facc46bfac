"""Reports to one facts document. Which subject reads what is known to `remediate.registry` only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from remediate._version import __version__
from remediate.errors import DocumentError
from remediate.importing.texts import read_text
from remediate.model import SCHEMA_VERSION, Choice, Facts, Host, Request
from remediate.registry import report_readers
from remediate.reports import NOT_IN_REPORT, Readout, Report

_KNOWN = (
    "known are: `nvidia-smi -q` as text or XML (-x), `nvidia-smi --query-gpu=… --format=csv`, plain `nvidia-smi`, "
    "`pip freeze`, `pip list` (columns or JSON), `python -m torch.utils.collect_env`"
)
_UNSAID = "unknown"


class Imported(msgspec.Struct, frozen=True):
    """Facts from reports.

    Attributes:
        notes: one line for each thing in a report that could not be used.
    """

    facts: Facts
    notes: tuple[str, ...]


def import_reports(places: Iterable[str], *, csv_fields: Sequence[str] = (), folder: str | Path = ".") -> Imported:
    """One facts document from all the files together. What they do not say is `NOT_IN_REPORT`.

    Args:
        places: files; `-` is standard input.
        csv_fields: columns of CSV files without a header, as nvidia-smi's `--query-gpu` names them.
        folder: for the request; its configuration counts when a plan is made.

    Raises:
        DocumentError: a file can't be read, is nothing that is known, or contradicts another one.
    """
    reports = [Report(name, text, tuple(csv_fields)) for name, text in _read(list(places))]
    readouts: dict[str, Readout] = {}
    for subject, read in report_readers().items():
        readout = read(reports)
        if readout is not None:
            readouts[subject] = readout
    kinds = _kinds(reports, readouts)
    notes = tuple(note for readout in readouts.values() for note in readout.notes)
    return Imported(_facts(readouts, kinds, Path(folder)), notes)


def _read(places: Sequence[str]) -> list[tuple[str, str]]:
    """Name and text of each; files of one name get their whole path, and one file counts once."""
    found = [(place, *read_text(place)) for place in dict.fromkeys(places)]
    names = [name for _, name, _ in found]
    return [(name if names.count(name) == 1 else place, text) for place, name, text in found]


def _kinds(reports: Sequence[Report], readouts: dict[str, Readout]) -> tuple[str, ...]:
    """One line for each report.

    Raises:
        DocumentError: nobody recognised anything in one of them.
    """
    lines = []
    for report in reports:
        found = [kind for readout in readouts.values() for kind in readout.kinds.get(report.name, ())]
        if not found:
            raise _unrecognised(report)
        lines.append(f"{report.name}: {', '.join(dict.fromkeys(found))}")
    return tuple(lines)


def _unrecognised(report: Report) -> DocumentError:
    if '"schema_version"' in report.text[:1000]:
        return DocumentError(
            f"`{report.name}` is a document of remediate already",
            cause="it needs no import",
            hint=f"use it as it is: `remediate plan --facts {report.name}`",
        )
    cause = "it is empty" if not report.text.strip() else "nothing in it is an output that is known"
    hint = f"{_KNOWN}; for a CSV without a header, name its columns with --query-gpu"
    return DocumentError(f"`{report.name}` is not recognised", cause=cause, hint=hint)


def _facts(readouts: dict[str, Readout], kinds: tuple[str, ...], folder: Path) -> Facts:
    choices = tuple(choice for readout in readouts.values() for choice in readout.choices)
    return Facts(
        schema_version=SCHEMA_VERSION,
        tool_version=__version__,
        observed_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        request=Request(str(folder.resolve()), only=tuple(readouts)),
        host=Host(_UNSAID, _UNSAID, NOT_IN_REPORT, is_root=False),
        choices=tuple(Choice("facts", line, "nothing was looked at on this machine") for line in kinds) + choices,
        sections={subject: readout.facts for subject, readout in readouts.items()},
        reports=kinds,
    )
