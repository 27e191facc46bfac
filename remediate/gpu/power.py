"""The power limit: what the profile wants within the range that the board itself states."""

from __future__ import annotations

import math

import msgspec

from remediate.gpu.commands import Setting, power_value, setting_name
from remediate.gpu.facts import Device, Power
from remediate.gpu.judgement import (
    MODULE_POWER,
    NOT_MET,
    POWER_LIMIT,
    Judgement,
    commands_for,
    operation_for,
    outcome_of,
)
from remediate.gpu.read_device import ZERO_LIMIT
from remediate.model import Outcome, Reading, Unknown
from remediate.profile.schema import GpuWish
from remediate.units import format_watts

TOLERANCE_W = 1.0
"""Limits closer than this are the same: nvidia-smi prints two decimals and drivers may round to whole watts."""
_LAPTOP = (
    "boards whose firmware owns the limit (laptops) have no setter; nvidia-powerd or the maker's power profile moves it"
)


def judge_power_limit(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    """The power limit against the profile's wish; empty where the profile has none.

    A wish is a ceiling. Above the board's maximum the maximum meets it, and that is used. Below the minimum nothing
    that the board accepts meets it; the minimum would be another decision, so it is left to a person.
    """
    asked = _asked_w(device.power, wish.power_limit, wish.power_limit_w, wish.power_limit_fraction)
    return _Scope(POWER_LIMIT, Setting.POWER_LIMIT, device, device.power).judge(asked)


def judge_module_power_limit(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    """The limit of a Grace board's whole module; empty where the profile has no wish or the board no module scope."""
    if device.module_power is None:
        return ()
    power = device.module_power
    asked = _asked_w(power, wish.module_power_limit, wish.module_power_limit_w, None)
    return _Scope(MODULE_POWER, Setting.MODULE_POWER_LIMIT, device, power).judge(asked)


def _asked_w(power: Power, word: str | None, watts: float | None, fraction: float | None) -> Reading[float] | None:
    if watts is not None:
        return float(watts)
    if word == "default":
        return power.default_w
    if word == "max":
        return power.max_w
    if fraction is None:
        return None
    # Whole watts, rounded down: a fraction of the maximum is a ceiling. The small addend keeps 0.3 of 100 at 30.
    return power.max_w if isinstance(power.max_w, Unknown) else float(math.floor(power.max_w * fraction + 1e-6))


class _Scope(msgspec.Struct, frozen=True):
    """One power limit of one device: the GPU's or the module's."""

    code: str
    setting: Setting
    device: Device
    power: Power

    def judge(self, asked: Reading[float] | None) -> tuple[Judgement, ...]:
        power = self.power
        limit = power.limit_w
        if asked is None:
            return ()
        if isinstance(limit, Unknown):
            return (self._unreadable(limit),)
        if isinstance(asked, Unknown):
            return (self._open(limit, f"the limit that is wanted could not be told: {asked.reason}"),)
        if isinstance(power.min_w, Unknown) or isinstance(power.max_w, Unknown):
            found = [self._without_range(limit, asked)]
        else:
            found = self._with_range(limit, asked, power.min_w, power.max_w)
        if not isinstance(power.enforced_w, Unknown) and 0 < power.enforced_w < limit - TOLERANCE_W:
            found.append(self._held_lower(limit, power.enforced_w))
        return tuple(found)

    def _without_range(self, limit_w: float, asked_w: float) -> Judgement:
        if abs(limit_w - asked_w) <= TOLERANCE_W:
            return self._same(limit_w, asked_w)
        return self._open(limit_w, "the range that the board accepts could not be read", asked_w)

    def _with_range(self, limit_w: float, asked_w: float, min_w: float, max_w: float) -> list[Judgement]:
        if asked_w < min_w:
            return [self._below_range(limit_w, asked_w, min_w, max_w)]
        found = [self._within_range(limit_w, min(asked_w, max_w))]
        if asked_w > max_w:
            found.append(self._above_range(asked_w, min_w, max_w))
        return found

    def _within_range(self, limit_w: float, target_w: float) -> Judgement:
        if abs(limit_w - target_w) <= TOLERANCE_W:
            return self._same(limit_w, target_w)
        return Judgement(
            self.code,
            self.device,
            Outcome.DIFFERS,
            f"{self._name} is {format_watts(limit_w)}{self._raised(limit_w)}, wanted {format_watts(target_w)}",
            observed=format_watts(limit_w),
            wanted=format_watts(target_w),
            evidence=self._evidence(),
            why="power_limit",
            operation=operation_for(self.device, self.setting, power_value(limit_w), power_value(target_w)),
        )

    def _same(self, limit_w: float, target_w: float) -> Judgement:
        return Judgement(
            self.code,
            self.device,
            Outcome.SAME,
            f"{self._name} is {format_watts(limit_w)}",
            observed=format_watts(limit_w),
            wanted=format_watts(target_w),
            evidence=self._evidence(),
            why="power_limit",
        )

    def _open(self, limit_w: float, summary: str, asked_w: float | None = None) -> Judgement:
        return Judgement(
            self.code,
            self.device,
            Outcome.UNKNOWN,
            f"{self._name} is {format_watts(limit_w)}; {summary}",
            observed=format_watts(limit_w),
            wanted="" if asked_w is None else format_watts(asked_w),
            why="power_limit",
            because="" if asked_w is None else summary,
            commands=() if asked_w is None else self._command(asked_w),
        )

    def _unreadable(self, reason: Unknown) -> Judgement:
        enforced = self.power.enforced_w
        is_held = not isinstance(enforced, Unknown) and enforced > 0
        held = "" if isinstance(enforced, Unknown) or not is_held else f"; the firmware holds {format_watts(enforced)}"
        outcome = Outcome.UNSUPPORTED if reason == ZERO_LIMIT else outcome_of(reason)
        # A reading that failed, or that a report leaves out, says nothing of what can be set.
        failed = "can't be set from here" if outcome is Outcome.UNSUPPORTED else "could not be read"
        return Judgement(
            self.code,
            self.device,
            outcome,
            f"the {self._name} {failed}: {reason.reason}{held}",
            observed=str(reason),
            evidence=(_LAPTOP,) if held and outcome_of(reason) is Outcome.UNSUPPORTED else (),
            why="power_limit",
        )

    def _below_range(self, limit_w: float, asked_w: float, min_w: float, max_w: float) -> Judgement:
        return Judgement(
            NOT_MET,
            self.device,
            Outcome.UNSUPPORTED,
            f"{self._name} of {format_watts(asked_w)} is below what the board accepts, "
            f"{format_watts(min_w)} to {format_watts(max_w)}",
            observed=format_watts(limit_w),
            wanted=format_watts(asked_w),
            evidence=self._evidence(),
            why="power_limit",
            because=f"the nearest limit, {format_watts(min_w)}, is above the ceiling that the profile sets",
            commands=self._command(min_w),
        )

    def _above_range(self, asked_w: float, min_w: float, max_w: float) -> Judgement:
        return Judgement(
            NOT_MET,
            self.device,
            Outcome.UNSUPPORTED,
            f"{self._name} of {format_watts(asked_w)} is above what the board accepts, "
            f"{format_watts(min_w)} to {format_watts(max_w)}; the maximum is used",
            wanted=format_watts(asked_w),
            is_advice=True,
        )

    def _held_lower(self, limit_w: float, enforced_w: float) -> Judgement:
        return Judgement(
            self.code,
            self.device,
            Outcome.DIFFERS,
            f"{self._name} is set to {format_watts(limit_w)}, but {format_watts(enforced_w)} is enforced",
            observed=format_watts(enforced_w),
            wanted=format_watts(limit_w),
            evidence=("the lowest of several limiters wins; another one (board controller, node cap) is lower",),
            is_advice=True,
        )

    @property
    def _name(self) -> str:
        return setting_name(self.setting)

    def _raised(self, limit_w: float) -> str:
        default = self.power.default_w
        if isinstance(default, Unknown) or limit_w <= default + TOLERANCE_W:
            return ""
        return f" (raised above the default {format_watts(default)})"

    def _command(self, limit_w: float) -> tuple[tuple[str, ...], ...]:
        return commands_for(self.device, self.setting, power_value(limit_w))

    def _evidence(self) -> tuple[str, ...]:
        power = self.power
        parts = (
            ("default", power.default_w),
            ("minimum", power.min_w),
            ("maximum", power.max_w),
            ("draw", power.draw_w),
        )
        known = [f"{name} {format_watts(value)}" for name, value in parts if not isinstance(value, Unknown)]
        return (", ".join(known),) if known else ()
