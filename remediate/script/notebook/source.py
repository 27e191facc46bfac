"""A notebook as one script: the code cells below each other, and edits mapped back into the cells' strings."""

from __future__ import annotations

import ast
import codecs
import json
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property

import msgspec

from remediate.script.facts import CellLines
from remediate.script.notebook.document import Cell, read_cells
from remediate.script.notebook.magics import mask
from remediate.script.source import Edit, Source, SourceError

BETWEEN = "pass\n"
"""Stands between two cells. A statement, so that nothing that looks at comments or blank lines reaches from one cell
into another, and so that the place behind a cell's last line is another one than that before the next cell's first."""


class Placed(msgspec.Struct, frozen=True):
    """A cell in the script: `start` to `end` in its text, without what was put between."""

    cell: Cell
    start: int
    end: int


class NotebookSource(Source, frozen=True, dict=True, kw_only=True):
    """A decoded notebook. `text` is the script; `raw` and `document` are the file.

    Attributes:
        document: the decoded JSON.
        placed: the cells, in order.
        is_ascii: other characters are written as escapes.
    """

    document: str
    placed: tuple[Placed, ...]
    is_ascii: bool

    @property
    def compile_flags(self) -> int:
        """IPython runs `await` at the top level of a cell."""
        return ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    @property
    def cells(self) -> tuple[CellLines, ...]:
        """Which lines of the script belong to which cell, and to which lines of the file."""
        found = []
        for item in self.placed:
            first, last = self.line_of(item.start), self.line_of(item.end)
            starts = [max(self.line_starts[line - 1], item.start) for line in range(first, last + 1)]
            lines = tuple(self._document_line(item, start - item.start) for start in starts)
            found.append(CellLines(item.cell.number, first, lines))
        return tuple(found)

    def _document_line(self, item: Placed, offset: int) -> int:
        place = _offset_in_document(item.cell, offset)
        return 0 if place is None else bisect_right(self._document_starts, place)

    @cached_property
    def _document_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.document))]

    def reread(self, content: bytes) -> Source:
        """The same file with other bytes."""
        return decode_notebook(content)

    def splice(self, edits: Iterable[Edit]) -> bytes:
        """The notebook's bytes with the edits made in the cells' strings; every byte outside of them stays.

        Raises:
            SourceError: edits overlap, or one of them reaches over the edge of a cell.
        """
        pieces = []
        at = 0
        for edit in sorted(edits):
            start, end, text = self._in_document(edit)
            if start < at:
                raise SourceError("two edits overlap", self.line_of(edit.start))
            pieces += [self.document[at:start], text]
            at = end
        changed = "".join([*pieces, self.document[at:]])
        return self.raw[: self.bom] + changed.encode()

    def _in_document(self, edit: Edit) -> tuple[int, int, str]:
        item = self._placed_at(edit.start)
        start, end, text = edit.start - item.start, edit.end - item.start, edit.text
        length = item.end - item.start
        source = item.cell.text
        is_behind = end > length
        if end > length + 1 or (is_behind and (not source or source.endswith("\n"))):
            raise SourceError("the edit reaches over the edge of a cell", self.line_of(edit.start))
        if is_behind:
            # The line end behind the last line is not in the file: it comes before new lines, and goes with old ones.
            end = length
            kept = text.removesuffix("\n")
            text = text if kept.endswith("\n") else kept
            if start > length:
                start, text = length, "\n" + text
            elif not text and start > 1 and source[start - 1] == "\n":
                start -= 1
        return self._spell(item.cell, start, end, text)

    def _placed_at(self, offset: int) -> Placed:
        index = bisect_right(self.placed, offset, key=lambda item: item.start) - 1
        if index < 0 or not self.placed[index].cell.pieces:
            raise SourceError("there is no code to edit at that place")
        return self.placed[index]

    def _spell(self, cell: Cell, start: int, end: int, text: str) -> tuple[int, int, str]:
        """The range in the document and the JSON text for it."""
        length = len(cell.text)
        first, last = _offset_in_document(cell, start), _offset_in_document(cell, end)
        if first is None or last is None:
            raise SourceError("there is no code to edit at that place")
        if not text and end == length > start:
            first = _end_of_piece_before(cell, start) or first
        spelled = json.dumps(text, ensure_ascii=self.is_ascii)[1:-1]
        if cell.separator:
            lines = re.findall(r"[^\n]*\n|[^\n]+", text)
            if text.endswith("\n") and end < length:
                lines.append("")
            quoted = (json.dumps(line, ensure_ascii=self.is_ascii)[1:-1] for line in lines)
            spelled = f'"{cell.separator}"'.join(quoted)
        return first, last, spelled


def decode_notebook(raw: bytes) -> NotebookSource:
    """Read a notebook's code.

    Raises:
        SourceError: no UTF-8, no notebook of nbformat 4, or a cell that is no Python; the line is that of the file.
    """
    bom = len(codecs.BOM_UTF8) if raw.startswith(codecs.BOM_UTF8) else 0
    try:
        document = raw[bom:].decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"it is not utf-8 text: {error.reason}", raw[: bom + error.start].count(b"\n") + 1) from error
    pieces: list[str] = []
    placed: list[Placed] = []
    at = 0
    for cell in read_cells(document):
        masked = mask(cell.text)
        if masked is None:
            continue
        _check(cell, masked, document)
        if placed:
            between = BETWEEN if not pieces[-1] or pieces[-1].endswith("\n") else "\n" + BETWEEN
            pieces.append(between)
            at += len(between)
        placed.append(Placed(cell, at, at + len(masked)))
        pieces.append(masked)
        at += len(masked)
    return NotebookSource(
        raw=raw,
        text="".join(pieces),
        encoding="utf-8",
        bom=bom,
        document=document,
        placed=tuple(placed),
        is_ascii=document.isascii() and "\\u" in document,
    )


def _check(cell: Cell, masked: str, document: str) -> None:
    """Refuse a cell that alone is no Python: together with the next one it might be, and mean something else."""
    problem, line = "", 1
    try:
        masked.encode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(masked)
    except SyntaxError as error:
        problem, line = f"does not parse: {error.msg}", error.lineno or 1
    except (RecursionError, MemoryError):
        problem = "is nested too deeply to be parsed"
    except ValueError as error:
        problem = f"does not parse: {error}"
    if problem:
        starts = [0, *(match.end() for match in re.finditer("\n", cell.text))]
        place = _offset_in_document(cell, starts[min(line, len(starts)) - 1]) or 0
        raise SourceError(f"line {line} of cell {cell.number} {problem}", document.count("\n", 0, place) + 1)


def _offset_in_document(cell: Cell, offset: int) -> int | None:
    """Where a character of a cell stands; at the edge of two strings in the later one."""
    for piece in cell.pieces:
        if offset < len(piece.text):
            return piece.offsets[offset]
        offset -= len(piece.text)
    return cell.pieces[-1].offsets[-1] if cell.pieces and offset == 0 else None


def _end_of_piece_before(cell: Cell, offset: int) -> int | None:
    """The end of the string before the one that begins at `offset`, so that no empty string is left there."""
    for before, piece in zip(cell.pieces, cell.pieces[1:], strict=False):
        offset -= len(before.text)
        if offset == 0 and piece.text:
            return before.offsets[-1]
    return None
