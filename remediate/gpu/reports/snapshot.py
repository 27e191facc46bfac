"""What one output of nvidia-smi tells: readings by the dotted place of the fact, for each GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from remediate.gpu.reports import cells
from remediate.gpu.reports.fields import FIELDS
from remediate.gpu.reports.listing import Listing, Log
from remediate.gpu.reports.lists import event_reasons, processes, supported_clocks
from remediate.model import Reading, Unknown, UnknownKind
from remediate.reports import NOT_IN_REPORT

Readings = Mapping[str, Reading[Any]]
"""Dotted place in `remediate.gpu.facts.Device` to reading. What is not said is absent."""
INDEX, LOST = "index", "lost"
_BREAKS_OFF = Unknown(UnknownKind.NOT_READ, "the report breaks off there")
_LISTS = {"events.active": event_reasons, "processes": processes, "supported_clocks": supported_clocks}


class Snapshot(msgspec.Struct, frozen=True):
    """One output: the driver and the GPUs that it shows.

    Attributes:
        source: kind of output and the file that it stands in, for messages.
        driver: `driver_version`, `cuda_driver_version`, `device_count`, as far as they are said.
        gpus: in the order of the output.
    """

    source: str
    driver: Readings
    gpus: tuple[Readings, ...]
    notes: tuple[str, ...] = ()


def from_log(log: Log, source: str) -> Snapshot:
    """From `nvidia-smi -q`, text or XML."""
    count = cells.whole("")
    driver = {
        # 610 writes "[Deprecated; …]" behind the former names; a later one may write nothing else.
        "driver_version": log.top.read(
            ("driver version", "driver_version", "kmd version", "kmd_version"), cells.driver_version
        ),
        "cuda_driver_version": log.top.read(
            ("cuda version", "cuda_version", "cuda umd version", "cuda_umd_version"), cells.version
        ),
        "device_count": log.top.read(("attached gpus", "attached_gpus"), count),
    }
    known = {name: reading for name, reading in driver.items() if reading is not NOT_IN_REPORT}
    gpus = [_read_gpu(listing) for listing in log.gpus]
    notes = []
    if log.is_cut:
        notes.append(f"{source} breaks off before its end")
        if gpus:
            gpus[-1] |= _cut_list(log.gpus[-1])
    return Snapshot(source, known, _numbered(gpus, known), tuple(notes))


def _read_gpu(listing: Listing) -> dict[str, Reading[Any]]:
    readings = {field.name: listing.read(field.xml if listing.is_xml else field.text, field.read) for field in FIELDS}
    readings |= {name: read(listing) for name, read in _LISTS.items()}
    bus_id = cells.pci_bus_id(listing.bus_id)
    if not isinstance(bus_id, Unknown):
        readings["pci_bus_id"] = bus_id
    return {name: reading for name, reading in readings.items() if reading is not NOT_IN_REPORT}


def _cut_list(listing: Listing) -> dict[str, Reading[Any]]:
    """The list in which the output breaks off: what was read of it may not be all."""
    last = listing.lines[-1].path if listing.lines else ""
    headings = {"supported": "supported_clocks", "processes": "processes"}
    return {name: _BREAKS_OFF for start, name in headings.items() if last.startswith(start)}


def _numbered(gpus: list[dict[str, Reading[Any]]], driver: Readings) -> tuple[Readings, ...]:
    """With indices, where all GPUs are shown: then they stand in the order of enumeration."""
    if driver.get("device_count") != len(gpus):
        return tuple(gpus)
    return tuple({INDEX: index, **readings} for index, readings in enumerate(gpus))
