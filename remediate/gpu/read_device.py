"""One GPU's readings, each with its own failure. All calls are getters; nothing here changes a device."""

from __future__ import annotations

from typing import Any

import msgspec

from remediate.gpu.clocktable import ClockTable, pack
from remediate.gpu.facts import (
    NO_LOCK_KNOWN,
    ApplicationClocks,
    Clocks,
    Device,
    Events,
    Memory,
    Power,
    Process,
    Temperature,
)
from remediate.gpu.host import Surroundings
from remediate.gpu.numbers import (
    ARCHITECTURES,
    CLOCK_GRAPHICS,
    CLOCK_MEMORY,
    CLOCK_SM,
    CLOCK_VIDEO,
    COMPUTE_MODES,
    FIELD_HARDWARE_THERMAL,
    FIELD_MAX_OPERATING_MARGIN,
    FIELD_MEMORY_MAX_MARGIN,
    FIELD_MEMORY_TEMPERATURE,
    FIELD_POWER_AVERAGE,
    FIELD_POWER_BRAKE,
    FIELD_POWER_CAP,
    FIELD_POWER_CURRENT_LIMIT,
    FIELD_POWER_DEFAULT_LIMIT,
    FIELD_POWER_MAX_LIMIT,
    FIELD_POWER_MIN_LIMIT,
    FIELD_POWER_REQUESTED_LIMIT,
    FIELD_SHUTDOWN_MARGIN,
    FIELD_SLOWDOWN_MARGIN,
    FIELD_SOFTWARE_THERMAL,
    FIELD_SYNC_BOOST,
    FIELDS,
    MODULE_FIELDS,
    PERFORMANCE_STATE_UNKNOWN,
    SCOPE_MODULE,
    THRESHOLD_GPU_MAX,
    THRESHOLD_MEMORY_MAX,
    THRESHOLD_SHUTDOWN,
    THRESHOLD_SLOWDOWN,
    VALUE_MEMBERS,
    VIOLATION_POWER,
    VIOLATION_SYNC_BOOST,
    VIOLATION_THERMAL,
    VIRTUALIZATION_MODES,
    word,
)
from remediate.gpu.nvml import FUNCTION_NOT_FOUND, Nvml, ask, ask_first, unknown_for
from remediate.model import Reading, Unknown, UnknownKind
from remediate.subject import Ledger
from remediate.units import BYTES_PER_MIB, mebibytes, watts

ZERO_LIMIT = Unknown(UnknownKind.FAILED, "the driver answers 0 W, which is no limit")
"""Some vGPU guests answer 0 with success (triton-inference-server/tensorrtllm_backend#363)."""
_INVALID_ARGUMENT = 2


def read_device(nvml: Nvml, index: int, handle: Any, host: Surroundings, ledger: Ledger) -> Device:
    """All readings of the device behind `handle`."""
    fields = _read_fields(nvml, handle)
    uuid = ask(nvml, "nvmlDeviceGetUUID", handle)
    mig = _pair(ask(nvml, "nvmlDeviceGetMigMode", handle))
    ecc = _pair(ask(nvml, "nvmlDeviceGetEccMode", handle))
    utilization = ask(nvml, "nvmlDeviceGetUtilizationRates", handle)
    return Device(
        index=index,
        uuid=uuid,
        name=ask(nvml, "nvmlDeviceGetName", handle),
        pci_bus_id=_attribute(ask(nvml, "nvmlDeviceGetPciInfo", handle), "busId"),
        architecture=word(ask(nvml, "nvmlDeviceGetArchitecture", handle), ARCHITECTURES),
        compute_capability=_dotted(ask(nvml, "nvmlDeviceGetCudaComputeCapability", handle)),
        power=_read_power(nvml, handle),
        clocks=_read_clocks(nvml, handle, "nvmlDeviceGetClockInfo"),
        max_clocks=_read_clocks(nvml, handle, "nvmlDeviceGetMaxClockInfo"),
        application_clocks=read_application_clocks(nvml, handle),
        default_application_clocks=read_application_clocks(nvml, handle, "nvmlDeviceGetDefaultApplicationsClock"),
        supported_clocks=_read_supported_clocks(nvml, handle),
        locked_gpu_clocks=_known_lock(ledger, f"{uuid}/locked_gpu_clocks"),
        locked_memory_clocks=_known_lock(ledger, f"{uuid}/locked_memory_clocks"),
        persistence_mode=read_persistence_mode(nvml, handle),
        compute_mode=read_compute_mode(nvml, handle),
        mig_current=mig[0],
        mig_pending=mig[1],
        virtualization=word(ask(nvml, "nvmlDeviceGetVirtualizationMode", handle), VIRTUALIZATION_MODES),
        ecc_current=ecc[0],
        ecc_pending=ecc[1],
        performance_state=_performance_state(ask(nvml, "nvmlDeviceGetPerformanceState", handle)),
        temperature=_read_temperature(nvml, handle, fields),
        events=_read_events(nvml, handle, fields),
        utilization_percent=_attribute(utilization, "gpu"),
        memory_utilization_percent=_attribute(utilization, "memory"),
        memory=_read_memory(nvml, handle),
        processes=_read_processes(nvml, handle, host),
        module_power=read_module_power(nvml, handle),
    )


