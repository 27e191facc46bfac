"""The model's promises: monotonic, bounded by settings and thresholds, and the incident's story from physics alone."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from gpu.support import A100, LOST, NAMES, alter, copy_board, shipped_device, shipped_facts, write_board
from hypothesis import given, settings
from hypothesis import strategies as st

from remediate.gpu.board import Board, Physics
from remediate.gpu.board.physics import latency_ms, power_w, resting_heat
from remediate.gpu.board.simulate import Hidden, simulate
from remediate.gpu.facts import Device
from remediate.gpu.reasons import HARDWARE_THERMAL, IDLE, SOFTWARE_POWER_CAP, SOFTWARE_THERMAL
from remediate.model import Unknown

RUNNING = [name for name in NAMES if not isinstance(shipped_device(name).supported_clocks, Unknown)]
"""Boards that tell their clocks; the model has nothing to choose from on the others."""

LOAD = 0.45
MINUTE = 60.0


def story(board: Board, minutes: int) -> list[tuple[int, int, int]]:
    """SM clock, core temperature and event reasons at the end of each minute under the incident's load."""
    rows = []
    for _ in range(minutes):
        board.advance(MINUTE, LOAD)
        device = board.facts.devices[0]
        assert isinstance(device.clocks.sm_mhz, int)
        assert isinstance(device.temperature.gpu_c, int)
        assert isinstance(device.events.active, int)
        rows.append((device.clocks.sm_mhz, device.temperature.gpu_c, device.events.active))
    return rows


def limited(device: Device, limit_w: float) -> Device:
    changed: Device = alter(device, power__limit_w=limit_w, power__enforced_w=limit_w)
    return changed


def test_the_incident_with_the_default_limit(tmp_path: Path) -> None:
    board = Board.load(copy_board(tmp_path))
    rows = story(board, 45)
    early = [clock for clock, _, _ in rows[:27]]
    assert set(early) == {1410}, "cool memory: full clock"
    lowest = min(rows)
    assert 780 <= lowest[0] <= 840
    assert 68 <= lowest[1] <= 71, "the core is near 70 C; its own threshold is 85 C"
    assert lowest[2] & SOFTWARE_THERMAL
    assert 28 <= rows.index(lowest) <= 34
    counted = board.facts.devices[0].events.thermal_us
    assert isinstance(counted, int)
    assert counted > 5 * MINUTE * 1_000_000


def test_the_incident_with_the_profiles_limit(tmp_path: Path) -> None:
    board = Board.load(copy_board(tmp_path))
    board.set_device(limited(board.facts.devices[0], 250.0))
    rows = story(board, 180)
    assert not any(reasons & SOFTWARE_THERMAL for _, _, reasons in rows)
    assert {clock for clock, _, _ in rows} == {1290}, "the power cap takes its place, honestly shown"
    assert all(reasons & SOFTWARE_POWER_CAP for _, _, reasons in rows)
    memory = board.facts.devices[0].temperature.memory_c
    assert isinstance(memory, int)
    assert memory < 95


def test_many_steps_or_one_call_come_to_the_same(tmp_path: Path) -> None:
    place = copy_board(tmp_path)
    once, often = Board.load(place), Board.load(place)
    once.advance(45 * MINUTE, LOAD)
    story(often, 45)
    assert once.facts == often.facts
    assert once.elapsed_s == often.elapsed_s == 2700


def test_state_survives_between_processes(tmp_path: Path) -> None:
    place = copy_board(tmp_path)
    whole, first = Board.load(place), Board.load(place)
    whole.advance(1000, LOAD)
    first.advance(400, LOAD)
    first.save()
    second = Board.load(place)
    second.advance(600, LOAD)
    assert second.facts == whole.facts
    assert second.hidden(0) == whole.hidden(0)


@pytest.mark.parametrize("name", RUNNING)
def test_rest_is_cool_and_idle(name: str) -> None:
    board = Board.load(name)
    board.advance(3600, 0.0)
    device = board.facts.devices[0]
    assert device.events.active == IDLE
    assert device.power.draw_w == board.file.physics.idle_w


@pytest.mark.parametrize("name", RUNNING)
def test_full_load_stays_within_the_limit_and_the_list(name: str) -> None:
    board = Board.load(name)
    board.advance(600, 1.0)
    device = board.facts.devices[0]
    assert isinstance(device.supported_clocks, tuple)
    assert device.clocks.sm_mhz in {mhz for table in device.supported_clocks for mhz in table.graphics_mhz}
    assert isinstance(device.power.draw_w, float)
    assert isinstance(device.power.enforced_w, float)
    assert device.power.draw_w <= device.power.enforced_w


def settle(device: Device, physics: Physics, utilization: float, seconds: float = 7200) -> tuple[Device, Hidden]:
    return simulate(device, Hidden(resting_heat(physics)), physics, seconds, utilization)


