"""What observed clocks say of locks, which no driver call reads back: they confirm one, contradict one, or show one
that somebody else set.

A lock bounds the clock at all times: a clock above its highest value proves that it is gone (another program reset it,
the driver was reloaded). A lock sets no event reason, so a clock that stays put far below the maximum, under load and
with no reason, is its only trace; with minimum and maximum alike, so is an idle clock that does not fall.
"""

from __future__ import annotations

import msgspec

from remediate.gpu.commands import Setting, show_value
from remediate.gpu.facts import Device, Sample
from remediate.gpu.reasons import IDLE, name_of
from remediate.model import Reading, Unknown

STEP_MHZ = 15
"""Distance of the supported graphics clocks on boards from Pascal on; a reading may be one step off."""
_MEMORY_TOLERANCE_MHZ = 50
"""Readings of a memory clock are off the list by some MHz; the listed ones lie hundreds apart."""
_FEWEST_READINGS = 3
_LOADED_PERCENT = 50
_IDLE_PERCENT = 5
_FAR_BELOW = 0.85
"""Of the highest clock. GeForce boards rarely reach what they list: an RTX 3090 at 1950 of 2100 MHz is normal."""


class Held(msgspec.Struct, frozen=True):
    """A clock that did not move in any reading, and how it was seen."""

    mhz: int
    evidence: tuple[str, ...]


def contradiction(device: Device, setting: Setting, lock: str) -> str | None:
    """Why a lock that an earlier run set can't be in force; None where nothing speaks against it."""
    highest = int(lock.split(",")[1])
    is_graphics = setting is Setting.LOCKED_GPU_CLOCKS
    tolerance = STEP_MHZ if is_graphics else _MEMORY_TOLERANCE_MHZ
    seen = _highest_seen(device) if is_graphics else device.clocks.memory_mhz
    if isinstance(seen, Unknown) or seen <= highest + tolerance:
        return None
    clock = "SM" if is_graphics else "memory"
    set_to = show_value(setting, lock)
    return f"an earlier run set {set_to}, but the {clock} clock was seen at {seen} MHz: it is not in force"


def confirmation(device: Device, setting: Setting, lock: str) -> str | None:
    """That the observed clock is what the lock makes it; None where no sample under load tells."""
    sample, highest = device.sample, int(lock.split(",")[1])
    if setting is not Setting.LOCKED_GPU_CLOCKS or sample is None or not _is_loaded(sample) or sample.sm_mhz is None:
        return None
    if abs(sample.sm_mhz.highest - highest) > STEP_MHZ:
        return None
    return f"under load the SM clock reached {sample.sm_mhz.highest:.0f} MHz, which confirms it"


def held_under_load(device: Device) -> Held | None:
    """A clock that stays far below the maximum under load while no event reason is set."""
    sample = device.sample
    if sample is None or not _is_loaded(sample) or sample.reasons:
        return None
    mhz = _still(device, sample)
    if mhz is None:
        return None
    return Held(mhz, (_seen(device, sample, mhz), "no event reason was set, and a lock sets none"))


def held_at_idle(device: Device) -> Held | None:
    """A clock that does not fall while the GPU is idle, and is neither the maximum nor an applications clock."""
    sample = device.sample
    if sample is None or not _is_idle(sample):
        return None
    mhz = _still(device, sample)
    usual = (device.application_clocks.graphics_mhz, device.default_application_clocks.graphics_mhz)
    if mhz is None or any(not isinstance(clock, Unknown) and abs(mhz - clock) <= STEP_MHZ for clock in usual):
        return None
    return Held(mhz, (_seen(device, sample, mhz),))


def _still(device: Device, sample: Sample) -> int | None:
    """The clock, if it was the same in all readings, far below the highest and above the lowest supported one."""
    span, top = sample.sm_mhz, device.max_clocks.sm_mhz
    if span is None or sample.readings < _FEWEST_READINGS or isinstance(top, Unknown):
        return None
    bottom = _lowest_supported(device)
    is_still = span.highest - span.lowest <= 1
    is_between = bottom + STEP_MHZ < span.lowest <= _FAR_BELOW * top
    return round(span.lowest) if is_still and is_between else None


def _lowest_supported(device: Device) -> int:
    tables = () if isinstance(device.supported_clocks, Unknown) else device.supported_clocks
    return min((min(table.graphics_mhz) for table in tables if table.graphics_mhz), default=0)


def _highest_seen(device: Device) -> Reading[int]:
    sample, now = device.sample, device.clocks.sm_mhz
    if sample is None or sample.sm_mhz is None:
        return now
    return round(sample.sm_mhz.highest if isinstance(now, Unknown) else max(now, sample.sm_mhz.highest))


def _is_loaded(sample: Sample) -> bool:
    return sample.utilization_percent is not None and sample.utilization_percent.lowest >= _LOADED_PERCENT


def _is_idle(sample: Sample) -> bool:
    share = sample.reasons.get(name_of(IDLE))
    is_quiet = sample.utilization_percent is not None and sample.utilization_percent.highest <= _IDLE_PERCENT
    return is_quiet or (share is not None and share.polled == 1)


def _seen(device: Device, sample: Sample, mhz: int) -> str:
    top = device.max_clocks.sm_mhz
    return f"{mhz} of at most {top} MHz in all {sample.readings} readings over {sample.seconds:.0f} s"
