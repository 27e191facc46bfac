"""Running a device's model for a while and writing the outcome into its facts. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from remediate.gpu.board.physics import Bounds, Heat, Model, Physics
from remediate.gpu.facts import Clocks, Device, Events
from remediate.gpu.reasons import HARDWARE_THERMAL, SOFTWARE_POWER_CAP, SOFTWARE_THERMAL
from remediate.model import Unknown

_STEP_S = 1.0
_NO_BOUND_MHZ = 1_000_000


class Hidden(msgspec.Struct, frozen=True):
    """A device's state that no NVML call tells: its locks, and its heat between whole degrees."""

    heat: Heat
    locked_gpu_clocks: str = ""
    locked_memory_clocks: str = ""
    cap_w: float | None = None
    """Another limiter below the limit that software sets; found when that is first set."""
    free_clocks: Clocks | None = None
    """The clocks before a lock was set; None once the board ran again."""


def simulate(
    device: Device, hidden: Hidden, physics: Physics, seconds: float, utilization: float
) -> tuple[Device, Hidden]:
    """The device after `seconds` under a constant utilization (0 to 1).

    A device without supported clocks, or one that is lost, comes back as it was.
    """
    bounds = _bounds(device, hidden)
    if bounds is None or device.lost is not None or seconds <= 0:
        return device, hidden
    utilization = min(max(utilization, 0.0), 1.0)
    model = Model(physics, device, bounds, utilization)
    heat = hidden.heat
    durations: dict[int, float] = {}
    moment = None
    rest = seconds
    while rest > 0:
        step = min(_STEP_S, rest)
        moment = model.step(heat, step)
        heat = moment.heat
        durations[moment.reasons] = durations.get(moment.reasons, 0.0) + step
        rest -= step
    assert moment is not None  # noqa: S101 - `seconds` is above 0, so there was a step
    fresh = msgspec.structs.replace(
        device,
        clocks=msgspec.structs.replace(device.clocks, graphics_mhz=moment.clock_mhz, sm_mhz=moment.clock_mhz),
        power=msgspec.structs.replace(device.power, draw_w=round(moment.power_w, 3)),
        temperature=_temperature(device, heat),
        events=_count(device.events, moment.reasons, durations),
        performance_state=0,
        utilization_percent=round(utilization * 100),
    )
    return fresh, msgspec.structs.replace(hidden, heat=heat, free_clocks=None)


def _temperature(device: Device, heat: Heat) -> msgspec.Struct:
    """Sensors give whole degrees; what the board does not tell stays untold."""
    former = device.temperature
    changes: dict[str, int] = {}
    if not isinstance(former.gpu_c, Unknown):
        changes["gpu_c"] = round(heat.gpu_c)
    if not isinstance(former.memory_c, Unknown):
        changes["memory_c"] = round(heat.memory_c)
    if not isinstance(former.margin_c, Unknown) and not isinstance(former.max_operating_c, Unknown):
        changes["margin_c"] = former.max_operating_c - round(heat.gpu_c)
    return msgspec.structs.replace(former, **changes)


def _count(events: Events, active: int, durations: Mapping[int, float]) -> Events:
    """Add to the counters how long each reason held; counters that the driver does not tell stay untold."""
    bits = {
        "power_cap_us": SOFTWARE_POWER_CAP,
        "software_thermal_us": SOFTWARE_THERMAL,
        "hardware_thermal_us": HARDWARE_THERMAL,
        "thermal_us": SOFTWARE_THERMAL | HARDWARE_THERMAL,
    }
    changes = {"active": active}
    for name, bit in bits.items():
        former = getattr(events, name)
        if not isinstance(former, Unknown):
            held = sum(duration for reasons, duration in durations.items() if reasons & bit)
            changes[name] = former + round(held * 1_000_000)
    return msgspec.structs.replace(events, **changes)


def _bounds(device: Device, hidden: Hidden) -> Bounds | None:
    if isinstance(device.supported_clocks, Unknown):
        return None
    tables = {table.memory_mhz: table.graphics_mhz[::-1] for table in device.supported_clocks if table.graphics_mhz}
    if not tables:
        return None
    memory = device.application_clocks.memory_mhz
    clocks = tables.get(memory if isinstance(memory, int) else 0) or tables[max(tables)]
    locked = tuple(int(part) for part in hidden.locked_gpu_clocks.split(",")) if hidden.locked_gpu_clocks else ()
    is_default = device.application_clocks == device.default_application_clocks
    chosen = device.application_clocks.graphics_mhz
    return Bounds(
        clocks=clocks,
        idle_mhz=locked[0] if locked else clocks[0],
        locked_max_mhz=locked[1] if locked else _NO_BOUND_MHZ,
        application_max_mhz=_NO_BOUND_MHZ if is_default or isinstance(chosen, Unknown) else chosen,
    )
