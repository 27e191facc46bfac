"""The genuine nvidia-ml-py on the mock library: what is observed is what the board's file says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from gpu.support import alter, shipped_device, shipped_facts
from nvml.mock_board import Fault, write_board
from nvml.mock_library import environment

from remediate.gpu.board import BoardHost, shipped_boards
from remediate.gpu.facts import Device, GpuFacts, Power
from remediate.gpu.nvml import unknown_for
from remediate.gpu.observe import observe

Mock = Callable[..., Path]
LOST = unknown_for(15)


def observed(facts: GpuFacts) -> GpuFacts:
    """What is observed through the real package, with the board's own surroundings."""
    return observe(host=BoardHost(facts))


@pytest.mark.parametrize("name", shipped_boards())
def test_every_shipped_board_is_observed_as_it_is_written(name: str, mock: Mock) -> None:
    facts = shipped_facts(name)
    mock(facts)
    assert observed(facts) == facts


def test_raw_readings_of_an_h200_become_facts_in_our_units(mock: Mock) -> None:
    """NVML's own numbers, as driver 580.159.04 gave them on one H200: mW, bytes, ns, a signed union member."""
    board = mock(shipped_facts("h200"))
    raw = {
        "nvmlDeviceGetPowerUsage": "113787",
        "nvmlDeviceGetPowerManagementLimit": "700000",
        "nvmlDeviceGetPowerManagementLimitConstraints": "200000 700000",
        "nvmlDeviceGetMemoryInfo_v2": "150754820096 644939776 0",
        "nvmlSystemGetCudaDriverVersion_v2": "13000",
        "field.193": "5 -8",
        "field.74": "3 2252881",
    }
    lines = [line.split(" ", 3) for line in board.read_text("utf-8").splitlines()]
    board.write_text("".join(f"{i} {name} {code} {raw.get(name, *rest)}\n" for i, name, code, *rest in lines), "utf-8")
    facts = observe()
    device = facts.devices[0]
    assert facts.cuda_driver_version == "13.0"
    assert (device.power.draw_w, device.power.limit_w) == (113.787, 700.0)
    assert (device.power.min_w, device.power.max_w) == (200.0, 700.0)
    assert (device.memory.total_mib, device.memory.reserved_mib) == (143771, 616)
    assert device.temperature.shutdown_margin_c == -8
    assert device.events.power_cap_us == 2252


def test_the_program_finds_the_library_as_any_program_does(library: Path, tmp_path: Path) -> None:
    facts = shipped_facts("h200")
    board = write_board(tmp_path / "mock.board", facts)
    done = subprocess.run(
        [sys.executable, "-m", "remediate", "facts", "--only", "gpu", "--json", "-C", str(tmp_path)],
        env={**os.environ, **environment(library, board)},
        capture_output=True,
        text=True,
        check=True,
    )
    section = json.loads(done.stdout)["sections"]["gpu"]
    assert section["driver_version"] == "580.159.04"
    assert [device["uuid"] for device in section["devices"]] == [facts.devices[0].uuid]
    assert section["devices"][0]["power"]["limit_w"] == 700.0


def test_one_lost_board_leaves_the_others_readable(mock: Mock) -> None:
    good = shipped_device("h200")
    facts = alter(shipped_facts("h200"), devices=(Device(0, lost=LOST), alter(good, index=1)), device_count=2)
    mock(facts)
    assert observed(facts) == facts


def test_a_board_that_is_lost_half_way_is_unknown_from_there_on(mock: Mock) -> None:
    facts = shipped_facts("h200")
    mock(facts, Fault("*", 15, after=20, device=0))
    device = observed(facts).devices[0]
    assert device.uuid == facts.devices[0].uuid
    assert device.processes == LOST
    assert device.power.limit_w == facts.devices[0].power.limit_w
    assert device.lost is None


def test_an_old_driver_has_fewer_functions_and_the_same_readings(mock: Mock) -> None:
    """A library of driver 525 lacks GetTemperatureV, GetMarginTemperature and the new name of the reasons."""
    facts = shipped_facts("a100-sxm4-40gb-incident")
    old = alter(facts, driver_version="525.147.05")
    mock(old)
    assert observed(old) == old


def test_the_module_of_a_grace_board_has_limits_of_its_own(mock: Mock) -> None:
    device = alter(shipped_device("h200"), module_power=Power(500.0, 900.0, 900.0, 1000.0, 400.0, 1000.0))
    facts = alter(shipped_facts("h200"), devices=(device,))
    mock(facts)
    assert observed(facts) == facts


def test_without_a_driver_the_reason_is_said(mock: Mock) -> None:
    reason = unknown_for(18)
    mock(GpuFacts(reason, reason, reason, reason))
    facts = observe()
    assert facts.driver_version == reason
    assert facts.devices == ()
