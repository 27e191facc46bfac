"""Power to temperature to clocks: a small model of one board, for demonstrations and tests; not a prediction.

Each second, with utilization u (0 to 1), graphics clock f, highest clock F and x = f / F:

- Power: P = idle_w + u * dynamic_w * x * (v + (1 - v) * x)^2, where v is the lowest voltage over the highest.
  Dynamic power goes with frequency times voltage squared, and voltage rises with frequency.
- Software power cap: the highest supported clock whose P stays within the power limit.
- Core temperature: first order towards ambient_c + gpu_c_per_w * P, with gpu_time_constant_s (the heat sink).
- Memory temperature: first order towards the core's plus u * memory_rise_c, with memory_time_constant_s. Decoding is
  bound by memory bandwidth, so that the memory's heat goes with the load and not with the core clock.
- Software thermal slowdown (nvml.h: GPU above its maximum operating temperature *or memory above its own*): the
  ceiling falls one supported step every slowdown_step_s until the temperature is slowdown_hysteresis_c below the
  threshold, then rises one step every recovery_step_s. How a driver does this is not public; the steps are an
  assumption, and they make the clock swing rather than settle.
- Hardware slowdown above the slowdown temperature: half of the highest clock (nvml.h: "by a factor of 2 or more").
- Applications clocks other than the default pair, and locked clocks, bound the clock. At the default pair a board
  boosts beyond it: an A100 80GB with 1155 MHz applications clock is seen at 1410 MHz (NVIDIA/DCGM#152).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Annotated

import msgspec

from remediate.gpu.facts import Device
from remediate.gpu.reasons import (
    APPLICATION_CLOCKS,
    HARDWARE_SLOWDOWN,
    HARDWARE_THERMAL,
    IDLE,
    SOFTWARE_POWER_CAP,
    SOFTWARE_THERMAL,
)
from remediate.model import Reading, Unknown

Number = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e6)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Physics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model's parameters. Times in s, temperatures in degrees C, power in W."""

    ambient_c: Number = 25.0
    idle_w: Number = 50.0
    dynamic_w: Number = 400.0
    """At full utilization and the highest clock, beside `idle_w`."""
    voltage_floor: Share = 0.6
    gpu_c_per_w: Number = 0.1
    """Thermal resistance from core to ambient; poor airflow raises it."""
    gpu_time_constant_s: Positive = 300.0
    memory_rise_c: Number = 20.0
    memory_time_constant_s: Positive = 30.0
    max_operating_c: Number = 87.0
    """Used where the facts tell no absolute threshold."""
    slowdown_hysteresis_c: Number = 1.5
    slowdown_step_s: Positive = 3.0
    recovery_step_s: Positive = 30.0
    token_ms: Number = 3.0
    """Time of one generated token at the highest clock."""
    clock_bound_share: Share = 1.0
    """Part of a token's time that goes with the inverse of the SM clock; 1 is the most that the clock can explain."""


class Heat(msgspec.Struct, frozen=True):
    """What the sensors' whole degrees don't tell between two steps."""

    gpu_c: float
    memory_c: float
    steps_down: int = 0
    """Supported clocks that the thermal slowdown takes away now."""
    is_cooling: bool = False
    """The slowdown was triggered and its release temperature is not reached yet."""
    since_step_s: float = 0.0


class Bounds(msgspec.Struct, frozen=True):
    """What settings and list allow: supported clocks in MHz, ascending, and where the wishes of others bound them."""

    clocks: tuple[int, ...]
    idle_mhz: int
    locked_max_mhz: int
    application_max_mhz: int


class Moment(msgspec.Struct, frozen=True):
    """The board after a step."""

    heat: Heat
    clock_mhz: int
    power_w: float
    reasons: int


def resting_heat(physics: Physics) -> Heat:
    """A board that has been idle for long."""
    temperature = physics.ambient_c + physics.gpu_c_per_w * physics.idle_w
    return Heat(temperature, temperature)


def power_w(physics: Physics, clock_mhz: int, highest_mhz: int, utilization: float) -> float:
    """Power at a clock and utilization (0 to 1)."""
    x = clock_mhz / highest_mhz
    voltage = physics.voltage_floor + (1 - physics.voltage_floor) * x
    return physics.idle_w + utilization * physics.dynamic_w * x * voltage**2


