"""What a reboot took away is no edit by somebody: the rest of the run can still be undone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu.support import copy_board

from remediate import api
from remediate.errors import EditedSinceError
from remediate.gpu.board import Board
from remediate.runs import execute, rollback
from remediate.runs.execute import ApplyResult
from remediate.runs.journal import load_run
from remediate.runs.rollback import find_run, rollback_run
from remediate.runs.store import Store

PROFILE = 'schema_version = 1\nname = "ours"\n[gpu]\npower_limit_w = 250\npersistence_mode = true\n'


@pytest.fixture
def board(tmp_path: Path) -> str:
    """Its limit is 300 W when the run begins, and 400 W by default."""
    place = copy_board(tmp_path)
    document = json.loads(Path(place).read_text())
    document["gpu"]["devices"][0]["power"] |= {"limit_w": 300, "enforced_w": 300}
    Path(place).write_text(json.dumps(document))
    (tmp_path / "ours.toml").write_text(PROFILE)
    return place


def apply(folder: Path, board: str, store: Store) -> ApplyResult:
    facts = api.observe(folder, board=board, only=["gpu"], state_dir=store.root)
    plan = api.plan(facts, str(folder / "ours.toml"))
    return api.apply(plan, state_dir=store.root, allow_disruption=True)


def limit_w(board: str) -> object:
    return Board.load(board).facts.devices[0].power.limit_w


def reboot(board: str) -> None:
    loaded = Board.load(board)
    loaded.reboot()
    loaded.save()


def test_after_a_reboot_the_lost_settings_are_left(
    tmp_path: Path, board: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "read_boot_id", lambda: "one")
    apply(tmp_path, board, store)
    assert limit_w(board) == 250
    reboot(board)
    monkeypatch.setattr(rollback, "read_boot_id", lambda: "two")
    result = rollback_run(find_run(store), store=store)
    assert (result.failure, result.left) == (None, ())
    assert limit_w(board) == 400
    run = load_run(store.run_folders()[-1])
    assert run is not None
    assert any("lost with the restart; it is 400 W now" in entry.detail for entry in run.entries)


def test_within_one_boot_a_third_value_is_somebodys(tmp_path: Path, board: str, store: Store) -> None:
    apply(tmp_path, board, store)
    reboot(board)
    with pytest.raises(EditedSinceError):
        rollback_run(find_run(store), store=store)


def test_what_the_boot_unit_set_again_is_undone_to_what_was_there(
    tmp_path: Path, board: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(tmp_path, board, store)
    monkeypatch.setattr(rollback, "read_boot_id", lambda: "two")
    assert rollback_run(find_run(store), store=store).left == ()
    assert limit_w(board) == 300
