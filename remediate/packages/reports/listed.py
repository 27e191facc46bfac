"""`pip list`: as columns (also uv's), in the form before pip 10, and as JSON."""

from __future__ import annotations

import re

import msgspec

from remediate.packages.facts import DistributionFacts
from remediate.packages.reports.found import NAME, VERSION, Found, distribution

KIND = "pip list"
_HEAD = re.compile(r"Package +Version(?: +(?:Editable project )?[Ll]ocation)?(?: +Installer)?", re.ASCII)
_RULE = re.compile(r"-{3,}(?: +-{3,}){1,3}", re.ASCII)
_ROW = re.compile(rf"({NAME}) +({VERSION})(?: +(\S.{{0,2000}}))?", re.ASCII)
_OLD_ROW = re.compile(rf"({NAME}) \(({VERSION})(?:, .{{1,2000}})?\)", re.ASCII)
_MAX_LINE = 4000
_MIN_OLD_ROWS = 2


class _Item(msgspec.Struct):
    """An entry of `pip list --format=json`."""

    name: str
    version: str
    editable_project_location: str | None = None


def find_list(text: str, name: str) -> Found | None:
    """The list in a text; columns may stand anywhere in it."""
    found = _from_json(text) or _from_columns(text) or _from_old_rows(text)
    return Found(KIND, name, tuple(found), is_complete=True) if found else None


def _from_json(text: str) -> list[DistributionFacts]:
    """A notice of pip may stand around the document."""
    start, end = text.find("[{"), text.rfind("}]")
    if not text.lstrip().startswith(("[{", "[\n", "WARNING", "DEPRECATION")) or start < 0 or end < start:
        return []
    try:
        items = msgspec.json.decode(text[start : end + 2], type=list[_Item])
    except (msgspec.DecodeError, RecursionError):
        return []
    named = re.compile(NAME, re.ASCII)
    versioned = re.compile(VERSION, re.ASCII)
    if not all(named.fullmatch(item.name) and versioned.fullmatch(item.version) for item in items):
        return []
    return [
        distribution(item.name, item.version, editable=item.editable_project_location is not None) for item in items
    ]


def _from_columns(text: str) -> list[DistributionFacts]:
    lines = [line.strip() for line in text.split("\n")]
    for index in range(len(lines) - 1):
        if _HEAD.fullmatch(lines[index][:_MAX_LINE]) and _RULE.fullmatch(lines[index + 1][:_MAX_LINE]):
            has_place = "ocation" in lines[index]
            return _rows(lines[index + 2 :], has_place=has_place)
    return []


def _rows(lines: list[str], *, has_place: bool) -> list[DistributionFacts]:
    found = []
    for line in lines:
        row = _ROW.fullmatch(line[:_MAX_LINE])
        if row is None:
            break
        found.append(distribution(row[1], row[2], editable=has_place and row[3] is not None))
    return found


def _from_old_rows(text: str) -> list[DistributionFacts]:
    rows = [_OLD_ROW.fullmatch(line.strip()[:_MAX_LINE]) for line in text.split("\n") if line.strip()]
    found = [distribution(row[1], row[2]) for row in rows if row]
    return found if len(found) == len(rows) >= _MIN_OLD_ROWS else []
