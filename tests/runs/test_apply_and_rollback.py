from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import FolderSubject

from remediate.errors import EditedSinceError, InterruptedRunError, LockHeldError, StalePlanError, UsageError
from remediate.model import Plan, Request
from remediate.observation import observe
from remediate.planner import make_plan
from remediate.profile.load import load_profile
from remediate.runs.execute import apply_plan
from remediate.runs.history import summarize_runs
from remediate.runs.journal import RunStatus, load_run
from remediate.runs.rollback import find_run, rollback_run
from remediate.runs.store import Store


def plan_for(folder: Path) -> Plan:
    return make_plan(observe(Request(str(folder))), load_profile("base"))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_apply_then_nothing_to_do_then_rollback(folder: Path, subject: FolderSubject, store: Store) -> None:
    before = contents(folder)
    (folder / "a").chmod(0o640)
    plan = plan_for(folder)
    result = apply_plan(plan, store=store)
    assert result.done == ("folder:a", "folder:b", "folder:new")
    assert contents(folder) == subject.wanted
    assert (folder / "a").stat().st_mode & 0o777 == 0o640

    assert plan_for(folder).changes == ()
    subject.performed.clear()
    again = apply_plan(plan, store=store)
    assert (again.run_id, again.done, again.already) == ("", (), ("folder:a", "folder:b", "folder:new"))
    assert subject.performed == []
    assert len(store.run_folders()) == 1

    run = find_run(store, folder=folder)
    undone = rollback_run(run, store=store)
    assert undone.undone == ("folder:new", "folder:b", "folder:a")
    assert contents(folder) == before
    assert (folder / "a").stat().st_mode & 0o777 == 0o640
    with pytest.raises(UsageError, match="no run to undo"):
        find_run(store, folder=folder)


def test_a_stale_plan_names_what_moved(folder: Path, subject: FolderSubject, store: Store) -> None:
    plan = plan_for(folder)
    (folder / "b").write_bytes(b"edited meanwhile")
    with pytest.raises(StalePlanError) as caught:
        apply_plan(plan, store=store)
    assert len(caught.value.moved) == 1
    assert caught.value.moved[0].startswith("folder b: was ")
    assert (folder / "a").read_bytes() == b"old a\r\n"
    assert store.run_folders() == ()


def test_a_failure_stops_the_run_and_can_be_undone(folder: Path, subject: FolderSubject, store: Store) -> None:
    before = contents(folder)
    subject.fail_on = "b"
    result = apply_plan(plan_for(folder), store=store)
    assert result.done == ("folder:a",)
    assert result.not_done == ("folder:b", "folder:new")
    assert result.failure is not None
    assert "b refuses" in str(result.failure)
    run = find_run(store, folder=folder)
    assert run.status is RunStatus.FAILED
    rollback_run(run, store=store)
    assert contents(folder) == before
    assert summarize_runs(store)[0].status == RunStatus.ROLLED_BACK


def test_rollback_does_not_overwrite_a_later_edit(folder: Path, subject: FolderSubject, store: Store) -> None:
    apply_plan(plan_for(folder), store=store)
    (folder / "a").write_bytes(b"my own work")
    with pytest.raises(EditedSinceError, match="file a changed after the run"):
        rollback_run(find_run(store, folder=folder), store=store)
    assert contents(folder) == {"a": b"my own work", "b": b"new b\n", "new": b"created\n"}
    assert find_run(store, folder=folder).status is RunStatus.APPLIED


def test_without_root_the_rest_is_done(folder: Path, use_subjects: Callable[..., None], store: Store) -> None:
    mine = FolderSubject({"a": b"new a\n"}, name="mine")
    roots = FolderSubject({"b": b"new b\n"}, name="roots", root=True)
    use_subjects(roots, mine)
    result = apply_plan(plan_for(folder), store=store, is_root=False)
    assert result.done == ("mine:a",)
    assert [change.id for change in result.needs_root] == ["roots:b"]
    assert (folder / "b").read_bytes() == b"old b"


def test_only_some_subjects(folder: Path, use_subjects: Callable[..., None], store: Store) -> None:
    one, two = FolderSubject({"a": b"1"}, name="one"), FolderSubject({"b": b"2"}, name="two")
    use_subjects(one, two)
    assert apply_plan(plan_for(folder), store=store, only=["two"]).done == ("two:b",)
    assert apply_plan(plan_for(folder), store=store).done == ("one:a",)
    runs = store.run_folders()
    assert [folder.name for folder in runs] == ["000001", "000002"]


def test_a_partial_rollback_leaves_the_rest_standing(
    folder: Path, use_subjects: Callable[..., None], store: Store
) -> None:
    one, two = FolderSubject({"a": b"1"}, name="one"), FolderSubject({"b": b"2"}, name="two")
    use_subjects(one, two)
    apply_plan(plan_for(folder), store=store)
    result = rollback_run(find_run(store, folder=folder), store=store, only=["one"])
    assert (result.undone, result.left) == (("one:a",), ("two:b",))
    run = find_run(store, folder=folder)
    assert run.status is RunStatus.PARTLY_ROLLED_BACK
    assert apply_plan(plan_for(folder), store=store).done == ("one:a",)
    rollback_run(run, store=store)
    assert (folder / "b").read_bytes() == b"old b"


def test_the_lock_names_its_holder(folder: Path, subject: FolderSubject, store: Store) -> None:
    plan = plan_for(folder)
    with store.lock(), pytest.raises(LockHeldError, match="another run") as caught:
        apply_plan(plan, store=store)
    assert str(os.getpid()) in caught.value.cause
    assert apply_plan(plan, store=store).done


def test_a_missing_backup_is_said(folder: Path, subject: FolderSubject, store: Store) -> None:
    apply_plan(plan_for(folder), store=store)
    for backup in store.run_folders()[0].glob("backup-*"):
        backup.unlink()
    result = rollback_run(find_run(store, folder=folder), store=store)
    assert result.undone == ("folder:new",)
    assert result.failure is not None
    assert "missing or damaged" in str(result.failure)


def test_a_torn_last_line_is_left_out(folder: Path, subject: FolderSubject, store: Store) -> None:
    apply_plan(plan_for(folder), store=store)
    journal = store.run_folders()[0] / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-20])
    run = load_run(store.run_folders()[0])
    assert run is not None
    assert run.status is RunStatus.INTERRUPTED
    (folder / "a").write_bytes(b"x")
    plan = plan_for(folder)
    with pytest.raises(InterruptedRunError):
        apply_plan(plan, store=store)


def test_the_ledger_follows_apply_and_rollback(folder: Path, subject: FolderSubject, store: Store) -> None:
    boot = "this-boot"
    store.remember(boot, "000001", {"gpu/locked": "1410,1410"})
    assert store.ledger(boot).entries == {"gpu/locked": "1410,1410"}
    assert store.ledger("another-boot").entries == {}
    store.remember(boot, "000002", {"gpu/locked": None})
    assert store.ledger(boot).entries == {}
