"""Supported clocks as compact text: `210..1410/15` for 81 clocks, `1530, 1522, 1515` where the steps are uneven.

A board lists some hundred clocks; written one a line they would hide the rest of a facts document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec

from remediate.model import Reading, Unknown

MAX_CLOCKS = 4096
"""More than any board lists (about 200); a bound on what a document can make the reader allocate."""
_MIN_RUN = 3


class ClockTable(msgspec.Struct, frozen=True):
    """The graphics clocks that a board supports at one memory clock (NVML `GetSupportedGraphicsClocks`).

    Raises:
        ValueError: `graphics` is not in the form that `pack` writes (msgspec turns it into a `ValidationError`).
    """

    memory_mhz: int
    graphics: Reading[str]
    """Packed MHz, ascending."""

    def __post_init__(self) -> None:
        if isinstance(self.graphics, str):
            unpack(self.graphics)

    @property
    def graphics_mhz(self) -> tuple[int, ...]:
        """The clocks in MHz, highest first; empty when they could not be read."""
        return () if isinstance(self.graphics, Unknown) else tuple(reversed(unpack(self.graphics)))


def pack(clocks: Iterable[int]) -> str:
    """Text for a set of clocks in MHz; their order and repetitions are not kept."""
    ordered = sorted(set(clocks))
    return ", ".join(_format_run(run) for run in _runs(ordered))


def unpack(text: str) -> tuple[int, ...]:
    """The clocks in MHz, ascending.

    Raises:
        ValueError: not written by `pack`, or more than `MAX_CLOCKS`.
    """
    clocks: list[int] = []
    for part in text.split(",") if text.strip() else ():
        clocks.extend(_parse_run(part.strip()))
        if len(clocks) > MAX_CLOCKS:
            raise ValueError(f"more than {MAX_CLOCKS} clocks")
    if clocks and clocks[0] < 1:
        raise ValueError(f"a clock is below 1 MHz: {text[:60]!r}")
    if any(later <= earlier for earlier, later in pairwise(clocks)):
        raise ValueError(f"clocks are not ascending: {text[:60]!r}")
    return tuple(clocks)


def _runs(ordered: list[int]) -> Iterator[list[int]]:
    """Split into runs of one step; runs shorter than `_MIN_RUN` come out one clock at a time."""
    start = 0
    while start < len(ordered):
        end = start + 1
        while end + 1 < len(ordered) and ordered[end + 1] - ordered[end] == ordered[start + 1] - ordered[start]:
            end += 1
        length = end - start + 1
        if end >= len(ordered) or length < _MIN_RUN:
            length = 1
        yield ordered[start : start + length]
        start += length


def _format_run(run: list[int]) -> str:
    return str(run[0]) if len(run) == 1 else f"{run[0]}..{run[-1]}/{run[1] - run[0]}"


def _parse_run(part: str) -> range:
    try:
        first, dots, rest = part.partition("..")
        if not dots:
            return range(int(part), int(part) + 1)
        last, step = rest.split("/")
        run = range(int(first), int(last) + 1, int(step))
    except ValueError as error:
        raise ValueError(f"not a clock or a run `first..last/step`: {part[:40]!r}") from error
    if len(run) > MAX_CLOCKS:
        raise ValueError(f"more than {MAX_CLOCKS} clocks: {part[:40]!r}")
    return run
