"""Reports: what nvidia-smi, pip or torch printed for somebody, read in place of a host.

A subject that can read them is listed in `remediate.registry.report_readers`; `remediate.importing` hands them over
and joins what comes back. What no report says is `NOT_IN_REPORT`, and nothing is concluded from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from remediate.model import Choice, Unknown, UnknownKind

NOT_IN_REPORT = Unknown(UnknownKind.NOT_READ, "not in this report")


class Report(msgspec.Struct, frozen=True):
    """A text that somebody has already; a bug report may hold several kinds of output.

    Attributes:
        name: file name, for messages.
        csv_fields: columns of an nvidia-smi CSV without a header, as `--query-gpu` names them.
    """

    name: str
    text: str
    csv_fields: tuple[str, ...] = ()


class Readout(msgspec.Struct, frozen=True):
    """What a subject found in reports.

    Attributes:
        facts: the subject's facts record.
        kinds: name of a report to the kinds of output that were recognised in it, as `nvidia-smi -q`.
        notes: one line for each thing in a report that could not be used.
    """

    facts: msgspec.Struct
    kinds: Mapping[str, tuple[str, ...]]
    choices: tuple[Choice, ...] = ()
    notes: tuple[str, ...] = ()


class ReportReader(Protocol):
    """How a subject reads reports."""

    def __call__(self, reports: Sequence[Report]) -> Readout | None:
        """The subject's facts, or None where no report speaks of it. Pure.

        Raises:
            DocumentError: a report is damaged, or the reports contradict each other.
        """
        ...
