"""A host of several models, some of which can't be set: the rest is done, and the exit code says what was left."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from gpu.support import LOST, alter, board_facts, shipped_device, shipped_facts, write_board

from remediate.cli import main
from remediate.gpu.facts import Device

PROFILE = """schema_version = 1
name = "mixed"
[gpu]
persistence_mode = true
power_limit_fraction = 0.8
[[gpu_for]]
name = ["NVIDIA L40S"]
sm_clock_mhz = 1995
sm_clock_min_mhz = 1005
[[gpu_for]]
pci = ["07:00.0"]
compute_mode = "exclusive_process"
power_limit_w = 350
"""
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def board(tmp_path: Path) -> str:
    devices = (
        shipped_device("l40s"),
        alter(shipped_device("a100-sxm4-80gb-mig"), index=1),
        alter(shipped_device("rtx-4060-laptop"), index=2),
        Device(index=3, lost=LOST),
        alter(shipped_device("a100-sxm4-40gb"), index=4),
    )
    return write_board(tmp_path, alter(shipped_facts("l40s"), devices=devices, device_count=5))


@pytest.fixture
def run(tmp_path: Path, board: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    (tmp_path / "profile.toml").write_text(PROFILE)
    monkeypatch.setenv("REMEDIATE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)

    def run_cli(command: str, *more: str) -> tuple[int, str]:
        chosen = ["--board", board, "--profile", str(tmp_path / "profile.toml"), "--only", "gpu"]
        monkeypatch.setattr(sys, "argv", ["remediate", command, *more, *(chosen if command != "rollback" else [])])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), " ".join(f"{out} {err}".split())

    return run_cli


def test_what_can_be_set_is_set_and_the_rest_is_told_with_exit_code_4(run: Run, board: str) -> None:
    before = board_facts(board)
    code, text = run("apply", "--yes")
    assert code == 4, text
    assert "7 changes made" in text
    l40s, mig, laptop, lost, a100 = board_facts(board).devices
    assert (l40s.power.limit_w, a100.power.limit_w, a100.compute_mode) == (280, 350, "exclusive process")
    assert l40s.clocks.sm_mhz == 1005, "a floor lifts the idle clock"
    assert mig == before.devices[1]
    assert laptop.persistence_mode is True
    assert lost == before.devices[3]
    assert run("apply", "--yes") == (4, run("plan")[1]), "a second apply does nothing and shows the plan"
    assert run("rollback", "--yes")[0] == 0
    assert board_facts(board) == before


def test_each_board_that_can_not_be_set_is_one_entry_with_commands_for_elsewhere(run: Run) -> None:
    code, text = run("plan", "--check")
    assert code == 3
    assert "Left out (2)" in text
    assert "GPU 1 (GPU-a1008000…): power limit can't be set from here GPU009" in text
    assert "to have it: run these where the GPU can be set nvidia-smi -i GPU-a1008000-0003" in text
    assert "journalctl -k -g 'NVRM|Xid'" in text


def test_every_command_names_its_gpu(run: Run) -> None:
    text = run("plan")[1]
    commands = text.split("Commands ")[1].split(" Left out")[0].split("nvidia-smi ")[1:]
    assert len(commands) == 7
    assert all(command.startswith("-i GPU-") for command in commands)


def test_show_tells_what_is_wished_of_some_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "profile.toml").write_text(PROFILE)
    monkeypatch.setattr(sys, "argv", ["remediate", "profiles", "show", str(tmp_path / "profile.toml")])
    with pytest.raises(SystemExit):
        main()
    text = " ".join(capsys.readouterr().out.split())
    assert 'name = ["NVIDIA L40S"], sm_clock_mhz = 1995, sm_clock_min_mhz = 1005' in text
    assert 'pci = ["07:00.0"], power_limit_w = 350.0, compute_mode = "exclusive_process"' in text
