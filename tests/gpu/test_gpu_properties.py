"""For any host of boards and any profile: commands are accepted, a second plan is empty, undoing restores all."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gpu.support import LOST, NOT_SUPPORTED, alter, board_facts, context_for, shipped_device, shipped_facts, whole_facts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remediate.effects import run_process
from remediate.gpu.board import SimulatedSmi
from remediate.gpu.clocktable import ClockTable, pack
from remediate.gpu.facts import ApplicationClocks, Clocks, Device, GpuFacts, Power
from remediate.gpu.nvml import unknown_for
from remediate.gpu.reply import Answer, read_reply
from remediate.gpu.subject import GpuSubject
from remediate.model import Facts, Outcome, Request
from remediate.profile.schema import GpuFor, GpuWish, Profile
from remediate.subject import Ledger, Settings, Situation

SUBJECT = GpuSubject()
UNKNOWN = st.sampled_from([unknown_for(code) for code in (3, 4, 13, 26, 999)])
MAYBE = st.booleans()


@st.composite
def powers(draw: Any) -> Power:
    lowest = draw(st.integers(1, 400))
    highest = draw(st.integers(lowest, 1500))
    inside = st.integers(lowest, highest).map(float)
    limit = draw(inside)
    readings: dict[str, Any] = {
        "draw_w": draw(st.floats(0, 1500).map(lambda watts: round(watts, 3))),
        "limit_w": limit,
        "enforced_w": draw(st.sampled_from([limit, max(lowest - 5.0, 1.0)])),
        "default_w": draw(inside),
        "min_w": float(lowest),
        "max_w": float(highest),
    }
    hidden = draw(st.sets(st.sampled_from(["draw_w", "limit_w", "enforced_w", "default_w", "range"]), max_size=2))
    for name in hidden:
        reason = draw(UNKNOWN)
        readings.update(dict.fromkeys(("min_w", "max_w") if name == "range" else (name,), reason))
    return Power(**readings)


@st.composite
def clock_tables(draw: Any) -> tuple[ClockTable, ...]:
    memory = sorted(draw(st.sets(st.integers(400, 12_000), min_size=1, max_size=3)), reverse=True)
    tables = []
    for mhz in memory:
        step = draw(st.sampled_from([7, 15]))
        lowest = draw(st.integers(100, 600))
        count = draw(st.integers(1, 140))
        tables.append(ClockTable(mhz, pack(range(lowest, lowest + count * step, step))))
    return tuple(tables)


@st.composite
def devices(draw: Any, index: int) -> Device:
    tables = draw(clock_tables())
    chosen = draw(st.sampled_from(tables))
    top = max(tables[0].graphics_mhz)
    pair = ApplicationClocks(chosen.memory_mhz, draw(st.sampled_from(chosen.graphics_mhz)))
    gone = draw(st.sampled_from([unknown_for(3), unknown_for(26)]))
    has_pair = draw(MAYBE)
    return alter(
        shipped_device("h200"),
        index=index,
        uuid=f"GPU-{index:08x}-0000-4000-8000-000000000000",
        pci_bus_id=f"00000000:{index + 1:02X}:00.0",
        name=draw(st.sampled_from(["NVIDIA A", "NVIDIA B", "Tesla C"])),
        compute_capability=draw(st.sampled_from(["5.2", "7.0", "7.5", "8.0", "9.0", "12.1"])),
        power=draw(powers()),
        module_power=draw(st.none() | st.just(Power(500.0, 900.0, 900.0, 900.0, 300.0, 1000.0))),
        clocks=Clocks(top, top, tables[0].memory_mhz, 1000),
        max_clocks=Clocks(top, top, tables[0].memory_mhz, 1000),
        application_clocks=pair if has_pair else ApplicationClocks(gone, gone),
        default_application_clocks=pair if has_pair else ApplicationClocks(gone, gone),
        supported_clocks=draw(st.just(tables) | UNKNOWN),
        persistence_mode=draw(MAYBE | st.just(NOT_SUPPORTED)),
        compute_mode=draw(st.sampled_from(["default", "exclusive process", "prohibited", NOT_SUPPORTED])),
        mig_current=draw(st.sampled_from([False, False, False, True])),
        mig_pending=False,
        virtualization=draw(st.sampled_from(["none", "none", "none", "vgpu guest"])),
        events__active=draw(st.integers(0, 0x7FF)),
    )


@st.composite
def hosts(draw: Any) -> GpuFacts:
    found = [draw(devices(index)) for index in range(draw(st.integers(1, 3)))]
    found = [alter(device, mig_pending=device.mig_current) for device in found]
    if draw(st.sampled_from([False, False, True])):
        found[draw(st.integers(0, len(found) - 1))] = Device(index=len(found) - 1, lost=LOST)
        found = [alter(device, index=number) for number, device in enumerate(found)]
    return alter(shipped_facts("h200"), devices=tuple(found), device_count=len(found))


@st.composite
def wishes(draw: Any, /, kind: type[GpuWish] = GpuWish, **more: Any) -> GpuWish:
    watts = st.floats(1, 1600).map(lambda value: round(value, 2))
    floor = draw(st.none() | st.integers(1, 3000))
    groups: list[dict[str, Any]] = [
        draw(st.sampled_from([{}, {"power_limit": "default"}, {"power_limit": "max"}])),
        draw(st.sampled_from([{}, {"module_power_limit": "max"}, {"module_power_limit": "default"}])),
        draw(st.sampled_from([{}, {"sm_clock": "max"}, {"sm_clock": "default"}])),
        draw(st.sampled_from([{}, {"memory_clock": "max"}, {"memory_clock": "default"}])),
    ]
    if not groups[0]:
        groups[0] = draw(
            st.fixed_dictionaries({"power_limit_w": watts})
            | st.fixed_dictionaries({"power_limit_fraction": st.floats(0.01, 1)})
        )
    if not groups[2] and draw(MAYBE):
        groups[2] = draw(
            st.fixed_dictionaries({"sm_clock_mhz": st.integers(floor or 1, 4000)})
            | st.fixed_dictionaries({"sm_clock_fraction": st.floats(0.01, 1)})
        )
    if not groups[3] and draw(MAYBE):
        groups[3] = {"memory_clock_mhz": draw(st.integers(1, 13_000))}
    values: dict[str, Any] = {
        "sm_clock_min_mhz": floor,
        "persistence_mode": draw(st.none() | MAYBE),
        "compute_mode": draw(st.sampled_from([None, "default", "exclusive_process", "prohibited"])),
    }
    for group in groups:
        values.update(group)
    return kind(**values, **more)


@st.composite
def profiles(draw: Any) -> Profile:
    tables = tuple(
        draw(wishes(GpuFor, name=(name,), leave_alone=draw(st.sampled_from([False, False, True]))))
        for name in draw(st.lists(st.sampled_from(["NVIDIA A", "*", "Tesla*"]), max_size=2))
    )
    return Profile(schema_version=1, name="any", gpu=draw(wishes()), gpu_for=tables)


def observed(place: str, ledger: dict[str, str]) -> Facts:
    section = SUBJECT.observe(Request("/sandbox", board=place), Settings(), Ledger(ledger)).facts
    assert isinstance(section, GpuFacts)
    return whole_facts(section, place)


def write(folder: str, facts: GpuFacts) -> str:
    path = Path(folder) / "board.json"
    path.write_bytes(msgspec.json.encode({"gpu": facts}))
    return str(path)


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
ANY = settings(max_examples=50, deadline=None, suppress_health_check=SLOW)


@pytest.mark.property
@ANY
@given(hosts(), profiles())
def test_each_command_is_accepted_by_its_board(host: GpuFacts, profile: Profile) -> None:
    facts = whole_facts(host)
    for change in SUBJECT.propose(Situation(facts, profile), ()).changes:
        assert change.command[:2] == ("nvidia-smi", "-i")
        assert change.command[2] == change.operation.uuid
        with tempfile.TemporaryDirectory() as folder:
            answer = SimulatedSmi(write(folder, host), run_process)(change.command, timeout_s=5)
        reply = read_reply(change.operation.setting, change.operation.after, answer)
        assert (reply.answer, answer.returncode) == (Answer.DONE, 0), (change.command, answer.stdout)


@pytest.mark.property
@ANY
@given(hosts(), profiles())
def test_a_second_plan_is_empty_and_undoing_restores_every_reading(host: GpuFacts, profile: Profile) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place, ledger = write(folder, host), dict[str, str]()
        before, context = board_facts(place), context_for(place)
        changes = SUBJECT.propose(Situation(observed(place, ledger), profile), ()).changes
        prepared = {}
        for change in changes:
            prepared[change.id] = SUBJECT.prepare(change.operation, context)
            SUBJECT.perform(change.operation, prepared[change.id], context)
            ledger |= {key: value for key, value in SUBJECT.remember(change.operation, True).items() if value}
        again = Situation(observed(place, ledger), profile)
        assert [change.title for change in SUBJECT.propose(again, ()).changes] == []
        assert [f.summary for f in SUBJECT.compare(again) if f.outcome is Outcome.DIFFERS and not f.is_advice] == []
        for change in reversed(changes):
            SUBJECT.undo(change.operation, prepared[change.id], context)
        assert board_facts(place) == before


@pytest.mark.property
@ANY
@given(hosts(), profiles(), st.sampled_from([LOST, unknown_for(999), unknown_for(16), unknown_for(4)]))
def test_a_board_that_fails_hides_none_of_the_others(host: GpuFacts, profile: Profile, reason: Any) -> None:
    alone = SUBJECT.compare(Situation(whole_facts(host), profile))
    broken = alter(host, devices=(*host.devices, Device(index=len(host.devices), lost=reason)))
    beside = SUBJECT.compare(Situation(whole_facts(broken), profile))
    added = [finding for finding in beside if finding not in alone]
    assert [finding for finding in beside if finding in alone] == list(alone)
    assert all(finding.code == "GPU002" for finding in added)
