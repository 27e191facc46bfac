"""Facts by key, as text, for the stale-plan check: `driver_version`, `GPU-…/power_limit_w`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from remediate.gpu.facts import Device, GpuFacts
from remediate.model import Unknown
from remediate.units import format_number

ABSENT = ""
"""The device is gone or the key is not known; a change that depended on it is stale."""


def read_key(facts: GpuFacts, key: str) -> str:
    """The present value of a fact."""
    if key == "driver_version":
        return str(facts.driver_version)
    uuid, _, name = key.rpartition("/")
    device = facts.device(uuid)
    reader = _READERS.get(name)
    return ABSENT if device is None or reader is None else reader(device)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return format_number(value) if isinstance(value, float) else str(value)


def _pair(device: Device) -> str:
    clocks = device.application_clocks
    return f"{clocks.memory_mhz},{clocks.graphics_mhz}"


def _tables(device: Device) -> str:
    tables = device.supported_clocks
    if isinstance(tables, Unknown):
        return str(tables)
    return "; ".join(f"{table.memory_mhz}: {table.graphics}" for table in tables)


_READERS: dict[str, Callable[[Device], str]] = {
    "persistence_mode": lambda device: _text(device.persistence_mode),
    "compute_mode": lambda device: _text(device.compute_mode),
    "module_power_limit_w": lambda device: _text(
        ABSENT if device.module_power is None else device.module_power.limit_w
    ),
    "power_limit_w": lambda device: _text(device.power.limit_w),
    "power_limit_min_w": lambda device: _text(device.power.min_w),
    "power_limit_max_w": lambda device: _text(device.power.max_w),
    "application_clocks": _pair,
    "supported_clocks": _tables,
    "locked_gpu_clocks": lambda device: _text(device.locked_gpu_clocks),
    "locked_memory_clocks": lambda device: _text(device.locked_memory_clocks),
    "mig_mode": lambda device: _text(device.mig_current),
}