class Moment(msgspec.Struct, frozen=True):
    """What is read again and again over a sample, each as in `Device`."""

    active: Reading[int]
    sm_mhz: Reading[int]
    draw_w: Reading[float]
    enforced_w: Reading[float]
    gpu_c: Reading[int]
    memory_c: Reading[int]
    margin_c: Reading[int]
    utilization_percent: Reading[int]
    events: Events


def read_moment(nvml: Nvml, handle: Any) -> Moment:
    """The readings of one moment; the mask first and the clock right after it, for they are judged together."""
    fields = _read_fields(nvml, handle)
    events = _read_events(nvml, handle, fields)
    return Moment(
        active=events.active,
        sm_mhz=ask(nvml, "nvmlDeviceGetClockInfo", handle, CLOCK_SM),
        draw_w=_watts(ask(nvml, "nvmlDeviceGetPowerUsage", handle)),
        enforced_w=_watts(ask(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle)),
        gpu_c=_read_gpu_temperature(nvml, handle),
        memory_c=fields[FIELD_MEMORY_TEMPERATURE],
        margin_c=ask(nvml, "nvmlDeviceGetMarginTemperature", handle),
        utilization_percent=_attribute(ask(nvml, "nvmlDeviceGetUtilizationRates", handle), "gpu"),
        events=events,
    )


def read_power_limit(nvml: Nvml, handle: Any) -> Reading[float]:
    """The limit in W that software asked for (NVML: mW)."""
    limit = _watts(ask(nvml, "nvmlDeviceGetPowerManagementLimit", handle))
    return ZERO_LIMIT if limit == 0 else limit


def read_persistence_mode(nvml: Nvml, handle: Any) -> Reading[bool]:
    """Whether the driver keeps the device initialised without clients."""
    return _flag(ask(nvml, "nvmlDeviceGetPersistenceMode", handle))


def read_compute_mode(nvml: Nvml, handle: Any) -> Reading[str]:
    """How many processes may use the device, in words."""
    return word(ask(nvml, "nvmlDeviceGetComputeMode", handle), COMPUTE_MODES)


def read_application_clocks(
    nvml: Nvml, handle: Any, function: str = "nvmlDeviceGetApplicationsClock"
) -> ApplicationClocks:
    """The pair of applications clocks, or the default pair with the other function."""
    return ApplicationClocks(
        memory_mhz=ask(nvml, function, handle, CLOCK_MEMORY), graphics_mhz=ask(nvml, function, handle, CLOCK_GRAPHICS)
    )


def with_known_locks(device: Device, ledger: Ledger) -> Device:
    """The device with what earlier runs locked, for one that was read without their ledger."""
    return msgspec.structs.replace(
        device,
        locked_gpu_clocks=_known_lock(ledger, f"{device.uuid}/locked_gpu_clocks"),
        locked_memory_clocks=_known_lock(ledger, f"{device.uuid}/locked_memory_clocks"),
    )


def _known_lock(ledger: Ledger, key: str) -> Reading[str]:
    """What an earlier run set. A ledger that somebody edited into something else is no knowledge."""
    text = ledger.entries.get(key, "")
    lowest, _, highest = text.partition(",")
    return text if lowest.isdecimal() and highest.isdecimal() else NO_LOCK_KNOWN


