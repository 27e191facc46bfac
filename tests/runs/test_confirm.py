"""Confirm or revert, without processes: the watcher's decisions on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import FolderSubject

from remediate.errors import ApplyError, LockHeldError, UnconfirmedRunError, UsageError
from remediate.model import Request
from remediate.observation import observe
from remediate.planner import make_plan
from remediate.profile.load import load_profile
from remediate.runs import confirm
from remediate.runs.confirm import (
    confirm_run,
    explain_unsettled,
    hold_watch,
    is_watched,
    refuse_unconfirmed,
    unsettled_run,
)
from remediate.runs.execute import ApplyResult, apply_plan, finish_run, interrupted_run
from remediate.runs.history import summarize_runs
from remediate.runs.journal import Confirmation, EntryKind, Run, RunStatus, load_run
from remediate.runs.rollback import rollback_run
from remediate.runs.store import Store
from remediate.runs.watch import Watcher, revert_unconfirmed

WITHIN_S = 10.0
CHANGED = {"a": b"new a\n", "b": b"new b\n", "new": b"created\n"}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


class Clock:
    """Seconds that go on by one with each pause, and what happens at given seconds."""

    def __init__(self, events: dict[int, Callable[[], object]] | None = None, *, ends_at: int = 0) -> None:
        self.now = 0
        self.events = events or {}
        self.ends_at = ends_at
        self.hurry = False

    def pause(self) -> bool:
        self.now += 1
        assert self.now < 200, "the watcher does not come to an end"
        if self.now in self.events:
            self.events[self.now]()
        return self.now >= self.ends_at

    def watch(self, run: Run, store: Store) -> None:
        Watcher(
            run.folder, store, pause=self.pause, is_hurried=lambda: self.hurry, clock=lambda: float(self.now)
        ).watch()


@pytest.fixture(autouse=True)
def _no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(run: Run, store: Store) -> None:
        assert [entry.kind for entry in run.entries] == [EntryKind.BEGIN], "started before the first change"

    monkeypatch.setattr(confirm, "start_watcher", start)


@pytest.fixture
def before(folder: Path) -> dict[str, bytes]:
    return contents(folder)


@pytest.fixture
def apply(folder: Path, subject: FolderSubject, store: Store, before: dict[str, bytes]) -> Callable[[], ApplyResult]:
    def call() -> ApplyResult:
        plan = make_plan(observe(Request(str(folder))), load_profile("base"))
        return apply_plan(plan, store=store, confirm_within_s=WITHIN_S)

    return call


@pytest.fixture
def run(apply: Callable[[], ApplyResult], store: Store) -> Run:
    result = apply()
    assert result.confirm_by
    loaded = load_run(store.run_folder(result.run_id))
    assert loaded is not None
    return loaded


def test_undone_when_nobody_confirms(run: Run, store: Store, folder: Path, before: dict[str, bytes]) -> None:
    assert contents(folder) == CHANGED
    clock = Clock()
    clock.watch(run, store)
    assert clock.now == WITHIN_S
    assert contents(folder) == before
    run.reload()
    assert (run.status, run.confirmation) == (RunStatus.ROLLED_BACK, Confirmation.EXPIRED)
    assert not run.is_unsettled
    with pytest.raises(UnconfirmedRunError, match="undone already"):
        confirm_run(store)


def test_stays_when_it_is_confirmed_in_time(run: Run, store: Store, folder: Path) -> None:
    clock = Clock({9: lambda: confirm_run(store)})
    clock.watch(run, store)
    assert clock.now == 9
    assert contents(folder) == CHANGED
    confirm_run(store, run.id)  # Twice is no error.
    assert unsettled_run(store) is None
    refuse_unconfirmed(store)


def test_a_rollback_by_hand_ends_the_watch(run: Run, store: Store, folder: Path, before: dict[str, bytes]) -> None:
    clock = Clock({3: lambda: rollback_run(run, store=store)})
    clock.watch(run, store)
    assert clock.now == 3
    assert contents(folder) == before
    (summary,) = summarize_runs(store)
    assert (summary.status, summary.confirmation) == ("rolled back", "")


def test_a_watcher_that_is_asked_to_end_undoes_at_once(
    run: Run, store: Store, folder: Path, before: dict[str, bytes]
) -> None:
    clock = Clock()
    clock.hurry = True
    clock.watch(run, store)
    assert clock.now == 0
    assert contents(folder) == before


def test_no_other_run_before_it_is_settled(
    run: Run, store: Store, folder: Path, apply: Callable[[], ApplyResult]
) -> None:
    (folder / "a").write_bytes(b"something to do")
    with pytest.raises(UnconfirmedRunError) as caught:
        apply()
    assert f"remediate confirm {run.id}" in caught.value.hint
    assert "is gone" in caught.value.cause
    descriptor = hold_watch(run.folder)
    assert descriptor is not None
    assert is_watched(run.folder)
    assert run.deadline in explain_unsettled(run)
    assert summarize_runs(store)[-1].confirmation == "awaiting confirmation"


def test_the_store_being_busy_only_delays(run: Run, store: Store, folder: Path, before: dict[str, bytes]) -> None:
    busy = store.lock()
    clock = Clock({5: busy.__enter__, 15: lambda: busy.__exit__(None, None, None)})
    clock.watch(run, store)
    assert clock.now == 15
    assert contents(folder) == before


def test_confirming_while_another_run_goes_on_is_refused(run: Run, store: Store) -> None:
    with store.lock(), pytest.raises(LockHeldError):
        confirm_run(store)


def test_an_edit_after_the_run_is_not_overwritten_and_told(run: Run, store: Store, folder: Path) -> None:
    (folder / "a").write_bytes(b"mine")
    Clock().watch(run, store)
    assert contents(folder) == {**CHANGED, "a": b"mine"}
    left = unsettled_run(store)
    assert left is not None
    assert left.confirmation is Confirmation.EXPIRED
    assert "undoing it failed" in explain_unsettled(left)
    confirm_run(store, left.id)  # Nothing was undone, so it may still stay.
    assert unsettled_run(store) is None


def test_undoing_that_was_begun_can_not_be_confirmed(run: Run, store: Store) -> None:
    run.append(EntryKind.EXPIRED)
    run.append(EntryKind.UNDO_BEGIN)
    with pytest.raises(UnconfirmedRunError, match="has begun"):
        confirm_run(store)


def killed_halfway(apply: Callable[[], ApplyResult], store: Store, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run whose process died after its first change."""
    original = Run.append

    def append(self: Run, kind: EntryKind, change_id: str = "", **values: object) -> None:
        if kind is EntryKind.INTENT and any(entry.kind is EntryKind.DONE for entry in self.entries):
            raise KeyboardInterrupt
        original(self, kind, change_id, **values)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "append", append)
        with pytest.raises(KeyboardInterrupt):
            apply()
    run = interrupted_run(store)
    assert run is not None
    return run


