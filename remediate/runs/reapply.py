"""Make a plan's changes again after a boot: no run, no journal, no stop at the first failure.

Nothing is decided or kept here: the run that installed the boot unit undoes it, and a further boot does the same again.
One board that fails must not keep the others from being set. The ledger is told, for it ends with each boot.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from remediate.errors import RemediateError
from remediate.model import Change, Performed, Plan
from remediate.observation import read_boot_id
from remediate.registry import subject_named
from remediate.runs.events import Events, Silent
from remediate.runs.execute import make_context
from remediate.runs.store import Store
from remediate.subject import Context

BY_BOOT = "boot"
"""In place of a run's number in the ledger."""


class Failed(msgspec.Struct, frozen=True):
    """A change that could not be made, and why."""

    change: Change
    error: RemediateError


class ReapplyResult(msgspec.Struct, frozen=True):
    """Ids of the changes that were made, and those that failed."""

    done: tuple[str, ...]
    failed: tuple[Failed, ...]


def reapply(plan: Plan, *, store: Store, events: Events | None = None, is_root: bool | None = None) -> ReapplyResult:
    """Make every change of `plan` that can be made, in order, and read each back.

    Raises:
        LockHeldError: a run goes on.
        JournalError: the state folder can't be used.
    """
    rights = os.geteuid() == 0 if is_root is None else is_root
    events = events or Silent()
    done: list[str] = []
    failed: list[Failed] = []
    with store.lock(), tempfile.TemporaryDirectory(prefix="remediate-boot-") as scratch:
        context = make_context(Path(scratch), plan, rights, events)
        for change in plan.changes:
            events.starting(change)
            try:
                performed = _perform(change, store, context)
            except RemediateError as error:
                failed.append(Failed(change, error))
            else:
                events.finished(change, performed)
                done.append(change.id)
    return ReapplyResult(tuple(done), tuple(failed))


def _perform(change: Change, store: Store, context: Context) -> Performed:
    subject = subject_named(change.subject)
    performed = subject.perform(change.operation, subject.prepare(change.operation, context), context)
    store.remember(read_boot_id(), BY_BOOT, dict(subject.remember(change.operation, True)))
    return performed
