"""Locked clocks, for boards and drivers without applications clocks, and for floors.

A lock has setters and no getter, so what is locked now is known from this program's own ledger, and from clocks that
were observed: `remediate.gpu.held` confirms or contradicts. Without a lock a board runs at its highest clock under load
by itself, so a wish for the maximum needs none: a lock of minimum to maximum alike would pin the idle clock as well
(13.9 W against 3.9 W idle on a Turing laptop board). A wish for a lower clock is set as a ceiling, from the lowest
supported clock to the wished one, which leaves the idle clock free, unless the profile sets a floor.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from remediate.gpu.clocktable import ClockTable
from remediate.gpu.commands import Setting, setting_name, show_value
from remediate.gpu.facts import Device
from remediate.gpu.held import confirmation, contradiction, held_under_load
from remediate.gpu.judgement import CLOCKS, Judgement, first_unknown, operation_for, outcome_of
from remediate.gpu.nearest import adapted, at_or_above, at_or_below, ceiling_of, too_high, too_low
from remediate.model import Outcome, Reading, Unknown, UnknownKind
from remediate.profile.schema import GpuWish

GRAPHICS = Setting.LOCKED_GPU_CLOCKS
MEMORY = Setting.LOCKED_MEMORY_CLOCKS
_SINCE = {GRAPHICS: (7, 0), MEMORY: (8, 0)}
"""Compute capability: Volta and Ampere (nvml.h, nvmlDeviceSetGpuLockedClocks, nvmlDeviceSetMemoryLockedClocks). Some
boards refuse memory locks all the same (GB10, laptops); apply reads that answer."""


def judge_graphics_lock(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    """The SM clock against the profile's wishes, met by a lock where one is needed; empty where there is no wish."""
    if wish == _without_graphics(wish):
        return ()
    nothing = first_unknown(device.max_clocks.graphics_mhz)
    if nothing is not None:
        summary = f"clocks can't be judged: the highest graphics clock is {nothing}"
        return (Judgement(CLOCKS, device, outcome_of(nothing), summary, why="clocks"),)
    if wish.sm_clock is not None and wish.sm_clock_min_mhz is None:
        return (_judge_unlocked(device, GRAPHICS),)
    table = _table(device, wish)
    if isinstance(table, Unknown):
        return (_unlisted(device, table),)
    if not table.graphics_mhz:
        return (_unlisted(device, table.graphics),)
    return _judge_range(device, wish, table.graphics_mhz)


