"""`nvidia-smi -q -x`. Only the root element is handed to the parser: what stands before it is not.

Entities can be declared in a document type only, and that stands before the root, so that no entity can grow or fetch
anything here; nvidia-smi writes none.
"""

from __future__ import annotations

from itertools import pairwise
from xml.parsers import expat

from remediate.errors import DocumentError
from remediate.gpu.reports.listing import MAX_RUNS, Line, Listing, Log

_ROOT = "nvidia_smi_log"
_END = f"</{_ROOT}>"
_MAX_DEPTH = 32
_MAX_TAG = 100
_GPU_DEPTH = 2


def find_logs(text: str, name: str) -> tuple[Log, ...]:
    """The latest runs in a text, in order. One that breaks off gives what was closed before.

    Raises:
        DocumentError: it uses entities, or is not formed as nvidia-smi's.
    """
    return tuple(_parse(part, name) for part in _split(text)[-MAX_RUNS:])


def _split(text: str) -> list[str]:
    """The text from each root element to its end, or to the next one where that is missing."""
    starts = []
    position = text.find(f"<{_ROOT}")
    while position >= 0:
        starts.append(position)
        position = text.find(f"<{_ROOT}", position + 1)
    parts = []
    for start, following in pairwise([*starts, len(text)]):
        end = text.find(_END, start, following)
        parts.append(text[start : following if end < 0 else end + len(_END)])
    return parts


def _parse(text: str, name: str) -> Log:
    collector = _Collector(name)
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = collector.start
    parser.EndElementHandler = collector.end
    parser.CharacterDataHandler = collector.characters
    is_cut = False
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        if error.code == expat.errors.codes[expat.errors.XML_ERROR_UNDEFINED_ENTITY]:
            raise DocumentError(
                f"`{name}` uses an XML entity", cause="nvidia-smi writes none, so the file was tampered with"
            ) from error
        is_cut = True
    return collector.log(is_cut)


class _Open:
    """An element that is not closed yet."""

    __slots__ = ("index", "lines", "parts", "path")

    def __init__(self, lines: list[Line], index: int, path: str) -> None:
        self.lines = lines
        self.index = index
        self.path = path
        self.parts: list[str] = []


class _Collector:
    """Receives what expat finds. A value counts once its element is closed, so that no cut number is taken."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._top: list[Line] = []
        self._gpus: list[tuple[str, list[Line]]] = []
        self._open: list[_Open] = []
        self._tag_below_root = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        depth = len(self._open)
        if depth >= _MAX_DEPTH or len(tag) > _MAX_TAG:
            raise DocumentError(
                f"`{self._name}` is nested too deep, or has tags that are too long",
                cause="nvidia-smi writes fewer than 10 levels, and tags of at most 60 characters",
            )
        if depth == 1 and tag == "gpu":
            self._gpus.append((attributes.get("id", ""), []))
        if depth == 1:
            self._tag_below_root = tag
        is_gpu = depth >= 1 and self._tag_below_root == "gpu"
        lines = self._gpus[-1][1] if is_gpu else self._top
        parent = self._open[-1].path if depth > (_GPU_DEPTH if is_gpu else 1) else ""
        path = f"{parent}/{tag.lower()}" if parent else tag.lower()
        self._open.append(_Open(lines, len(lines), path))
        if depth >= (_GPU_DEPTH if is_gpu else 1):
            lines.append(Line(path, None))

    def characters(self, text: str) -> None:
        """Text of the innermost element."""
        self._open[-1].parts.append(text)

    def end(self, tag: str) -> None:
        """An element ends; one without elements in it has a value."""
        del tag
        element = self._open.pop()
        if len(element.lines) == element.index + 1:
            element.lines[element.index] = Line(element.path, "".join(element.parts).strip())

    def log(self, is_cut: bool) -> Log:
        """All that was collected."""
        gpus = tuple(Listing(tuple(lines), bus_id, is_xml=True) for bus_id, lines in self._gpus)
        return Log(Listing(tuple(self._top), is_xml=True), gpus, is_cut)
