"""Who notices a run's changes, and that nothing is done to them without somebody's consent."""

from __future__ import annotations

from collections.abc import Iterable

from remediate.errors import DisruptionError
from remediate.model import Change, Facts, Plan
from remediate.observation import observe, read_boot_id
from remediate.registry import subject_named
from remediate.runs.store import Store
from remediate.subject import Settings


def refuse_disruption(changes: Iterable[Change], facts: Facts) -> None:
    """Raise `DisruptionError` when somebody, by these facts, notices one of the changes."""
    noticed = affected_by(changes, facts)
    if noticed:
        affected = tuple(dict.fromkeys(line for lines in noticed.values() for line in lines))
        raise DisruptionError(tuple(noticed), affected)


def noticed_now(
    plan: Plan, changes: Iterable[Change], store: Store, settings: Settings | None = None
) -> tuple[str, ...]:
    """Who notices one of the changes as the host is now, to be shown before somebody agrees.

    Raises:
        ObserveError: the host can't be read any more.
    """
    facts = observe(plan.request, settings, store.ledger(read_boot_id()))
    return tuple(dict.fromkeys(line for lines in affected_by(changes, facts).values() for line in lines))


def affected_by(changes: Iterable[Change], facts: Facts) -> dict[str, tuple[str, ...]]:
    """Title of each change that somebody notices, and who."""
    found = ((change, subject_named(change.subject).affected(change.operation, facts)) for change in changes)
    return {change.title: tuple(lines) for change, lines in found if lines}
