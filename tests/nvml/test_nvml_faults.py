"""Every NVML call fails with every code, hangs, or loses the board: no wrong value, no traceback, a true exit code."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gpu.support import shipped_facts
from nvml.leaves import leaves
from nvml.mock_board import Fault
from nvml.scene import Scene, set_scene, two_boards

from remediate.gpu import watched
from remediate.gpu.board import BoardHost
from remediate.gpu.facts import GpuFacts
from remediate.gpu.nvml import load_pynvml, unknown_for
from remediate.gpu.observe import observe

Mock = Callable[..., Path]
SOURCE = (Path(__file__).parent / "mock" / "getters.c").read_text("utf-8")
GETTERS = sorted(set(re.findall(r"\bnvml(?:Device|System)Get\w+", SOURCE)))
"""All that the mock answers, which is all that the observation asks: it knows no other functions."""
HOST_CALLS = ["nvmlInit", "nvmlShutdown"]
ALL_CODES = (*range(1, 32), 77, 999)
SOME_CODES = (4, 15, 999)
TIMEOUT = unknown_for(10)


def differing(observed: GpuFacts, facts: GpuFacts) -> dict[str, Any]:
    """What is observed otherwise than it is: path to the observed reading."""
    is_so = dict(leaves(msgspec.to_builtins(facts)))
    return {path: value for path, value in leaves(msgspec.to_builtins(observed)) if is_so.get(path, ...) != value}


@pytest.mark.parametrize("function", [*HOST_CALLS, *GETTERS])
@pytest.mark.parametrize("name", ["a100-sxm4-40gb-incident", "h200"])
def test_a_call_that_fails_is_a_reading_less_and_no_wrong_one(name: str, function: str, mock: Mock) -> None:
    facts = shipped_facts(name)
    for code in ALL_CODES:
        mock(facts, Fault(function, code))
        observed = observe(nvml=load_pynvml(), host=BoardHost(facts))
        wrong = {
            path: value
            for path, value in differing(observed, facts).items()
            if not (isinstance(value, dict) and "unknown" in value)
        }
        assert wrong == {}, code


@pytest.mark.parametrize(
    ("function", "place"),
    [
        ("nvmlDeviceGetPowerManagementLimit", "/devices/0/power/limit_w"),
        ("nvmlDeviceGetPersistenceMode", "/devices/0/persistence_mode"),
        ("nvmlDeviceGetComputeRunningProcesses_v3", "/devices/0/processes"),
        ("nvmlSystemGetDriverVersion", "/driver_version"),
    ],
)
def test_the_reason_is_the_code_s(function: str, place: str, mock: Mock) -> None:
    facts = shipped_facts("h200")
    for code in ALL_CODES:
        mock(facts, Fault(function, code))
        observed = observe(nvml=load_pynvml(), host=BoardHost(facts))
        assert differing(observed, facts)[place] == msgspec.to_builtins(unknown_for(code)), code


def test_a_handle_that_can_not_be_had_is_a_lost_board_and_the_other_is_read(mock: Mock) -> None:
    facts = two_boards()
    for code in ALL_CODES:
        mock(facts, Fault("nvmlDeviceGetHandleByIndex_v2", code, device=0))
        observed = observe(host=BoardHost(facts))
        assert observed.devices[0].lost == unknown_for(code)
        assert observed.devices[1] == facts.devices[1]


@pytest.mark.slow
@pytest.mark.parametrize("function", [*HOST_CALLS, *GETTERS])
def test_a_call_that_hangs_is_said(function: str, mock: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "DEADLINE_S", 0.1)
    facts = shipped_facts()
    mock(facts, Fault(function, seconds=600))
    observed = observe(host=BoardHost(facts))
    said = [observed.driver_version, *(device.lost for device in observed.devices)]
    assert observed == facts or TIMEOUT in said


@pytest.fixture
def scene(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Scene:
    return set_scene("fake", library, tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("function", [*HOST_CALLS, *GETTERS])
def test_a_plan_is_made_and_ends_with_a_documented_exit_code(
    function: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = scene.board.read_text("utf-8")
    for code in SOME_CODES:
        scene.board.write_text(whole, "utf-8")
        scene.fail(function, code)
        ended = scene.run(monkeypatch, "plan", "--only", "gpu", "--check")
        assert ended.code in (3, 4), (code, ended)
        assert "Traceback" not in ended.out + ended.err
        assert ended.err == ""
        if ended.code == 4:
            assert "?" in ended.out, "what could not be told is marked"
    assert scene.calls() == []


def test_a_wish_that_can_not_be_judged_is_could_not_tell(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.fail("nvmlDeviceGetPowerManagementLimit", 999)
    ended = scene.run(monkeypatch, "plan", "--only", "gpu")
    assert ended.code == 0
    assert str(unknown_for(999).reason) in ended.out
    assert "-pl" not in ended.out


def test_a_board_that_is_lost_after_any_number_of_calls(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = scene.board.read_text("utf-8")
    for calls in range(0, 60, 5):
        scene.board.write_text(whole, "utf-8")
        scene.fail("*", 15, after=calls, device=0)
        ended = scene.run(monkeypatch, "verify", "--only", "gpu")
        assert ended.code in (3, 4)
        assert ended.err == ""