def test_a_run_that_was_killed_is_undone_after_that_time(
    apply: Callable[[], ApplyResult],
    store: Store,
    folder: Path,
    before: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = killed_halfway(apply, store, monkeypatch)
    assert contents(folder) != before
    with pytest.raises(UnconfirmedRunError, match="interrupted"):
        confirm_run(store)
    clock = Clock(ends_at=7)
    clock.watch(run, store)
    assert clock.now == 7 + WITHIN_S
    assert contents(folder) == before


def test_finishing_a_killed_run_starts_the_time_anew(
    apply: Callable[[], ApplyResult], store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = killed_halfway(apply, store, monkeypatch)
    descriptor = hold_watch(run.folder)  # A watcher is there, so that no other is started.
    assert descriptor is not None

    def finish() -> None:
        assert finish_run(run, store=store).confirm_by
        assert contents(folder) == CHANGED

    clock = Clock({8: finish})
    clock.watch(run, store)
    assert clock.now == 8 + WITHIN_S


def test_nothing_is_changed_where_no_watcher_starts(
    apply: Callable[[], ApplyResult],
    store: Store,
    folder: Path,
    before: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(run: Run, store: Store) -> None:
        raise ApplyError("no process")

    with monkeypatch.context() as patch:
        patch.setattr(confirm, "start_watcher", refuse)
        with pytest.raises(ApplyError, match="no process"):
            apply()
    assert contents(folder) == before
    assert interrupted_run(store) is None
    assert unsettled_run(store) is None


def test_a_failed_change_leaves_the_run_to_be_confirmed_or_undone(
    apply: Callable[[], ApplyResult], subject: FolderSubject, store: Store, folder: Path, before: dict[str, bytes]
) -> None:
    subject.fail_on = "b"
    result = apply()
    assert result.failure is not None
    run = unsettled_run(store)
    assert run is not None
    revert_unconfirmed(run, store)
    assert contents(folder) == before


def test_a_run_that_does_not_ask(folder: Path, subject: FolderSubject, store: Store) -> None:
    with pytest.raises(UsageError, match="no run"):
        confirm_run(store)
    result = apply_plan(make_plan(observe(Request(str(folder))), load_profile("base")), store=store)
    assert not result.confirm_by
    assert unsettled_run(store) is None
    with pytest.raises(UsageError, match="asks for no confirmation"):
        confirm_run(store)
