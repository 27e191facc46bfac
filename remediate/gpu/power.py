"""The power limit: what the profile wants within the range that the board itself states."""

from __future__ import annotations

import math

from remediate.gpu.commands import Setting, power_value
from remediate.gpu.facts import Device, Power
from remediate.gpu.judgement import NOT_MET, POWER_LIMIT, Judgement, commands_for, operation_for, outcome_of
from remediate.gpu.read_device import ZERO_LIMIT
from remediate.model import Outcome, Reading, Unknown
from remediate.profile.schema import GpuWish
from remediate.units import format_watts

TOLERANCE_W = 1.0
"""Limits closer than this are the same: nvidia-smi prints two decimals and drivers may round to whole watts."""


def judge_power_limit(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    """The power limit against the profile's wish; empty where the profile has none.

    A wish is a ceiling. Above the board's maximum the maximum meets it, and that is used. Below the minimum nothing
    that the board accepts meets it; the minimum would be another decision, so it is left to a person.
    """
    power = device.power
    limit, asked = power.limit_w, _asked_w(power, wish)
    if asked is None:
        return ()
    if isinstance(limit, Unknown):
        return (_unreadable(device, limit),)
    if isinstance(asked, Unknown):
        return (_open(device, limit, f"the limit that is wanted could not be told: {asked.reason}"),)
    if isinstance(power.min_w, Unknown) or isinstance(power.max_w, Unknown):
        found = [_without_range(device, limit, asked)]
    else:
        found = _with_range(device, limit, asked, power.min_w, power.max_w)
    if not isinstance(power.enforced_w, Unknown) and 0 < power.enforced_w < limit - TOLERANCE_W:
        found.append(_held_lower(device, limit, power.enforced_w))
    return tuple(found)


def _without_range(device: Device, limit_w: float, asked_w: float) -> Judgement:
    if abs(limit_w - asked_w) <= TOLERANCE_W:
        return _same(device, limit_w, asked_w)
    return _open(device, limit_w, "the range that the board accepts could not be read", asked_w)


def _with_range(device: Device, limit_w: float, asked_w: float, min_w: float, max_w: float) -> list[Judgement]:
    if asked_w < min_w:
        return [_below_range(device, limit_w, asked_w, min_w, max_w)]
    found = [_within_range(device, limit_w, min(asked_w, max_w))]
    if asked_w > max_w:
        found.append(_above_range(device, asked_w, min_w, max_w))
    return found


def _asked_w(power: Power, wish: GpuWish) -> Reading[float] | None:
    if wish.power_limit_w is not None:
        return float(wish.power_limit_w)
    if wish.power_limit == "default":
        return power.default_w
    if wish.power_limit == "max":
        return power.max_w
    if wish.power_limit_fraction is not None:
        # Whole watts, rounded down: a fraction of the maximum is a ceiling. The small addend keeps 0.3 of 100 at 30.
        if isinstance(power.max_w, Unknown):
            return power.max_w
        return float(math.floor(power.max_w * wish.power_limit_fraction + 1e-6))
    return None


def _within_range(device: Device, limit_w: float, target_w: float) -> Judgement:
    if abs(limit_w - target_w) <= TOLERANCE_W:
        return _same(device, limit_w, target_w)
    return Judgement(
        POWER_LIMIT,
        device,
        Outcome.DIFFERS,
        f"power limit is {format_watts(limit_w)}, wanted {format_watts(target_w)}",
        observed=format_watts(limit_w),
        wanted=format_watts(target_w),
        evidence=_evidence(device),
        why="power_limit",
        operation=operation_for(device, Setting.POWER_LIMIT, power_value(limit_w), power_value(target_w)),
    )


def _same(device: Device, limit_w: float, target_w: float) -> Judgement:
    return Judgement(
        POWER_LIMIT,
        device,
        Outcome.SAME,
        f"power limit is {format_watts(limit_w)}",
        observed=format_watts(limit_w),
        wanted=format_watts(target_w),
        evidence=_evidence(device),
        why="power_limit",
    )


def _open(device: Device, limit_w: float, summary: str, asked_w: float | None = None) -> Judgement:
    return Judgement(
        POWER_LIMIT,
        device,
        Outcome.UNKNOWN,
        f"power limit is {format_watts(limit_w)}; {summary}",
        observed=format_watts(limit_w),
        wanted="" if asked_w is None else format_watts(asked_w),
        why="power_limit",
        because="" if asked_w is None else summary,
        commands=() if asked_w is None else commands_for(device, Setting.POWER_LIMIT, power_value(asked_w)),
    )


def _unreadable(device: Device, reason: Unknown) -> Judgement:
    enforced = device.power.enforced_w
    held = "" if isinstance(enforced, Unknown) or enforced == 0 else f"; the firmware holds {format_watts(enforced)}"
    return Judgement(
        POWER_LIMIT,
        device,
        Outcome.UNSUPPORTED if reason == ZERO_LIMIT else outcome_of(reason),
        f"the power limit can't be set from here: {reason.reason}{held}",
        observed=str(reason),
        why="power_limit",
    )


def _below_range(device: Device, limit_w: float, asked_w: float, min_w: float, max_w: float) -> Judgement:
    return Judgement(
        NOT_MET,
        device,
        Outcome.UNSUPPORTED,
        f"power limit of {format_watts(asked_w)} is below what the board accepts, "
        f"{format_watts(min_w)} to {format_watts(max_w)}",
        observed=format_watts(limit_w),
        wanted=format_watts(asked_w),
        evidence=_evidence(device),
        why="power_limit",
        because=f"the nearest limit, {format_watts(min_w)}, is above the ceiling that the profile sets",
        commands=commands_for(device, Setting.POWER_LIMIT, power_value(min_w)),
    )


def _above_range(device: Device, asked_w: float, min_w: float, max_w: float) -> Judgement:
    return Judgement(
        NOT_MET,
        device,
        Outcome.UNSUPPORTED,
        f"power limit of {format_watts(asked_w)} is above what the board accepts, "
        f"{format_watts(min_w)} to {format_watts(max_w)}; the maximum is used",
        wanted=format_watts(asked_w),
        is_advice=True,
    )


def _held_lower(device: Device, limit_w: float, enforced_w: float) -> Judgement:
    return Judgement(
        POWER_LIMIT,
        device,
        Outcome.DIFFERS,
        f"power limit is set to {format_watts(limit_w)}, but {format_watts(enforced_w)} is enforced",
        observed=format_watts(enforced_w),
        wanted=format_watts(limit_w),
        evidence=("the lowest of several limiters wins; another one (board controller, node cap) is lower",),
        is_advice=True,
    )


def _evidence(device: Device) -> tuple[str, ...]:
    power = device.power
    parts = [("default", power.default_w), ("minimum", power.min_w), ("maximum", power.max_w), ("draw", power.draw_w)]
    known = [f"{name} {format_watts(value)}" for name, value in parts if not isinstance(value, Unknown)]
    return (", ".join(known),) if known else ()
