"""A driver that does not answer: every call under a deadline, and the other boards read all the same."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from gpu.support import alter, shipped_facts
from nvml.mock_board import Fault
from nvml.scene import two_boards

from remediate.errors import InternalError, ObserveError
from remediate.gpu import watched as room
from remediate.gpu.board import BoardHost
from remediate.gpu.facts import Device
from remediate.gpu.nvml import unknown_for
from remediate.gpu.observe import Sampling, begin, observe
from remediate.gpu.watched import Note, Stuck, watched
from remediate.model import UnknownKind
from remediate.subject import Ledger

Mock = Callable[..., Path]
TIMEOUT = unknown_for(10)
FOREVER = 600.0


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "DEADLINE_S", 0.3)
    # Also where there is neither a driver nor a compiler to build the mock library.
    monkeypatch.setattr(room, "_has_library", lambda: True)


@pytest.mark.parametrize(
    "function", ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetComputeRunningProcesses_v3"]
)
def test_a_board_that_hangs_is_lost_and_the_other_one_read(function: str, mock: Mock) -> None:
    facts = two_boards()
    mock(facts, Fault(function, seconds=FOREVER, device=0))
    expected = alter(facts, devices=(Device(0, lost=TIMEOUT), facts.devices[1]))
    assert observe(host=BoardHost(facts)) == expected


@pytest.mark.parametrize("function", ["nvmlInit", "nvmlSystemGetDriverVersion", "nvmlShutdown"])
def test_a_driver_that_hangs_as_a_whole_is_said_once(function: str, mock: Mock) -> None:
    mock(two_boards(), Fault(function, seconds=FOREVER))
    facts = observe()
    assert facts.driver_version == TIMEOUT
    assert facts.devices == ()


def test_a_gpu_that_was_asked_for_is_an_error_when_the_driver_hangs(mock: Mock) -> None:
    mock(two_boards(), Fault("nvmlInit", seconds=FOREVER))
    with pytest.raises(ObserveError) as caught:
        observe(["0"])
    assert caught.value.cause == TIMEOUT.reason
    assert "restart" in caught.value.hint


def test_a_slow_driver_is_waited_for(mock: Mock) -> None:
    """The deadline is one step's, not the whole reading's: here two steps of 0.2 s each."""
    facts = two_boards()
    mock(facts, Fault("nvmlDeviceGetHandleByIndex_v2", seconds=0.2))
    assert observe(host=BoardHost(facts)) == facts


def test_a_board_that_hangs_while_it_is_sampled_leaves_the_other_one_s_sample(mock: Mock) -> None:
    facts = two_boards()
    mock(facts, Fault("nvmlDeviceGetCurrentClocksEventReasons", seconds=FOREVER, after=2, device=0))
    read = observe(host=BoardHost(facts), sampling=Sampling(0.2))
    assert read.devices[0] == Device(0, lost=TIMEOUT)
    assert read.devices[1].sample is not None


def test_a_library_that_crashes_is_a_reading_that_failed() -> None:
    def crash(note: Note) -> int:
        note("0")
        os.abort()

    stuck = watched(crash, int)
    assert isinstance(stuck, Stuck)
    assert stuck.at == "0"
    assert stuck.reason.kind is UnknownKind.FAILED
    assert "SIGABRT" in stuck.reason.reason


def test_what_was_begun_is_collected_with_the_locks_of_earlier_runs(mock: Mock) -> None:
    facts = shipped_facts("h200")
    uuid = str(facts.devices[0].uuid)
    mock(facts)
    begun = begin((), Sampling())
    read = observe(host=BoardHost(facts), ledger=Ledger({f"{uuid}/locked_gpu_clocks": "210,1500"}), begun=begun)
    assert read.devices == (alter(facts.devices[0], locked_gpu_clocks="210,1500"),)


def test_what_was_begun_and_hangs_is_begun_again_without_that_board(mock: Mock) -> None:
    facts = two_boards()
    mock(facts, Fault("nvmlDeviceGetPowerUsage", seconds=FOREVER, device=0))
    read = observe(host=BoardHost(facts), begun=begin((), Sampling()))
    assert read == alter(facts, devices=(Device(0, lost=TIMEOUT), facts.devices[1]))


def test_what_was_begun_can_be_dropped(mock: Mock) -> None:
    mock(two_boards(), Fault("nvmlInit", seconds=FOREVER))
    begun = begin((), Sampling())
    assert begun is not None
    begun.close()
    begun.close()
    with pytest.raises(InternalError):
        begun.finish()


def test_without_a_library_nothing_can_hang_and_no_child_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_has_library", lambda: False)
    assert watched(lambda note: os.getpid(), int) == os.getpid()
    assert begin((), Sampling()) is None


def test_errors_come_back_as_errors() -> None:
    def refuse(note: Note) -> int:
        raise ObserveError("what", cause="cause", hint="hint")

    def stumble(note: Note) -> int:
        raise KeyError("x")

    with pytest.raises(ObserveError) as refused:
        watched(refuse, int)
    assert (refused.value.what, refused.value.cause, refused.value.hint) == ("what", "cause", "hint")
    with pytest.raises(InternalError) as stumbled:
        watched(stumble, int)
    assert stumbled.value.cause == "KeyError: 'x'"


def test_long_results_arrive_whole() -> None:
    text = "x" * 3_000_000
    assert watched(lambda note: text, str) == text


def test_the_child_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[int] = []
    real_fork = os.fork

    def fork() -> int:
        children.append(real_fork())
        return children[-1]

    monkeypatch.setattr(os, "fork", fork)
    watched(lambda note: 1, int)
    watched(lambda note: time.sleep(FOREVER), int)
    assert len(children) == 2
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def test_a_hanging_child_holds_neither_locks_nor_output(tmp_path: Path) -> None:
    def look(note: Note) -> list[int]:
        return sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir())

    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        descriptors = watched(look, list[int])
    assert isinstance(descriptors, list)
    # The three standard ones, the pipe, and the one that lists them.
    assert len(descriptors) == 5


def test_a_program_with_threads_is_not_forked(mock: Mock) -> None:
    facts = shipped_facts("h200")
    mock(facts)
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert watched(lambda note: os.getpid(), int) == os.getpid()
        assert observe(host=BoardHost(facts)) == facts
    finally:
        done.set()
        thread.join()
