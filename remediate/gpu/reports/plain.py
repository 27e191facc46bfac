"""`nvidia-smi -q` as text. Keys repeat below different headings, so that lines are read by their path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from remediate.gpu.reports.listing import MAX_RUNS, Line, Listing, Log

_BANNER = re.compile(r"={1,40}NVSMI LOG={1,40}")
_GPU = re.compile(r"GPU ?([0-9A-Za-z]{4,8}:[0-9A-Za-z]{2}:[0-9A-Za-z]{2}\.[0-9A-Za-z])", re.ASCII)
"""Letters too, for people mask the bus id."""
_TOP = ("Timestamp", "Driver Version", "CUDA Version", "Attached GPUs", "KMD Version", "CUDA UMD Version")
_UNITS = (" W", " MHz", " MiB", " C", " %", " us")
_MAX_DEPTH = 32
_MAX_LINE = 4000


def find_logs(text: str) -> tuple[Log, ...]:
    """The latest runs in a text, in order; what stands around them is passed over."""
    logs = []
    for lines in list(_split(text.split("\n")))[-MAX_RUNS:]:
        log = _parse(lines)
        if log.gpus or "driver version" in log.top.values or "attached gpus" in log.top.values:
            logs.append(log)
    return tuple(logs)


def _split(lines: list[str]) -> Iterator[list[str]]:
    """The lines of each run. A log starts with its banner, or where that was cut off with one of its first lines."""
    starts = [index for index, line in enumerate(lines) if _BANNER.search(line)]
    if not starts:
        starts = [index for index, line in enumerate(lines) if _is_first(line)][:1]
    for start, end in pairwise([*starts, len(lines)]):
        yield lines[start:end]


def _is_first(line: str) -> bool:
    stripped = line.strip()
    pair = _pair(stripped)
    return (pair is not None and pair[0] in _TOP) or _GPU.fullmatch(stripped) is not None


def _pair(line: str) -> tuple[str, str] | None:
    """Key and value of `Power Draw   : 55.63 W`; None for a heading.

    The blank before the colon may be missing: 610's longest key, `Memory Max Operating T.Limit Temp Specification`,
    fills its column.
    """
    key, colon, value = f"{line} ".partition(": ")
    return (key.rstrip(), value.strip()) if colon and key else None


def _parse(lines: list[str]) -> Log:
    top: list[Line] = []
    gpus: list[tuple[str, list[Line]]] = []
    stack: list[tuple[int, str]] = []
    base = -1
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if not stripped or len(stripped) > _MAX_LINE or _BANNER.search(stripped):
            continue
        if number == len(lines) and not stripped.endswith(_UNITS):
            # A last line without an end may be cut: `1234` may have been `12345`. A unit shows that it is whole.
            continue
        indent = len(line) - len(line.lstrip())
        header = _GPU.fullmatch(stripped)
        pair = _pair(stripped)
        if header:
            gpus.append((header[1], []))
            base, stack = indent, []
        elif indent > base and gpus:
            while stack and stack[-1][0] >= indent:
                stack.pop()
            stack = stack[:_MAX_DEPTH]
            key, value = pair or (stripped, None)
            stack.append((indent, key.lower()))
            gpus[-1][1].append(Line("/".join(name for _, name in stack), value))
        elif not gpus and pair:
            top.append(Line(pair[0].lower(), pair[1]))
        elif gpus:
            break
    return Log(Listing(tuple(top)), tuple(Listing(tuple(found), bus_id) for bus_id, found in gpus))