def latency_ms(physics: Physics, clock_mhz: int, highest_mhz: int, tokens: int) -> float:
    """Time to generate `tokens` tokens at a clock, by the share of it that the SM clock bounds."""
    slowdown = highest_mhz / clock_mhz if clock_mhz else math.inf
    return tokens * physics.token_ms * (1 - physics.clock_bound_share + physics.clock_bound_share * slowdown)


class Model:
    """One board under a constant load, stepped through time."""

    def __init__(self, physics: Physics, device: Device, bounds: Bounds, utilization: float) -> None:
        self._physics = physics
        self._bounds = bounds
        self._utilization = utilization
        self._limit_w = _number(device.power.enforced_w, math.inf)
        self._gpu_max_c = _number(device.temperature.max_operating_c, physics.max_operating_c)
        self._memory_max_c = _number(device.temperature.memory_max_c, math.inf)
        self._slowdown_c = _number(device.temperature.slowdown_c, math.inf)
        highest = bounds.clocks[-1]
        self._powers = [power_w(physics, clock, highest, utilization) for clock in bounds.clocks]

    def step(self, heat: Heat, seconds: float) -> Moment:
        """The board `seconds` later; at most some seconds, for the clock is held constant meanwhile."""
        heat = self._slow_down(heat, seconds)
        clock, power, reasons = self._choose_clock(heat)
        return Moment(self._warm(heat, power, seconds), clock, power, reasons)

    def _slow_down(self, heat: Heat, seconds: float) -> Heat:
        """Move the thermal ceiling."""
        excess = max(heat.gpu_c - self._gpu_max_c, heat.memory_c - self._memory_max_c)
        is_cooling = excess > 0 or (heat.is_cooling and excess > -self._physics.slowdown_hysteresis_c)
        period = self._physics.slowdown_step_s if is_cooling else self._physics.recovery_step_s
        steps, rest = divmod(heat.since_step_s + seconds if is_cooling == heat.is_cooling else seconds, period)
        moved = heat.steps_down + (int(steps) if is_cooling else -int(steps))
        limited = min(max(moved, 0), len(self._bounds.clocks) - 1)
        return msgspec.structs.replace(heat, steps_down=limited, is_cooling=is_cooling, since_step_s=rest)

    def _choose_clock(self, heat: Heat) -> tuple[int, float, int]:
        """Clock in MHz, power in W, event reasons. The lowest of all bounds wins, and names the reason."""
        bounds, clocks = self._bounds, self._bounds.clocks
        if self._utilization == 0:
            return bounds.idle_mhz, self._physics.idle_w, IDLE
        reasons = 0
        highest = len(clocks) - 1
        index = min(highest, _index(clocks, bounds.locked_max_mhz))
        if _index(clocks, bounds.application_max_mhz) < index:
            index, reasons = _index(clocks, bounds.application_max_mhz), APPLICATION_CLOCKS
        if heat.steps_down:
            reasons |= SOFTWARE_THERMAL
            index = min(index, highest - heat.steps_down)
        if heat.gpu_c >= self._slowdown_c:
            reasons |= HARDWARE_SLOWDOWN | HARDWARE_THERMAL
            index = min(index, _index(clocks, clocks[-1] // 2))
        within_limit = max(bisect_right(self._powers, self._limit_w) - 1, 0)
        if within_limit < index:
            reasons |= SOFTWARE_POWER_CAP
            index = within_limit
        return clocks[index], self._powers[index], reasons

    def _warm(self, heat: Heat, power: float, seconds: float) -> Heat:
        physics = self._physics
        gpu = _approach(
            heat.gpu_c,
            physics.ambient_c + physics.gpu_c_per_w * power,
            seconds / physics.gpu_time_constant_s,
        )
        memory = _approach(
            heat.memory_c,
            gpu + self._utilization * physics.memory_rise_c,
            seconds / physics.memory_time_constant_s,
        )
        return msgspec.structs.replace(heat, gpu_c=gpu, memory_c=memory)


def _approach(value: float, target: float, time_constants: float) -> float:
    """First order step response; exact for a constant target."""
    return target + (value - target) * math.exp(-time_constants)


def _index(clocks: Sequence[int], limit_mhz: int) -> int:
    """Of the highest clock at or below `limit_mhz`; the lowest clock where all are above."""
    return max(bisect_right(clocks, limit_mhz) - 1, 0)


def _number(reading: Reading[float] | Reading[int], otherwise: float) -> float:
    return otherwise if isinstance(reading, Unknown) else float(reading)
