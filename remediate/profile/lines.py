"""Where each key of a TOML text stands, so that a problem can be reported with its line.

`tomllib` gives no positions. This scan runs only after a problem was found, on text that `tomllib` has accepted; it
follows table headers, keys and multi-line values, and makes no other claim to read TOML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_HEADER = re.compile(r"^\s*\[{1,2}\s*(?P<path>[^\[\]]+?)\s*\]{1,2}\s*(#.*)?$")
_KEY = re.compile(
    r"^\s*(?P<key>(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'))*)\s*="
)
_PART = re.compile(r"[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'")
_STRING = re.compile(r"\"\"\"|'''|\"(?:\\.|[^\"\\])*\"|'[^']*'|#.*|[\[\]{}]")
_DEPTH = {"[": 1, "{": 1, "]": -1, "}": -1}


def key_lines(text: str) -> dict[str, int]:
    """Map dotted key path to 1-based line. Elements of an array of tables are numbered: `corrections.0.said`."""
    found: dict[str, int] = {}
    prefix: tuple[str, ...] = ()
    counts: dict[str, int] = {}
    for number, line in _logical_lines(text):
        header = _HEADER.match(line)
        if header:
            prefix = _parts(header["path"])
            if line.lstrip().startswith("[["):
                name = ".".join(prefix)
                counts[name] = counts.get(name, -1) + 1
                prefix = (*prefix, str(counts[name]))
            found.setdefault(".".join(prefix), number)
            continue
        key = _KEY.match(line)
        if key:
            parts = (*prefix, *_parts(key["key"]))
            for end in range(len(prefix) + 1, len(parts) + 1):
                found.setdefault(".".join(parts[:end]), number)
    return found


def line_of(lines: dict[str, int], path: str) -> int | None:
    """Line of `path`, or of its nearest ancestor."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        number = lines.get(".".join(parts[:end]))
        if number is not None:
            return number
    return None


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(path))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that begin a header or a key; lines inside a multi-line string or array are passed over."""
    closing, depth = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        rest = line
        if closing:
            _, ending, rest = line.partition(closing)
            if not ending:
                continue
            closing = ""
        elif depth == 0:
            yield number, line
            if _HEADER.match(line):
                continue
        for match in _STRING.finditer(rest):
            found = match[0]
            if found in ('"""', "'''"):
                closing = found if rest.count(found, match.end()) == 0 else ""
                break
            depth += _DEPTH.get(found, 0)