def judge_memory_lock(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    """The memory clock against the profile's wishes; empty where there is no wish or nothing to lock or unlock."""
    if wish.memory_clock_mhz is None:
        if wish.memory_clock is None or not isinstance(device.locked_memory_clocks, str):
            return ()
        return (_judge_unlocked(device, MEMORY),)
    tables = device.supported_clocks
    if isinstance(tables, Unknown) or not tables:
        return (_unlisted(device, tables if isinstance(tables, Unknown) else "the list is empty"),)
    options = [table.memory_mhz for table in tables]
    target = at_or_below(options, wish.memory_clock_mhz)
    if target is None:
        nearest = f"{min(options)},{min(options)}"
        return (too_low(device, "memory", wish.memory_clock_mhz, min(options), (MEMORY, nearest)),)
    notes = () if target == wish.memory_clock_mhz else (adapted(device, "memory", wish.memory_clock_mhz, target),)
    if target == max(options):
        return (_judge_unlocked(device, MEMORY), *notes)
    return (_judge_lock(device, MEMORY, f"{target},{target}"), *notes)


def judge_leftover_locks(device: Device) -> tuple[Judgement, ...]:
    """Locks of earlier runs on a board whose applications clocks the profile sets: a lock goes before those."""
    known = ((GRAPHICS, device.locked_gpu_clocks), (MEMORY, device.locked_memory_clocks))
    return tuple(
        _judge_unlocked(device, setting)
        for setting, lock in known
        if isinstance(lock, str) and contradiction(device, setting, lock) is None
    )


def _judge_range(device: Device, wish: GpuWish, options: Sequence[int]) -> tuple[Judgement, ...]:
    lowest, highest = min(options), max(options)
    ceiling = ceiling_of(wish, options)
    top = highest if ceiling is None else at_or_below(options, ceiling)
    if top is None:
        return (too_low(device, "SM", ceiling or 0, lowest, (GRAPHICS, f"{lowest},{lowest}")),)
    floor = wish.sm_clock_min_mhz
    bottom = lowest if floor is None else at_or_above(options, floor)
    if bottom is None:
        return (too_high(device, floor or 0, highest, (GRAPHICS, f"{top},{top}")),)
    bottom = min(bottom, top)
    asked = ((wish.sm_clock_mhz, top), (floor, bottom))
    notes = tuple(adapted(device, "SM", mhz, used) for mhz, used in asked if mhz is not None and mhz != used)
    if (bottom, top) == (lowest, highest):
        return (_judge_unlocked(device, GRAPHICS), *notes)
    return (_judge_lock(device, GRAPHICS, f"{bottom},{top}"), *notes)


def _judge_unlocked(device: Device, setting: Setting) -> Judgement:
    """The board is to run at its highest clock: same, unless a lock is known or seen."""
    known = _known(device, setting)
    now, top = device.clocks.sm_mhz, device.max_clocks.graphics_mhz
    evidence: tuple[str, ...] = ("without a lock the board reaches its highest clock under load by itself",)
    if not isinstance(now, Unknown) and not isinstance(top, Unknown):
        evidence += (f"SM clock now {now} of at most {top} MHz",)
    if not isinstance(known, Unknown):
        summary = f"{setting_name(setting)} are {show_value(setting, known)}, wanted none"
        return _judge(device, Outcome.DIFFERS, summary, evidence, operation_values=(setting, known, ""))
    held = held_under_load(device) if setting is GRAPHICS else None
    if held is not None:
        summary = f"the SM clock stays at {held.mhz} MHz under load and nothing limits it: locked by somebody else?"
        return _judge(device, Outcome.UNKNOWN, summary, held.evidence)
    evidence += (known.reason,)
    return _judge(device, Outcome.SAME, f"no {setting_name(setting)} are known; none are needed", evidence)


def _judge_lock(device: Device, setting: Setting, lock: str) -> Judgement:
    wanted, known = show_value(setting, lock), _known(device, setting)
    capability, since = device.compute_capability, _SINCE[setting]
    if isinstance(capability, Unknown):
        return _judge(device, Outcome.UNKNOWN, f"whether clocks can be locked: compute capability is {capability}", ())
    if _version(capability) < since:
        needed = ".".join(map(str, since))
        summary = f"{setting_name(setting)} need compute capability {needed}, this board has {capability}"
        return _judge(device, Outcome.UNSUPPORTED, summary, ())
    if known == lock:
        source = confirmation(device, setting, lock) or "no driver call reads it back"
        evidence = (f"as an earlier run of this program set it; {source}",)
        return _judge(device, Outcome.SAME, f"{setting_name(setting)} are {wanted}", evidence)
    if isinstance(known, Unknown):
        summary = f"{setting_name(setting)} are not known to be set, wanted {wanted}"
        return _judge(device, Outcome.DIFFERS, summary, (known.reason,), operation_values=(setting, "", lock))
    summary = f"{setting_name(setting)} are {show_value(setting, known)}, wanted {wanted}"
    return _judge(device, Outcome.DIFFERS, summary, (), operation_values=(setting, known, lock))


def _known(device: Device, setting: Setting) -> Reading[str]:
    """What an earlier run set, unless the observed clocks show that it is not in force any more."""
    lock = device.locked_gpu_clocks if setting is GRAPHICS else device.locked_memory_clocks
    if isinstance(lock, Unknown):
        return lock
    against = contradiction(device, setting, lock)
    return lock if against is None else Unknown(UnknownKind.NOT_READ, against)


def _judge(
    device: Device,
    outcome: Outcome,
    summary: str,
    evidence: tuple[str, ...],
    operation_values: tuple[Setting, str, str] | None = None,
) -> Judgement:
    observed = wanted = ""
    operation = None
    if operation_values is not None:
        setting, before, after = operation_values
        observed = show_value(setting, before) if before else "not known"
        wanted = show_value(setting, after)
        operation = operation_for(device, setting, before, after)
    return Judgement(CLOCKS, device, outcome, summary, observed, wanted, evidence, why="clocks", operation=operation)


def _unlisted(device: Device, reason: Reading[object]) -> Judgement:
    outcome = outcome_of(reason) if isinstance(reason, Unknown) else Outcome.UNKNOWN
    return Judgement(CLOCKS, device, outcome, f"supported clocks could not be read: {reason}", why="clocks")


def _table(device: Device, wish: GpuWish) -> ClockTable | Unknown:
    """The graphics clocks at the memory clock that will be in use."""
    tables = device.supported_clocks
    if isinstance(tables, Unknown):
        return tables
    options = [table.memory_mhz for table in tables]
    wanted = at_or_below(options, wish.memory_clock_mhz) if wish.memory_clock_mhz is not None else None
    chosen = wanted or max(options, default=0)
    return next((table for table in tables if table.memory_mhz == chosen), ClockTable(chosen, ""))


def _without_graphics(wish: GpuWish) -> GpuWish:
    return msgspec.structs.replace(
        wish, sm_clock=None, sm_clock_mhz=None, sm_clock_fraction=None, sm_clock_min_mhz=None
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())
