"""GPU facts from what nvidia-smi and torch printed for somebody: recognised by content, several in one text."""

from __future__ import annotations

from collections.abc import Sequence

from remediate.gpu.reports import collected, failures, markup, plain, query, summary
from remediate.gpu.reports.join import join
from remediate.gpu.reports.snapshot import Snapshot, from_log
from remediate.reports import Readout, Report

_TEXT = "nvidia-smi -q"
_XML = "nvidia-smi -q -x"


def read_reports(reports: Sequence[Report]) -> Readout | None:
    """GPU facts from all outputs in the reports; None where there are none.

    What is more exact goes before: `-q` and `--query-gpu` before the summary table, that before torch's report.

    Raises:
        DocumentError: a report is damaged, or the reports are of different machines.
    """
    found = [(report.name, kind, snapshot) for report in reports for kind, snapshot in _find(report)]
    if not found:
        return None
    ranked = sorted(found, key=lambda item: _RANKS.index(item[1]))
    facts, choices = join([snapshot for _, _, snapshot in ranked])
    kinds: dict[str, tuple[str, ...]] = {}
    for name, kind, _ in found:
        kinds[name] = tuple(dict.fromkeys((*kinds.get(name, ()), kind)))
    notes = tuple(note for _, _, snapshot in found for note in snapshot.notes)
    return Readout(facts, kinds, choices, notes)


def _find(report: Report) -> list[tuple[str, Snapshot]]:
    """Kind and content of each output; of one kind in one text, the last one first, for it is the latest."""
    name, text = report.name, report.text
    found = [(_XML, from_log(log, f"{name}: {_XML}")) for log in reversed(markup.find_logs(text, name))]
    found += [(_TEXT, from_log(log, f"{name}: {_TEXT}")) for log in reversed(plain.find_logs(text))]
    found += [(query.KIND, snapshot) for snapshot in reversed(query.find_queries(report))]
    found += [(summary.KIND, snapshot) for snapshot in reversed(summary.find_tables(text, name))]
    found += [(collected.KIND, snapshot) for snapshot in collected.find_collected(text, name)]
    found += [(failures.KIND, snapshot) for snapshot in failures.find_failures(text, name)]
    return found


_RANKS = (_XML, _TEXT, query.KIND, failures.KIND, summary.KIND, collected.KIND)
