"""From the outputs of nvidia-smi to one GPU facts record: which GPU is which, what goes before what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from remediate.errors import DocumentError
from remediate.gpu.facts import Device, GpuFacts, Power
from remediate.gpu.reports.capability import complete
from remediate.gpu.reports.snapshot import INDEX, LOST, Readings, Snapshot
from remediate.model import Choice, Reading, Unknown, UnknownKind
from remediate.reports import NOT_IN_REPORT

MAX_GPUS = 1024
_MASKED_UUID = Unknown(UnknownKind.NOT_READ, "the report masks it")
_ZERO_UUID = "GPU-00000000-0000-0000-0000-000000000000"


def join(snapshots: Sequence[Snapshot]) -> tuple[GpuFacts, tuple[Choice, ...]]:
    """The facts, and what was chosen on the way. What an earlier snapshot says goes before a later one.

    Raises:
        DocumentError: the snapshots are not of one machine at one time.
    """
    driver = _one_driver(snapshots)
    machines = _distinct(snapshots)
    choices = []
    devices = []
    for position, readings in enumerate(machines):
        completed, choice = complete(readings)
        choices += [choice] if choice else []
        devices.append(_device(position, completed))
    if any(INDEX not in readings for readings in machines):
        because = "not every report shows all GPUs of the machine, and an index is only an order"
        choices.append(Choice("GPU index", "as they stand in the reports", because))
    facts: GpuFacts = _record(GpuFacts, driver, {"devices": tuple(devices)})
    return facts, tuple(choices)


def _one_driver(snapshots: Sequence[Snapshot]) -> dict[str, Reading[Any]]:
    joined: dict[str, Reading[Any]] = {}
    sources: dict[str, str] = {}
    for snapshot in snapshots:
        version = snapshot.driver.get("driver_version")
        former = joined.get("driver_version")
        if isinstance(version, str) and isinstance(former, str) and version != former:
            raise DocumentError(
                f"the reports are of different drivers: {former} and {version}",
                cause=f"{sources['driver_version']} and {snapshot.source}",
                hint="import the reports of one machine, taken at one time",
            )
        if isinstance(version, str):
            sources.setdefault("driver_version", snapshot.source)
        joined = _merged(joined, snapshot.driver)
    return joined


def _distinct(snapshots: Iterable[Snapshot]) -> list[Readings]:
    """One entry for each GPU, in the order of the index where that is known.

    Raises:
        DocumentError: there are more than any machine has.
    """
    found: list[Readings] = []
    for snapshot in snapshots:
        if len(found) + len(snapshot.gpus) > MAX_GPUS:
            raise DocumentError(f"{snapshot.source} has more than {MAX_GPUS} GPUs", cause="no machine has so many")
        # GPUs of one snapshot are never the same one, so that they are held against earlier snapshots only.
        earlier = len(found)
        for readings in map(_without_mask, snapshot.gpus):
            match = next((i for i in range(earlier) if _is_same(found[i], readings)), None)
            if match is None:
                found.append(readings)
            else:
                found[match] = _merged(found[match], readings)
    return sorted(found, key=_order)


def _without_mask(readings: Readings) -> Readings:
    """Zeros in place of a UUID name no GPU."""
    return {**readings, "uuid": _MASKED_UUID} if readings.get("uuid") == _ZERO_UUID else readings


def _order(readings: Readings) -> int:
    index = readings.get(INDEX)
    return index if isinstance(index, int) else 1 << 30


def _is_same(one: Readings, other: Readings) -> bool:
    """By UUID, else by PCI bus id, else by index."""
    for key in ("uuid", "pci_bus_id", INDEX):
        here, there = one.get(key), other.get(key)
        if here is not None and there is not None and not isinstance(here, Unknown) and not isinstance(there, Unknown):
            return bool(here == there)
    return False


def _merged(earlier: Readings, later: Readings) -> dict[str, Reading[Any]]:
    """A value goes before a failed reading, except before one that says that the GPU is lost; else the earlier one."""
    merged = dict(earlier)
    for name, reading in later.items():
        known = merged.get(name)
        is_gap = isinstance(known, Unknown) and known.kind is not UnknownKind.LOST
        if known is None or (is_gap and not isinstance(reading, Unknown)):
            merged[name] = reading
    return merged


def _device(position: int, readings: Readings) -> Device:
    index = readings.get(INDEX)
    fixed = {
        "index": index if isinstance(index, int) else position,
        "lost": readings.get(LOST),
        "module_power": _module_power(readings),
    }
    device: Device = _record(Device, readings, fixed)
    return device


def _module_power(readings: Readings) -> Power | None:
    """None on boards without that scope, whose module readings are all `N/A`."""
    below = _below("module_power.", readings)
    return None if isinstance(below.get("limit_w", NOT_IN_REPORT), Unknown) else _record(Power, below, {})


def _record(kind: type[Any], readings: Readings, fixed: Mapping[str, Any]) -> Any:
    """A record with `NOT_IN_REPORT` for all that is not said; `power.limit_w` belongs into its field `power`."""
    values: dict[str, Any] = dict.fromkeys(_reading_fields(kind), NOT_IN_REPORT)
    for field in msgspec.structs.fields(kind):
        if isinstance(field.default, msgspec.Struct) and not isinstance(field.default, Unknown):
            values[field.name] = _record(type(field.default), _below(f"{field.name}.", readings), {})
        elif field.name in readings:
            values[field.name] = readings[field.name]
    return kind(**(values | dict(fixed)))


def _below(prefix: str, readings: Readings) -> Readings:
    return {name.removeprefix(prefix): value for name, value in readings.items() if name.startswith(prefix)}


def _reading_fields(kind: type[msgspec.Struct]) -> list[str]:
    return [field.name for field in msgspec.structs.fields(kind) if isinstance(field.default, Unknown)]
