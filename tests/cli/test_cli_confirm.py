"""`apply --confirm-within` with its real watcher process: hung up terminals, killed programs, a killed watcher."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gpu.support import copy_board

from remediate.gpu.board import Board

PROFILE = """
schema_version = 1
name = "ours"
[gpu]
power_limit_w = 250
persistence_mode = true
"""
KILL_ITSELF = """
import os, signal
from remediate.cli import main
from remediate.runs.journal import EntryKind, Run
append = Run.append
def dying(self, kind, change="", **values):
    append(self, kind, change, **values)
    if kind is EntryKind.DONE:
        os.kill(os.getpid(), signal.SIGKILL)
Run.append = dying
main()
"""
PATIENCE_S = 60.0
YES = ("--yes", "--allow-disruption")
"""The board has a process on it."""


class Box:
    """A simulated board and the commands on it. Watchers that are left over are ended with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.board = copy_board(folder)
        self.state = folder / "state"
        (folder / "ours.toml").write_text(PROFILE)
        self.env = {**os.environ, "REMEDIATE_STATE_DIR": str(self.state), "COLUMNS": "200"}
        self.target = ("--only", "gpu", "-p", "ours.toml", "--board", self.board)

    def run(self, *arguments: str, program: tuple[str, ...] = ("-m", "remediate")) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *program, *arguments],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )

    def apply(self, seconds: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("apply", *self.target, *YES, "--confirm-within", str(seconds), *arguments)

    def limit_w(self) -> object:
        return Board.load(self.board).facts.devices[0].power.limit_w

    def history(self) -> str:
        runs = json.loads(self.run("history", "--json").stdout)["runs"]
        return f"{runs[-1]['status']}; {runs[-1]['confirmation']}"

    def watchers(self) -> list[int]:
        """Process ids of this box's watchers."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if b"remediate.runs.watch" in words and str(self.state).encode() in words:
                    found.append(int(path.parent.name))
        return found

    def wait_until(self, claim: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not claim():
            assert time.monotonic() < end, f"waited too long; {self.history()}"
            time.sleep(0.1)

    def start_on_terminal(self, *arguments: str) -> tuple[subprocess.Popen[bytes], int]:
        """The command in a session of its own with a terminal, as SSH gives it; the terminal's other end."""
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "remediate", *arguments],
            cwd=self.folder,
            env=self.env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - this test has one thread
        )
        os.close(slave)
        return process, master


def answer(master: int, question: str, text: str) -> str:
    """Wait for the question on the terminal and type an answer; what the terminal showed until then."""
    seen = b""
    end = time.monotonic() + PATIENCE_S
    while question.encode() not in seen:
        assert time.monotonic() < end, seen.decode()
        if select.select([master], [], [], 1)[0]:
            seen += os.read(master, 65536)
    os.write(master, text.encode())
    return seen.decode()


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    made = Box(tmp_path)
    yield made
    for pid in made.watchers():
        os.kill(pid, signal.SIGKILL)


def test_undone_by_itself(box: Box) -> None:
    done = box.apply(2)
    assert done.returncode == 0, done.stderr
    assert "\n  remediate confirm 000001\n" in done.stdout
    assert box.limit_w() == 250
    box.wait_until(lambda: box.limit_w() == 400)
    box.wait_until(lambda: box.history() == "rolled back; not confirmed in time")
    assert box.run("confirm").returncode == 1
    box.wait_until(lambda: not box.watchers())


def test_confirmed_from_another_shell(box: Box) -> None:
    box.apply(300)
    assert box.history() == "applied; awaiting confirmation"
    noted = box.run("verify", *box.target)
    assert noted.returncode == 0
    assert "run 000001 is not confirmed: it is undone at" in noted.stderr
    refused = box.run("apply", *box.target, *YES)
    assert refused.returncode == 1
    assert "`remediate confirm 000001` keeps it" in refused.stderr
    assert box.run("confirm").returncode == 0
    box.wait_until(lambda: not box.watchers())
    assert box.limit_w() == 250
    assert box.history() == "applied; confirmed"


def test_a_killed_program_does_not_stop_the_undoing(box: Box) -> None:
    killed = box.run("apply", *box.target, *YES, "--confirm-within", "2", program=("-c", KILL_ITSELF))
    assert killed.returncode == -signal.SIGKILL
    box.wait_until(lambda: box.history() == "rolled back; not confirmed in time")
    assert Board.load(box.board).facts.devices[0].persistence_mode is False
    assert box.limit_w() == 400


