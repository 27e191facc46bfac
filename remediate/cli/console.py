"""What a person sees: colours that meaning survives without, wrapped text, and nothing that a terminal would obey.

Every text is made harmless here, for it may come from a profile, a script or a command's output: control characters,
escape sequences and bidirectional overrides are shown as their code, never sent.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TextIO

from remediate.errors import RemediateError
from remediate.model import Outcome, Risk

MAX_WIDTH = 100
"""Longer lines are hard to read; commands and diffs are never wrapped."""

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "magenta": "35", "cyan": "36"}
MARKS = {
    Outcome.SAME: ("=", "green"),
    Outcome.DIFFERS: ("~", "magenta"),
    Outcome.UNSUPPORTED: ("!", "magenta"),
    Outcome.UNKNOWN: ("?", "magenta"),
}
RISK_WORDS = {
    Risk.SAFE: "safe: the file is backed up",
    Risk.ROOT: "needs root",
    Risk.DISRUPTIVE: "disruptive",
    Risk.UNSAFE: "unsafe: may change what the script means",
}


def harmless(text: str) -> str:
    r"""`text` with everything that a terminal would obey shown as its code: `\x1b[31m`. Line ends and tabs stay."""
    return _UNSAFE.sub(lambda match: _code(match[0]), text)


def _code(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number <= 0xFF else f"\\u{number:04x}"  # noqa: PLR2004 (one byte)


def one_line(text: str) -> str:
    """Harmless, with runs of blanks and line ends as one blank."""
    return harmless(" ".join(text.split()))


class Console:
    """Writes to one stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.colour = _wants_colour(self.stream)
        self.width = min(shutil.get_terminal_size().columns, MAX_WIDTH)

    def paint(self, text: str, *styles: str) -> str:
        """`text` in colour where the stream shows it."""
        if not self.colour or not text:
            return text
        codes = ";".join(_COLOURS[style] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def line(self, text: str = "", *styles: str, indent: int = 0) -> None:
        """One line, not wrapped."""
        self._write(" " * indent + self.paint(harmless(text), *styles) if styles else " " * indent + harmless(text))

    def heading(self, text: str) -> None:
        """An empty line and a bold one."""
        self._write("")
        self._write(self.paint(harmless(text), "bold"))

    def rule(self, text: str) -> None:
        """A bold line with a line of dashes below it, to part the steps of something long."""
        for line in wrap(one_line(text), self.width):
            self._write(self.paint(line, "bold"))
        self._write(self.paint("-" * min(len(text), self.width), "dim"))

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns as wide as their widest entry; the last one is wrapped within its column."""
        clean = [[one_line(cell) for cell in row] for row in rows]
        widths = [max(len(row[column]) for row in [list(head), *clean]) for column in range(len(head))]
        lead = sum(widths[:-1]) + 2 * len(widths)
        for row in [list(head), *clean]:
            cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)]
            last = wrap(row[-1], self.width - lead)
            line = "  " + "  ".join([*cells, last[0]])
            self._write(self.paint(line, "dim") if row == list(head) else line)
            for rest in last[1:]:
                self._write(" " * lead + rest)

    def item(self, mark: str, colour: str, text: str, *, indent: int = 2, tail: str = "") -> None:
        """A marked entry, wrapped below its own text; `tail` is dim and stands at the end."""
        clean = one_line(text)
        full = f"{clean}  {tail}" if tail else clean
        lead = " " * indent + mark + " "
        lines = wrap(full, self.width - len(lead))
        if tail and lines[-1].endswith(tail):
            lines[-1] = lines[-1][: -len(tail)] + self.paint(tail, "dim")
        self._write(" " * indent + self.paint(mark, colour, "bold") + " " + lines[0])
        for line in lines[1:]:
            self._write(" " * len(lead) + line)

    def text(self, text: str, *, indent: int = 0, style: str = "") -> None:
        """A paragraph, wrapped."""
        for line in wrap(one_line(text), self.width - indent):
            self._write(" " * indent + (self.paint(line, style) if style else line))

    def labelled(self, label: str, text: str, *, indent: int = 0, style: str = "") -> None:
        """`label: text`, wrapped so that the text stays in its own column."""
        lead = f"{' ' * indent}{label} "
        lines = wrap(one_line(text), self.width - len(lead)) or [""]
        painted = (self.paint(line, style) if style else line for line in lines)
        for number, line in enumerate(painted):
            self._write((f"{' ' * indent}{self.paint(label, 'dim')} " if number == 0 else " " * len(lead)) + line)

    def diff(self, text: str, *, indent: int = 2) -> None:
        """A unified diff, its lines coloured as usual."""
        for line in harmless(text).splitlines():
            styles = ("bold",) if line.startswith(("---", "+++")) else _diff_style(line)
            self._write(" " * indent + self.paint(line, *styles) if styles else " " * indent + line)

    def _write(self, line: str) -> None:
        encoding = self.stream.encoding or "utf-8"
        self.stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` characters; a longer word stays whole, for it may have to be copied."""
    return textwrap.wrap(text, max(width, 20), break_long_words=False, break_on_hyphens=False) or [""]


def print_error(error: RemediateError) -> None:
    """What happened, why, what to do next; each part on its own line, on standard error."""
    console = Console(sys.stderr)
    console.stream.write(console.paint("error:", "red", "bold") + f" {harmless(error.what)}\n")
    _print_part(console, "cause", error.cause.splitlines())
    _print_part(console, "hint", error.hint.splitlines())


def _print_part(console: Console, label: str, lines: Iterable[str]) -> None:
    for number, line in enumerate(lines):
        lead = f"  {label}: " if number == 0 else " " * (len(label) + 4)
        console.stream.write(f"{lead}{harmless(line.strip())}\n")


def _diff_style(line: str) -> tuple[str, ...]:
    return {"+": ("green",), "-": ("red",), "@": ("cyan",)}.get(line[:1], ())


def _wants_colour(stream: TextIO) -> bool:
    """https://no-color.org: a non-empty NO_COLOR turns colour off; FORCE_COLOR turns it on for a pipe."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"
