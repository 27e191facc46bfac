"""A requirements file as lines that keep every byte: parsed only as far as the pins of known names need it.

The format is pip's (docs "Requirements File Format"); its grammar here follows `pip/_internal/req/req_file.py` of
pip 26: a backslash joins lines unless the line is a comment, a comment begins at the start or after white space, and
the first word that begins with `-` ends the requirement and begins its options.
"""

from __future__ import annotations

import codecs
import enum
import re
from collections.abc import Iterator

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from remediate.errors import ExitCode, ObserveError
from remediate.packages.names import canonical

# The longer mark first: that of UTF-32-LE begins with that of UTF-16-LE.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_COMMENT = re.compile(r"(?:^|\s+)#.*\Z", re.DOTALL)
_HEAD = re.compile(
    r"(?P<head>(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]\[]*\])?)\s*(?P<rest>.*)\Z"
)
_OPTION_START = re.compile(r"(?:^|\s+)-{1,2}[A-Za-z]")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9][A-Za-z0-9._-]*)")
_GLUED = re.compile(r"-[rceif][^\s=]")
_OPTION = re.compile(r"(?P<name>--?[A-Za-z][A-Za-z-]*)(?:[\s=]+(?P<value>.*))?\Z", re.DOTALL)
_SHORT = {"-r": "--requirement", "-c": "--constraint", "-e": "--editable", "-i": "--index-url", "-f": "--find-links"}
SOURCE_OPTIONS = frozenset({"--index-url", "--extra-index-url", "--find-links"})


class RequirementsError(ObserveError):
    """A requirements file can't be read; names the file and, where there is one, the line."""

    exit_code = ExitCode.USAGE


class LineKind(enum.StrEnum):
    """What a logical line is."""

    EMPTY = "empty"
    """Blank, or only a comment."""
    OPTION = "option"
    """`-r`, `--index-url`, `-e`, …"""
    REQUIREMENT = "requirement"
    """Begins with a distribution's name."""
    OPAQUE = "opaque"
    """A URL, a path, or something with environment variables: taken as it is."""


class Line(msgspec.Struct, frozen=True):
    """One logical line; `raw` is its text with continuations and line ends, and all raws together are the file.

    Attributes:
        number: of its first physical line, from 1.
        name: canonical name, or empty. For an editable or opaque line that of its `#egg=` part.
        head: name and extras as written.
        specifier: version specifier as written, or empty.
        url: what follows `@`, or empty.
        marker: environment marker as written, without the `;`.
        options: options of a requirement (`--hash=…`), or of an option line the option's long name.
        value: value of an option line.
        comment: with the white space before it.
        ending: line end of the last physical line; empty at the end of a file without one.
    """

    number: int
    raw: str
    kind: LineKind
    name: str = ""
    head: str = ""
    specifier: str = ""
    url: str = ""
    marker: str = ""
    options: str = ""
    value: str = ""
    comment: str = ""
    ending: str = ""

    @property
    def has_hash(self) -> bool:
        """Whether the requirement is held by hashes of its files."""
        return self.kind is LineKind.REQUIREMENT and "--hash" in self.options


class Document(msgspec.Struct, frozen=True):
    """A parsed requirements file. `place` is its path, for messages."""

    place: str
    mark: bytes
    encoding: str
    lines: tuple[Line, ...]

    def encode(self, text: str) -> bytes:
        """Bytes of `text` in the file's encoding, with its byte order mark; what it can't express becomes `?`."""
        return self.mark + text.encode(self.encoding, "replace")

    @property
    def newline(self) -> str:
        """The line end that most lines have; that of Unix for a file without any."""
        endings = [line.ending for line in self.lines if line.ending]
        return max(("\n", "\r\n", "\r"), key=endings.count) if endings else "\n"

    @property
    def is_hashed(self) -> bool:
        """Pip then asks for hashes of every requirement."""
        return any(line.has_hash or line.options == "--require-hashes" for line in self.lines)

    @property
    def has_sources(self) -> bool:
        """Whether it names package indexes or folders of its own."""
        return any(line.kind is LineKind.OPTION and line.options in SOURCE_OPTIONS for line in self.lines)

    def includes(self) -> Iterator[tuple[str, bool]]:
        """Value of each `-r` (False) and `-c` (True), as written."""
        for line in self.lines:
            if line.kind is LineKind.OPTION and line.options in ("--requirement", "--constraint"):
                yield line.value, line.options == "--constraint"


def parse(content: bytes, place: str) -> Document:
    """Split and parse a requirements file.

    Raises:
        RequirementsError: it is not text in the encoding that it states (UTF-8 where it states none), or a line is no
            requirement.
    """
    mark, encoding = _find_encoding(content, place)
    try:
        text = content[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, len(mark) + error.start) + 1
        raise RequirementsError(
            f"`{place}` line {line} is not {encoding} text",
            cause=f"byte {error.object[error.start]:#04x}: {error.reason}",
            hint="save it as UTF-8, or state its encoding in the first line: `# -*- coding: latin-1 -*-`",
        ) from error
    return Document(place, mark, encoding, tuple(_parse_line(number, raw, place) for number, raw in _logical(text)))


