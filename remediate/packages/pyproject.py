"""Pins into `pyproject.toml`: the strings of its dependency lists, through tomlkit, so that all else stays.

Read are `[project.dependencies]`, `[project.optional-dependencies]` (both of the pyproject.toml standard, PEP 621) and
`[dependency-groups]` (PEP 735). Each string is a requirement as pip's files have it. tomlkit is imported only when
something is to be edited: it costs more than a whole plan may.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from remediate.packages.render import Edit, Obstacle, Rendered, Wanted, comment_text, render_pins
from remediate.packages.requirements import RequirementsError, parse

_LISTS: tuple[tuple[str, ...], ...] = (("project", "dependencies"),)
_TABLES_OF_LISTS: tuple[tuple[str, ...], ...] = (("project", "optional-dependencies"), ("dependency-groups",))


class _Statement(msgspec.Struct, frozen=True):
    """One requirement: the keys that lead to its list, and its place in it."""

    keys: tuple[str, ...]
    index: int
    text: str


def check_pyproject(content: bytes, place: str) -> bool:
    """Whether the file states dependencies in a form that is edited here.

    Raises:
        RequirementsError: it is not TOML, or a dependency is no requirement.
    """
    document = _load(content, place)
    for statement in _statements(document):
        parse(statement.text.encode(), place)
    return ("project" in document and "dependencies" not in _dynamic(document)) or any(_statements(document))


def render_pyproject(
    content: bytes,
    place: str,
    wanted: Mapping[str, Wanted],
    *,
    environment: Mapping[str, str] | None = None,
    only_contradictions: bool = False,
) -> Rendered:
    """Rewrite the governed strings as `name[extras]==version; marker`; comments and layout stay.

    Args:
        only_contradictions: a range that contains the wanted version stays.
    """
    text = content.decode("utf-8")
    changed: list[tuple[_Statement, str]] = []
    edits: list[Edit] = []
    obstacles: list[Obstacle] = []
    settled: set[str] = set()
    for statement in _statements(_load(content, place)):
        one = render_pins(
            parse(statement.text.encode(), place),
            {name: msgspec.structs.replace(wish, reason="") for name, wish in wanted.items()},
            environment=environment,
            is_constraints=only_contradictions,
        )
        settled |= one.settled
        line = _line_of(text, statement.text)
        obstacles += (msgspec.structs.replace(found, line=line) for found in one.obstacles)
        edits += (msgspec.structs.replace(found, line=line) for found in one.edits)
        if one.edits:
            changed.append((statement, one.content.decode("utf-8")))
    after = _replace(text, changed).encode() if changed else content
    return Rendered(after, tuple(edits), tuple(obstacles), frozenset(settled))


def add_to_pyproject(content: bytes, place: str, wanted: Mapping[str, Wanted], names: Iterable[str]) -> Rendered:
    """Append pins to `[project.dependencies]`; an obstacle where the file has no such list of its own."""
    missing = sorted(names)
    if not missing:
        return Rendered(content)
    document = _load(content, place)
    if "project" not in document or "dependencies" in _dynamic(document):
        because = "it has no `[project.dependencies]` of its own"
        return Rendered(content, obstacles=tuple(Obstacle(name, place, 0, because) for name in missing))
    return Rendered(_append(content.decode("utf-8"), wanted, missing).encode(), tuple(map(Edit, missing)))


def _load(content: bytes, place: str) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequirementsError(f"`{place}` is not TOML", cause=str(error), hint="correct the file") from error


def _dynamic(document: Mapping[str, Any]) -> Iterable[str]:
    project = document.get("project")
    dynamic = project.get("dynamic", ()) if isinstance(project, dict) else ()
    return dynamic if isinstance(dynamic, list) else ()


def _statements(document: Mapping[str, Any]) -> Iterator[_Statement]:
    for keys in _LISTS:
        yield from _strings(keys, _at(document, keys))
    for keys in _TABLES_OF_LISTS:
        table = _at(document, keys)
        for name, items in table.items() if isinstance(table, dict) else ():
            yield from _strings((*keys, name), items)


def _strings(keys: tuple[str, ...], items: Any) -> Iterator[_Statement]:
    """A group may also hold tables, which include another group."""
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, str):
            yield _Statement(keys, index, item)


def _at(document: Any, keys: Iterable[str]) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _line_of(text: str, statement: str) -> int:
    """Line of the string, from 1; 0 where it is written in another way (escapes, several lines)."""
    found = [place for quote in "\"'" if (place := text.find(f"{quote}{statement}{quote}")) >= 0]
    return text.count("\n", 0, min(found)) + 1 if found else 0


def _replace(text: str, changed: Iterable[tuple[_Statement, str]]) -> str:
    import tomlkit
    from tomlkit.items import String

    document = tomlkit.parse(text)
    for statement, after in changed:
        items = _tomlkit_at(document, statement.keys)
        former = items[statement.index]
        is_literal = isinstance(former, String) and former.as_string().startswith("'")
        # A marker may hold quotes of the kind that the string is written in; then it changes its own.
        items[statement.index] = tomlkit.string(after, literal=is_literal and "'" not in after)
    return tomlkit.dumps(document)


def _append(text: str, wanted: Mapping[str, Wanted], names: Iterable[str]) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    project: Any = document["project"]
    if "dependencies" not in project:
        project["dependencies"] = tomlkit.array()
    items = project["dependencies"]
    is_multiline = "\n" in items.as_string() or not len(items)
    for name in names:
        pin = f"{name}=={wanted[name].version}"
        if is_multiline:
            items.add_line(pin, comment=comment_text(wanted[name].reason) or None, indent=_indent(items.as_string()))
        else:
            items.append(pin)
    if is_multiline and not items.as_string().rstrip("]").endswith("\n"):
        items.add_line(indent="")
    return tomlkit.dumps(document)


def _indent(array: str) -> str:
    """That of the last line with an item; two blanks where there is none."""
    lines = [line for line in array.splitlines()[1:] if line.strip() and not line.strip().startswith("]")]
    return lines[-1][: len(lines[-1]) - len(lines[-1].lstrip())] if lines else "  "


def _tomlkit_at(document: Any, keys: Iterable[str]) -> Any:
    for key in keys:
        document = document[key]
    return document
