"""A Python file's bytes and its text side by side, so that text positions can be cut in the bytes.

The parser counts columns in UTF-8 bytes of each line, whatever the file's own encoding is; an edit must land in the
file's bytes. Nothing is ever re-encoded: an edited file is the old bytes with some ranges replaced.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property

import msgspec

from remediate.script.facts import CellLines

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_LINE_BREAK_BYTES = re.compile(rb"\r\n|\r|\n")


class SourceError(ValueError):
    """The bytes are not readable as Python text.

    Attributes:
        problem: one line for a person.
        line: first line concerned, from 1; 0 when no line is to blame.
    """

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


class Edit(msgspec.Struct, frozen=True, order=True):
    """Replace the characters `start` to `end` of a source's text by `text`; equal offsets insert."""

    start: int
    end: int
    text: str


class Source(msgspec.Struct, frozen=True, dict=True):
    """A decoded file.

    Attributes:
        raw: the file's bytes, all of them.
        text: decoded, without the byte order mark; line endings as they are.
        encoding: codec of the bytes after the byte order mark.
        bom: length of the byte order mark in bytes: 0 or 3.
    """

    raw: bytes
    text: str
    encoding: str
    bom: int

    @property
    def compile_flags(self) -> int:
        """For `compile`: what the place that the code runs in allows beside plain Python."""
        return 0

    @property
    def cells(self) -> tuple[CellLines, ...]:
        """Of a notebook: where its code cells stand."""
        return ()

    def reread(self, content: bytes) -> Source:
        """The same file with other bytes.

        Raises:
            SourceError: as `decode`.
        """
        return decode(content)

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Offset in `text` of each line; the parser's lines end at CR LF, CR or LF and nowhere else."""
        return (0, *(match.end() for match in _LINE_BREAK.finditer(self.text)))

    @cached_property
    def _byte_starts(self) -> tuple[int, ...]:
        body = self.raw[self.bom :]
        return (self.bom, *(match.end() + self.bom for match in _LINE_BREAK_BYTES.finditer(body)))

    @cached_property
    def newline(self) -> str:
        """The line ending that most lines have; LF for a file of one line."""
        found = _LINE_BREAK.findall(self.text)
        return max(("\n", "\r\n", "\r"), key=found.count) if found else "\n"

    @property
    def newline_style(self) -> str:
        """`LF`, `CRLF`, `CR` or `mixed`, for the facts."""
        found = set(_LINE_BREAK.findall(self.text)) or {"\n"}
        return {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}[found.pop()] if len(found) == 1 else "mixed"

    def line_of(self, offset: int) -> int:
        """Line number, from 1, of a text offset."""
        return bisect_right(self.line_starts, offset)

    def line_start(self, line: int) -> int:
        """Text offset of the first character of a line; of the end of the text when there is no such line."""
        return self.line_starts[line - 1] if line <= len(self.line_starts) else len(self.text)

    def line_text(self, line: int) -> str:
        """A line without its line ending."""
        return self.text[self.line_start(line) : self.line_start(line + 1)].rstrip("\r\n")

    def offset(self, line: int, column: int) -> int:
        """Text offset of a parser position: `line` from 1, `column` in UTF-8 bytes from 0."""
        start = self.line_start(line)
        head = self.text[start : start + column]
        if head.isascii():
            return start + column
        return start + len(self.text[start : self.line_start(line + 1)].encode()[:column].decode())

    def byte_offset(self, offset: int) -> int:
        """Position in `raw` of a text offset.

        Raises:
            SourceError: the encoding does not let a position inside of that line be found.
        """
        line = self.line_of(offset)
        if len(self._byte_starts) != len(self.line_starts):
            raise SourceError(f"line endings are not plain in the encoding {self.encoding}", line)
        column = offset - self.line_start(line)
        start = self._byte_starts[line - 1]
        if self.encoding in ("utf-8", "ascii"):
            return start + len(self.text[self.line_start(line) : offset].encode())
        return start + self._encoded_length(start, column, line)

    def _encoded_length(self, start: int, column: int, line: int) -> int:
        decoder = codecs.getincrementaldecoder(self.encoding)()
        decoded = 0
        for length, byte in enumerate(self.raw[start:]):
            if decoded == column:
                return length
            decoded += len(decoder.decode(bytes([byte])))
        if decoded == column:
            return len(self.raw) - start
        raise SourceError(f"a character can't be found in the encoding {self.encoding}", line)

    def splice(self, edits: Iterable[Edit]) -> bytes:
        """The file's bytes with the edits made; every byte outside of their ranges stays.

        Raises:
            SourceError: edits overlap, or the encoding lacks a character of the new text.
        """
        pieces = []
        at = 0
        for edit in sorted(edits):
            start, end = self.byte_offset(edit.start), self.byte_offset(edit.end)
            if start < at:
                raise SourceError("two edits overlap", self.line_of(edit.start))
            try:
                pieces += [self.raw[at:start], edit.text.encode(self.encoding)]
            except UnicodeEncodeError as error:
                raise SourceError(f"{self.encoding} lacks a character of the new text") from error
            at = end
        return b"".join([*pieces, self.raw[at:]])


def _first_lines(raw: bytes) -> Iterator[bytes]:
    """The two lines that may hold a coding cookie; a lone CR ends a line for the interpreter too."""
    for line in _LINE_BREAK_BYTES.split(raw, maxsplit=2)[:2]:
        yield line + b"\n"


def decode(raw: bytes) -> Source:
    """Decode a Python file as the interpreter would: byte order mark, coding cookie (PEP 263), else UTF-8.

    Raises:
        SourceError: binary, an unknown coding cookie, or bytes that the encoding does not allow.
    """
    import tokenize

    if b"\0" in raw:
        raise SourceError("it holds NUL bytes, so it is not Python text", raw[: raw.index(b"\0")].count(b"\n") + 1)
    try:
        name, _ = tokenize.detect_encoding(_first_lines(raw).__next__)
    except SyntaxError as error:
        problem = str(error.msg)
        is_undeclared = problem.startswith("invalid or missing")
        raise SourceError("it is not utf-8 and names no encoding" if is_undeclared else problem, 1) from error
    bom = len(codecs.BOM_UTF8) if name == "utf-8-sig" else 0
    encoding = "utf-8" if bom else name
    try:
        text = raw[bom:].decode(encoding)
    except UnicodeDecodeError as error:
        line = len(_LINE_BREAK_BYTES.findall(raw[: bom + error.start])) + 1
        raise SourceError(f"it is not {encoding} text: {error.reason}", line) from error
    except LookupError as error:
        raise SourceError(str(error), 1) from error
    return Source(raw, text, encoding, bom)
