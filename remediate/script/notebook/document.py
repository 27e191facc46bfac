"""A notebook's JSON with the place of every character of its code, so that code can be changed without a printer.

Format: nbformat 4 ("The Notebook file format", Jupyter documentation): `cells`, each with `cell_type` and `source`,
which is one string or a list of strings that are joined.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from remediate.script.source import SourceError

Path: TypeAlias = tuple[str | int | None, ...]

_TOKEN = re.compile(r'\s*(?:("[^"\\]*(?:\\.[^"\\]*)*")|([{}\[\],:])|([^\s{}\[\],:"]+))', re.DOTALL)
_CHARACTER = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|.", re.DOTALL)
_SOURCE_DEPTH = 3


class Piece(msgspec.Struct, frozen=True):
    """One string of a cell's source.

    Attributes:
        text: decoded.
        offsets: place in the document of each character, and of the closing quote.
    """

    text: str
    offsets: tuple[int, ...]


class Cell(msgspec.Struct, frozen=True):
    """A code cell.

    Attributes:
        number: among all cells, from 1, as a person counts them.
        pieces: the strings of its source, in order.
        separator: what stands between two strings of the list, or would; empty where the source is one string.
    """

    number: int
    pieces: tuple[Piece, ...]
    separator: str

    @property
    def text(self) -> str:
        """The cell's source."""
        return "".join(piece.text for piece in self.pieces)


def read_cells(document: str) -> tuple[Cell, ...]:
    """The code cells of a Python notebook, in order; none for another language.

    Raises:
        SourceError: no JSON, no notebook, or of a format that is not version 4.
    """
    content = _parse(document)
    _check_format(content)
    language = _language(content)
    if language and language.lower() not in ("python", "python3", "ipython"):
        return ()
    codes = [index for index, cell in enumerate(content["cells"]) if _kind(cell) == "code"]
    strings: dict[int, list[tuple[int, int]]] = {index: [] for index in codes}
    is_list: set[int] = set()
    for path, start, end in _strings(document):
        if len(path) in (_SOURCE_DEPTH, _SOURCE_DEPTH + 1) and path[0] == "cells" and path[2] == "source":
            index = path[1] if isinstance(path[1], int) else -1
            strings.get(index, []).append((start, end))
            if len(path) > _SOURCE_DEPTH:
                is_list.add(index)
    return tuple(_cell(document, index, strings[index], index in is_list) for index in codes)


def _parse(document: str) -> Any:
    try:
        return json.loads(document, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise SourceError(f"it is not JSON: {error.msg}", error.lineno) from error
    except RecursionError as error:
        raise SourceError("it is nested too deeply to be a notebook") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise SourceError("it is not a notebook: a key stands twice in one object")
    return found


def _check_format(content: Any) -> None:
    if not isinstance(content, dict) or not isinstance(content.get("nbformat"), int):
        raise SourceError("it is not a notebook: it has no `nbformat`")
    if content["nbformat"] != 4:  # noqa: PLR2004 (the format's name)
        raise SourceError(
            f"notebooks of nbformat {content['nbformat']} are not supported; `jupyter nbconvert --to notebook` writes 4"
        )
    if not isinstance(content.get("cells"), list):
        raise SourceError("it is not a notebook: it has no list of cells")


def _language(content: dict[str, Any]) -> str:
    """What the notebook says that its code is; empty when it says nothing."""
    metadata = content.get("metadata")
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        value = metadata.get(section) if isinstance(metadata, dict) else None
        named = value.get(key) if isinstance(value, dict) else None
        if isinstance(named, str):
            return named
    return ""


def _kind(cell: Any) -> str:
    kind = cell.get("cell_type") if isinstance(cell, dict) else None
    return kind if isinstance(kind, str) else ""


def _strings(document: str) -> Iterator[tuple[Path, int, int]]:
    """Path and place (quotes included) of every string value. The document is valid JSON."""
    path: list[str | int | None] = []
    in_object: list[bool] = []
    key = ""
    for match in _TOKEN.finditer(document):
        string, mark = match[1], match[2]
        if mark in ("{", "["):
            in_object.append(mark == "{")
            path.append(None if mark == "{" else 0)
        elif mark in ("}", "]"):
            in_object.pop()
            path.pop()
        elif mark == ":":
            path[-1] = key
        elif mark == ",":
            last = path[-1]
            path[-1] = last + 1 if isinstance(last, int) else None
        elif string is not None:
            if in_object and in_object[-1] and path[-1] is None:
                key = json.loads(string)
            else:
                yield tuple(path), match.start(1), match.end(1)


def _cell(document: str, index: int, strings: list[tuple[int, int]], is_list: bool) -> Cell:
    pieces = tuple(_piece(document, start, end) for start, end in strings)
    separator = ""
    if is_list and len(strings) > 1:
        separator = document[strings[0][1] : strings[1][0]]
    elif is_list:
        before = document[: strings[0][0]]
        separator = "," + before[before.rindex("[") + 1 :]
    return Cell(index + 1, pieces, separator)


def _piece(document: str, start: int, end: int) -> Piece:
    offsets = [match.start() for match in _CHARACTER.finditer(document, start + 1, end - 1)]
    text = json.loads(document[start:end])
    if len(text) != len(offsets):
        raise SourceError("a character of its code can't be placed", document[:start].count("\n") + 1)
    return Piece(text, (*offsets, end - 1))
