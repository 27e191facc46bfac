"""What holds the clocks down: event reasons with the readings that go with them, of one moment or over a sample.

Bits that are no fault: idle, applications clocks, sync boost, display, and a power cap that is brief or far from the
limit on a GPU with little to do. All of it is advice, for no setting of a profile cures it.
"""

from __future__ import annotations

from remediate.gpu.facts import Device
from remediate.gpu.judgement import POWER_BRAKE as POWER_BRAKE_CODE
from remediate.gpu.judgement import POWER_CAP, STUCK, THROTTLED, UNCLEAR_READINGS, Judgement
from remediate.gpu.reasons import (
    BOARD_LIMIT,
    HARDWARE_SLOWDOWN,
    HARDWARE_THERMAL,
    POWER_BRAKE,
    SOFTWARE_POWER_CAP,
    THERMAL,
    decode,
)
from remediate.gpu.view import View
from remediate.model import Outcome, Unknown, UnknownKind
from remediate.units import format_watts

_NEAR_LIMIT = 0.9
"""A board that is held by its power limit draws nearly all of it; the reason bit alone is also set at idle."""
_BUSY_PERCENT = 50
_LOADED_PERCENT = 80
_FAR_FROM_LIMIT_C = 20
"""A thermal reason with that much margin at full clock contradicts itself (seen in an H100 dump of driver 535)."""
_BRIEF = 0.05
"""Of a sample's time. A cap or a slowdown shorter than that costs no speed that anybody measures."""
_LASTING_RUN = 3
"""Readings in a row before a power brake is a fault: single ones are noise on some platforms (NVSentinel#1668)."""
_STUCK_BELOW = 0.5
"""Of the highest clock. A board that is free to boost and has work does not stay below half of it."""
_LOWERED_W = 1.0


def judge_throttling(device: Device) -> tuple[Judgement, ...]:
    """Advice for each thing that holds the clocks down; of the sample where there is one."""
    view = View(device)
    if view.mask is None:
        return _unread_draw(device)
    contradiction = _contradiction(view)
    if contradiction is not None:
        return (contradiction,)
    found = [
        *_thermal(view),
        *_power_brake(view),
        *_power_cap(view),
        *_board_limit(view),
        *_nameless(view),
        *_stuck(view),
        *_unread_draw(device),
    ]
    return tuple(found)


def _contradiction(view: View) -> Judgement | None:
    """Flags that the other readings speak against: heat with a wide margin, or a lasting brake, at full clock."""
    if not view.is_at_full_clock:
        return None
    margin = view.margin_c
    is_cool = view.has(THERMAL) and margin is not None and margin > _FAR_FROM_LIMIT_C
    # A hardware slowdown cuts the clocks by a factor of 2 or more (nvml.h); in one reading it may be just over.
    is_cut = view.is_sampled and view.lasts(POWER_BRAKE | HARDWARE_SLOWDOWN | HARDWARE_THERMAL)
    if not is_cool and not is_cut:
        return None
    summary = "the readings contradict each other, a slowdown at full clock: nothing is concluded, read again"
    return _advice(view, UNCLEAR_READINGS, summary, (*view.temperatures, *view.draw), Outcome.UNKNOWN)


def _thermal(view: View) -> list[Judgement]:
    if view.share(THERMAL) <= _BRIEF:
        return _causeless_slowdown(view)
    power = view.device.power
    if view.has(HARDWARE_THERMAL):
        summary = "the clocks are held down by heat: the hardware halves them above the slowdown temperature"
        advice = "take load off the GPU and look at its fans and airflow now"
    elif view.is_memory_hot:
        summary = "the clocks are held down by heat: the memory is above its maximum operating temperature"
        advice = "look at the airflow over the board's memory; a lower power limit cools it only in part"
    else:
        summary = "the clocks are held down by heat: the GPU or its memory is above its maximum operating temperature"
        advice = "look at the airflow; a lower power limit brings the heat down at the price of clock"
    limit, default = power.limit_w, power.default_w
    if not isinstance(limit, Unknown) and not isinstance(default, Unknown) and limit < default - _LOWERED_W:
        summary += f", although the power limit is lowered to {format_watts(limit)} already"
        advice = f"the default is {format_watts(default)}; a further cut is no cure, the airflow is"
    return [_advice(view, THROTTLED, summary, (*view.temperatures, *view.draw, advice))]


def _causeless_slowdown(view: View) -> list[Judgement]:
    """The parent bit alone; one reading may be a change of performance state."""
    if not view.lasts(HARDWARE_SLOWDOWN) or view.has(POWER_BRAKE):
        return []
    summary = "the hardware holds the clocks down and gives no cause"
    outcome = Outcome.DIFFERS if view.is_sampled else Outcome.UNKNOWN
    note = () if view.is_sampled else ("one reading: it is also set while the performance state changes",)
    return [_advice(view, THROTTLED, summary, (*view.temperatures, *note), outcome)]


