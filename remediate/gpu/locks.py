"""Locked clocks, for boards and drivers without applications clocks.

A lock has setters and no getter, so what is locked now is known only from this program's own ledger. Without a lock a
board runs at its highest clock under load by itself, so a wish for the maximum needs none: a lock of minimum to
maximum alike would pin the idle clock as well (13.9 W against 3.9 W idle on a Turing laptop board). A wish for a lower
clock is set as a ceiling, from the lowest supported clock to the wished one, which leaves the idle clock free.
"""

from __future__ import annotations

from remediate.gpu.clocktable import ClockTable
from remediate.gpu.commands import Setting, setting_name, show_value
from remediate.gpu.facts import Device
from remediate.gpu.judgement import CLOCKS, Judgement, first_unknown, operation_for, outcome_of
from remediate.gpu.nearest import adapted, at_or_below, too_low
from remediate.model import Outcome, Reading, Unknown
from remediate.profile.schema import GpuWish

_GPU_LOCK_SINCE = (7, 0)
"""Volta (nvml.h, nvmlDeviceSetGpuLockedClocks)."""
_MEMORY_LOCK_SINCE = (8, 0)
"""Ampere (nvml.h, nvmlDeviceSetMemoryLockedClocks). Some boards refuse all the same; apply reads that answer."""


def judge_locks(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    """The clocks against the profile's wishes, met by a lock where one is needed."""
    nothing = first_unknown(device.max_clocks.graphics_mhz)
    if nothing is not None:
        summary = f"clocks can't be judged: the highest graphics clock is {nothing}"
        return (Judgement(CLOCKS, device, outcome_of(nothing), summary, why="clocks"),)
    return (*_judge_memory(device, wish), *_judge_graphics(device, wish))


def _judge_graphics(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    setting = Setting.LOCKED_GPU_CLOCKS
    if wish.sm_clock_mhz is None:
        return () if wish.sm_clock is None else (_judge_unlocked(device, setting, device.locked_gpu_clocks),)
    table = _table(device, wish)
    if isinstance(table, Unknown):
        return (_unlisted(device, table),)
    options = table.graphics_mhz
    if not options:
        return (_unlisted(device, table.graphics),)
    target = at_or_below(options, wish.sm_clock_mhz)
    if target is None:
        return (too_low(device, "SM", wish.sm_clock_mhz, options),)
    notes = () if target == wish.sm_clock_mhz else (adapted(device, "SM", wish.sm_clock_mhz, target),)
    if target == max(options):
        return (_judge_unlocked(device, setting, device.locked_gpu_clocks), *notes)
    lock = f"{min(options)},{target}"
    return (_judge_lock(device, setting, device.locked_gpu_clocks, lock, _GPU_LOCK_SINCE), *notes)


def _judge_memory(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    setting = Setting.LOCKED_MEMORY_CLOCKS
    if wish.memory_clock_mhz is None:
        if wish.memory_clock is None or not isinstance(device.locked_memory_clocks, str):
            return ()
        return (_judge_unlocked(device, setting, device.locked_memory_clocks),)
    tables = device.supported_clocks
    if isinstance(tables, Unknown):
        return (_unlisted(device, tables),)
    options = [table.memory_mhz for table in tables]
    target = at_or_below(options, wish.memory_clock_mhz)
    if target is None:
        return (too_low(device, "memory", wish.memory_clock_mhz, options or [0]),)
    notes = () if target == wish.memory_clock_mhz else (adapted(device, "memory", wish.memory_clock_mhz, target),)
    if target == max(options):
        return (_judge_unlocked(device, setting, device.locked_memory_clocks), *notes)
    lock = f"{target},{target}"
    return (_judge_lock(device, setting, device.locked_memory_clocks, lock, _MEMORY_LOCK_SINCE), *notes)


def _judge_unlocked(device: Device, setting: Setting, known: Reading[str]) -> Judgement:
    """The board is to run at its highest clock: same, unless this program itself locked it lower."""
    now, top = device.clocks.sm_mhz, device.max_clocks.graphics_mhz
    evidence: tuple[str, ...] = ("the board has no applications clocks to set and reaches its maximum by itself",)
    if not isinstance(now, Unknown) and not isinstance(top, Unknown):
        evidence += (f"SM clock now {now} of at most {top} MHz",)
    if isinstance(known, Unknown):
        evidence += ("a lock that somebody else set can't be read",)
        return _judge(device, Outcome.SAME, f"no {setting_name(setting)} are known; none are needed", evidence)
    summary = f"{setting_name(setting)} are {show_value(setting, known)}, wanted none"
    return _judge(device, Outcome.DIFFERS, summary, evidence, operation_values=(setting, known, ""))


def _judge_lock(device: Device, setting: Setting, known: Reading[str], lock: str, since: tuple[int, int]) -> Judgement:
    wanted = show_value(setting, lock)
    capability = device.compute_capability
    if isinstance(capability, Unknown):
        return _judge(device, Outcome.UNKNOWN, f"whether clocks can be locked: compute capability is {capability}", ())
    if _version(capability) < since:
        needed = ".".join(map(str, since))
        summary = f"{setting_name(setting)} need compute capability {needed}, this board has {capability}"
        return _judge(device, Outcome.UNSUPPORTED, summary, ())
    if known == lock:
        source = "as an earlier run of this program set it; no driver call reads it back"
        return _judge(device, Outcome.SAME, f"{setting_name(setting)} are {wanted}", (source,))
    before = "" if isinstance(known, Unknown) else known
    present = "not known to be set" if isinstance(known, Unknown) else show_value(setting, before)
    summary = f"{setting_name(setting)} are {present}, wanted {wanted}"
    evidence = ("no driver call tells what is locked now",) if isinstance(known, Unknown) else ()
    return _judge(device, Outcome.DIFFERS, summary, evidence, operation_values=(setting, before, lock))


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


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())
