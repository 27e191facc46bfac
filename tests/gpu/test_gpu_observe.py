"""From NVML to facts, through the simulated module with the real error classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pynvml
import pytest
from gpu.support import LOST, NAMES, NOT_SUPPORTED, alter, observe_simulated, shipped_device, shipped_facts
from hypothesis import given, settings
from hypothesis import strategies as st

from remediate.errors import ObserveError
from remediate.gpu.board import BoardHost, SimulatedNvml
from remediate.gpu.clocktable import ClockTable, pack
from remediate.gpu.facts import (
    ApplicationClocks,
    Clocks,
    Device,
    Events,
    GpuFacts,
    Memory,
    Power,
    Process,
    Temperature,
)
from remediate.gpu.nvml import code_for, unknown_for
from remediate.gpu.observe import observe
from remediate.gpu.read_device import ZERO_LIMIT
from remediate.model import Unknown, UnknownKind
from remediate.subject import Ledger

# Code 2 is left out: in a field value it means that the driver does not know the field.
UNKNOWNS = st.sampled_from([unknown_for(code) for code in (1, 3, 4, 6, 9, 13, 15, 16, 17, 18, 19, 21, 26, 27, 999)])


def reading(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values | UNKNOWNS


def pair(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    """Two readings of one call: both there, or both missing for the same reason."""
    return st.tuples(values, values) | UNKNOWNS.map(lambda unknown: (unknown, unknown))


CONTROL: Any = ("Cs",)
MHZ = reading(st.integers(0, 20_000))
WATTS = reading(st.integers(1, 3_000_000).map(lambda milliwatts: milliwatts / 1000))
DEGREES = reading(st.integers(0, 130))
MARGINS = reading(st.integers(-60, 130))
COUNTERS = reading(st.integers(0, 2**52))
WORDS = reading(st.text(st.characters(codec="utf-8", exclude_categories=CONTROL), max_size=20))
FLAGS = st.booleans()
PROCESSES = reading(
    st.lists(
        st.builds(
            Process,
            pid=st.integers(1, 2**31),
            kind=st.sampled_from(["compute", "graphics"]),
            memory_mib=st.integers(0, 10**6)
            | st.just(Unknown(UnknownKind.NOT_SUPPORTED, "the driver does not tell it here")),
            name=WORDS,
            user=WORDS,
        ),
        max_size=3,
        unique_by=lambda process: process.pid,
    ).map(lambda processes: tuple(sorted(processes, key=lambda process: process.pid)))
)
TABLES = reading(
    st.dictionaries(
        st.integers(1, 10_000), reading(st.sets(st.integers(1, 4000), max_size=20).map(pack)), max_size=3
    ).map(lambda tables: tuple(ClockTable(memory, tables[memory]) for memory in sorted(tables, reverse=True)))
)


@st.composite
def memories(draw: st.DrawFn) -> Memory:
    if draw(st.booleans()):
        unknown = draw(UNKNOWNS)
        return Memory(unknown, unknown, unknown)
    size = st.integers(0, 10**6)
    return Memory(draw(size), draw(size), draw(size | st.just(unknown_for(13))))


@st.composite
def devices(draw: st.DrawFn) -> Device:
    mig, ecc, constraints = draw(pair(FLAGS)), draw(pair(FLAGS)), draw(pair(st.integers(1, 3000).map(float)))
    utilization = draw(pair(st.integers(0, 100)))
    return Device(
        index=0,
        uuid=draw(st.just("GPU-1")),
        name=draw(WORDS),
        pci_bus_id=draw(WORDS),
        architecture=draw(reading(st.sampled_from(["Ampere", "Hopper", "17"]))),
        compute_capability=draw(reading(st.sampled_from(["7.0", "8.9", "12.1"]))),
        power=Power(
            draw(WATTS), draw(WATTS | st.just(ZERO_LIMIT)), draw(WATTS), draw(WATTS), constraints[0], constraints[1]
        ),
        clocks=Clocks(draw(MHZ), draw(MHZ), draw(MHZ), draw(MHZ)),
        max_clocks=Clocks(draw(MHZ), draw(MHZ), draw(MHZ), draw(MHZ)),
        application_clocks=ApplicationClocks(draw(MHZ), draw(MHZ)),
        default_application_clocks=ApplicationClocks(draw(MHZ), draw(MHZ)),
        supported_clocks=draw(TABLES),
        persistence_mode=draw(reading(FLAGS)),
        compute_mode=draw(reading(st.sampled_from(["default", "prohibited"]))),
        mig_current=mig[0],
        mig_pending=mig[1],
        virtualization=draw(reading(st.sampled_from(["none", "vgpu guest"]))),
        ecc_current=ecc[0],
        ecc_pending=ecc[1],
        performance_state=draw(reading(st.integers(0, 15))),
        temperature=Temperature(
            draw(DEGREES),
            draw(DEGREES),
            draw(MARGINS),
            draw(DEGREES),
            draw(DEGREES),
            draw(DEGREES),
            draw(DEGREES),
            draw(MARGINS),
            draw(MARGINS),
            draw(MARGINS),
            draw(MARGINS),
        ),
        events=Events(
            draw(reading(st.integers(0, 2**64 - 1))),
            draw(reading(st.integers(0, 2**64 - 1))),
            draw(COUNTERS),
            draw(COUNTERS),
            draw(COUNTERS),
            draw(COUNTERS),
            draw(COUNTERS),
            draw(COUNTERS),
        ),
        utilization_percent=utilization[0],
        memory_utilization_percent=utilization[1],
        memory=draw(memories()),
        processes=draw(PROCESSES),
    )


@pytest.mark.property
@settings(max_examples=60, deadline=None)
@given(devices(), WORDS, WORDS, reading(st.sampled_from(["12.2", "13.0"])), reading(st.booleans()))
def test_what_is_simulated_is_what_is_observed(
    device: Device, driver: Any, nvml: Any, cuda: Any, capability: Any
) -> None:
    facts = GpuFacts(driver, nvml, cuda, 1, (device,), "/usr/bin/nvidia-smi", False, capability)
    observed = observe_simulated(facts)
    assert observed == facts
    assert msgspec.json.decode(msgspec.json.encode(observed), type=GpuFacts) == facts


@pytest.mark.parametrize("name", NAMES)
def test_shipped_boards_are_observed_as_they_are_written(name: str) -> None:
    assert observe_simulated(shipped_facts(name)) == shipped_facts(name)


def test_a_driver_that_can_not_be_used_is_said_once_and_is_no_exception() -> None:
    reason = unknown_for(9)
    facts = GpuFacts(reason, reason, reason, reason, (), NOT_SUPPORTED, False, True)
    assert observe_simulated(facts) == facts


def test_without_a_library_the_live_observation_still_answers() -> None:
    facts = observe()
    assert isinstance(facts, GpuFacts)
    assert facts.devices or isinstance(facts.driver_version, Unknown) or facts.device_count == 0


def test_one_lost_board_leaves_the_other_readable() -> None:
    good = shipped_device("h200")
    facts = alter(shipped_facts("h200"), devices=(Device(0, lost=LOST), alter(good, index=1)), device_count=2)
    observed = observe_simulated(facts)
    assert observed.devices[0] == Device(0, lost=LOST)
    assert observed.devices[1] == alter(good, index=1)


def test_a_margin_is_read_as_a_signed_number() -> None:
    field = SimulatedNvml(shipped_facts("h200")).nvmlDeviceGetFieldValues(0, [193])[0]
    assert field.value.ullVal & 0xFFFFFFFF == 4294967288
    assert observe_simulated(shipped_facts("h200")).devices[0].temperature.shutdown_margin_c == -8


def test_a_field_that_the_driver_does_not_know_is_not_a_zero() -> None:
    class OldDriver(SimulatedNvml):
        def nvmlDeviceGetFieldValues(self, handle: int, fields: Sequence[int | tuple[int, int]]) -> list[Any]:
            values = super().nvmlDeviceGetFieldValues(handle, fields)
            for value in values:
                value.nvmlReturn = pynvml.NVML_ERROR_INVALID_ARGUMENT
            return values

    facts = shipped_facts("h200")
    observed = observe(nvml=OldDriver(facts), host=BoardHost(facts)).devices[0]
    assert observed.temperature.memory_c == unknown_for(13)
    assert observed.events.power_cap_us == 0, "GetViolationStatus answers in its place"


def test_reasons_are_read_by_their_older_name_before_driver_535() -> None:
    class OldDriver(SimulatedNvml):
        def nvmlDeviceGetCurrentClocksEventReasons(self, handle: int) -> int:
            raise self.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)

        def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:
            return 0x24

    facts = shipped_facts()
    assert observe(nvml=OldDriver(facts), host=BoardHost(facts)).devices[0].events.active == 0x24


def test_a_limit_of_zero_is_no_limit() -> None:
    facts = shipped_facts()
    device = alter(facts.devices[0], power__limit_w=ZERO_LIMIT)
    assert SimulatedNvml(alter(facts, devices=(device,))).nvmlDeviceGetPowerManagementLimit(0) == 0
    assert observe_simulated(alter(facts, devices=(device,))).devices[0].power.limit_w == ZERO_LIMIT


def test_memory_is_rounded_up_as_nvidia_smi_shows_it() -> None:
    class Exact(SimulatedNvml):
        def nvmlDeviceGetMemoryInfo(self, handle: int, version: int | None = None) -> Any:
            info = super().nvmlDeviceGetMemoryInfo(handle, version)
            info.reserved = 644939776  # 615.06 MiB on an H200, which nvidia-smi -q shows as 616 MiB
            return info

    facts = shipped_facts("h200")
    assert observe(nvml=Exact(facts), host=BoardHost(facts)).devices[0].memory.reserved_mib == 616


@pytest.mark.parametrize("wish", ["0", "GPU-a1004000-0000-4000-8000-000000000000"])
def test_a_gpu_is_selected_by_index_or_uuid(wish: str) -> None:
    facts = shipped_facts()
    other = alter(facts.devices[0], index=1, uuid="GPU-other")
    two = alter(facts, devices=(facts.devices[0], other), device_count=2)
    observed = observe_simulated(two, [wish])
    assert [device.index for device in observed.devices] == [0]
    assert observed.device_count == 2


@pytest.mark.parametrize("wish", ["1", "GPU-a1004000", "", "-1"])
def test_a_gpu_that_is_not_there_is_an_error_that_lists_what_is(wish: str) -> None:
    with pytest.raises(ObserveError) as caught:
        observe_simulated(shipped_facts(), [wish])
    assert wish in caught.value.what
    assert "GPU-a1004000-0000-4000-8000-000000000000" in caught.value.cause


def test_a_named_gpu_without_a_driver_is_an_error_with_the_reason() -> None:
    reason = unknown_for(12)
    with pytest.raises(ObserveError) as caught:
        observe_simulated(GpuFacts(reason, reason, reason, reason), ["0"])
    assert caught.value.cause == reason.reason
    assert "--gpus all" in caught.value.hint


def test_locks_come_from_the_ledger_of_earlier_runs() -> None:
    uuid = shipped_device("l4").uuid
    ledger = Ledger({f"{uuid}/locked_gpu_clocks": "210,1500"})
    device = observe_simulated(shipped_facts("l4"), ledger=ledger).devices[0]
    assert device.locked_gpu_clocks == "210,1500"
    assert isinstance(device.locked_memory_clocks, Unknown)


def test_old_process_calls_are_tried_where_the_new_ones_mismatch() -> None:
    class OldDriver(SimulatedNvml):
        def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
            raise self.NVMLLibraryMismatchError("unversioned")

        def nvmlDeviceGetComputeRunningProcesses_v2(self, handle: int) -> list[Any]:
            return super().nvmlDeviceGetComputeRunningProcesses(handle)

    facts = shipped_facts()
    assert observe(nvml=OldDriver(facts), host=BoardHost(facts)).devices[0].processes == facts.devices[0].processes


def test_the_simulated_module_raises_the_real_error_classes() -> None:
    facts = shipped_facts("rtx-3090")
    with pytest.raises(vars(pynvml)["NVMLError_NotSupported"]):
        SimulatedNvml(facts).nvmlDeviceGetApplicationsClock(0, 0)
    assert code_for(NOT_SUPPORTED) == pynvml.NVML_ERROR_NOT_SUPPORTED
