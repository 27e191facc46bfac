"""Locked clocks have no getter: what the ledger remembers decides whether a second apply has something to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from remediate import api
from remediate.errors import StalePlanError
from remediate.gpu.board import Board
from remediate.runs.store import Store

PROFILE = 'schema_version = 1\nname = "ceiling"\n[gpu]\nsm_clock_mhz = 1500\n'


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    from remediate.gpu.board import board_content

    folder = tmp_path / "sandbox"
    folder.mkdir()
    (folder / "board.json").write_bytes(board_content("rtx-3090"))
    (folder / "ceiling.toml").write_text(PROFILE)
    (folder / "remediate.toml").write_text('profile = "ceiling.toml"\nboard = "./board.json"\n')
    return folder


def lock_of(sandbox: Path) -> str:
    return Board.load(sandbox / "board.json").hidden(0).locked_gpu_clocks


def test_a_lock_is_remembered_and_undone(sandbox: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    plan = api.plan(api.observe(sandbox, only=["gpu"], state_dir=state))
    (change,) = plan.changes
    assert change.command[-2] == "-lgc"
    assert api.apply(plan, state_dir=state).done == (change.id,)
    assert lock_of(sandbox).endswith(",1500")

    assert api.apply(plan, state_dir=state).already == (change.id,)
    again = api.plan(api.observe(sandbox, only=["gpu"], state_dir=state))
    assert again.changes == ()
    assert again.differences == ()

    assert not api.rollback(folder=sandbox, state_dir=state).left
    assert lock_of(sandbox) == ""
    assert api.plan(api.observe(sandbox, only=["gpu"], state_dir=state)).changes


def test_a_lock_of_another_boot_is_forgotten(sandbox: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    plan = api.plan(api.observe(sandbox, only=["gpu"], state_dir=state))
    api.apply(plan, state_dir=state)
    ledger = Store(state).root / "ledger.json"
    text = ledger.read_text()
    boot = text.split('"boot_id":"')[1].split('"')[0]
    ledger.write_text(text.replace(boot, "an-earlier-boot"))
    assert api.plan(api.observe(sandbox, only=["gpu"], state_dir=state)).changes


def test_a_lock_that_another_run_changed_makes_the_plan_stale(sandbox: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    plan = api.plan(api.observe(sandbox, only=["gpu"], state_dir=state))
    (sandbox / "ceiling.toml").write_text(PROFILE.replace("1500", "1200"))
    api.apply(api.plan(api.observe(sandbox, only=["gpu"], state_dir=state)), state_dir=state)
    with pytest.raises(StalePlanError, match="stale") as caught:
        api.apply(plan, state_dir=state)
    assert "locked_gpu_clocks" in caught.value.moved[0]
