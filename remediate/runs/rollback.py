"""Undo a run: its journal backwards, each change to what was there before, nothing that was edited since."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from remediate.errors import EditedSinceError, RemediateError, UsageError
from remediate.model import Change, State
from remediate.observation import read_boot_id
from remediate.registry import subject_named
from remediate.runs.events import Events, Silent
from remediate.runs.execute import make_context
from remediate.runs.journal import ChangeStatus, EntryKind, Run, RunStatus, load_run
from remediate.runs.store import Store
from remediate.subject import Context


class RollbackResult(msgspec.Struct, frozen=True):
    """What undoing a run came to.

    Attributes:
        run_id: the run that was undone.
        undone: ids of the changes that were undone, in the order of undoing.
        needs_root: changes that are left for lack of rights.
        left: ids that are not undone after a failure or because another subject was asked for.
        failure: the error that stopped it; None otherwise.
    """

    run_id: str
    undone: tuple[str, ...] = ()
    needs_root: tuple[Change, ...] = ()
    left: tuple[str, ...] = ()
    failure: RemediateError | None = None


def find_run(store: Store, run_id: str | None = None, folder: Path | None = None) -> Run:
    """The run to undo: the one asked for, else the last one of `folder` that is not rolled back.

    Raises:
        UsageError: there is no such run, or it is rolled back already.
    """
    if run_id is not None:
        run = load_run(store.run_folder(run_id))
        if run is None:
            raise UsageError(f"run `{run_id}` ended before it did anything", hint="there is nothing to undo")
        if run.status is RunStatus.ROLLED_BACK:
            raise UsageError(f"run {run.id} is rolled back already", hint="`remediate history` lists all runs")
        return run
    for path in reversed(store.run_folders()):
        run = load_run(path)
        if run is None or run.status is RunStatus.ROLLED_BACK:
            continue
        if folder is None or Path(run.plan.request.folder) == folder:
            return run
    where = f" in `{folder}`" if folder else ""
    raise UsageError(
        f"there is no run to undo{where}", hint="`remediate history` lists the runs of all folders; name one by number"
    )


def rollback_run(
    run: Run,
    *,
    store: Store,
    only: Iterable[str] = (),
    events: Events | None = None,
    is_root: bool | None = None,
) -> RollbackResult:
    """Undo `run`. Everything is looked at before anything is undone.

    Raises:
        LockHeldError: another run goes on.
        EditedSinceError: something was changed after the run; nothing is undone.
    """
    events = events or Silent()
    rights = os.geteuid() == 0 if is_root is None else is_root
    wanted = set(only)
    with store.lock():
        run.reload()  # Another process may have undone it, or begun to, since the journal was read.
        pending = [change for change in reversed(run.changes) if _is_pending(run, change)]
        chosen = [change for change in pending if not wanted or change.subject in wanted]
        needs_root = tuple(change for change in chosen if change.needs_root and not rights)
        allowed = [change for change in chosen if rights or not change.needs_root]
        context = make_context(run.folder, run.plan, rights, events)
        context.has_rebooted = run.has_rebooted(read_boot_id())
        _refuse_edited(run, allowed, context)
        undone, failure = _undo_all(run, allowed, store, context, events)
        left = tuple(change.id for change in pending if change.id not in undone)
        if not left:
            run.append(EntryKind.UNDO_END)
    return RollbackResult(run.id, tuple(undone), needs_root, left, failure)


def _is_pending(run: Run, change: Change) -> bool:
    return run.change_status(change.id) not in (ChangeStatus.NOT_STARTED, ChangeStatus.UNDONE)


def _refuse_edited(run: Run, changes: list[Change], context: Context) -> None:
    """A change that was completed and no longer stands as it was made was edited by somebody."""
    edited = [
        change
        for change in changes
        if run.change_status(change.id) is ChangeStatus.DONE
        and not _undo_was_begun(run, change)
        and subject_named(change.subject).state(change.operation, context) is State.OTHER
    ]
    if edited:
        subjects = sorted({change.subject for change in edited})
        raise EditedSinceError(
            f"run {run.id} can't be undone: {', '.join(change.title for change in edited)} changed after the run",
            cause="undoing would overwrite that; nothing was undone",
            hint=(
                f"put it back as the run left it, or undo the rest with `--only`, leaving out {', '.join(subjects)}; "
                f"backups are in `{run.folder}`"
            ),
        )


def _undo_was_begun(run: Run, change: Change) -> bool:
    return any(entry.kind is EntryKind.UNDO_INTENT and entry.change == change.id for entry in run.entries)


def _undo_all(
    run: Run, changes: list[Change], store: Store, context: Context, events: Events
) -> tuple[list[str], RemediateError | None]:
    undone: list[str] = []
    if changes:
        run.append(EntryKind.UNDO_BEGIN)
    for change in changes:
        subject = subject_named(change.subject)
        run.append(EntryKind.UNDO_INTENT, change.id)
        events.starting(change)
        try:
            performed = subject.undo(change.operation, run.prepared(change.id), context)
        except RemediateError as error:
            run.append(EntryKind.UNDO_FAILED, change.id, detail=str(error))
            return undone, error
        store.remember(read_boot_id(), run.id, dict(subject.remember(change.operation, False)))
        run.append(EntryKind.UNDONE, change.id, detail=performed.detail, output=performed.output)
        events.finished(change, performed)
        undone.append(change.id)
    return undone, None
