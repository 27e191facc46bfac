"""Who is told to notice a setting, and what the commands do about it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpu.support import alter, copy_board, shipped_facts, whole_facts, with_device

from remediate.gpu.busy import who_notices
from remediate.gpu.commands import Setting, make_operation
from remediate.gpu.facts import Device, Process
from remediate.gpu.subject import GpuSubject
from remediate.model import Risk, Unknown, UnknownKind
from remediate.profile.schema import GpuWish, Profile
from remediate.subject import Proposal, Situation

FACTS = shipped_facts()
(DEVICE,) = FACTS.devices
PROFILE = Profile(schema_version=1, name="ours", gpu=GpuWish(power_limit_w=250, sm_clock="max", persistence_mode=True))
FULL = Process(4242, "compute", 12288, "python", "alice")
UNREADABLE = Unknown(UnknownKind.NOT_SUPPORTED, "not supported")


def noticed(setting: Setting, processes: object) -> tuple[str, ...]:
    device = alter(DEVICE, processes=processes)
    operation = make_operation(setting, str(DEVICE.uuid), 0, "1", "0")
    return who_notices(operation, with_device(FACTS, device))


@pytest.mark.parametrize(
    ("processes", "lines"),
    [
        ((), ()),
        ((FULL,), ("GPU 0: 4242 python (alice), compute, 12288 MiB",)),
        (
            (Process(7, "graphics", UNREADABLE, UNREADABLE, UNREADABLE),),
            ("GPU 0: 7 ? (?), graphics, memory unknown",),
        ),
        (UNREADABLE, ("GPU 0: its processes could not be read: not supported",)),
    ],
)
def test_who_notices_a_power_limit(processes: object, lines: tuple[str, ...]) -> None:
    assert noticed(Setting.POWER_LIMIT, processes) == lines


def test_nobody_notices_persistence_mode_or_a_gpu_that_is_gone() -> None:
    assert noticed(Setting.PERSISTENCE_MODE, (FULL,)) == ()
    operation = make_operation(Setting.POWER_LIMIT, "GPU-gone", 0, "400", "250")
    assert who_notices(operation, FACTS) == ()


def proposed(device: Device) -> Proposal:
    facts = whole_facts(with_device(FACTS, device))
    return GpuSubject().propose(Situation(facts, PROFILE), ())


def test_a_change_says_who_notices_it() -> None:
    persistence, *others = proposed(alter(DEVICE, processes=(FULL,))).changes
    assert persistence.affects == ()
    assert {change.affects for change in others} == {("GPU 0: 4242 python (alice), compute, 12288 MiB",)}
    assert all(Risk.DISRUPTIVE in change.risks for change in others)
    quiet = proposed(alter(DEVICE, processes=())).changes
    assert not any(change.affects or Risk.DISRUPTIVE in change.risks for change in quiet)


class Box:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.board = copy_board(folder)
        (folder / "ours.toml").write_text('schema_version = 1\nname = "ours"\n[gpu]\npower_limit_w = 250\n')

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "remediate", *arguments],
            cwd=self.folder,
            env={**os.environ, "REMEDIATE_STATE_DIR": str(self.folder / "state"), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )

    def on_board(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(command, "--only", "gpu", "-p", "ours.toml", "--board", self.board, *arguments)

    def set_processes(self, processes: list[object]) -> None:
        path = Path(self.board)
        document = json.loads(path.read_text())
        document["gpu"]["devices"][0]["processes"] = processes
        path.write_text(json.dumps(document))


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_yes_alone_is_refused_on_a_busy_gpu(box: Box) -> None:
    planned = box.on_board("plan")
    assert "noticed by: GPU 0: 4242" in planned.stdout
    refused = box.on_board("apply", "--yes")
    assert refused.returncode == 3
    assert "power limit of GPU 0" in refused.stderr
    assert "4242 /sandbox/.venv/bin/python (sandbox), compute, 12288 MiB" in refused.stderr
    assert "--allow-disruption" in refused.stderr
    allowed = box.on_board("apply", "--yes", "--allow-disruption")
    assert allowed.returncode == 0, allowed.stderr


def test_a_quiet_gpu_needs_no_more_than_yes(box: Box) -> None:
    box.set_processes([])
    assert box.on_board("apply", "--yes").returncode == 0


def test_a_plan_of_a_quiet_gpu_is_refused_when_somebody_came(box: Box) -> None:
    processes = json.loads(Path(box.board).read_text())["gpu"]["devices"][0]["processes"]
    box.set_processes([])
    assert box.on_board("plan", "-o", "plan.json").returncode == 0
    box.set_processes(processes)
    assert box.run("apply", "plan.json", "--yes").returncode == 3
    assert box.run("apply", "plan.json", "--yes", "--allow-disruption").returncode == 0
