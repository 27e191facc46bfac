# The names, and what they answer, are NVML's own; nvml.h documents them.
# ruff: noqa: N802, D102, ARG002
"""NVML's functions as the observation uses them, answered from recorded facts with the real error classes."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from remediate.gpu import numbers
from remediate.gpu.facts import Device, GpuFacts, Process
from remediate.gpu.nvml import FUNCTION_NOT_FOUND, code_for, load_pynvml, unknown_for
from remediate.gpu.read_device import ZERO_LIMIT
from remediate.model import Reading, Unknown, UnknownKind
from remediate.units import BYTES_PER_MIB, milliwatts

T = TypeVar("T")
_NOT_SUPPORTED = 3
_NOT_FOUND = 6
_INVALID_ARGUMENT = 2


class SimulatedNvml:
    """Stands in for the module `pynvml`. A handle is the device's index.

    Facts go in and come out of `remediate.gpu.observe` the same: an `Unknown` raises the error that leads to it.
    """

    def __init__(self, facts: GpuFacts) -> None:
        self._facts = facts
        self._devices = {device.index: device for device in facts.devices}
        self._module = load_pynvml()
        self.NVMLError = self._module.NVMLError
        self.NVMLLibraryMismatchError = self._module.NVMLLibraryMismatchError
        self.nvmlMemory_v2 = self._module.nvmlMemory_v2

    def show(self, facts: GpuFacts) -> None:
        """Answer from these facts of the same devices from now on."""
        self._facts = facts
        self._devices = {device.index: device for device in facts.devices}

    def nvmlInit(self) -> None:
        if isinstance(self._facts.driver_version, Unknown) and not self._devices:
            raise self._error(self._facts.driver_version)

    def nvmlShutdown(self) -> None:
        return None

    def nvmlSystemGetDriverVersion(self) -> str:
        return self._known(self._facts.driver_version)

    def nvmlSystemGetNVMLVersion(self) -> str:
        return self._known(self._facts.nvml_version)

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        major, minor = self._known(self._facts.cuda_driver_version).split(".")
        return int(major) * 1000 + int(minor) * 10

    def nvmlSystemGetProcessName(self, pid: int) -> str:
        return self._known(_process(self._facts, pid).name)

    def nvmlDeviceGetCount(self) -> int:
        return self._known(self._facts.device_count)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        device = self._devices.get(index)
        if device is None:
            raise self.NVMLError(_INVALID_ARGUMENT)
        if device.lost is not None:
            raise self._error(device.lost)
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:
        device = self._facts.device(uuid)
        if device is None:
            raise self.NVMLError(_NOT_FOUND)
        return device.index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return self._known(self._devices[handle].uuid)

    def nvmlDeviceGetName(self, handle: int) -> str:
        return self._known(self._devices[handle].name)

    def nvmlDeviceGetPciInfo(self, handle: int) -> Any:
        return SimpleNamespace(busId=self._known(self._devices[handle].pci_bus_id))

    def nvmlDeviceGetArchitecture(self, handle: int) -> int:
        return self._known(numbers.number(self._devices[handle].architecture, numbers.ARCHITECTURES))

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        major, minor = self._known(self._devices[handle].compute_capability).split(".")
        return int(major), int(minor)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return milliwatts(self._known(self._devices[handle].power.draw_w))

    def nvmlDeviceGetPowerManagementLimit(self, handle: int) -> int:
        limit = self._devices[handle].power.limit_w
        return 0 if limit == ZERO_LIMIT else milliwatts(self._known(limit))

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: int) -> int:
        return milliwatts(self._known(self._devices[handle].power.enforced_w))

    def nvmlDeviceGetPowerManagementDefaultLimit(self, handle: int) -> int:
        return milliwatts(self._known(self._devices[handle].power.default_w))

    def nvmlDeviceGetPowerManagementLimitConstraints(self, handle: int) -> list[int]:
        power = self._devices[handle].power
        return [milliwatts(self._known(power.min_w)), milliwatts(self._known(power.max_w))]

    def nvmlDeviceGetClockInfo(self, handle: int, domain: int) -> int:
        return self._known(_domain(self._devices[handle].clocks, domain))

    def nvmlDeviceGetMaxClockInfo(self, handle: int, domain: int) -> int:
        return self._known(_domain(self._devices[handle].max_clocks, domain))

    def nvmlDeviceGetApplicationsClock(self, handle: int, domain: int) -> int:
        return self._known(_domain(self._devices[handle].application_clocks, domain))

    def nvmlDeviceGetDefaultApplicationsClock(self, handle: int, domain: int) -> int:
        return self._known(_domain(self._devices[handle].default_application_clocks, domain))

    def nvmlDeviceGetSupportedMemoryClocks(self, handle: int) -> list[int]:
        return [table.memory_mhz for table in self._known(self._devices[handle].supported_clocks)]

    def nvmlDeviceGetSupportedGraphicsClocks(self, handle: int, memory_mhz: int) -> list[int]:
        for table in self._known(self._devices[handle].supported_clocks):
            if table.memory_mhz == memory_mhz:
                self._known(table.graphics)
                return list(table.graphics_mhz)
        raise self.NVMLError(_NOT_FOUND)

    def nvmlDeviceGetPersistenceMode(self, handle: int) -> int:
        return int(self._known(self._devices[handle].persistence_mode))

    def nvmlDeviceGetComputeMode(self, handle: int) -> int:
        return self._known(numbers.number(self._devices[handle].compute_mode, numbers.COMPUTE_MODES))

    def nvmlDeviceGetVirtualizationMode(self, handle: int) -> int:
        return self._known(numbers.number(self._devices[handle].virtualization, numbers.VIRTUALIZATION_MODES))

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:
        device = self._devices[handle]
        return [int(self._known(device.mig_current)), int(self._known(device.mig_pending))]

    def nvmlDeviceGetEccMode(self, handle: int) -> list[int]:
        device = self._devices[handle]
        return [int(self._known(device.ecc_current)), int(self._known(device.ecc_pending))]

    def nvmlDeviceGetPerformanceState(self, handle: int) -> int:
        return self._known(self._devices[handle].performance_state)

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:
        return self._known(self._devices[handle].temperature.gpu_c)

    def nvmlDeviceGetMarginTemperature(self, handle: int) -> int:
        return self._known(self._devices[handle].temperature.margin_c)

    def nvmlDeviceGetTemperatureThreshold(self, handle: int, threshold: int) -> int:
        heat = self._devices[handle].temperature
        readings = {
            numbers.THRESHOLD_SHUTDOWN: heat.shutdown_c,
            numbers.THRESHOLD_SLOWDOWN: heat.slowdown_c,
            numbers.THRESHOLD_MEMORY_MAX: heat.memory_max_c,
            numbers.THRESHOLD_GPU_MAX: heat.max_operating_c,
        }
        return self._known(readings[threshold])

    def nvmlDeviceGetFieldValues(self, handle: int, fields: Sequence[int | tuple[int, int]]) -> list[Any]:
        readings = _field_readings(self._devices[handle])
        module = _module_readings(self._devices[handle])
        values = []
        for asked in fields:
            field, scope = asked if isinstance(asked, tuple) else (asked, 0)
            known = module if scope == numbers.SCOPE_MODULE else readings
            values.append(self._field(field, known.get(field, unknown_for(FUNCTION_NOT_FOUND)), scope))
        return values

    def nvmlDeviceGetViolationStatus(self, handle: int, policy: int) -> Any:
        events = self._devices[handle].events
        readings = {
            numbers.VIOLATION_POWER: events.power_cap_us,
            numbers.VIOLATION_THERMAL: events.thermal_us,
            numbers.VIOLATION_SYNC_BOOST: events.sync_boost_us,
        }
        return SimpleNamespace(referenceTime=0, violationTime=self._known(readings[policy]) * 1000)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: int) -> int:
        return self._known(self._devices[handle].events.active)

    def nvmlDeviceGetSupportedClocksEventReasons(self, handle: int) -> int:
        return self._known(self._devices[handle].events.supported)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        device = self._devices[handle]
        return SimpleNamespace(
            gpu=self._known(device.utilization_percent), memory=self._known(device.memory_utilization_percent)
        )

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: int | None = None) -> Any:
        memory = self._devices[handle].memory
        info = SimpleNamespace(
            total=self._known(memory.total_mib) * BYTES_PER_MIB, used=self._known(memory.used_mib) * BYTES_PER_MIB
        )
        if version is not None:
            info.reserved = self._known(memory.reserved_mib) * BYTES_PER_MIB
        return info

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        return self._processes(handle, "compute")

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: int) -> list[Any]:
        return self._processes(handle, "graphics")

    def _processes(self, handle: int, kind: str) -> list[Any]:
        processes = self._known(self._devices[handle].processes)
        return [_process_info(process) for process in processes if process.kind == kind]

    def _field(self, field: int, reading: Reading[int], scope: int) -> Any:
        """The real ctypes structure, so that a reader that takes the wrong member of the union is found out."""
        value = self._module.c_nvmlFieldValue_t()
        value.fieldId, value.scopeId = field, scope
        if isinstance(reading, Unknown):
            value.nvmlReturn = code_for(reading)
            return value
        is_counter = (
            field in (numbers.FIELD_POWER_CAP, numbers.FIELD_SYNC_BOOST) or field >= numbers.FIELD_SOFTWARE_THERMAL
        )
        value.valueType = 3 if is_counter else 1 if scope else numbers.VALUE_SIGNED_INT
        setattr(value.value, numbers.VALUE_MEMBERS[value.valueType], reading)
        return value

    def _known(self, reading: T | Unknown) -> T:
        """The value. Raises the NVML error that `Unknown` stands for."""
        if isinstance(reading, Unknown):
            raise self._error(reading)
        return reading

    def _error(self, unknown: Unknown) -> Exception:
        error: Exception = self.NVMLError(code_for(unknown))
        return error


class BoardHost:
    """The surroundings that were recorded with the board."""

    def __init__(self, facts: GpuFacts) -> None:
        self._facts = facts

    def smi_path(self) -> Reading[str]:
        """As recorded."""
        return self._facts.smi

    def persistence_daemon(self) -> Reading[bool]:
        """As recorded."""
        return self._facts.persistence_daemon

    def has_cap_sys_admin(self) -> Reading[bool]:
        """As recorded."""
        return self._facts.has_cap_sys_admin

    def platform(self) -> Reading[str]:
        """As recorded."""
        return self._facts.platform

    def process_user(self, pid: int) -> Reading[str]:
        """As recorded."""
        return _process(self._facts, pid).user


def _domain(clocks: Any, domain: int) -> Reading[int]:
    names = {
        numbers.CLOCK_GRAPHICS: "graphics_mhz",
        numbers.CLOCK_SM: "sm_mhz",
        numbers.CLOCK_MEMORY: "memory_mhz",
        numbers.CLOCK_VIDEO: "video_mhz",
    }
    reading: Reading[int] = getattr(clocks, names[domain])
    return reading


def _field_readings(device: Device) -> dict[int, Reading[int]]:
    heat, events = device.temperature, device.events

    def nanoseconds(reading: Reading[int]) -> Reading[int]:
        return reading if isinstance(reading, Unknown) else reading * 1000

    return {
        numbers.FIELD_MEMORY_TEMPERATURE: heat.memory_c,
        numbers.FIELD_SHUTDOWN_MARGIN: heat.shutdown_margin_c,
        numbers.FIELD_SLOWDOWN_MARGIN: heat.slowdown_margin_c,
        numbers.FIELD_MEMORY_MAX_MARGIN: heat.memory_max_margin_c,
        numbers.FIELD_MAX_OPERATING_MARGIN: heat.max_operating_margin_c,
        numbers.FIELD_POWER_CAP: nanoseconds(events.power_cap_us),
        numbers.FIELD_SYNC_BOOST: nanoseconds(events.sync_boost_us),
        numbers.FIELD_SOFTWARE_THERMAL: nanoseconds(events.software_thermal_us),
        numbers.FIELD_HARDWARE_THERMAL: nanoseconds(events.hardware_thermal_us),
        numbers.FIELD_POWER_BRAKE: nanoseconds(events.power_brake_us),
    }


def _module_readings(device: Device) -> dict[int, Reading[int]]:
    """Milliwatts of the module, on a board that has that scope."""
    power = device.module_power
    if power is None:
        return dict.fromkeys(numbers.MODULE_FIELDS, unknown_for(_NOT_SUPPORTED))
    readings = {
        numbers.FIELD_POWER_AVERAGE: power.draw_w,
        numbers.FIELD_POWER_MIN_LIMIT: power.min_w,
        numbers.FIELD_POWER_MAX_LIMIT: power.max_w,
        numbers.FIELD_POWER_DEFAULT_LIMIT: power.default_w,
        numbers.FIELD_POWER_CURRENT_LIMIT: power.enforced_w,
        numbers.FIELD_POWER_REQUESTED_LIMIT: power.limit_w,
    }
    return {
        field: reading if isinstance(reading, Unknown) else milliwatts(reading) for field, reading in readings.items()
    }


def _process(facts: GpuFacts, pid: int) -> Process:
    """The recorded process with that id; one without name and user where there is none."""
    for device in facts.devices:
        for process in () if isinstance(device.processes, Unknown) else device.processes:
            if process.pid == pid:
                return process
    gone = Unknown(UnknownKind.FAILED, "not found")
    return Process(pid, "compute", name=gone, user=gone)


def _process_info(process: Process) -> Any:
    memory = process.memory_mib
    return SimpleNamespace(
        pid=process.pid, usedGpuMemory=None if isinstance(memory, Unknown) else memory * BYTES_PER_MIB
    )