def _power_brake(view: View) -> list[Judgement]:
    if not view.lasts(POWER_BRAKE):
        return []
    if not view.is_sampled:
        summary = "a power brake is set in this one reading, which is common noise on some platforms"
        note = "`remediate facts --only gpu --sample 10` tells whether it stays"
        return [_advice(view, POWER_BRAKE_CODE, summary, (note,), Outcome.UNKNOWN)]
    run = view.longest_run(POWER_BRAKE)
    summary = (
        f"the power supply or the board controller brakes the clocks, in {run} readings in a row; no setting fixes it"
    )
    advice = "have the power supply, its cables and the controller's power cap looked at"
    return [_advice(view, POWER_BRAKE_CODE, summary, (*view.draw, advice))]


def _power_cap(view: View) -> list[Judgement]:
    share = view.share(SOFTWARE_POWER_CAP)
    if share <= _BRIEF:
        return []
    ratio, is_busy = view.draw_to_limit, view.utilization is not None and view.utilization >= _BUSY_PERCENT
    evidence = (*view.draw, *view.temperatures)
    if ratio is None:
        summary = "a power cap is reported; the draw or the limit can't be read, so that nothing tells how near it is"
        return [_advice(view, POWER_CAP, summary, evidence, Outcome.UNKNOWN)] if is_busy else []
    if ratio >= _NEAR_LIMIT:
        return [_advice(view, POWER_CAP, *_at_limit(view, evidence))]
    if not is_busy or view.polled(SOFTWARE_POWER_CAP) <= _BRIEF:
        # Counters and bit run on boards that have little to do (RTX 2080 SUPER, L40S); they cost nothing there.
        return []
    summary = "a power cap is reported far below the limit: another limiter (board, rail, host) is at work"
    return [_advice(view, POWER_CAP, summary, (*evidence, "a higher limit is no cure for this"))]


def _at_limit(view: View, evidence: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    limit, highest = view.device.power.enforced_w, view.device.power.max_w
    summary = "the clocks are held down by the power limit"
    if isinstance(highest, Unknown) or isinstance(limit, Unknown):
        return summary, evidence
    if limit >= highest:
        return f"{summary}; the limit is the board's maximum already", evidence
    return summary, (*evidence, f"the board accepts up to {format_watts(highest)}")


def _board_limit(view: View) -> list[Judgement]:
    if view.share(BOARD_LIMIT) <= _BRIEF:
        return []
    summary = "the board's own limit holds the clocks down; no setting here changes it"
    return [_advice(view, THROTTLED, summary, view.draw)]


def _nameless(view: View) -> list[Judgement]:
    names = [reason.name for reason in decode(view.mask or 0) if reason.name.startswith(("bit", "unknown"))]
    if not names:
        return []
    summary = f"unknown reason ({', '.join(names)}): the driver gives one that has no name here"
    return [_advice(view, UNCLEAR_READINGS, summary, (), Outcome.UNKNOWN)]


def _stuck(view: View) -> list[Judgement]:
    """Work, a low clock, and nothing that explains it (GB10, model-serving-minefield#55)."""
    if view.is_limited or view.utilization is None or view.utilization < _LOADED_PERCENT:
        return []
    clock, top = view.highest_sm_mhz, view.device.max_clocks.sm_mhz
    if clock is None or isinstance(top, Unknown) or clock > _STUCK_BELOW * top or view.is_bounded_by_setting:
        return []
    summary = f"the SM clock is {clock:.0f} of {top} MHz under load and no reason is given"
    return [_advice(view, STUCK, summary, (*view.draw, *view.temperatures, _STUCK_ADVICE))]


_STUCK_ADVICE = (
    "if `nvidia-smi -rgc` (a lock that somebody set) changes nothing, no nvidia-smi setting is known to help: shut the "
    "machine down and take it off its power supply for a while, as a GB10 in its stuck low-power state needs"
)


def _unread_draw(device: Device) -> tuple[Judgement, ...]:
    """A draw that failed once, on a board whose limit can be read, is no fault yet (V100, azhpc-diagnostics#77)."""
    draw, limit = device.power.draw_w, device.power.limit_w
    if not isinstance(draw, Unknown) or draw.kind is not UnknownKind.FAILED or isinstance(limit, Unknown):
        return ()
    summary = "the power draw could not be read this time; read again before calling it a fault"
    return (Judgement(UNCLEAR_READINGS, device, Outcome.UNKNOWN, summary, evidence=(draw.reason,), is_advice=True),)


def _advice(
    view: View, code: str, summary: str, evidence: tuple[str, ...], outcome: Outcome = Outcome.DIFFERS
) -> Judgement:
    lines = (f"reasons: {view.reasons}", *evidence, *view.clock)
    return Judgement(code, view.device, outcome, summary, evidence=lines, is_advice=True)
