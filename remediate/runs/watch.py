"""The watcher of one run: `python -m remediate.runs.watch RUN_FOLDER STATE_FOLDER`.

Started before the first change. It leaves the session that started it, so that a dying terminal or connection does not
take it along, and undoes the run when the time is up and nobody confirmed it. Asked to end (SIGTERM: the machine goes
down, or a login manager kills what a session left behind), it undoes the run at once, for nobody will confirm it then.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from remediate.errors import LockHeldError, RemediateError
from remediate.registry import subjects
from remediate.runs.confirm import hold_watch
from remediate.runs.journal import Confirmation, EntryKind, Run, RunStatus, load_run
from remediate.runs.rollback import rollback_run
from remediate.runs.store import Store

_PAUSE_S = 0.2


class Watcher:
    """Waits for a confirmation of one run, then lets it stay or undoes it.

    Args:
        pause: waits for a moment and says whether the process that makes the changes has ended.
        is_hurried: whether the run is to be undone at once.
        clock: seconds that go on while the wall clock is set.
    """

    def __init__(
        self,
        folder: Path,
        store: Store,
        *,
        pause: Callable[[], bool],
        is_hurried: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._store = store
        self._pause = pause
        self._is_hurried = is_hurried
        self._clock = clock
        self._awaits = 0
        self._deadline: float | None = None

    def watch(self) -> None:
        """Return when the run is confirmed or undone, or undoing it failed, which is then in the journal."""
        has_ended = False
        while True:
            run = self._load()
            if _is_settled(run):
                return
            self._set_deadline(run, has_ended)
            if self._is_due(has_ended) and self._revert():
                return
            has_ended = self._pause() or has_ended

    def _load(self) -> Run:
        run = load_run(self._folder)
        if run is None:
            raise LookupError(f"{self._folder} holds no run")
        return run

    def _set_deadline(self, run: Run, has_ended: bool) -> None:
        """From the end of the changes; where the process died before it, from then. Finishing the run starts anew."""
        awaits = sum(entry.kind is EntryKind.AWAIT for entry in run.entries)
        if awaits > self._awaits or (has_ended and self._deadline is None):
            self._awaits = awaits
            self._deadline = self._clock() + (run.confirm_within_s or 0)

    def _is_due(self, has_ended: bool) -> bool:
        if self._is_hurried():
            return has_ended or self._awaits > 0
        return self._deadline is not None and self._clock() >= self._deadline

    def _revert(self) -> bool:
        """Undo the run. False where another process is at it: then look again."""
        try:
            run = self._expire()
            if run is not None:
                self._undo(run)
        except LockHeldError:
            return False
        return run is not None

    def _undo(self, run: Run) -> None:
        try:
            _tell(rollback_run(run, store=self._store).failure)
        except LockHeldError:
            raise
        except RemediateError as error:
            # Nothing was undone, as when somebody edited a file since; the journal tells the next command why.
            _tell(error)
            with self._store.lock():
                self._load().append(EntryKind.UNDO_FAILED, detail=str(error))

    def _expire(self) -> Run | None:
        """Note that it is too late; None where somebody confirmed, finished or undid the run in this very moment."""
        with self._store.lock():
            run = self._load()
            awaits = sum(entry.kind is EntryKind.AWAIT for entry in run.entries)
            if _is_settled(run) or awaits > self._awaits:
                return None
            if run.confirmation is Confirmation.AWAITED:
                run.append(EntryKind.EXPIRED)
            return run


def _is_settled(run: Run) -> bool:
    return run.confirmation is Confirmation.CONFIRMED or run.status is RunStatus.ROLLED_BACK


def _tell(error: RemediateError | None) -> None:
    if error is not None:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()


def revert_unconfirmed(run: Run, store: Store) -> None:
    """Undo a run whose watcher is gone, now."""
    Watcher(run.folder, store, pause=_pause_alone, is_hurried=lambda: True).watch()


def _pause_alone() -> bool:
    time.sleep(_PAUSE_S)
    return True


def main() -> None:
    """Leave the parent, say that it is ready, and watch."""
    folder, root = Path(sys.argv[1]), Path(sys.argv[2])
    if os.fork():
        os._exit(0)
    held = hold_watch(folder)
    if held is None:
        return
    ended = _Signals()
    subjects()  # Loaded now: undoing must not depend on modules that the run replaces.
    with contextlib.suppress(BrokenPipeError):
        os.write(1, b"ready\n")
    os.dup2(2, 1)
    Watcher(folder, Store(root), pause=_Applier().pause, is_hurried=lambda: ended.came).watch()


class _Signals:
    """Outlives a terminal that hangs up, and notes that it was asked to end."""

    def __init__(self) -> None:
        self.came = False
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, *_: object) -> None:
        self.came = True


class _Applier:
    """The process that makes the changes, by the other end of standard input."""

    def __init__(self) -> None:
        self._ended = False

    def pause(self) -> bool:
        """Wait for a moment; True once that process has ended or let go."""
        if self._ended:
            time.sleep(_PAUSE_S)
        elif select.select([0], [], [], _PAUSE_S)[0]:
            self._ended = not os.read(0, 64)
        return self._ended


if __name__ == "__main__":
    main()
