"""IPython's own syntax in a cell, masked so that the rest is Python; every character keeps its place.

Magics (`%time`, `%%bash`), shell lines (`!pip install`), and help (`?name`) are described in the IPython documentation,
"Built-in magic commands" and "System shell access"; a line counts only where a statement may begin, so that a `%` that
continues an expression stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

PYTHON_CELL_MAGICS = frozenset(("time", "timeit", "capture", "prun", "memit", "mprun"))
"""Cell magics whose body is Python for the notebook's own process; any other one gives the cell to something else."""

_OWN = re.compile(r"[%!?]|\b(?:pip3?|conda|mamba|micromamba|uv)[ \t]")
_CELL_MAGIC = re.compile(r"(?:[ \t]*\n)*%%(\w+)[^\n]*")
_AUTOMAGIC = r"(?:pip3?|conda|mamba|micromamba|uv)[ \t]+[a-z]"
"""Package managers are often called without their `%`, which IPython adds by itself. Two words in a row: no Python."""

_LINE = re.compile(rf"[ \t]*(?:[%!?].*|{_AUTOMAGIC}.*|[^\n#'\"]*\?\??[ \t]*)$", re.DOTALL)
_ASSIGNED = re.compile(r"([ \t]*[\w.,* \t\[\]]+=[ \t]*)([%!].*)$")
_TIMED = re.compile(r"([ \t]*)%time[ \t](?=[ \t]*\S)")
_SHELL = re.compile(rf"[ \t]*(?:[%!?]|{_AUTOMAGIC})(?:\\\n|[^\n])*")
_LEXEME = re.compile(
    r"#[^\n]*|('''|\"\"\")|'(?:[^'\\\n]|\\.)*'?|\"(?:[^\"\\\n]|\\.)*\"?|[([{]|[)\]}]|\\\n|\n", re.DOTALL
)


def mask(source: str) -> str | None:
    """A cell's source as Python of the same length; None where the whole cell is something else (`%%bash`)."""
    if not _OWN.search(source):
        return source
    magic = _CELL_MAGIC.match(source)
    if magic is not None:
        if magic[1] not in PYTHON_CELL_MAGICS:
            return None
        source = _blank(source, magic.start(), magic.end())
    pieces, at = [], 0
    for start, end in _statement_lines(source):
        pieces += [source[at:start], _mask_line(source[start:end])]
        at = end
    return "".join([*pieces, source[at:]])


def _mask_line(line: str) -> str:
    timed = _TIMED.match(line)
    if timed is not None:
        return f"{timed[1]}0;{' ' * (timed.end() - len(timed[1]) - 2)}{line[timed.end() :]}"
    assigned = _ASSIGNED.match(line.replace("\\\n", "  "))
    if assigned is not None:
        return assigned[1] + _nothing(line[len(assigned[1]) :])
    if _LINE.match(line.replace("\\\n", "  ")):
        indent = len(line) - len(line.lstrip(" \t"))
        return line[:indent] + _nothing(line[indent:])
    return line


def _nothing(text: str) -> str:
    """An expression that does nothing, as long as `text`; continued lines stay lines."""
    return "0" + re.sub(r"[^\n]", " ", text[1:].replace("\\\n", " \n"))


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]


def _statement_lines(source: str) -> Iterator[tuple[int, int]]:
    """Start and end of each line on which a statement may begin, with the lines that a backslash continues."""
    depth = 0
    begin: int | None = 0
    at = _past_shell(source, 0)
    while match := _LEXEME.search(source, at):
        text = match[0]
        at = match.end()
        if match[1]:
            close = source.find(match[1], at)
            at = len(source) if close < 0 else close + 3
        elif text in "([{":
            depth += 1
        elif text in ")]}":
            depth = max(depth - 1, 0)
        elif text == "\n":
            if begin is not None:
                yield begin, match.start()
            begin = at if depth == 0 else None
            at = at if begin is None else _past_shell(source, at)
    if begin is not None and begin < len(source):
        yield begin, len(source)


def _past_shell(source: str, at: int) -> int:
    """Behind a line of IPython's, whose quotes and brackets are not Python's; `at` where there is none."""
    match = _SHELL.match(source, at)
    return match.end() if match else at
