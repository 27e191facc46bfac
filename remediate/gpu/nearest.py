"""Choosing a clock from a board's list, and saying so where the wish is not in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from remediate.gpu.commands import Setting
from remediate.gpu.facts import Device
from remediate.gpu.judgement import NOT_MET, Judgement, commands_for
from remediate.model import Outcome
from remediate.profile.schema import GpuWish

Nearest: TypeAlias = tuple[Setting, str]
"""A setting and the value of it that comes nearest to a wish that can't be met; empty where there is none."""
_ROUNDING_MHZ = 1
"""Readings can be 1 MHz off the list: an L4 shows 6250 and lists 6251, an A40 7250 and 7251."""


def at_or_below(options: Sequence[int], wanted_mhz: int) -> int | None:
    """The highest supported clock that is not above `wanted_mhz` by more than rounding; None if all are higher."""
    return max((option for option in options if option <= wanted_mhz + _ROUNDING_MHZ), default=None)


def at_or_above(options: Sequence[int], wanted_mhz: int) -> int | None:
    """The lowest supported clock that is not below `wanted_mhz` by more than rounding; None if all are lower."""
    return min((option for option in options if option >= wanted_mhz - _ROUNDING_MHZ), default=None)


def ceiling_of(wish: GpuWish, options: Sequence[int]) -> int | None:
    """The SM clock in MHz that the profile does not want exceeded; None where it names none."""
    if wish.sm_clock_fraction is not None:
        return int(max(options) * wish.sm_clock_fraction)
    return wish.sm_clock_mhz


def adapted(device: Device, domain: str, asked_mhz: int, used_mhz: int) -> Judgement:
    """Advice: the wish is no supported clock, and the next one that meets it is used."""
    return Judgement(
        NOT_MET,
        device,
        Outcome.UNSUPPORTED,
        f"{domain} clock of {asked_mhz} MHz is not in the board's list; {used_mhz} MHz is used",
        observed=f"{used_mhz} MHz",
        wanted=f"{asked_mhz} MHz",
        is_advice=True,
    )


def too_low(device: Device, domain: str, asked_mhz: int, lowest_mhz: int, nearest: Nearest) -> Judgement:
    """The wish can't be met: every supported clock is above it. `nearest` is left to a person."""
    return Judgement(
        NOT_MET,
        device,
        Outcome.UNSUPPORTED,
        f"{domain} clock of {asked_mhz} MHz is below the lowest that the board supports, {lowest_mhz} MHz",
        wanted=f"{asked_mhz} MHz",
        why="clocks",
        because="nothing in the board's list is at or below the clock that the profile sets",
        commands=commands_for(device, *nearest) if nearest[1] else (),
    )


def too_high(device: Device, asked_mhz: int, highest_mhz: int, nearest: Nearest) -> Judgement:
    """The floor can't be met: every supported clock is below it. `nearest` is left to a person."""
    return Judgement(
        NOT_MET,
        device,
        Outcome.UNSUPPORTED,
        f"SM clock of at least {asked_mhz} MHz is above the highest that the board supports, {highest_mhz} MHz",
        wanted=f"{asked_mhz} MHz",
        why="clocks",
        because="nothing in the board's list is at or above the floor that the profile sets",
        commands=commands_for(device, *nearest),
    )
