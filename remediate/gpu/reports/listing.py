"""What `nvidia-smi -q` says, as text and as XML alike: a list of paths with values for each GPU, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import msgspec

from remediate.gpu.reports.cells import Reader
from remediate.model import Reading, Unknown
from remediate.reports import NOT_IN_REPORT

MAX_RUNS = 64
"""Outputs of one kind that are read of one text, the last ones: a log of samples says the same again and again."""


class Line(msgspec.Struct, frozen=True):
    """One line or element; `value` is None for a heading."""

    path: str
    """Headings and key in lower case, joined by `/`."""
    value: str | None


class Listing(msgspec.Struct, dict=True, frozen=True):
    """The lines about one GPU, or those above the first one.

    Attributes:
        bus_id: as it stands in the heading of the GPU; empty for the lines above.
        is_xml: whether the paths are those of the XML.
    """

    lines: tuple[Line, ...]
    bus_id: str = ""
    is_xml: bool = False

    @cached_property
    def values(self) -> dict[str, str]:
        """Path to value; the first one where a path is repeated. Headings are left out."""
        found: dict[str, str] = {}
        for line in self.lines:
            if line.value is not None:
                found.setdefault(line.path, line.value)
        return found

    @cached_property
    def headings(self) -> frozenset[str]:
        """Paths without a value."""
        return frozenset(line.path for line in self.lines if line.value is None)

    def read(self, paths: Iterable[str], reader: Reader) -> Reading[Any]:
        """The first reading with a value; else what the first line says that is there."""
        missing: Unknown | None = None
        for path in paths:
            if path in self.values:
                reading = reader(self.values[path], True)
                if not isinstance(reading, Unknown):
                    return reading
                missing = missing or reading
        return missing or NOT_IN_REPORT

    def below(self, heading: str) -> Iterator[tuple[str, str]]:
        """Path below the heading and value, in order; headings have an empty value."""
        prefix = f"{heading}/"
        for line in self.lines:
            if line.path.startswith(prefix):
                yield line.path.removeprefix(prefix), line.value or ""


class Log(msgspec.Struct, frozen=True):
    """One run of `nvidia-smi -q`."""

    top: Listing
    gpus: tuple[Listing, ...]
    is_cut: bool = False
    """It breaks off before its end."""
