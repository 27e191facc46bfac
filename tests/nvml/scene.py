"""A sandbox whose GPUs are the mock library's and whose nvidia-smi is the genuine one or its stand-in."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from gpu.support import alter, shipped_device, shipped_facts
from nvml.mock_board import Fault, add_fault, read_line, write_board
from nvml.mock_library import environment, use_in_process
from nvml.programs import install

from remediate.cli import main
from remediate.gpu.facts import GpuFacts
from remediate.gpu.host import LiveHost

PROFILE = """\
schema_version = 1
name = "wish"
[gpu]
power_limit_w = 250
sm_clock = "max"
memory_clock = "max"
persistence_mode = true
"""
LOCK_PROFILE = """\
schema_version = 1
name = "wish"
[gpu]
power_limit_w = 300
sm_clock_mhz = 1500
"""
BEFORE = {"persistence": "0", "limit": "400000", "graphics": "1095", "memory": "1215", "lock": None}
"""Settings of `one_board`; and after the profile's wishes are met."""
AFTER = {"persistence": "1", "limit": "250000", "graphics": "1410", "memory": "1215", "lock": None}
UUID = str(shipped_device().uuid)


class Ended(NamedTuple):
    """A command that ended."""

    code: int
    out: str
    err: str


class Scene:
    """The folder, the board file behind NVML, and the log of what was run as nvidia-smi."""

    def __init__(
        self, folder: Path, program: Path, board: Path, calls: Path, capture: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self.program = program
        self.board = board
        self._calls = calls
        self._capture = capture

    def run(self, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Ended:
        """One command of the program, in this process."""
        monkeypatch.setattr(sys, "argv", ["remediate", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capture.readouterr()
        return Ended(int(ended.value.code or 0), out, err)

    def calls(self) -> list[list[str]]:
        """The command lines so far."""
        return [line.split() for line in self._calls.read_text("utf-8").splitlines()] if self._calls.exists() else []

    def forget_calls(self) -> None:
        """Start the log afresh."""
        self._calls.unlink(missing_ok=True)

    def settings(self, device: int = 0) -> dict[str, str | None]:
        """What the device is set to, as NVML would tell (and locks, which it would not)."""
        names = {
            "persistence": "nvmlDeviceGetPersistenceMode",
            "limit": "nvmlDeviceGetPowerManagementLimit",
            "graphics": "nvmlDeviceGetApplicationsClock.0",
            "memory": "nvmlDeviceGetApplicationsClock.2",
            "lock": "lock.0",
        }
        return {key: read_line(self.board, name, device) or None for key, name in names.items()}

    def fail(self, function: str, code: int = 0, seconds: float = 0.0, after: int = 0, device: int = -1) -> None:
        """Let calls of an NVML function fail from now on."""
        add_fault(self.board, Fault(function, code, seconds, after, device))


def set_scene(
    program: str,
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capture: pytest.CaptureFixture[str],
    *,
    facts: GpuFacts | None = None,
    profile: str = PROFILE,
    root: bool = True,
) -> Scene:
    """A sandbox with a profile, on a board; the whole process then lives on that machine."""
    folder = tmp_path / "sandbox"
    folder.mkdir()
    (folder / "wish.toml").write_text(profile)
    (folder / "remediate.toml").write_text('profile = "wish.toml"\n')
    board = write_board(tmp_path / "mock.board", facts or one_board(), root=root)
    inside = install(program, tmp_path / "inside")
    outside = tmp_path / "bin"
    outside.mkdir()
    calls = tmp_path / "calls"
    wrapper = outside / "nvidia-smi"
    wrapper.write_text(f'#!/bin/sh\necho "$*" >>"{calls}"\nexec "{inside}/nvidia-smi" "$@"\n')
    wrapper.chmod(0o755)
    use_in_process(library, board, monkeypatch)
    for name, value in environment(library, board).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{outside}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(LiveHost, "has_cap_sys_admin", lambda self: True)
    monkeypatch.chdir(folder)
    return Scene(folder, inside, board, calls, capture)


def one_board() -> GpuFacts:
    """The incident's A100, with nobody on it."""
    return alter(shipped_facts(), devices=(alter(shipped_device(), processes=()),))


def two_boards() -> GpuFacts:
    """Two A100 in one host."""
    first = one_board().devices[0]
    second = alter(first, index=1, uuid="GPU-b2004000-0000-4000-8000-000000000000", pci_bus_id="00000000:0A:00.0")
    return alter(shipped_facts(), devices=(first, second), device_count=2)
