"""`Requires-Dist` lines of installed distributions, held against what is installed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from remediate.packages.environment import marker_environment
from remediate.packages.facts import TargetFacts
from remediate.packages.names import canonical

_LINE = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*\(?(?P<specifier>[^;)@]*)\)?\s*(?:;(?P<marker>.*))?\Z"
)


class Requirement(msgspec.Struct, frozen=True):
    """One line, read. `name` is canonical, `written` as in the line; a requirement on a URL is none."""

    name: str
    written: str
    specifier: str
    marker: str

    def __str__(self) -> str:
        return f"{self.written}{self.specifier}"


def read_requirements(lines: tuple[str, ...]) -> Iterator[Requirement]:
    """The lines that name a distribution and its versions; others are passed over."""
    for line in lines:
        match = _LINE.match(line.strip())
        if match is not None:
            marker = (match["marker"] or "").strip()
            yield Requirement(canonical(match["name"]), match["name"], match["specifier"].strip(), marker)


def holds(marker: str, target: TargetFacts | None) -> bool:
    """Whether a marker holds for the target; where there is no target it does, and nonsense never does.

    `packaging.markers` costs 8 ms to import, so that it is asked only about a requirement that is not met.
    """
    environment = marker_environment(target)
    if not marker or environment is None:
        return True
    from packaging.markers import InvalidMarker, Marker, UndefinedEnvironmentName

    try:
        return Marker(marker).evaluate({**environment, "extra": ""})
    except (InvalidMarker, UndefinedEnvironmentName):
        return False
