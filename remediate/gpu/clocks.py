"""Clocks: applications clocks where the driver still tells them, locked clocks elsewhere. Pairs come from the list.

Drivers from 590 on answer "deprecated" and GeForce boards "not supported" to the question for applications clocks;
for those, and only those, the replacement is a lock (nvml.h, CUDA 13.3, deprecation notices of CUDA 13).
"""

from __future__ import annotations

from collections.abc import Sequence

from remediate.gpu.clocktable import ClockTable
from remediate.gpu.commands import Setting, show_value
from remediate.gpu.facts import Device
from remediate.gpu.judgement import CLOCKS, Judgement, first_unknown, operation_for, outcome_of
from remediate.gpu.locks import judge_locks
from remediate.gpu.nearest import adapted, at_or_below, too_low
from remediate.model import Outcome, Reading, Unknown
from remediate.profile.schema import GpuWish


def judge_clocks(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    """The clocks against the profile's wishes; empty where the profile has none."""
    if not _has_graphics_wish(wish) and not _has_memory_wish(wish):
        return ()
    present = device.application_clocks
    missing = first_unknown(present.memory_mhz, present.graphics_mhz)
    if missing is None:
        return _judge_application_clocks(device, wish)
    if outcome_of(missing) is Outcome.UNSUPPORTED:
        return judge_locks(device, wish)
    return (_unclear(device, f"applications clocks could not be read: {missing.reason}"),)


def _judge_application_clocks(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    tables = device.supported_clocks
    if isinstance(tables, Unknown) or not tables:
        reason = tables.reason if isinstance(tables, Unknown) else "the list is empty"
        return (_unclear(device, f"supported clocks could not be read: {reason}"),)
    memory_mhz = _memory_target(device, wish, [table.memory_mhz for table in tables])
    if isinstance(memory_mhz, Judgement):
        return (memory_mhz,)
    table = next(table for table in tables if table.memory_mhz == memory_mhz)
    graphics_mhz = _graphics_target(device, wish, table)
    if isinstance(graphics_mhz, Judgement):
        return (graphics_mhz,)
    pair = _judge_pair(device, table, f"{memory_mhz},{graphics_mhz}")
    return (pair, *_adapted(device, wish, memory_mhz, graphics_mhz))


def _judge_pair(device: Device, table: ClockTable, wanted: str) -> Judgement:
    present = f"{device.application_clocks.memory_mhz},{device.application_clocks.graphics_mhz}"
    is_same = present == wanted
    now = show_value(Setting.APPLICATION_CLOCKS, present)
    target = show_value(Setting.APPLICATION_CLOCKS, wanted)
    return Judgement(
        CLOCKS,
        device,
        Outcome.SAME if is_same else Outcome.DIFFERS,
        f"applications clocks are {now}" + ("" if is_same else f", wanted {target}"),
        observed=now,
        wanted=target,
        evidence=(_supported(table), *_present(device)),
        why="clocks",
        operation=None if is_same else operation_for(device, Setting.APPLICATION_CLOCKS, present, wanted),
    )


def _memory_target(device: Device, wish: GpuWish, options: Sequence[int]) -> int | Judgement:
    if wish.memory_clock == "max":
        return max(options)
    if wish.memory_clock_mhz is not None:
        return at_or_below(options, wish.memory_clock_mhz) or too_low(device, "memory", wish.memory_clock_mhz, options)
    start = device.application_clocks.memory_mhz
    if wish.sm_clock == "default":
        start = device.default_application_clocks.memory_mhz
    return max(options) if isinstance(start, Unknown) else at_or_below(options, start) or max(options)


def _graphics_target(device: Device, wish: GpuWish, table: ClockTable) -> int | Judgement:
    options = table.graphics_mhz
    if not options:
        return _unclear(device, f"graphics clocks at {table.memory_mhz} MHz memory could not be read")
    if wish.sm_clock == "max":
        return max(options)
    if wish.sm_clock_mhz is not None:
        return at_or_below(options, wish.sm_clock_mhz) or too_low(device, "SM", wish.sm_clock_mhz, options)
    start: Reading[int] = device.application_clocks.graphics_mhz
    if wish.sm_clock == "default":
        start = device.default_application_clocks.graphics_mhz
    if isinstance(start, Unknown):
        return _unclear(device, f"the default applications clocks could not be read: {start.reason}")
    return at_or_below(options, start) or min(options)


def _adapted(device: Device, wish: GpuWish, memory_mhz: int, graphics_mhz: int) -> tuple[Judgement, ...]:
    pairs = (("memory", wish.memory_clock_mhz, memory_mhz), ("SM", wish.sm_clock_mhz, graphics_mhz))
    return tuple(
        adapted(device, domain, asked, used) for domain, asked, used in pairs if asked is not None and asked != used
    )


def _unclear(device: Device, summary: str) -> Judgement:
    return Judgement(CLOCKS, device, Outcome.UNKNOWN, summary, why="clocks")


def _supported(table: ClockTable) -> str:
    clocks = table.graphics_mhz
    listed = f"{len(clocks)} graphics clocks, {min(clocks)} to {max(clocks)} MHz"
    return f"the board lists {listed}, at {table.memory_mhz} MHz memory"


def _present(device: Device) -> tuple[str, ...]:
    now, top = device.clocks.sm_mhz, device.max_clocks.sm_mhz
    if isinstance(now, Unknown) or isinstance(top, Unknown):
        return ()
    return (f"SM clock now {now} of at most {top} MHz",)


def _has_graphics_wish(wish: GpuWish) -> bool:
    return wish.sm_clock is not None or wish.sm_clock_mhz is not None


def _has_memory_wish(wish: GpuWish) -> bool:
    return wish.memory_clock is not None or wish.memory_clock_mhz is not None
