"""What is worth knowing of a device beside its settings: why it is slow now, and who else is on it. Advice only."""

from __future__ import annotations

from remediate.gpu.busy import process_lines
from remediate.gpu.facts import Device
from remediate.gpu.judgement import PROCESSES, THROTTLED, Judgement
from remediate.gpu.reasons import (
    HARDWARE_SLOWDOWN,
    POWER_BRAKE,
    SOFTWARE_POWER_CAP,
    THERMAL,
    decode,
    describe,
)
from remediate.model import Outcome, Unknown
from remediate.units import format_watts

_NEAR_LIMIT = 0.9
"""A board that is held by its power limit draws nearly all of it; the reason bit alone is also set at idle."""
_BUSY_PERCENT = 50
_FAR_FROM_LIMIT_C = 20
"""A thermal reason with that much margin at full clock contradicts itself (seen in an H100 dump of driver 535)."""


def judge_throttling(device: Device) -> tuple[Judgement, ...]:
    """Advice for each thing that holds the clocks down now. One sample; a short one is common and no fault."""
    mask = device.events.active
    if isinstance(mask, Unknown) or mask == 0:
        return ()
    found = []
    if mask & THERMAL:
        found.append(_thermal(device, mask))
    if mask & POWER_BRAKE:
        found.append(_advice(device, mask, "power supply or board controller brake the clocks", ()))
    elif mask & HARDWARE_SLOWDOWN and not mask & THERMAL:
        found.append(_advice(device, mask, "the hardware holds the clocks down and gives no cause", ()))
    if mask & SOFTWARE_POWER_CAP:
        found += _power_cap(device, mask)
    nameless = [reason for reason in decode(mask) if reason.name.startswith(("bit", "unknown"))]
    if nameless:
        found.append(_advice(device, mask, "the driver gives a reason that has no name here", ()))
    return tuple(found)


def judge_processes(device: Device) -> tuple[Judgement, ...]:
    """Advice where processes have a context on the GPU."""
    processes = device.processes
    if isinstance(processes, Unknown) or not processes:
        return ()
    count = f"{len(processes)} processes use" if len(processes) > 1 else "1 process uses"
    summary = f"{count} the GPU; they notice when clocks or limits change"
    return (Judgement(PROCESSES, device, Outcome.DIFFERS, summary, evidence=process_lines(device), is_advice=True),)


def _thermal(device: Device, mask: int) -> Judgement:
    evidence = _temperatures(device)
    if _contradicts(device):
        summary = "a thermal slowdown is reported that the readings contradict; read again"
    else:
        summary = "the clocks are held down by heat: look at the airflow and at the memory's temperature"
    return _advice(device, mask, summary, evidence)


def _power_cap(device: Device, mask: int) -> list[Judgement]:
    draw, limit = device.power.draw_w, device.power.enforced_w
    if isinstance(draw, Unknown) or isinstance(limit, Unknown) or limit <= 0:
        return []
    evidence = (f"draws {format_watts(draw)} of {format_watts(limit)}",)
    if draw >= _NEAR_LIMIT * limit:
        highest = device.power.max_w
        at_most = not isinstance(highest, Unknown) and limit >= highest
        note = "; the limit is the board's maximum already" if at_most else ""
        return [_advice(device, mask, f"the clocks are held down by the power limit{note}", evidence)]
    busy = device.utilization_percent
    if isinstance(busy, Unknown) or busy < _BUSY_PERCENT:
        return []
    summary = "a power cap is reported far below the limit: another limiter (board, rail, host) is at work"
    return [_advice(device, mask, summary, evidence)]


def _contradicts(device: Device) -> bool:
    margin = device.temperature.margin_c
    if isinstance(margin, Unknown):
        heat = device.temperature
        core, limit = heat.gpu_c, heat.max_operating_c
        # A cool core proves nothing where the memory has its own limit.
        if isinstance(core, Unknown) or isinstance(limit, Unknown) or not isinstance(heat.memory_c, Unknown):
            return False
        margin = limit - core
    at_top = not isinstance(device.clocks.sm_mhz, Unknown) and device.clocks.sm_mhz == device.max_clocks.sm_mhz
    return at_top and margin > _FAR_FROM_LIMIT_C


def _temperatures(device: Device) -> tuple[str, ...]:
    heat = device.temperature
    parts = (
        ("GPU", heat.gpu_c),
        ("GPU maximum operating", heat.max_operating_c),
        ("memory", heat.memory_c),
        ("memory maximum operating", heat.memory_max_c),
        ("margin", heat.margin_c),
    )
    known = [f"{name} {value} C" for name, value in parts if not isinstance(value, Unknown)]
    return (", ".join(known),) if known else ()


def _advice(device: Device, mask: int, summary: str, evidence: tuple[str, ...]) -> Judgement:
    lines = (f"reasons: {describe(mask)}", *evidence)
    now, top = device.clocks.sm_mhz, device.max_clocks.sm_mhz
    if not isinstance(now, Unknown) and not isinstance(top, Unknown):
        lines += (f"SM clock {now} of at most {top} MHz",)
    return Judgement(THROTTLED, device, Outcome.DIFFERS, summary, evidence=lines, is_advice=True)