def test_a_hung_up_terminal_does_not_stop_the_undoing(box: Box) -> None:
    """Closing the terminal's other end hangs up: the kernel sends SIGHUP to the session, as when SSH dies."""
    process, master = box.start_on_terminal("apply", *box.target, "--confirm-within", "3")
    answer(master, "Make these 2 changes?", "y\n")
    box.wait_until(lambda: box.limit_w() == 250)
    answer(master, "Keep it?", "")
    os.close(master)
    assert process.wait(PATIENCE_S) == -signal.SIGHUP
    box.wait_until(lambda: box.history() == "rolled back; not confirmed in time")
    assert box.limit_w() == 400


@pytest.mark.parametrize(
    ("typed", "code", "limit_w"), [("yes\n", 0, 250), ("no\n", 3, 400), ("perhaps\nyes\n", 0, 250)]
)
def test_answered_on_the_terminal(box: Box, typed: str, code: int, limit_w: int) -> None:
    process, master = box.start_on_terminal("apply", *box.target, "--confirm-within", "300")
    shown = answer(master, "Make these 2 changes?", "y\n")
    assert "4242 /sandbox/.venv/bin/python (sandbox)" in shown[shown.index("Who notices these changes now") :]
    answer(master, "Keep it?", typed)
    assert process.wait(PATIENCE_S) == code
    os.close(master)
    assert box.limit_w() == limit_w
    box.wait_until(lambda: not box.watchers())


def test_no_answer_on_the_terminal(box: Box) -> None:
    process, master = box.start_on_terminal("apply", *box.target, "--confirm-within", "2")
    answer(master, "Make these 2 changes?", "y\n")
    answer(master, "is undone.", "")
    assert process.wait(PATIENCE_S) == 3
    os.close(master)
    assert box.limit_w() == 400


def test_a_killed_watcher_is_told_by_the_next_command(box: Box) -> None:
    box.apply(300)
    (watcher,) = box.watchers()
    os.kill(watcher, signal.SIGKILL)
    box.wait_until(lambda: not box.watchers())
    told = box.run("plan", *box.target)
    assert "is gone (killed, or the machine was restarted), so nothing will" in told.stderr
    assert box.run("apply", *box.target, *YES).returncode == 1
    assert box.run("rollback", "--yes").returncode == 0
    assert box.limit_w() == 400
    assert box.run("apply", *box.target, *YES).returncode == 0


def test_a_watcher_that_is_asked_to_end_undoes_first(box: Box) -> None:
    box.apply(300)
    (watcher,) = box.watchers()
    os.kill(watcher, signal.SIGHUP)
    os.kill(watcher, signal.SIGTERM)
    box.wait_until(lambda: box.limit_w() == 400)
    box.wait_until(lambda: not box.watchers())


def test_a_boot_undoes_what_nobody_confirmed(box: Box) -> None:
    """The change may be why the machine had to be restarted."""
    root = box.folder / "root"
    (root / "etc").mkdir(parents=True)
    programs = box.folder / "bin"
    programs.mkdir()
    (programs / "systemctl").write_text(
        '#!/bin/sh\n[ $2 = is-enabled ] && cat "${1#--root=}/switch" 2>&1\n'
        '[ $2 = enable ] && echo enabled >"${1#--root=}/switch"\n'
        '[ $2 = disable ] && echo disabled >"${1#--root=}/switch"\nexit 0\n'
    )
    (programs / "systemctl").chmod(0o755)
    (root / "switch").write_text("disabled\n")
    box.env |= {"REMEDIATE_SYSTEM_ROOT": str(root), "PATH": f"{programs}:{os.environ['PATH']}"}
    (box.folder / "ours.toml").write_text(PROFILE + "survive_reboot = true\n")
    done = box.apply(300)
    assert done.returncode == 0, done.stderr
    settings = root / "etc/remediate/gpu.json"
    assert settings.exists()
    (watcher,) = box.watchers()
    os.kill(watcher, signal.SIGKILL)
    board = Board.load(box.board)
    board.reboot()
    board.save()
    booted = box.run("gpu-boot", "--file", str(settings), "--board", box.board, "--wait", "0")
    assert booted.returncode == 0, booted.stderr
    assert "was not confirmed before this machine was restarted" in booted.stdout
    assert not settings.exists()
    assert box.limit_w() == 400
    assert box.history() == "rolled back; not confirmed in time"


def test_the_time_is_checked(box: Box) -> None:
    assert box.apply(0).returncode == 2
    assert box.limit_w() == 400
