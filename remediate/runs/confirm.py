"""Confirm or revert: a run that is undone unless somebody says in time that it may stay.

For a machine that is reached over the network: a change that cuts the connection, or a session that dies, must not
leave it in a state that nobody agreed to. A process of its own (`remediate.runs.watch`) watches the run from before its
first change.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from remediate.effects import start_detached
from remediate.errors import RemediateError, UnconfirmedRunError, UsageError
from remediate.runs.journal import Confirmation, EntryKind, Run, RunStatus, load_run
from remediate.runs.store import Store

_START_S = 60.0
_WATCH_LOCK = "watch.lock"
_WATCH_LOG = "watch.log"


def start_watcher(run: Run, store: Store) -> int:
    """Start the process that undoes `run` unless it is confirmed, or raise before anything was changed.

    Returns:
        A file descriptor; its closing, or the end of this process, tells the watcher that nobody goes on.

    Raises:
        ApplyError: it does not start.
    """
    argv = (sys.executable, "-m", "remediate.runs.watch", str(run.folder), str(store.root))
    return start_detached(argv, log=run.folder / _WATCH_LOG, timeout_s=_START_S)


def await_confirmation(run: Run) -> None:
    """Note in the journal that the run's changes are over and until when it can be confirmed."""
    deadline = datetime.now(UTC) + timedelta(seconds=run.confirm_within_s or 0)
    run.append(EntryKind.AWAIT, deadline=deadline.strftime("%Y-%m-%dT%H:%M:%SZ"))


@contextlib.contextmanager
def watched(run: Run, store: Store) -> Iterator[None]:
    """A watcher beside the changes, where the run wants to be confirmed. It is there before the first change."""
    if run.confirm_within_s is None:
        yield
        return
    try:
        descriptor = None if is_watched(run.folder) else start_watcher(run, store)
    except RemediateError:
        # Nothing was changed by a run that has just begun; one that is being finished stays interrupted.
        if not any(entry.kind is EntryKind.INTENT for entry in run.entries):
            run.append(EntryKind.END)
            run.append(EntryKind.UNDO_END, detail="nothing was changed")
        raise
    try:
        yield
        await_confirmation(run)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def confirm_run(store: Store, run_id: str | None = None) -> Run:
    """Let a run stay: the one asked for, else the last one. Confirming twice is no error.

    Raises:
        UsageError: there is no such run, or it does not ask for a confirmation.
        UnconfirmedRunError: it is too late, or the run did not come to its end.
        LockHeldError: the run still goes on, or is being undone.
    """
    with store.lock():
        run = _find(store, run_id)
        if run.confirmation is Confirmation.CONFIRMED:
            return run
        _refuse_too_late(run)
        run.append(EntryKind.CONFIRMED)
    return run


def unsettled_run(store: Store) -> Run | None:
    """The last run, where it waits for a confirmation or was not confirmed and still stands."""
    if not store.may_be_unsettled():
        return None
    runs = (load_run(folder) for folder in reversed(store.run_folders()))
    run = next((run for run in runs if run is not None), None)
    return run if run is not None and run.is_unsettled else None


def refuse_unconfirmed(store: Store) -> None:
    """Raise `UnconfirmedRunError` when the last run is not settled."""
    run = unsettled_run(store)
    if run is not None:
        raise UnconfirmedRunError(
            f"run {run.id} in `{run.plan.request.folder}` is not confirmed",
            cause=explain_unsettled(run),
            hint=f"`remediate confirm {run.id}` keeps it, `remediate rollback {run.id}` undoes it",
        )


def explain_unsettled(run: Run) -> str:
    """What will happen to a run that is not settled, or why nothing will."""
    failure = next((entry.detail for entry in reversed(run.entries) if entry.kind is EntryKind.UNDO_FAILED), "")
    if run.confirmation is Confirmation.EXPIRED and failure:
        return f"it was not confirmed in time, and undoing it failed: {failure}"
    if not is_watched(run.folder):
        return "the process that should undo it is gone (killed, or the machine was restarted), so nothing will"
    if run.confirmation is Confirmation.EXPIRED:
        return "it was not confirmed in time and is being undone"
    return f"it is undone at {run.deadline} if nobody confirms it" if run.deadline else "it still goes on"


def is_watched(folder: Path) -> bool:
    """Whether a watcher of that run is alive; the kernel frees its lock however it dies."""
    descriptor = hold_watch(folder)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def hold_watch(folder: Path) -> int | None:
    """Take the watcher's lock; None where another process holds it. Closing the descriptor gives it back."""
    descriptor = os.open(folder / _WATCH_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _find(store: Store, run_id: str | None) -> Run:
    folders = store.run_folders() if run_id is None else (store.run_folder(run_id),)
    runs = (load_run(folder) for folder in reversed(folders))
    run = next((run for run in runs if run is not None), None)
    if run is None or run.confirmation is Confirmation.NOT_ASKED:
        raise UsageError(
            f"run {run.id} asks for no confirmation" if run else "there is no run to confirm",
            hint="`remediate history` lists the runs; only `apply --confirm-within SECONDS` makes one that asks",
        )
    return run


def _refuse_too_late(run: Run) -> None:
    if run.status is RunStatus.ROLLED_BACK:
        raise UnconfirmedRunError(
            f"run {run.id} can't be confirmed: it is undone already", hint="`remediate apply` makes the changes again"
        )
    if run.status is RunStatus.INTERRUPTED:
        raise UnconfirmedRunError(
            f"run {run.id} can't be confirmed: it was interrupted before its end",
            hint="run `remediate apply` to finish it, or `remediate rollback` to undo it",
        )
    was_begun = any(entry.kind is EntryKind.UNDO_BEGIN for entry in run.entries)
    if was_begun or (run.confirmation is Confirmation.EXPIRED and is_watched(run.folder)):
        raise UnconfirmedRunError(
            f"run {run.id} can't be confirmed: undoing it has begun", hint="`remediate history` tells how far it is"
        )
