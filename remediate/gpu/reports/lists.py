"""What `-q` tells as a list: event reasons, processes, supported clocks; as text and as XML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from remediate.gpu.clocktable import MAX_CLOCKS, ClockTable, pack
from remediate.gpu.facts import Process
from remediate.gpu.reasons import (
    APPLICATION_CLOCKS,
    DISPLAY_CLOCKS,
    HARDWARE_SLOWDOWN,
    HARDWARE_THERMAL,
    IDLE,
    POWER_BRAKE,
    SOFTWARE_POWER_CAP,
    SOFTWARE_THERMAL,
    SYNC_BOOST,
    UNKNOWN_REASON,
)
from remediate.gpu.reports import cells
from remediate.gpu.reports.listing import Listing
from remediate.model import Reading, Unknown, UnknownKind
from remediate.reports import NOT_IN_REPORT

_PARTIAL = Unknown(UnknownKind.NOT_READ, "only some of the reasons are in this report, and none of them is active")
_ESSENTIAL = frozenset({"sw_power_cap", "hw_slowdown", "sw_thermal_slowdown"})
"""Reasons that every driver since 2018 names; a list without them was asked for in part."""
REASON_BITS: Mapping[str, int] = {
    "gpu_idle": IDLE,
    "idle": IDLE,
    "applications_clocks_setting": APPLICATION_CLOCKS,
    "sw_power_cap": SOFTWARE_POWER_CAP,
    "hw_slowdown": HARDWARE_SLOWDOWN,
    "hw_thermal_slowdown": HARDWARE_THERMAL,
    "hw_power_brake_slowdown": POWER_BRAKE,
    "sync_boost": SYNC_BOOST,
    "sw_thermal_slowdown": SOFTWARE_THERMAL,
    "display_clocks_setting": DISPLAY_CLOCKS,
    "display_clock_setting": DISPLAY_CLOCKS,
    "unknown": UNKNOWN_REASON,
}
"""Last part of a query field's name, or an XML tag or key without its prefix, to the bit."""
_REASON_HEADINGS = (
    "clocks event reasons",
    "clocks throttle reasons",
    "clocks_event_reasons",
    "clocks_throttle_reasons",
)
_KINDS = {"C": ("compute",), "G": ("graphics",), "C+G": ("compute", "graphics"), "M": ("compute",), "M+C": ("compute",)}
"""`nvidia-smi -q`: type of a process; M stands for one that goes through MPS."""


def reasons_from_names(states: Iterable[tuple[str, str]]) -> Reading[int]:
    """The mask of the reasons that are said to be active. Names as in `REASON_BITS`."""
    mask, named, odd = 0, set(), None
    for name, state in states:
        if name in REASON_BITS and state.strip() in ("Active", "Not Active"):
            named.add(name)
            mask |= REASON_BITS[name] if state.strip() == "Active" else 0
        elif name in REASON_BITS:
            odd = odd or cells.unknown_cell(state)
    if mask or (named >= _ESSENTIAL and odd is None):
        return mask
    return odd or (_PARTIAL if named else NOT_IN_REPORT)


def event_reasons(listing: Listing) -> Reading[int]:
    """The mask of the active reasons."""
    for heading in _REASON_HEADINGS:
        if heading in listing.values:
            return cells.unknown_cell(listing.values[heading])
        if heading in listing.headings:
            return reasons_from_names((_reason_name(path), state) for path, state in listing.below(heading))
    return NOT_IN_REPORT


def _reason_name(path: str) -> str:
    name = path.rpartition("/")[2].replace(" ", "_")
    return name.removeprefix("clocks_event_reason_").removeprefix("clocks_throttle_reason_")


def processes(listing: Listing) -> Reading[tuple[Process, ...]]:
    """The processes, as NVML lists them; nvidia-smi writes none in a container that sees no process of its host."""
    if "processes" in listing.values:
        said = listing.values["processes"]
        return () if said in ("None", "") else cells.unknown_cell(said)
    if "processes" not in listing.headings:
        return NOT_IN_REPORT
    start = "process_info" if listing.is_xml else "process id"
    found = []
    for entry in _grouped(listing.below("processes"), start):
        found += _process(entry)
    return tuple(sorted(found, key=lambda process: (process.pid, process.kind)))


def _process(entry: Mapping[str, list[str]]) -> list[Process]:
    def first(text: str, xml: str) -> str:
        return (entry.get(xml) or entry.get(text) or [""])[0]

    pid = cells.whole("")(first("", "pid"), True)
    kinds = _KINDS.get(first("type", "type"), ())
    if isinstance(pid, Unknown):
        return []
    memory = cells.whole("MiB")(first("used gpu memory", "used_memory"), True)
    name = cells.text(first("name", "process_name"))
    return [Process(pid, kind, memory, name, NOT_IN_REPORT) for kind in kinds]


def supported_clocks(listing: Listing) -> Reading[tuple[ClockTable, ...]]:
    """The pairs of clocks, highest memory clock first. `-q` prints them only with `-d SUPPORTED_CLOCKS`."""
    heading = "supported_clocks" if listing.is_xml else "supported clocks"
    if heading in listing.values:
        return cells.unknown_cell(listing.values[heading])
    if heading not in listing.headings:
        return NOT_IN_REPORT
    start = "supported_mem_clock" if listing.is_xml else "memory"
    memory_key, clock_key = ("value", "supported_graphics_clock") if listing.is_xml else ("", "graphics")
    tables: dict[int, ClockTable] = {}
    for entry in _grouped(listing.below(heading), start):
        memory = _megahertz(entry.get(memory_key, [""])[0])
        if not isinstance(memory, Unknown) and memory > 0:
            tables.setdefault(memory, ClockTable(memory, _packed(entry.get(clock_key, []))))
    return tuple(tables[memory] for memory in sorted(tables, reverse=True)) or NOT_IN_REPORT


def _packed(listed: list[str]) -> Reading[str]:
    clocks = [_megahertz(cell) for cell in listed]
    odd = next((clock for clock in clocks if isinstance(clock, Unknown)), None)
    if odd is not None:
        return odd
    known = {clock for clock in clocks if isinstance(clock, int) and clock > 0}
    return pack(known) if 0 < len(known) <= MAX_CLOCKS else NOT_IN_REPORT


def _megahertz(cell: str) -> Reading[int]:
    reading: Reading[int] = cells.whole("MHz")(cell, True)
    return reading


def _grouped(lines: Iterable[tuple[str, str]], start: str) -> list[dict[str, list[str]]]:
    """Entries that each begin with the path `start`: key below it to values; the start's own value has an empty key."""
    entries: list[dict[str, list[str]]] = []
    for path, value in lines:
        if path == start:
            entries.append({"": [value]})
        elif entries and path.startswith(f"{start}/"):
            entries[-1].setdefault(path.removeprefix(f"{start}/"), []).append(value)
    return entries
