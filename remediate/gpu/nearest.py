"""Choosing a clock from a board's list, and saying so where the wish is not in it."""

from __future__ import annotations

from collections.abc import Sequence

from remediate.gpu.facts import Device
from remediate.gpu.judgement import NOT_MET, Judgement
from remediate.model import Outcome

_ROUNDING_MHZ = 1
"""Readings can be 1 MHz off the list: an L4 shows 6250 and lists 6251, an A40 7250 and 7251."""


def at_or_below(options: Sequence[int], wanted_mhz: int) -> int | None:
    """The highest supported clock that is not above `wanted_mhz` by more than rounding; None if all are higher."""
    return max((option for option in options if option <= wanted_mhz + _ROUNDING_MHZ), default=None)


def adapted(device: Device, domain: str, asked_mhz: int, used_mhz: int) -> Judgement:
    """Advice: the wish is no supported clock, and the next one below is used."""
    return Judgement(
        NOT_MET,
        device,
        Outcome.UNSUPPORTED,
        f"{domain} clock of {asked_mhz} MHz is not in the board's list; {used_mhz} MHz is used",
        observed=f"{used_mhz} MHz",
        wanted=f"{asked_mhz} MHz",
        is_advice=True,
    )


def too_low(device: Device, domain: str, asked_mhz: int, options: Sequence[int]) -> Judgement:
    """The wish can't be met: every supported clock is above it."""
    return Judgement(
        NOT_MET,
        device,
        Outcome.UNSUPPORTED,
        f"{domain} clock of {asked_mhz} MHz is below the lowest that the board supports, {min(options)} MHz",
        wanted=f"{asked_mhz} MHz",
        why="clocks",
        because="nothing in the board's list is at or below the clock that the profile sets",
    )
