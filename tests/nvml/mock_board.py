"""Board files for the mock library: a board's facts in NVML's own units, as the lines that `mock/board.c` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from remediate.gpu import numbers
from remediate.gpu.board import SimulatedNvml
from remediate.gpu.facts import Device, GpuFacts
from remediate.gpu.nvml import FUNCTION_NOT_FOUND, code_for, load_pynvml
from remediate.model import Reading, Unknown
from remediate.units import milliwatts

HOST = -1
ANY = -1
_DOMAINS = (numbers.CLOCK_GRAPHICS, numbers.CLOCK_SM, numbers.CLOCK_MEMORY, numbers.CLOCK_VIDEO)
_NOT_SUPPORTED = 3
_TEMPERATURE_V_SINCE = 570
_EVENT_REASONS_SINCE = 535
"""First drivers whose library has nvmlDeviceGetTemperatureV, and …ClocksEventReasons by that name."""
_LOCK_SINCE = {0: (7, 0), 2: (8, 0)}
"""Compute capability from which graphics and memory clocks can be locked (nvml.h)."""

# Name in the board file, function of the package, its arguments.
_PLAIN = [
    "UUID",
    "Name",
    "Architecture",
    "CudaComputeCapability",
    "PowerUsage",
    "PowerManagementLimit",
    "EnforcedPowerLimit",
    "PowerManagementDefaultLimit",
    "PowerManagementLimitConstraints",
    "SupportedMemoryClocks",
    "PersistenceMode",
    "ComputeMode",
    "VirtualizationMode",
    "MigMode",
    "EccMode",
    "PerformanceState",
    "MarginTemperature",
]
_BY_NUMBER = {
    "ClockInfo": _DOMAINS,
    "MaxClockInfo": _DOMAINS,
    "ApplicationsClock": (numbers.CLOCK_GRAPHICS, numbers.CLOCK_MEMORY),
    "DefaultApplicationsClock": (numbers.CLOCK_GRAPHICS, numbers.CLOCK_MEMORY),
    "Temperature": (0,),
    "TemperatureThreshold": range(4),
}


class Fault(msgspec.Struct, frozen=True):
    """Calls of `function` (`*` for every one) after the first `after` ones sleep, and then return `code`."""

    function: str
    code: int = 0
    seconds: float = 0.0
    after: int = 0
    device: int = ANY

    def __str__(self) -> str:
        return f"! {self.device} {self.function} {self.code} {self.seconds} {self.after}"


def write_board(path: Path, facts: GpuFacts, faults: Sequence[Fault] = (), *, root: bool = True) -> Path:
    """Write the board file of a simulated board."""
    lines = [*map(str, faults), *_host_lines(facts, root=root)]
    simulated = SimulatedNvml(facts)
    for device in facts.devices:
        lines += _device_lines(simulated, device)
        lines += _lines_by_driver(simulated, device, facts.driver_version)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def add_fault(path: Path, fault: Fault) -> None:
    """Put a fault before the lines of a board file."""
    path.write_text(f"{fault}\n{path.read_text('utf-8')}", "utf-8")


def read_line(path: Path, name: str, device: int = 0) -> str | None:
    """The value that a board file holds now, or None."""
    for line in path.read_text("utf-8").splitlines():
        index, key, _, *rest = line.split(" ", 3)
        if (index, key) == (str(device), name):
            return "".join(rest)
    return None


def _host_lines(facts: GpuFacts, *, root: bool) -> Iterator[str]:
    if isinstance(facts.driver_version, Unknown) and not facts.devices:
        yield f"{HOST} nvmlInit {code_for(facts.driver_version)}"
    if root:
        yield f"{HOST} root 0 1"
    simulated = SimulatedNvml(facts)
    yield _line(HOST, "nvmlSystemGetDriverVersion", simulated.nvmlSystemGetDriverVersion)
    yield _line(HOST, "nvmlSystemGetNVMLVersion", simulated.nvmlSystemGetNVMLVersion)
    yield _line(HOST, "nvmlSystemGetCudaDriverVersion_v2", simulated.nvmlSystemGetCudaDriverVersion_v2)
    yield _line(HOST, "nvmlDeviceGetCount_v2", simulated.nvmlDeviceGetCount)
    for device in facts.devices:
        for process in () if isinstance(device.processes, Unknown) else device.processes:
            yield _line(
                HOST,
                f"nvmlSystemGetProcessName.{process.pid}",
                lambda pid=process.pid: simulated.nvmlSystemGetProcessName(pid),  # type: ignore[misc]
            )


def _device_lines(simulated: SimulatedNvml, device: Device) -> Iterator[str]:
    index = device.index
    yield _line(index, "handle", lambda: simulated.nvmlDeviceGetHandleByIndex(index))
    if device.lost is not None:
        return

    def line(name: str, function: str, *arguments: Any, show: Callable[[Any], str] = _words) -> str:
        return _line(index, name, lambda: show(getattr(simulated, function)(index, *arguments)))

    for name in _PLAIN:
        yield line(f"nvmlDeviceGet{name}", f"nvmlDeviceGet{name}")
    for name, arguments in _BY_NUMBER.items():
        for argument in arguments:
            yield line(f"nvmlDeviceGet{name}.{argument}", f"nvmlDeviceGet{name}", argument)
    yield line("nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo", show=lambda info: str(info.busId))
    yield line(
        "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetUtilizationRates", show=lambda rate: f"{rate.gpu} {rate.memory}"
    )
    yield line("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo", show=lambda info: f"{info.total} {info.used}")
    yield line(
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetMemoryInfo",
        simulated.nvmlMemory_v2,
        show=lambda info: f"{info.total} {info.reserved} {info.used}",
    )
    for policy in range(3):
        yield line(
            f"nvmlDeviceGetViolationStatus.{policy}",
            "nvmlDeviceGetViolationStatus",
            policy,
            show=lambda status: str(status.violationTime),
        )
    for kind in ("Compute", "Graphics"):
        yield line(f"nvmlDeviceGet{kind}RunningProcesses_v3", f"nvmlDeviceGet{kind}RunningProcesses", show=_processes)
    yield from _table_lines(device)
    yield from _field_lines(simulated, index)
    yield from _power_field_lines(device)


def _lines_by_driver(simulated: SimulatedNvml, device: Device, driver: Reading[str]) -> Iterator[str]:
    """Functions that were renamed: a library has the former name, and from some driver on the new one too."""
    if device.lost is not None:
        return
    index, major = device.index, 0 if isinstance(driver, Unknown) else int(driver.split(".")[0])
    renamed = (
        ("TemperatureV.0", _TEMPERATURE_V_SINCE, lambda: simulated.nvmlDeviceGetTemperature(index, 0)),
        (
            "CurrentClocksEventReasons",
            _EVENT_REASONS_SINCE,
            lambda: simulated.nvmlDeviceGetCurrentClocksEventReasons(index),
        ),
        (
            "SupportedClocksEventReasons",
            _EVENT_REASONS_SINCE,
            lambda: simulated.nvmlDeviceGetSupportedClocksEventReasons(index),
        ),
    )
    for name, since, answer in renamed:
        new = f"nvmlDeviceGet{name}"
        yield _line(index, new, answer) if major >= since else f"{index} {new} {FUNCTION_NOT_FOUND}"
        if "EventReasons" in name:
            yield _line(index, new.replace("EventReasons", "ThrottleReasons"), answer)


def _table_lines(device: Device) -> Iterator[str]:
    """Supported graphics clocks, and whether clocks can be locked, for which there is no getter."""
    tables = () if isinstance(device.supported_clocks, Unknown) else device.supported_clocks
    for table in tables:
        name = f"nvmlDeviceGetSupportedGraphicsClocks.{table.memory_mhz}"
        if isinstance(table.graphics, Unknown):
            yield f"{device.index} {name} {code_for(table.graphics)}"
        else:
            yield f"{device.index} {name} 0 {' '.join(map(str, table.graphics_mhz))}"
    capability = device.compute_capability
    if tables and not isinstance(capability, Unknown):
        for domain, since in _LOCK_SINCE.items():
            if tuple(int(part) for part in capability.split(".")) >= since:
                yield f"{device.index} can_lock.{domain} 0 1"


def _field_lines(simulated: SimulatedNvml, index: int) -> Iterator[str]:
    for field in simulated.nvmlDeviceGetFieldValues(index, list(numbers.FIELDS)):
        yield _field_line(index, "field", field)
    module = [(field, numbers.SCOPE_MODULE) for field in numbers.MODULE_FIELDS]
    for field in simulated.nvmlDeviceGetFieldValues(index, module):
        yield _field_line(index, "module_field", field)


def _field_line(index: int, name: str, field: Any) -> str:
    value = getattr(field.value, numbers.VALUE_MEMBERS[field.valueType])
    return f"{index} {name}.{field.fieldId} {field.nvmlReturn} {field.valueType} {value}"


def _power_field_lines(device: Device) -> Iterator[str]:
    """The fields by which nvidia-smi 535 and later read draw and limits, in mW."""
    power = device.power
    readings = {
        numbers.FIELD_POWER_AVERAGE: power.draw_w,
        numbers.FIELD_POWER_MIN_LIMIT: power.min_w,
        numbers.FIELD_POWER_MAX_LIMIT: power.max_w,
        numbers.FIELD_POWER_DEFAULT_LIMIT: power.default_w,
        numbers.FIELD_POWER_CURRENT_LIMIT: power.enforced_w,
        numbers.FIELD_POWER_REQUESTED_LIMIT: power.limit_w,
    }
    for field, reading in readings.items():
        if device.virtualization == numbers.VGPU_GUEST or isinstance(reading, Unknown):
            yield f"{device.index} field.{field} {_NOT_SUPPORTED}"
        else:
            yield f"{device.index} field.{field} 0 1 {milliwatts(reading)}"


def _line(index: int, name: str, answer: Callable[[], Any]) -> str:
    """The line of one answer: its value, or the code of the error that it raises."""
    try:
        return f"{index} {name} 0 {answer()}"
    except load_pynvml().NVMLError as error:
        return f"{index} {name} {error.value}"


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _processes(entries: list[Any]) -> str:
    return " ".join(f"{entry.pid} {'-' if entry.usedGpuMemory is None else entry.usedGpuMemory}" for entry in entries)
