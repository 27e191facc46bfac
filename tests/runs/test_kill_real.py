"""The incident's own repair, killed at every journal entry: packages, script and GPU come back byte for byte."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from test_kill import kill_at, killed

from remediate import api
from remediate.demo import incident
from remediate.demo.sandbox import lay_out
from remediate.demo.walk import snapshot
from remediate.gpu.board import Board
from remediate.packages.piprun import working_in
from remediate.runs.execute import finish_run, interrupted_run
from remediate.runs.rollback import find_run, rollback_run
from remediate.runs.store import Store

pytestmark = pytest.mark.slow
CHANGES = 6
ENTRIES = 2 + 2 * CHANGES


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kill") / "sandbox"
    lay_out(folder)
    return folder


@pytest.fixture
def sandbox(laid_out: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(laid_out, tmp_path / "sandbox", symlinks=True))


def settings(sandbox: Path) -> tuple[object, ...]:
    device = Board.load(sandbox / incident.BOARD_NAME).facts.devices[0]
    return (device.persistence_mode, device.power.limit_w, device.application_clocks)


def everything(sandbox: Path) -> tuple[Mapping[str, bytes], tuple[object, ...]]:
    return snapshot(sandbox), settings(sandbox)


def apply_all(sandbox: Path) -> None:
    state = sandbox / ".state"
    api.apply(api.plan(api.observe(sandbox, state_dir=state)), state_dir=state, allow_disruption=True)


def leftovers(sandbox: Path) -> list[str]:
    return [str(path) for path in sandbox.glob("*-tmp")] + [str(path) for path in sandbox.glob(".venv/**/~*")]


@pytest.mark.parametrize("before_entry", [True, False])
@pytest.mark.parametrize("number", range(1, ENTRIES + 1))
def test_killed_and_settled(sandbox: Path, number: int, before_entry: bool) -> None:
    """Odd entries are finished and then rolled back, even ones are rolled back at once."""
    before = everything(sandbox)
    store = Store(sandbox / ".state")

    def action() -> None:
        kill_at(number, before=before_entry)
        apply_all(sandbox)

    killed(action)
    run = interrupted_run(store)
    if run is None:
        assert number == 1 if before_entry else number == ENTRIES
        return
    if number % 2:
        result = finish_run(run, store=store)
        assert result.failure is None
        assert not api.plan(api.observe(sandbox, state_dir=store.root)).changes
    undone = rollback_run(find_run(store, folder=sandbox), store=store)
    assert (undone.failure, undone.left) == (None, ())
    assert everything(sandbox) == before
    assert leftovers(sandbox) == []


@pytest.mark.parametrize("way", ["finish", "rollback"])
def test_killed_in_the_middle_of_pip(sandbox: Path, way: str) -> None:
    """pip has begun to replace distributions when both it and the program die."""
    before = everything(sandbox)
    store = Store(sandbox / ".state")
    site = next((sandbox / ".venv").glob("lib/python*/site-packages"))
    victim = site / "numpy-2.4.6.dist-info"
    assert victim.is_dir()

    def action() -> None:
        os.setpgid(0, 0)
        watch(lambda: not victim.is_dir())
        apply_all(sandbox)

    killed(action)
    run = interrupted_run(store)
    assert run is not None
    while working_in(run.folder / "pip"):
        time.sleep(0.01)  # The kernel has yet to bury pip, which was killed as well.
    if way == "finish":
        assert finish_run(run, store=store).failure is None
        assert not api.plan(api.observe(sandbox, state_dir=store.root)).changes
    undone = rollback_run(find_run(store, folder=sandbox), store=store)
    assert (undone.failure, undone.left) == (None, ())
    assert everything(sandbox) == before
    assert leftovers(sandbox) == []


def watch(is_time: Callable[[], bool]) -> None:
    """Kill the whole process group as soon as `is_time`; a process of its own watches."""
    group = os.getpid()
    if os.fork() == 0:
        os.setsid()
        for _ in range(60_000):
            if is_time():
                os.killpg(group, signal.SIGKILL)
                break
            time.sleep(0.0005)
        os._exit(0)


def test_a_refused_setting_stops_the_run_and_what_was_done_is_undone(
    sandbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nvidia-smi refuses the clocks with exit code 0; everything before them is undone on request."""
    from remediate.effects import Completed
    from remediate.gpu import effects

    before = everything(sandbox)
    original = effects._runner

    def refusing(context: Any) -> Any:
        real = original(context)

        def run(argv: tuple[str, ...], **values: Any) -> Completed:
            if "-ac" in argv:
                text = "Setting applications clocks is not supported for GPU 00000000:07:00.0.\n"
                text += "Treating as warning and moving on.\nAll done.\n"
                return Completed(tuple(argv), 0, text, "")
            done: Completed = real(argv, **values)
            return done

        return run

    monkeypatch.setattr(effects, "_runner", refusing)
    state = sandbox / ".state"
    plan = api.plan(api.observe(sandbox, state_dir=state))
    result = api.apply(plan, state_dir=state, allow_disruption=True)
    assert result.failure is not None
    assert "not supported" in result.failure.cause
    assert len(result.done) == CHANGES - 1
    assert not api.rollback(folder=sandbox, state_dir=state).left
    assert everything(sandbox) == before


def test_the_count_of_changes_is_right(sandbox: Path) -> None:
    assert len(api.plan(api.observe(sandbox, state_dir=sandbox / ".state")).changes) == CHANGES
