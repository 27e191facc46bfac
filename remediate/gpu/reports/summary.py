"""The table that plain `nvidia-smi` prints. It rounds and cuts names off, so that little of it is taken.

Not taken: power, of which the table does not say which limit it shows, and a name that ends in dots.
"""

from __future__ import annotations

import re
from typing import Any

from remediate.gpu.reports import cells
from remediate.gpu.reports.listing import MAX_RUNS
from remediate.gpu.reports.snapshot import INDEX, Snapshot
from remediate.model import Reading, Unknown, UnknownKind

KIND = "nvidia-smi"
_HEAD = re.compile(
    r"\| NVIDIA-SMI \S+ +(?:Driver|KMD) Version: (\S+)(?: +CUDA(?: UMD)? Version: (\S+(?: \S+)?))? *\|", re.ASCII
)
_FIRST = re.compile(
    r"\| +(\d{1,3}) +(\S.{0,60}?) +(On|Off|WDDM|TCC|MCDM|N/A|ERR!) *\| *([0-9A-Fa-f:.]{12,16}) +\S+ *\|(.*)\|", re.ASCII
)
_SECOND = re.compile(r"\|(.*)\|(.*)\|(.*)\|", re.ASCII)
_TEMPERATURE = re.compile(r"(?<!\S)(\d{1,3}C)(?!\S)", re.ASCII)
_STATE = re.compile(r"(?<!\S)(P\d{1,2})(?!\S)", re.ASCII)
_MEMORY = re.compile(r" *(\d+MiB) */ *(\d+MiB) *", re.ASCII)
_USE = re.compile(r" *(\S+) +(\S.*?) *", re.ASCII)
_MAX_LINE = 400
_CUT_NAME = Unknown(UnknownKind.NOT_READ, "the table of nvidia-smi cuts the name off")


def find_tables(text: str, name: str) -> tuple[Snapshot, ...]:
    """All tables in a text, in order."""
    found: list[tuple[dict[str, Reading[Any]], list[dict[str, Reading[Any]]]]] = []
    pending: dict[str, Reading[Any]] | None = None
    for line in (line.strip()[:_MAX_LINE] for line in text.split("\n")):
        head, first = _HEAD.fullmatch(line), _FIRST.fullmatch(line)
        if head:
            found.append((_read_head(head), []))
        elif first and found:
            pending = _read_first(first)
            found[-1][1].append(pending)
        elif pending is not None:
            second = _SECOND.fullmatch(line)
            pending |= _read_second(second) if second else {}
            pending = None
    return tuple(Snapshot(f"{name}: {KIND}", driver, tuple(gpus)) for driver, gpus in found[-MAX_RUNS:])


def _read_head(head: re.Match[str]) -> dict[str, Reading[Any]]:
    driver: dict[str, Reading[Any]] = {"driver_version": cells.driver_version(head[1])}
    if head[2]:
        driver["cuda_driver_version"] = cells.version(head[2])
    return driver


def _read_first(row: re.Match[str]) -> dict[str, Reading[Any]]:
    readings: dict[str, Reading[Any]] = {
        INDEX: int(row[1]),
        "name": _CUT_NAME if row[2].endswith("...") else cells.text(row[2]),
        "pci_bus_id": cells.pci_bus_id(row[4]),
    }
    if row[3] in ("On", "Off"):
        readings["persistence_mode"] = cells.flag(row[3])
    return readings


def _read_second(row: re.Match[str]) -> dict[str, Reading[Any]]:
    readings: dict[str, Reading[Any]] = {}
    temperature, state = _TEMPERATURE.search(row[1]), _STATE.search(row[1])
    if temperature:
        readings["temperature.gpu_c"] = cells.whole("C")(temperature[1], True)
    if state:
        readings["performance_state"] = cells.performance_state(state[1])
    memory = _MEMORY.fullmatch(row[2])
    if memory:
        readings["memory.used_mib"] = cells.whole("MiB")(memory[1], True)
        readings["memory.total_mib"] = cells.whole("MiB")(memory[2], True)
    use = _USE.fullmatch(row[3])
    if use:
        readings["utilization_percent"] = cells.whole("%")(use[1], True)
        readings["compute_mode"] = cells.compute_mode(use[2])
    return readings
