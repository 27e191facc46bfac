"""A run killed at any moment can be told, finished and rolled back, byte for byte.

The process kills itself with SIGKILL before or after the n-th journal entry, or in the middle of writing a file; the
parent looks at what is left.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import FolderSubject

from remediate import effects
from remediate.model import Request
from remediate.observation import observe
from remediate.planner import make_plan
from remediate.profile.load import load_profile
from remediate.runs.execute import apply_plan, finish_run, interrupted_run
from remediate.runs.journal import EntryKind, Run, RunStatus
from remediate.runs.rollback import find_run, rollback_run
from remediate.runs.store import Store

WANTED = {"a": b"new a\n", "b": b"new b\n", "new": b"created\n"}
ENTRIES_OF_A_RUN = 8  # begin, three times intent and done, end
ENTRIES_OF_A_ROLLBACK = 8  # undo begin, three times undo intent and undone, undo end


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def killed(action: Callable[[], object]) -> None:
    """Run `action` in a child that is expected to die of SIGKILL."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "the child ended before it was killed"
    assert os.WTERMSIG(status) == signal.SIGKILL


def kill_at(number: int, *, before: bool) -> None:
    """Die before or after the `number`-th journal entry from now on, counted from 1."""
    original = Run.append
    count = 0

    def append(self: Run, kind: EntryKind, change_id: str = "", **values: object) -> None:
        nonlocal count
        count += 1
        if before and count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        original(self, kind, change_id, **values)
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    Run.append = append  # type: ignore[method-assign]  # only in the child that dies


def kill_before_rename(number: int) -> None:
    """Die in the middle of the `number`-th atomic write, with the temporary file full and not yet renamed."""
    original = Path.replace
    count = 0

    def replace(self: Path, target: str | os.PathLike[str]) -> Path:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, target)

    Path.replace = replace  # type: ignore[method-assign,assignment]  # only in the child that dies


def run_apply(folder: Path, store: Store) -> None:
    apply_plan(make_plan(observe(Request(str(folder))), load_profile("base")), store=store)


def settle(folder: Path, store: Store, before: dict[str, bytes], way: str) -> None:
    run = interrupted_run(store)
    if run is None:
        # Killed before the journal began, or after its last entry: nothing is in between.
        assert contents(folder) in (before, WANTED)
        return
    assert run.status is RunStatus.INTERRUPTED
    if way == "finish":
        result = finish_run(run, store=store)
        assert result.failure is None
        assert contents(folder) == WANTED
        rollback_run(find_run(store, folder=folder), store=store)
    else:
        rollback_run(find_run(store, folder=folder), store=store)
    assert contents(folder) == before
    assert interrupted_run(store) is None


@pytest.mark.parametrize("way", ["finish", "rollback"])
@pytest.mark.parametrize("before_entry", [True, False])
@pytest.mark.parametrize("number", range(1, ENTRIES_OF_A_RUN + 1))
def test_killed_at_every_journal_entry(
    folder: Path, subject: FolderSubject, store: Store, number: int, before_entry: bool, way: str
) -> None:
    before = contents(folder)

    def action() -> None:
        kill_at(number, before=before_entry)
        run_apply(folder, store)

    killed(action)
    settle(folder, store, before, way)


@pytest.mark.parametrize("way", ["finish", "rollback"])
@pytest.mark.parametrize("number", range(1, 10))
def test_killed_in_the_middle_of_a_write(
    folder: Path, subject: FolderSubject, store: Store, number: int, way: str
) -> None:
    before = contents(folder)

    def action() -> None:
        kill_before_rename(number)
        run_apply(folder, store)
        os.kill(os.getpid(), signal.SIGKILL)

    killed(action)
    settle(folder, store, before, way)


@pytest.mark.parametrize("before_entry", [True, False])
@pytest.mark.parametrize("number", range(1, ENTRIES_OF_A_ROLLBACK + 1))
def test_killed_while_rolling_back(
    folder: Path, subject: FolderSubject, store: Store, number: int, before_entry: bool
) -> None:
    before = contents(folder)
    run_apply(folder, store)

    def action() -> None:
        kill_at(number, before=before_entry)
        rollback_run(find_run(store, folder=folder), store=store)

    killed(action)
    if find_status(store) is not RunStatus.ROLLED_BACK:
        rollback_run(find_run(store, folder=folder), store=store)
    assert contents(folder) == before
    assert interrupted_run(store) is None


def find_status(store: Store) -> RunStatus:
    from remediate.runs.journal import load_run

    run = load_run(store.run_folders()[-1])
    assert run is not None
    return run.status


def test_the_counts_above_are_right(folder: Path, subject: FolderSubject, store: Store) -> None:
    run_apply(folder, store)
    run = find_run(store, folder=folder)
    assert len(run.entries) == ENTRIES_OF_A_RUN
    rollback_run(run, store=store)
    assert len(run.entries) == ENTRIES_OF_A_RUN + ENTRIES_OF_A_ROLLBACK


def test_leftovers_are_siblings_with_the_runs_own_suffix(folder: Path, subject: FolderSubject, store: Store) -> None:
    """The rename is the moment of change: before it the original stands, whole."""

    def action() -> None:
        kill_before_rename(3)  # the plan, the backup of `a`, then `a` itself
        run_apply(folder, store)

    killed(action)
    assert (folder / "a").read_bytes() == b"old a\r\n"
    assert (folder / "a.remediate-000001-tmp").read_bytes() == b"new a\n"
    effects.remove_leftover(folder / "a", ".remediate-000001-tmp")
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]
