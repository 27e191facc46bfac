"""How a scan reads: on a terminal, as diffs, as documents."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from remediate.cli.console import Console
from remediate.cli.report import plural, print_choices, print_finding, print_withheld
from remediate.cli.session import print_document
from remediate.scanning import SUBJECT, Scan

_SECONDS_BETWEEN = 0.1
_UNWRAPPED = 10_000
"""Width of what no person reads in a window: a log keeps each finding on one line, so that it can be searched."""


class Counter:
    """How far a scan is: one line on a terminal that is overwritten, and nothing anywhere else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_shown = stream.isatty()
        self._last = 0.0

    def __call__(self, done: int, total: int, what: str) -> None:
        """Say it, but not more often than anybody reads."""
        now = time.monotonic()
        if self._is_shown and now - self._last >= _SECONDS_BETWEEN:
            self._last = now
            self._stream.write(f"\r\x1b[K{done} of {plural(total, 'file')} {what}")
            self._stream.flush()

    def clear(self) -> None:
        """Leave the line empty."""
        if self._is_shown and self._last:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def print_scan(made: Scan, *, has_fixed: bool) -> None:
    """Choices, one line a finding, what is held back, and a summary. Wrapped on a terminal only."""
    console = Console()
    if not console.stream.isatty():
        console.width = _UNWRAPPED
    print_choices(console, made.choices)
    if made.findings:
        console.line()
    for finding in made.findings:
        print_finding(console, finding, with_reason=False)
    print_withheld(console, made.withheld)
    console.line()
    console.text(_summary(made), style="bold")
    if made.changes and not has_fixed:
        files = plural(len(made.changes), "file")
        console.text(f"{files} can be patched: `remediate scan --diff` shows how, `--fix` does it.", style="dim")
    if made.findings:
        console.text("`remediate explain CODE` says more about a code.", style="dim")


def _summary(made: Scan) -> str:
    looked = f"{plural(made.scripts, 'inference script')} in {plural(made.looked_at, 'file')}"
    advice = sum(finding.is_advice for finding in made.findings)
    parts = [
        plural(made.differences, "difference") if made.differences else "",
        f"{plural(made.unknowns, 'thing')} that could not be judged" if made.unknowns else "",
        f"{plural(advice, 'piece')} of advice" if advice else "",
    ]
    found = ", ".join(part for part in parts if part) or "nothing to say"
    return f"{looked}: {found}."


def print_diffs(made: Scan) -> None:
    """The changes as unified diffs on standard output, and how many on standard error."""
    console = Console()
    for change in made.changes:
        console.diff(_with_folders(change.diff, change.target), indent=0)
    Console(sys.stderr).text(f"{plural(len(made.changes), 'file')} would be patched.")


def _with_folders(diff: str, name: str) -> str:
    """The diff with the whole relative name in its head, so that `patch -p1` finds the file."""
    short = name.rpartition("/")[2]
    lines = diff.splitlines(keepends=True)
    for number, line in enumerate(lines):
        for mark, side in (("--- ", "a/"), ("+++ ", "b/")):
            if line.startswith(f"{mark}{side}{short}"):
                lines[number] = f"{mark}{side}{name}{line[len(mark) + len(side) + len(short) :]}"
    return "".join(lines)


def write_document(made: Scan, form: str) -> None:
    """The findings in a format for programs, on standard output."""
    if form == "github":
        from remediate.script.scan.github import workflow_commands

        print_document(workflow_commands(made.judged).encode("utf-8", "backslashreplace"))
    elif form == "sarif":
        print_document(_sarif(made))
    else:
        print_document(_json(made))


def _sarif(made: Scan) -> bytes:
    import msgspec

    from remediate._version import __version__
    from remediate.registry import subject_named
    from remediate.script.scan.sarif import sarif

    document = sarif(made.judged, subject_named(SUBJECT).explanations(), __version__)
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _json(made: Scan) -> bytes:
    from remediate.documents import encode
    from remediate.scanning import document_of

    return encode(document_of(made))
