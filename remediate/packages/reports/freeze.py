"""`pip freeze`, `uv pip freeze` and `pip list --format=freeze`.

A requirements file looks alike, so that either the whole text has to be one, with every line saying exactly what is
installed, or the command has to stand above it.
"""

from __future__ import annotations

import re

from remediate.packages.facts import DistributionFacts
from remediate.packages.reports.found import NAME, NO_VERSION, VERSION, Found, distribution, version_in

KIND = "pip freeze"
LEFT_OUT = ("pip", "setuptools", "wheel", "distribute")
"""Not named without `--all` (pip, `freeze` command)."""
_PINNED = re.compile(rf"({NAME})===?({VERSION})", re.ASCII)
_PLACE = re.compile(rf"({NAME}) @ (\S{{1,2000}})", re.ASCII)
_EDITABLE = re.compile(r"-e (\S.{0,2000})", re.ASCII)
_EGG = re.compile(rf"[#&]egg=({NAME})", re.ASCII)
_LOCAL_EDITABLE = re.compile(
    rf"# Editable (?:install|Git install) with no .{{1,60}}\(({NAME})(?:==({VERSION}))?\)", re.ASCII
)
_NOISE = re.compile(r"(?:WARNING|DEPRECATION|\[notice\]|[$>#%]|Using Python |```).*", re.ASCII)
_COMMAND = re.compile(
    r"(?:.{0,120}[$#>%] ?)?(?:uv |\S{1,80}python\S{0,10} -m |python\S{0,10} -m )?pip3? freeze(?: .{0,80})?", re.ASCII
)
_MAX_LINE = 4000


def find_freeze(text: str, name: str) -> Found | None:
    """The list of a text; of several the last one."""
    lines = [line.strip() for line in text.split("\n")]
    commands = [index for index, line in enumerate(lines) if _COMMAND.fullmatch(line[:_MAX_LINE])]
    return _read(lines[commands[-1] + 1 :], name, is_part=True) if commands else _read(lines, name, is_part=False)


def _read(lines: list[str], name: str, *, is_part: bool) -> Found | None:
    """The list in these lines; `is_part`: it ends where it ends, else it has to be all of them."""
    found: list[DistributionFacts] = []
    is_complete = True
    pending: DistributionFacts | None = None
    for line in lines:
        comment, editable, entry = _LOCAL_EDITABLE.match(line), _EDITABLE.fullmatch(line), _entry(line)
        if comment:
            pending = distribution(comment[1], comment[2] or NO_VERSION, editable=True)
        elif editable:
            named = pending or _from_url(editable[1])
            found += [named] if named else []
            # A folder without a name: something is installed, and the list does not say what.
            is_complete = is_complete and named is not None
            pending = None
        elif entry:
            found.append(entry)
        elif line and not _NOISE.fullmatch(line):
            if not is_part:
                return None
            break
    pinned = any(isinstance(entry.version, str) for entry in found)
    return Found(KIND, name, tuple(found), is_complete, LEFT_OUT) if pinned else None


def _entry(line: str) -> DistributionFacts | None:
    pinned, place = _PINNED.fullmatch(line[:_MAX_LINE]), _PLACE.fullmatch(line[:_MAX_LINE])
    if pinned:
        return distribution(pinned[1], pinned[2])
    return distribution(place[1], version_in(place[2]), url=place[2]) if place else None


def _from_url(url: str) -> DistributionFacts | None:
    """An editable one from a version control system; a bare folder has no name."""
    egg = _EGG.search(url)
    return distribution(egg[1], NO_VERSION, url=url, editable=True) if egg else None
