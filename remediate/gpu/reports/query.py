"""`nvidia-smi --query-gpu=… --format=csv`: columns by their names, former ones too, with and without units.

From 535 on the header shows the new name whatever was asked for, so that a header goes before the command. A CSV
without a header can be read where the command stands above it, or where the user names the fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from remediate.errors import DocumentError
from remediate.gpu.reports import cells
from remediate.gpu.reports.fields import FIELDS
from remediate.gpu.reports.listing import MAX_RUNS
from remediate.gpu.reports.lists import REASON_BITS, reasons_from_names
from remediate.gpu.reports.snapshot import INDEX, Readings, Snapshot
from remediate.model import Reading, Unknown
from remediate.reports import NOT_IN_REPORT, Report

KIND = "nvidia-smi --query-gpu"
_DRIVER = {"driver_version": cells.driver_version, "kmd_version": cells.driver_version, "count": cells.whole("")}
_PLACES = {"driver_version": "driver_version", "kmd_version": "driver_version", "count": "device_count"}
_REASONS = ("clocks_event_reasons.", "clocks_throttle_reasons.")
_IDENTITY = ("uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "index", "serial", "gpu_serial")
_KNOWN = frozenset({*(name for field in FIELDS for name in field.csv), *_DRIVER, *_IDENTITY, "timestamp"})
_OTHER_QUERIES = frozenset({"pid", "retired_pages.address", "gpu_util", "gpu_utilization", "vgpu_name"})
"""Columns of `--query-compute-apps` and the like, whose rows are no GPUs."""
_COLUMN = re.compile(r"([A-Za-z_][\w.]{0,80})(?: \[([^\]]{1,12})\])?", re.ASCII)
_COMMAND = re.compile(r"--query-gpu=[\"']?([\w.,]+)", re.ASCII)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_MAX_CELLS = 1000
_MAX_LINE = 100_000


class _Column(msgspec.Struct, frozen=True):
    name: str
    unit: str = ""


def find_queries(report: Report) -> tuple[Snapshot, ...]:
    """All CSVs in a text.

    Raises:
        DocumentError: the rows of one can't be told apart.
    """
    lines = [line.strip() for line in report.text.split("\n")]
    asked = _named(report.csv_fields)
    found: list[Snapshot] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        asked = _asked(line) or asked
        columns = _header(line, asked, is_only=index == 0)
        if columns is None and asked and _is_row(line, asked):
            columns, index = asked, index - 1
        index += 1
        if columns is None:
            continue
        rows = _rows(lines[index:], len(columns))
        index += len(rows)
        if rows and not _OTHER_QUERIES & {column.name for column in columns}:
            found.append(_snapshot(columns, rows, report.name))
    return tuple(found[-MAX_RUNS:])


def _asked(line: str) -> tuple[_Column, ...]:
    command = _COMMAND.search(line[:_MAX_LINE])
    return _named(command[1].strip(",").split(",")) if command else ()


def _named(fields: Sequence[str]) -> tuple[_Column, ...]:
    return tuple(_Column(field.strip()) for field in fields)


def _header(line: str, asked: tuple[_Column, ...], *, is_only: bool) -> tuple[_Column, ...] | None:
    """The columns, if the line names some: two that are known, or one where nothing else can be meant."""
    if len(line) > _MAX_LINE or not line:
        return None
    columns = []
    for cell in line.split(",", _MAX_CELLS):
        match = _COLUMN.fullmatch(cell.strip())
        if match is None:
            return None
        columns.append(_Column(match[1], match[2] or ""))
    known = sum(column.name in _KNOWN or column.name.startswith(_REASONS) for column in columns)
    is_sole = known == 1 and len(columns) == 1 and (is_only or len(asked) == 1)
    return tuple(columns) if known > 1 or is_sole else None


def _is_row(line: str, columns: tuple[_Column, ...]) -> bool:
    """Whether the line fits what was asked for: as many cells, one of them a value of its column."""
    cells_ = _cells(line)
    if len(cells_) != len(columns) or _COMMAND.search(line[:_MAX_LINE]):
        return False
    readings = _read_row(columns, cells_)
    return any(not isinstance(reading, Unknown) for reading in readings.values())


def _rows(lines: Sequence[str], width: int) -> list[list[str]]:
    """The rows that follow at once."""
    rows = []
    for line in lines:
        row = _cells(line)
        if not line or len(row) != width:
            break
        rows.append(row)
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line[:_MAX_LINE].split(",", _MAX_CELLS)]


def _snapshot(columns: Sequence[_Column], rows: list[list[str]], name: str) -> Snapshot:
    latest = _latest(columns, rows, name)
    driver: dict[str, Reading[Any]] = {}
    for column, cell in zip(columns, latest[0], strict=True):
        if column.name in _DRIVER:
            driver.setdefault(_PLACES[column.name], _DRIVER[column.name](cell, False))
    return Snapshot(f"{name}: {KIND}", driver, tuple(_read_row(columns, row) for row in latest))


def _latest(columns: Sequence[_Column], rows: list[list[str]], name: str) -> list[list[str]]:
    """The last row of each GPU: with `-l` a CSV holds many samples."""
    positions = [index for index, column in enumerate(columns) if column.name in _IDENTITY]
    if not positions:
        _check_one_moment(columns, rows, name)
        return rows
    last = {tuple(row[position] for position in positions): row for row in rows}
    return list(last.values())


def _check_one_moment(columns: Sequence[_Column], rows: list[list[str]], name: str) -> None:
    """Without a column that tells the GPU, rows are GPUs where all were read at once."""
    position = next((index for index, column in enumerate(columns) if column.name == "timestamp"), None)
    if position is None or len(rows) == 1:
        return
    moments = [moment for row in rows if (moment := _moment(row[position])) is not None]
    if moments and (max(moments) - min(moments)).total_seconds() >= 1:
        raise DocumentError(
            f"`{name}` has several rows, and none of its columns tells the GPU",
            cause="they may be several GPUs, or one at several times",
            hint="query `uuid` or `index` as well",
        )


def _moment(cell: str) -> datetime | None:
    try:
        return datetime.strptime(cell, "%Y/%m/%d %H:%M:%S.%f")
    except ValueError:
        return None


def _read_row(columns: Sequence[_Column], row: Sequence[str]) -> Readings:
    by_name = {column.name: (column, cell) for column, cell in reversed(list(zip(columns, row, strict=True)))}
    readings: dict[str, Reading[Any]] = {}
    for field in FIELDS:
        found = [field.read(*_with_unit(*by_name[name])) for name in field.csv if name in by_name]
        if found:
            readings[field.name] = next((value for value in found if not isinstance(value, Unknown)), found[0])
    if "index" in by_name:
        readings[INDEX] = cells.whole("")(by_name["index"][1], False)
    return {**readings, **_read_reasons(by_name)}


def _with_unit(column: _Column, cell: str) -> tuple[str, bool]:
    """A bare number gets the unit of its header, so that it is checked as any other."""
    if column.unit and _NUMBER.fullmatch(cell):
        return f"{cell} {column.unit}", True
    return cell, False


def _read_reasons(by_name: Mapping[str, tuple[_Column, str]]) -> dict[str, Reading[Any]]:
    """The masks, or the mask from single reasons where it was not asked for."""
    readings: dict[str, Reading[Any]] = {}
    states = []
    for name, (_, cell) in by_name.items():
        prefix = next((prefix for prefix in _REASONS if name.startswith(prefix)), None)
        if prefix is None:
            continue
        reason = name.removeprefix(prefix)
        if reason in ("active", "supported"):
            readings[f"events.{reason}"] = cells.mask(cell)
        elif reason in REASON_BITS:
            states.append((reason, cell))
    single = reasons_from_names(states)
    if single is not NOT_IN_REPORT:
        readings.setdefault("events.active", single)
    return readings