@pytest.mark.property
@settings(max_examples=25, deadline=None)
@given(st.floats(100, 400), st.floats(100, 400), st.floats(0.05, 1.0))
def test_a_higher_limit_never_gives_a_lower_clock_while_cool(one: float, other: float, load: float) -> None:
    physics = Physics(gpu_c_per_w=0.01, memory_rise_c=1.0)
    low, high = (settle(limited(shipped_device(), limit), physics, load, 60)[0] for limit in sorted((one, other)))
    assert isinstance(low.clocks.sm_mhz, int)
    assert isinstance(high.clocks.sm_mhz, int)
    assert low.clocks.sm_mhz <= high.clocks.sm_mhz


@pytest.mark.property
@settings(max_examples=25, deadline=None)
@given(st.floats(0.02, 0.15), st.floats(0.02, 0.15), st.floats(0.05, 1.0))
def test_worse_cooling_is_never_cooler(one: float, other: float, load: float) -> None:
    good, bad = (
        settle(limited(shipped_device(), 200.0), Physics(gpu_c_per_w=resistance, memory_rise_c=1.0), load)[1]
        for resistance in sorted((one, other))
    )
    assert good.heat.gpu_c <= bad.heat.gpu_c + 1e-9


@pytest.mark.property
@given(st.integers(210, 1410), st.integers(210, 1410), st.floats(0, 1))
def test_power_grows_with_the_clock_and_latency_falls(one: int, other: int, load: float) -> None:
    low, high = sorted((one, other))
    physics = Physics()
    assert power_w(physics, low, 1410, load) <= power_w(physics, high, 1410, load)
    assert latency_ms(physics, low, 1410, 50) >= latency_ms(physics, high, 1410, 50)


def test_a_core_above_its_threshold_throttles_without_a_memory_sensor() -> None:
    device, _ = settle(shipped_device("rtx-3090"), Physics(gpu_c_per_w=0.25, dynamic_w=330.0), 1.0)
    assert isinstance(device.events.active, int)
    assert device.events.active & SOFTWARE_THERMAL
    assert device.temperature.memory_c == shipped_device("rtx-3090").temperature.memory_c


def test_beyond_the_slowdown_temperature_the_clock_is_halved() -> None:
    physics = Physics(ambient_c=120.0)
    device, _ = settle(shipped_device(), physics, 0.3)
    assert isinstance(device.events.active, int)
    assert device.events.active & HARDWARE_THERMAL
    assert isinstance(device.clocks.sm_mhz, int)
    assert device.clocks.sm_mhz <= 705


def test_a_lock_bounds_the_clock_and_pins_the_idle_clock() -> None:
    physics = Physics()
    locked = Hidden(resting_heat(physics), locked_gpu_clocks="900,1200")
    busy, _ = simulate(shipped_device(), locked, physics, 10, 0.3)
    idle, _ = simulate(shipped_device(), locked, physics, 10, 0.0)
    assert (busy.clocks.sm_mhz, idle.clocks.sm_mhz) == (1200, 900)


def test_applications_clocks_bound_the_clock_unless_they_are_the_default() -> None:
    chosen = alter(shipped_device(), application_clocks__graphics_mhz=1200)
    assert settle(chosen, Physics(), 0.3, 10)[0].clocks.sm_mhz == 1200
    assert settle(shipped_device(), Physics(), 0.3, 10)[0].clocks.sm_mhz == 1410


def test_a_device_that_can_not_be_simulated_stays_as_it_was() -> None:
    lost = Device(0, lost=LOST)
    hidden = Hidden(resting_heat(Physics()))
    assert simulate(lost, hidden, Physics(), 60, 1.0) == (lost, hidden)


def test_latency_explains_at_most_what_the_clock_explains(tmp_path: Path) -> None:
    board = Board.load(copy_board(tmp_path))
    assert board.latency_ms(50) == pytest.approx(150)
    board.set_device(alter(shipped_device(), clocks__sm_mhz=810))
    assert board.latency_ms(50) == pytest.approx(150 * 1410 / 810), "261 ms, not the report's 800 ms"


def test_the_clock_can_be_bound_to_a_part_of_the_time_only(tmp_path: Path) -> None:
    facts = alter(shipped_facts(), devices=(alter(shipped_device(), clocks__sm_mhz=705),))
    place = write_board(tmp_path, facts, physics=msgspec.to_builtins(Physics(clock_bound_share=0.5)))
    assert Board.load(place).latency_ms(100) == pytest.approx(450)


def test_forty_five_minutes_cost_milliseconds(tmp_path: Path) -> None:
    import time

    board = Board.load(copy_board(tmp_path, A100))
    start = time.perf_counter()
    board.advance(45 * MINUTE, LOAD)
    assert time.perf_counter() - start < 1.0