def _read_power(nvml: Nvml, handle: Any) -> Power:
    constraints = ask(nvml, "nvmlDeviceGetPowerManagementLimitConstraints", handle)
    lowest, highest = (constraints, constraints) if isinstance(constraints, Unknown) else constraints
    return Power(
        draw_w=_watts(ask(nvml, "nvmlDeviceGetPowerUsage", handle)),
        limit_w=read_power_limit(nvml, handle),
        enforced_w=_watts(ask(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle)),
        default_w=_watts(ask(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", handle)),
        min_w=_watts(lowest),
        max_w=_watts(highest),
    )


def _read_clocks(nvml: Nvml, handle: Any, function: str) -> Clocks:
    return Clocks(
        graphics_mhz=ask(nvml, function, handle, CLOCK_GRAPHICS),
        sm_mhz=ask(nvml, function, handle, CLOCK_SM),
        memory_mhz=ask(nvml, function, handle, CLOCK_MEMORY),
        video_mhz=ask(nvml, function, handle, CLOCK_VIDEO),
    )


def _read_supported_clocks(nvml: Nvml, handle: Any) -> Reading[tuple[ClockTable, ...]]:
    memory_clocks = ask(nvml, "nvmlDeviceGetSupportedMemoryClocks", handle)
    if isinstance(memory_clocks, Unknown):
        return memory_clocks
    tables = []
    for memory_mhz in sorted(set(memory_clocks), reverse=True):
        graphics = ask(nvml, "nvmlDeviceGetSupportedGraphicsClocks", handle, memory_mhz)
        tables.append(ClockTable(memory_mhz, graphics if isinstance(graphics, Unknown) else pack(graphics)))
    return tuple(tables)


def _read_temperature(nvml: Nvml, handle: Any, fields: dict[int, Reading[int]]) -> Temperature:
    function = "nvmlDeviceGetTemperatureThreshold"
    return Temperature(
        gpu_c=_read_gpu_temperature(nvml, handle),
        memory_c=fields[FIELD_MEMORY_TEMPERATURE],
        margin_c=ask(nvml, "nvmlDeviceGetMarginTemperature", handle),
        shutdown_c=ask(nvml, function, handle, THRESHOLD_SHUTDOWN),
        slowdown_c=ask(nvml, function, handle, THRESHOLD_SLOWDOWN),
        max_operating_c=ask(nvml, function, handle, THRESHOLD_GPU_MAX),
        memory_max_c=ask(nvml, function, handle, THRESHOLD_MEMORY_MAX),
        shutdown_margin_c=fields[FIELD_SHUTDOWN_MARGIN],
        slowdown_margin_c=fields[FIELD_SLOWDOWN_MARGIN],
        max_operating_margin_c=fields[FIELD_MAX_OPERATING_MARGIN],
        memory_max_margin_c=fields[FIELD_MEMORY_MAX_MARGIN],
    )


def _read_gpu_temperature(nvml: Nvml, handle: Any) -> Reading[int]:
    """GetTemperature is deprecated in favour of GetTemperatureV, which drivers before 570 lack."""
    reading: Reading[int] = ask_first(nvml, ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature"), handle, 0)
    return reading


def _read_events(nvml: Nvml, handle: Any, fields: dict[int, Reading[int]]) -> Events:
    present = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
    possible = ("nvmlDeviceGetSupportedClocksEventReasons", "nvmlDeviceGetSupportedClocksThrottleReasons")

    def counter(field: int, violation: int | None = None) -> Reading[int]:
        nanoseconds = fields[field]
        if isinstance(nanoseconds, Unknown) and violation is not None:
            nanoseconds = _read_violation(nvml, handle, violation)
        return nanoseconds if isinstance(nanoseconds, Unknown) else nanoseconds // 1000

    thermal = _read_violation(nvml, handle, VIOLATION_THERMAL)
    return Events(
        # Renamed with driver 535; the older name is the only one before that.
        active=ask_first(nvml, present, handle),
        supported=ask_first(nvml, possible, handle),
        power_cap_us=counter(FIELD_POWER_CAP, VIOLATION_POWER),
        sync_boost_us=counter(FIELD_SYNC_BOOST, VIOLATION_SYNC_BOOST),
        software_thermal_us=counter(FIELD_SOFTWARE_THERMAL),
        hardware_thermal_us=counter(FIELD_HARDWARE_THERMAL),
        power_brake_us=counter(FIELD_POWER_BRAKE),
        thermal_us=thermal if isinstance(thermal, Unknown) else thermal // 1000,
    )


def _read_violation(nvml: Nvml, handle: Any, policy: int) -> Reading[int]:
    """Nanoseconds (nvmlViolationTime_t)."""
    nanoseconds: Reading[int] = _attribute(ask(nvml, "nvmlDeviceGetViolationStatus", handle, policy), "violationTime")
    return nanoseconds


def _read_fields(nvml: Nvml, handle: Any) -> dict[int, Reading[int]]:
    """Field id to value. The call succeeds as a whole; each field has its own return code, and its value is 0 then."""
    answer = ask(nvml, "nvmlDeviceGetFieldValues", handle, list(FIELDS))
    if isinstance(answer, Unknown):
        return dict.fromkeys(FIELDS, answer)
    return {field.fieldId: _field_value(field) for field in answer}


def read_module_power(nvml: Nvml, handle: Any) -> Power | None:
    """Power of the whole module of a Grace board; None where the board has no such scope."""
    answer = ask(nvml, "nvmlDeviceGetFieldValues", handle, [(field, SCOPE_MODULE) for field in MODULE_FIELDS])
    if isinstance(answer, Unknown):
        return None
    # A driver that does not know scopes answers for the GPU and hands the scope back as 0 or refuses.
    fields = {field.fieldId: _watts(_field_value(field)) for field in answer if field.scopeId == SCOPE_MODULE}
    limit = fields.get(FIELD_POWER_REQUESTED_LIMIT)
    if limit is None or isinstance(limit, Unknown):
        return None
    return Power(
        draw_w=fields[FIELD_POWER_AVERAGE],
        limit_w=limit,
        enforced_w=fields[FIELD_POWER_CURRENT_LIMIT],
        default_w=fields[FIELD_POWER_DEFAULT_LIMIT],
        min_w=fields[FIELD_POWER_MIN_LIMIT],
        max_w=fields[FIELD_POWER_MAX_LIMIT],
    )


def _field_value(field: Any) -> Reading[int]:
    if field.nvmlReturn == _INVALID_ARGUMENT:
        # A driver that is older than the field's number.
        return unknown_for(FUNCTION_NOT_FOUND)
    if field.nvmlReturn != 0:
        return unknown_for(field.nvmlReturn)
    return int(getattr(field.value, VALUE_MEMBERS.get(field.valueType, "ullVal")))


def _read_memory(nvml: Nvml, handle: Any) -> Memory:
    """By the second version of the call, whose `used` leaves the driver's reserve out, as nvidia-smi does."""
    version = getattr(nvml, "nvmlMemory_v2", None)
    info = unknown_for(FUNCTION_NOT_FOUND)
    if version is not None:
        info = ask(nvml, "nvmlDeviceGetMemoryInfo", handle, version)
    if isinstance(info, Unknown):
        info = ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    if isinstance(info, Unknown):
        return Memory(info, info, info)
    reserved = getattr(info, "reserved", None)
    return Memory(
        total_mib=_mebibytes_up(info.total),
        used_mib=_mebibytes_up(info.used),
        reserved_mib=unknown_for(FUNCTION_NOT_FOUND) if reserved is None else _mebibytes_up(reserved),
    )


def _mebibytes_up(count: int) -> int:
    """Framebuffer memory in MiB from bytes, rounded up as nvidia-smi does: 615.06 MiB reserved on an H200 is shown as
    616 (driver 580.159.04). A process's memory is rounded down.
    """
    return -(-count // BYTES_PER_MIB)


def _read_processes(nvml: Nvml, handle: Any, host: Surroundings) -> Reading[tuple[Process, ...]]:
    compute = _process_list(nvml, handle, "nvmlDeviceGetComputeRunningProcesses")
    if isinstance(compute, Unknown):
        return compute
    graphics = _process_list(nvml, handle, "nvmlDeviceGetGraphicsRunningProcesses")
    entries = [("compute", entry) for entry in compute]
    entries += [("graphics", entry) for entry in ([] if isinstance(graphics, Unknown) else graphics)]
    found = [
        Process(
            pid=entry.pid,
            kind=kind,
            memory_mib=_process_memory(entry.usedGpuMemory),
            name=ask(nvml, "nvmlSystemGetProcessName", entry.pid),
            user=host.process_user(entry.pid),
        )
        for kind, entry in entries
    ]
    return tuple(sorted(found, key=lambda process: (process.pid, process.kind)))


def _process_list(nvml: Nvml, handle: Any, function: str) -> Any:
    return ask_first(nvml, (function, f"{function}_v2"), handle)


def _process_memory(used: int | None) -> Reading[int]:
    """`None` on Windows, and in a container whose ids NVML can't map."""
    if used is None:
        return Unknown(UnknownKind.NOT_SUPPORTED, "the driver does not tell it here")
    return mebibytes(used)


def _watts(reading: Reading[int]) -> Reading[float]:
    return reading if isinstance(reading, Unknown) else watts(reading)


def _flag(reading: Reading[int]) -> Reading[bool]:
    return reading if isinstance(reading, Unknown) else reading == 1


def _pair(reading: Reading[Any]) -> tuple[Reading[bool], Reading[bool]]:
    """Current and pending state of a mode."""
    return (reading, reading) if isinstance(reading, Unknown) else (_flag(reading[0]), _flag(reading[1]))


def _dotted(reading: Reading[Any]) -> Reading[str]:
    return reading if isinstance(reading, Unknown) else f"{reading[0]}.{reading[1]}"


def _performance_state(reading: Reading[int]) -> Reading[int]:
    if reading == PERFORMANCE_STATE_UNKNOWN:
        return Unknown(UnknownKind.FAILED, "the driver has no data for it")
    return reading


def _attribute(record: Any, name: str) -> Any:
    return record if isinstance(record, Unknown) else getattr(record, name)