def _find_encoding(content: bytes, place: str) -> tuple[bytes, str]:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return mark, encoding
    for number, line in enumerate(content.splitlines()[:2], 1):
        match = _CODING.match(line)
        if match:
            name = match[1].decode("ascii", "replace")
            try:
                return b"", codecs.lookup(name).name
            except LookupError as error:
                raise RequirementsError(
                    f"`{place}` line {number} states an encoding that does not exist", cause=f"`{name}`"
                ) from error
    return b"", "utf-8"


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines with the number of their first physical line."""
    pending: list[str] = []
    first = 1
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if not pending:
            first = number
        pending.append(line)
        body = _without_ending(line)
        if body.endswith("\\") and not body.lstrip().startswith("#"):
            continue
        yield first, "".join(pending)
        pending = []
    if pending:
        yield first, "".join(pending)


def _without_ending(line: str) -> str:
    """The line without its end, which may be any that `str.splitlines` knows, as pip splits the file by that."""
    return line.splitlines()[0]


def _parse_line(number: int, raw: str, place: str) -> Line:
    parts = raw.splitlines(keepends=True)
    ending = parts[-1][len(_without_ending(parts[-1])) :]
    joined = "".join(_without_ending(part).removesuffix("\\") for part in parts)
    if "\0" in joined:
        raise _no_requirement(place, number, "it holds a zero byte: the file is not text")
    match = _COMMENT.search(joined)
    comment = match[0] if match else ""
    body = joined[: match.start()] if match else joined
    stripped = body.strip()
    bare = Line(number, raw, LineKind.EMPTY, comment=comment, ending=ending)
    if not stripped:
        return bare
    return _parse_option(bare, stripped, place) if stripped.startswith("-") else _parse_named(bare, stripped, place)


def _parse_option(bare: Line, text: str, place: str) -> Line:
    # `-rother.txt` is as good as `-r other.txt`.
    match = _OPTION.match(f"{text[:2]} {text[2:]}" if _GLUED.match(text) else text)
    if match is None:
        raise _no_requirement(place, bare.number, f"`{text}` is no option")
    option = _SHORT.get(match["name"], match["name"])
    value = (match["value"] or "").strip().strip("\"'")
    name = _egg_name(value) if option == "--editable" else ""
    return msgspec.structs.replace(bare, kind=LineKind.OPTION, name=name, options=option, value=value)


def _parse_named(bare: Line, text: str, place: str) -> Line:
    start = _OPTION_START.search(text)
    body, options = (text[: start.start()].rstrip(), text[start.start() :].strip()) if start else (text, "")
    match = _HEAD.match(body)
    if _is_location(body, match["rest"] if match else ""):
        return msgspec.structs.replace(bare, kind=LineKind.OPAQUE, name=_egg_name(body))
    if match is None:
        raise _no_requirement(place, bare.number, f"`{text}` begins with no name, path or URL")
    url, specifier, marker = _split_rest(match["rest"])
    if not url:
        _check_specifier(specifier, text, place, bare.number)
    return msgspec.structs.replace(
        bare,
        kind=LineKind.REQUIREMENT,
        name=canonical(match["name"]),
        head=match["head"].rstrip(),
        specifier=specifier,
        url=url,
        marker=marker,
        options=options,
    )


def _egg_name(text: str) -> str:
    match = _EGG.search(text)
    return canonical(match[1]) if match else ""


def _is_location(body: str, rest: str) -> bool:
    """A path or URL in place of a name, or text that pip expands from the environment."""
    if rest.startswith("@"):
        return False
    first = re.split(r"[;\s]", body, maxsplit=1)[0]
    return (
        "://" in first
        or "/" in first
        or "\\" in first
        or first.startswith(".")
        or "${" in body
        or first.lower().endswith((".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"))
    )


def _split_rest(rest: str) -> tuple[str, str, str]:
    """URL, specifier, marker of what follows name and extras."""
    if rest.startswith("@"):
        # In a URL a marker has to be set off by white space (the dependency specifier standard).
        url, _, marker = rest[1:].strip().partition(" ;")
        return url.strip(), "", marker.strip()
    specifier, _, marker = rest.partition(";")
    specifier = specifier.strip()
    if specifier.startswith("(") and specifier.endswith(")"):
        specifier = specifier[1:-1].strip()
    return "", specifier, marker.strip()


def _check_specifier(specifier: str, text: str, place: str, number: int) -> None:
    try:
        SpecifierSet(specifier)
    except InvalidSpecifier as error:
        raise _no_requirement(place, number, f"`{text}`: {error}") from error


def _no_requirement(place: str, number: int, cause: str) -> RequirementsError:
    return RequirementsError(
        f"`{place}` line {number} is no requirement",
        cause=cause,
        hint="correct that line; pip would refuse the file too",
    )
