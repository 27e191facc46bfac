"""What git leaves out: `.gitignore` files, nested ones too, and `.git/info/exclude`.

Patterns of a deeper file go before those of a higher one, and within a file the last one that matches counts; nothing
below an excluded folder comes back (gitignore(5)). The user's global excludes are not read: a scan says the same on
every machine.

A pattern is held against a path alone and never against the folders above it, as git does. Libraries that let `!x/`
match everything below `x` bring files back that git leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

_PARTS = re.compile(
    r"""
    (?P<any_start>\A\*\*/) | (?P<any_middle>/\*\*/) | (?P<any_end>/\*\*\Z) | (?P<stars>\*+) | (?P<one>\?)
    | (?P<set>\[[!^]?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]) | (?P<escaped>\\.) | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CLASSES = {
    "[:alnum:]": "0-9A-Za-z",
    "[:alpha:]": "A-Za-z",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:upper:]": "A-Z",
    "[:space:]": r"\s",
    "[:xdigit:]": "0-9A-Fa-f",
}


class Pattern(msgspec.Struct, frozen=True):
    """One line of a `.gitignore`.

    Attributes:
        matches: for a whole path below the file's folder.
        is_negated: it brings back.
        is_for_folders: it speaks of folders only.
    """

    matches: re.Pattern[str]
    is_negated: bool
    is_for_folders: bool


class Ignores(msgspec.Struct, frozen=True):
    """The patterns that hold in one folder, the nearest first.

    Attributes:
        layers: folder that the patterns are relative to, with a last slash, and the patterns, the last one first.
    """

    layers: tuple[tuple[str, tuple[Pattern, ...]], ...] = ()

    def below(self, folder: str) -> Ignores:
        """The same with what a folder below says itself."""
        return self.plus(folder, Path(folder) / ".gitignore")

    def plus(self, folder: str, file: Path) -> Ignores:
        """The same with a file's patterns, which are relative to `folder`; an unreadable file has none."""
        try:
            text = file.read_bytes().decode("utf-8", "surrogateescape")
        except OSError:
            return self
        patterns = tuple(reversed(read_patterns(text.removeprefix("\ufeff").split("\n"))))
        return Ignores(((folder.rstrip("/") + "/", patterns), *self.layers)) if patterns else self

    def exclude(self, path: str, *, is_folder: bool) -> bool:
        """Whether an absolute path is left out, given that the folders above it are not."""
        for folder, patterns in self.layers:
            below = path[len(folder) :]
            for pattern in patterns:
                if (is_folder or not pattern.is_for_folders) and pattern.matches.fullmatch(below):
                    return not pattern.is_negated
        return False


def ignores_above(folder: Path) -> Ignores | None:
    """The patterns that hold in a folder of a git work tree, from its top down to the folder.

    None where the folder itself is left out. No patterns outside of a work tree but the folder's own.
    """
    parents = [folder, *folder.parents]
    top = next((parent for parent in parents if (parent / ".git").exists()), folder)
    found = Ignores().plus(str(top), top / ".git" / "info" / "exclude").below(str(top))
    for place in reversed(parents[: parents.index(top)]):
        if found.exclude(str(place), is_folder=True):
            return None
        found = found.below(str(place))
    return found


def read_patterns(lines: Iterable[str]) -> list[Pattern]:
    """The patterns of a file's lines, in order; blank lines, comments and unusable patterns are passed over."""
    found = []
    for line in lines:
        text = re.sub(r"(?<!\\)[ ]+\Z", "", line.removesuffix("\r"))
        is_negated = text.startswith("!")
        body = text.removeprefix("!").removesuffix("/")
        if not body or text.startswith("#"):
            continue
        is_anywhere = "/" not in body
        expression = "".join(map(_translated, _PARTS.finditer(body.removeprefix("/"))))
        try:
            matches = re.compile(("(?:.*/)?" if is_anywhere else "") + expression, re.DOTALL)
        except re.error:
            continue
        found.append(Pattern(matches, is_negated, text.endswith("/")))
    return found


def _translated(part: re.Match[str]) -> str:
    """A part of a pattern as a regular expression (gitignore(5), wildmatch.c of git)."""
    fixed = {
        "any_start": "(?:.*/)?",
        "any_middle": "/(?:.*/)?",
        "any_end": "/.+",
        "stars": "[^/]*",
        "one": "[^/]",
    }
    kind = part.lastgroup or "other"
    if kind in fixed:
        return fixed[kind]
    if kind == "set":
        return _set(part[0][1:-1])
    return re.escape(part[0][-1])


def _set(inner: str) -> str:
    negation = "^" if inner[:1] in ("!", "^") else ""
    inner = inner[1:] if negation else inner
    pieces = re.findall(r"\[:\w+:\]|\\.|.", inner, re.DOTALL)
    members = (_CLASSES.get(piece) or (piece if piece == "-" else re.escape(piece[-1])) for piece in pieces)
    return f"(?!/)[{negation}{''.join(members)}]"
