"""Clocks: applications clocks where the driver still tells them, locked clocks elsewhere. Pairs come from the list.

Drivers from 590 on answer "deprecated" and GeForce boards "not supported" to the question for applications clocks;
for those, and only those, the replacement is a lock (nvml.h, CUDA 13.3, deprecation notices of CUDA 13). A floor is a
lock on every board, for applications clocks have none; a lock goes before them (nvml.h, nvmlDeviceSetGpuLockedClocks).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from remediate.gpu.clocktable import ClockTable
from remediate.gpu.commands import Setting, show_value
from remediate.gpu.facts import Device
from remediate.gpu.judgement import CLOCKS, Judgement, first_unknown, operation_for, outcome_of
from remediate.gpu.locks import judge_graphics_lock, judge_leftover_locks, judge_memory_lock
from remediate.gpu.nearest import adapted, at_or_below, ceiling_of, too_low
from remediate.model import Outcome, Reading, Unknown
from remediate.profile.schema import GpuWish


def judge_clocks(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    """The clocks against the profile's wishes; empty where the profile has none."""
    if not _has_graphics_wish(wish) and not _has_memory_wish(wish):
        return ()
    hidden = _hidden_clocks(device)
    if hidden is not None:
        return (Judgement(CLOCKS, device, Outcome.UNSUPPORTED, f"clocks can't be judged: {hidden}", why="clocks"),)
    missing = first_unknown(device.application_clocks.memory_mhz, device.application_clocks.graphics_mhz)
    if missing is None:
        return _judge_with_application_clocks(device, wish)
    if outcome_of(missing) is Outcome.UNSUPPORTED:
        return (*judge_memory_lock(device, wish), *judge_graphics_lock(device, wish))
    return (_unclear(device, f"applications clocks could not be read: {missing.reason}"),)


def _hidden_clocks(device: Device) -> str | None:
    """Why there can be no verdict: a board that tells neither its clock nor its highest one (SysMonTask#60)."""
    now, top = device.clocks.graphics_mhz, device.max_clocks.graphics_mhz
    if not isinstance(now, Unknown) or not isinstance(top, Unknown):
        return None
    if outcome_of(now) is not Outcome.UNSUPPORTED or outcome_of(top) is not Outcome.UNSUPPORTED:
        return None
    return f"neither the present clock nor the highest one can be read ({top.reason})"


def _judge_with_application_clocks(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    if wish.sm_clock_min_mhz is None:
        return (*judge_leftover_locks(device), *_judge_application_clocks(device, wish))
    without = msgspec.structs.replace(wish, sm_clock=None, sm_clock_mhz=None, sm_clock_fraction=None)
    pair = _judge_application_clocks(device, without) if _has_memory_wish(wish) else ()
    return (*pair, *judge_graphics_lock(device, wish))


def _judge_application_clocks(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    tables = device.supported_clocks
    if isinstance(tables, Unknown) or not tables:
        reason = tables.reason if isinstance(tables, Unknown) else "the list is empty"
        return (_unclear(device, f"supported clocks could not be read: {reason}"),)
    memory_mhz = _memory_target(device, wish, tables)
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


def _memory_target(device: Device, wish: GpuWish, tables: Sequence[ClockTable]) -> int | Judgement:
    options = [table.memory_mhz for table in tables]
    if wish.memory_clock == "max":
        return max(options)
    if wish.memory_clock_mhz is not None:
        target = at_or_below(options, wish.memory_clock_mhz)
        return target or _memory_too_low(device, wish.memory_clock_mhz, tables)
    start = device.application_clocks.memory_mhz
    if wish.sm_clock == "default" or wish.memory_clock == "default":
        start = device.default_application_clocks.memory_mhz
    return max(options) if isinstance(start, Unknown) else at_or_below(options, start) or max(options)


def _memory_too_low(device: Device, asked_mhz: int, tables: Sequence[ClockTable]) -> Judgement:
    lowest = min(tables, key=lambda table: table.memory_mhz)
    pair = f"{lowest.memory_mhz},{max(lowest.graphics_mhz)}" if lowest.graphics_mhz else ""
    return too_low(device, "memory", asked_mhz, lowest.memory_mhz, (Setting.APPLICATION_CLOCKS, pair))


def _graphics_target(device: Device, wish: GpuWish, table: ClockTable) -> int | Judgement:
    options = table.graphics_mhz
    if not options:
        return _unclear(device, f"graphics clocks at {table.memory_mhz} MHz memory could not be read")
    if wish.sm_clock == "max":
        return max(options)
    ceiling = ceiling_of(wish, options)
    if ceiling is not None:
        pair = f"{table.memory_mhz},{min(options)}"
        return at_or_below(options, ceiling) or too_low(
            device, "SM", ceiling, min(options), (Setting.APPLICATION_CLOCKS, pair)
        )
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
    return any(
        given is not None for given in (wish.sm_clock, wish.sm_clock_mhz, wish.sm_clock_fraction, wish.sm_clock_min_mhz)
    )


def _has_memory_wish(wish: GpuWish) -> bool:
    return wish.memory_clock is not None or wish.memory_clock_mhz is not None
