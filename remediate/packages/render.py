"""Pins into requirements files: the governed lines change, every other byte stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from packaging.specifiers import SpecifierSet

from remediate.packages.names import contains, is_same_version
from remediate.packages.requirements import Document, Line, LineKind

_EXACT = ("==", "===")
_CLAUSE_ENDS = (". ", "; ", ": ")


class Wanted(msgspec.Struct, frozen=True):
    """How a distribution is to be written.

    Attributes:
        version: exact version, without a local part.
        reason: becomes the comment of a line that has none.
        is_required: added where no line has it.
    """

    version: str
    reason: str = ""
    is_required: bool = True


class Edit(msgspec.Struct, frozen=True):
    """A line that changes, or is added (`line` 0); `was` is what it says now about the distribution."""

    name: str
    line: int = 0
    was: str = ""


class Obstacle(msgspec.Struct, frozen=True):
    """A line that should be pinned and is left as it is, and why."""

    name: str
    place: str
    line: int
    because: str


class Rendered(msgspec.Struct, frozen=True):
    """A file's new text and what it came to.

    Attributes:
        content: the bytes; equal to the former ones when nothing had to change.
        edits: lines that change or are added.
        obstacles: lines that were left alone.
        settled: names that the file states in a line that holds for the target.
    """

    content: bytes
    edits: tuple[Edit, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    settled: frozenset[str] = frozenset()


class _Work(msgspec.Struct):
    edits: list[Edit] = []
    obstacles: list[Obstacle] = []
    settled: set[str] = msgspec.field(default_factory=set)


def render_pins(
    document: Document,
    wanted: Mapping[str, Wanted],
    *,
    environment: Mapping[str, str] | None = None,
    is_constraints: bool = False,
) -> Rendered:
    """Rewrite the lines of `wanted` names as `name[extras]==version ; marker  # reason`.

    Name and extras stay as written, and so does a comment. A line whose marker is false in `environment` is for
    another machine and stays. In a constraints file only what contradicts is changed. What can't be rewritten (a
    direct URL, a line with hashes) is an obstacle.
    """
    work = _Work()
    text = "".join(
        _render_line(line, document, wanted, work, environment, is_constraints=is_constraints)
        for line in document.lines
    )
    return Rendered(document.encode(text), tuple(work.edits), tuple(work.obstacles), frozenset(work.settled))


def add_pins(document: Document, wanted: Mapping[str, Wanted], names: Iterable[str], profile: str) -> Rendered:
    """Append pins for `names` below one comment line that says where they come from.

    A file with hashes is an obstacle: pip refuses it when one requirement has none.
    """
    missing = sorted(names)
    text = "".join(line.raw for line in document.lines)
    if not missing:
        return Rendered(document.encode(text))
    if document.is_hashed:
        because = "the file holds every requirement by hashes, and a line without them would make pip refuse it"
        return Rendered(
            document.encode(text), obstacles=tuple(Obstacle(name, document.place, 0, because) for name in missing)
        )
    newline = document.newline
    header = f"# added by remediate: profile {profile}"
    if text and not text.endswith(("\n", "\r")):
        text += newline
    if not any(line.raw.strip() == header for line in document.lines):
        text += header + newline
    text += "".join(f"{name}=={wanted[name].version}{_comment(wanted[name].reason)}{newline}" for name in missing)
    return Rendered(document.encode(text), tuple(map(Edit, missing)))


def is_pinned(line: Line, version: str, *, keep_local: bool) -> bool:
    """Whether the line already holds the distribution at exactly that version.

    Args:
        keep_local: a local part (`==2.1.2+cu121`) counts as that version. Only where the file or the environment
            knows a source for such builds; the package index has none.
    """
    if line.url or not line.specifier:
        return False
    clauses = list(SpecifierSet(line.specifier))
    if len(clauses) != 1 or clauses[0].operator not in _EXACT or clauses[0].version.endswith(".*"):
        return False
    return is_same_version(clauses[0].version, version) and (keep_local or "+" not in clauses[0].version)


def applies(line: Line, environment: Mapping[str, str] | None) -> bool:
    """Whether the line's marker holds in the environment. An invalid marker, or none at all, counts as true."""
    if not line.marker or environment is None:
        return True
    from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

    try:
        return Marker(line.marker).evaluate({**environment, "extra": ""})
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName):
        return True


def _render_line(
    line: Line,
    document: Document,
    wanted: Mapping[str, Wanted],
    work: _Work,
    environment: Mapping[str, str] | None,
    *,
    is_constraints: bool,
) -> str:
    wish = wanted.get(line.name)
    if wish is None or line.kind is LineKind.EMPTY or not applies(line, environment):
        return line.raw
    work.settled.add(line.name)
    if is_constraints and line.kind is LineKind.REQUIREMENT and not line.url and contains(line.specifier, wish.version):
        return line.raw
    if line.kind is LineKind.REQUIREMENT and is_pinned(line, wish.version, keep_local=document.has_sources):
        return line.raw
    because = _why_not(line)
    if because:
        work.obstacles.append(Obstacle(line.name, document.place, line.number, because))
        return line.raw
    work.edits.append(Edit(line.name, line.number, f"{line.head}{line.specifier}"))
    return _pinned_line(line, wish)


def _why_not(line: Line) -> str:
    if line.kind is not LineKind.REQUIREMENT or line.url:
        return "it names a file, folder or repository; which one has the wanted version is not known"
    if line.has_hash:
        return "its hashes belong to another version, and the line would be refused"
    return ""


def _pinned_line(line: Line, wish: Wanted) -> str:
    indent = line.raw[: len(line.raw) - len(line.raw.lstrip(" \t"))]
    marker = f" ; {line.marker}" if line.marker else ""
    options = f" {line.options}" if line.options else ""
    # A comment that stood on a line of its own may end with a backslash; behind the pin that would join the next line.
    comment = line.comment.rstrip("\\") or _comment(wish.reason)
    return f"{indent}{line.head}=={wish.version}{marker}{options}{comment}{line.ending}"


def comment_text(reason: str) -> str:
    """The reason's first clause; the whole of it stands in the profile and in the plan."""
    words = " ".join(reason.split())
    return min((words.partition(mark)[0] for mark in _CLAUSE_ENDS), key=len)


def _comment(reason: str) -> str:
    clause = comment_text(reason)
    return f"  # {clause}" if clause else ""
