"""Pins into a conda `environment.yml`, line by line, so that every other byte stays.

Only the usual layout is read: a top-level `dependencies:` with one item a line, and in it one `pip:` with items of its
own, which are requirements as pip's files have them. The other items are conda's match specifications
(`pytorch=2.1.2`, `channel::name>=1`). What is laid out otherwise is left alone. There is no YAML reader: one would lose
comments and layout when it writes, and cost more than a plan may.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from remediate.packages.names import canonical, contains, is_same_version
from remediate.packages.render import Edit, Obstacle, Rendered, Wanted, comment_text, render_pins
from remediate.packages.requirements import RequirementsError, parse

_OTHER_NAMES = {"pytorch": "torch"}
"""conda's name to that of the package index, where they differ (conda-forge and pytorch channels)."""
_ITEM = re.compile(r"(?P<indent>[ ]*)-[ ]+(?P<value>.*?)(?P<ending>\r?\n|\Z)\Z", re.DOTALL)
_COMMENT = re.compile(r"\s+#.*\Z")
_SPECIFICATION = re.compile(
    r"(?P<head>(?:[\w./-]+::)?(?P<name>[A-Za-z0-9][\w.-]*))\s*(?P<operator>[=<>!~]{0,3})\s*(?P<rest>[^\[\]]*)\Z"
)


class _Item(msgspec.Struct, frozen=True):
    """An item of the dependencies: its line from 0, and its text between `before` and `after`."""

    line: int
    is_pip: bool
    indent: str
    before: str
    text: str
    after: str


def check_conda(content: bytes, place: str) -> bool:
    """Whether the file has dependencies in the layout that is read here.

    Raises:
        RequirementsError: it is not UTF-8 text.
    """
    return any(_items(_lines(content, place)))


def render_conda(
    content: bytes,
    place: str,
    wanted: Mapping[str, Wanted],
    *,
    environment: Mapping[str, str] | None = None,
    only_contradictions: bool = False,
) -> Rendered:
    """Rewrite the governed items; see `render_pyproject`. A conda item becomes `name=version`."""
    lines = _lines(content, place)
    edits: list[Edit] = []
    obstacles: list[Obstacle] = []
    settled: set[str] = set()
    bare = {name: msgspec.structs.replace(wish, reason="") for name, wish in wanted.items()}
    for item in list(_items(lines)):
        if item.is_pip:
            one = _render_pip(item, place, bare, environment, only_contradictions=only_contradictions)
        else:
            one = _render_item(item, place, bare, only_contradictions=only_contradictions)
        settled |= one.settled
        obstacles += (msgspec.structs.replace(found, line=item.line + 1) for found in one.obstacles)
        edits += (msgspec.structs.replace(found, line=item.line + 1) for found in one.edits)
        if one.edits:
            lines[item.line] = f"{item.before}{one.content.decode()}{item.after}"
    return Rendered("".join(lines).encode(), tuple(edits), tuple(obstacles), frozenset(settled))


def add_to_conda(content: bytes, place: str, wanted: Mapping[str, Wanted], names: Iterable[str]) -> Rendered:
    """Append pins to the `pip:` section; an obstacle where there is none."""
    missing = sorted(names)
    if not missing:
        return Rendered(content)
    lines = _lines(content, place)
    pip = [item for item in _items(lines) if item.is_pip]
    if not pip:
        because = "it has no `pip:` section to add it to"
        return Rendered(content, obstacles=tuple(Obstacle(name, place, 0, because) for name in missing))
    last = pip[-1]
    ending = "\r\n" if lines[0].endswith("\r\n") else "\n"
    if not lines[last.line].endswith("\n"):
        lines[last.line] += ending
    for name in reversed(missing):
        reason = comment_text(wanted[name].reason)
        comment = f"  # {reason}" if reason else ""
        lines.insert(last.line + 1, f"{last.indent}- {name}=={wanted[name].version}{comment}{ending}")
    return Rendered("".join(lines).encode(), tuple(map(Edit, missing)))


def _lines(content: bytes, place: str) -> list[str]:
    try:
        return content.decode("utf-8").splitlines(keepends=True)
    except UnicodeDecodeError as error:
        raise RequirementsError(f"`{place}` is not UTF-8 text", cause=error.reason) from error


def _items(lines: list[str]) -> Iterator[_Item]:
    """The items below the top-level `dependencies:`, in order."""
    is_inside = False
    pip_indent: int | None = None
    for number, line in enumerate(lines):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _ITEM.match(line)
        if match is None:
            is_inside = line.rstrip().split(" #")[0].rstrip() == "dependencies:"
            pip_indent = None
            continue
        if not is_inside:
            continue
        indent = len(match["indent"])
        if pip_indent is not None and indent <= pip_indent:
            pip_indent = None
        if match["value"].strip().split(" #")[0].rstrip() == "pip:":
            pip_indent = indent
            continue
        yield _item(number, line, match, is_pip=pip_indent is not None)


def _item(number: int, line: str, match: re.Match[str], *, is_pip: bool) -> _Item:
    value = match["value"]
    start = match.start("value")
    quote = value[:1] if value[:1] in "\"'" else ""
    closing = value.find(quote, 1) if quote else -1
    if closing > 0:
        text, start = value[1:closing], start + 1
    else:
        text = _COMMENT.sub("", value).rstrip()
    return _Item(number, is_pip, match["indent"], line[:start], text, line[start + len(text) :])


def _render_pip(
    item: _Item,
    place: str,
    wanted: Mapping[str, Wanted],
    environment: Mapping[str, str] | None,
    *,
    only_contradictions: bool,
) -> Rendered:
    try:
        document = parse(item.text.encode(), place)
    except RequirementsError:
        # Something that only YAML understands, as an anchor: not ours to judge.
        return Rendered(item.text.encode())
    return render_pins(document, wanted, environment=environment, is_constraints=only_contradictions)


def _render_item(item: _Item, place: str, wanted: Mapping[str, Wanted], *, only_contradictions: bool) -> Rendered:
    unchanged = item.text.encode()
    match = _SPECIFICATION.match(item.text)
    if match is None:
        return Rendered(unchanged)
    name = canonical(match["name"])
    name = _OTHER_NAMES.get(name, name)
    wish = wanted.get(name)
    if wish is None:
        return Rendered(unchanged)
    version, _, build = match["rest"].partition("=") if match["operator"] in ("=", "==") else (match["rest"], "", "")
    stated = f"{match['operator']}{version}".strip()
    settled = frozenset({name})
    if _is_pinned(stated, wish.version) or (only_contradictions and _contains(stated, wish.version)):
        return Rendered(unchanged, settled=settled)
    if build:
        because = "it names a build of another version, and which one fits is not known"
        return Rendered(unchanged, obstacles=(Obstacle(name, place, 0, because),), settled=settled)
    return Rendered(f"{match['head']}={wish.version}".encode(), (Edit(name, 1, item.text),), settled=settled)


def _is_pinned(stated: str, version: str) -> bool:
    operator, number = stated[: len(stated) - len(stated.lstrip("="))], stated.lstrip("= ")
    return operator in ("=", "==") and "*" not in number and is_same_version(number, version)


def _contains(stated: str, version: str) -> bool:
    """Conda's `=2.1` is what PEP 440 writes `==2.1.*`; alternatives (`|`) count by any of them."""
    alternatives = stated.split("|")
    fuzzy = (f"={part}.*" if part.startswith("=") and not part.startswith("==") else part for part in alternatives)
    return any(not part or contains(part, version) for part in fuzzy)
