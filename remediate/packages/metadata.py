"""The header of a distribution's METADATA or PKG-INFO, and the small files beside it.

A hand-written reader of the few header lines that are needed: `email.parser`, which `importlib.metadata` uses, takes
10 times as long, and an environment has 60 to 300 of these files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

_CHUNK = 32 * 1024
_END = re.compile(rb"\r?\n\r?\n")
_EXTRA = re.compile(r"""\bextra\s*==|==\s*["'][^"']*["']\s*==\s*extra\b""")
_CREDENTIALS = re.compile(r"(?<=://)(?!git@|\$\{)[^/\s@]+@")


def read_header(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Header fields by lower-case name, in order of the file; continuation lines are joined with a blank.

    Metadata is UTF-8 by its standard; other bytes are replaced. Raises `OSError`.
    """
    return parse_header(_read_head(path))


def parse_header(text: str) -> Mapping[str, tuple[str, ...]]:
    """The fields of a header (RFC 822 as the core metadata standard uses it), up to the first blank line."""
    fields: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            break
        if line[0] in " \t":
            if current:
                current[-1] = f"{current[-1]} {line.strip()}"
            continue
        name, colon, value = line.partition(":")
        if colon:
            current = fields.setdefault(name.strip().lower(), [])
            current.append(value.strip())
    return {name: tuple(values) for name, values in fields.items()}


def runtime_requirements(lines: tuple[str, ...]) -> tuple[str, ...]:
    """`Requires-Dist` lines without those that only an extra brings."""
    return tuple(line for line in lines if "extra" not in line or not _EXTRA.search(line.partition(";")[2]))


def parse_direct_url(content: bytes) -> tuple[str | None, bool]:
    """URL, without credentials, and whether it is editable, from `direct_url.json` (PEP 610).

    A version control system is put in front of the URL and the commit behind it, as pip takes it:
    `git+https://…@0a1b2c`. Nonsense gives `(None, False)`.
    """
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None, False
    if not isinstance(document, dict) or not isinstance(document.get("url"), str):
        return None, False
    url = without_credentials(document["url"])
    vcs = document.get("vcs_info")
    if isinstance(vcs, dict):
        url = f"{vcs.get('vcs', 'git')}+{url}@{vcs.get('commit_id', '')}"
    folder = document.get("dir_info")
    return url, isinstance(folder, dict) and folder.get("editable") is True


def without_credentials(text: str) -> str:
    """The text with user names and passwords of URLs replaced by `****`."""
    return _CREDENTIALS.sub("****@", text)


def has_credentials(text: str) -> bool:
    """Whether a URL in the text holds a user name or a password."""
    return _CREDENTIALS.search(text) is not None


def _read_head(path: Path) -> str:
    with path.open("rb") as stream:
        content = stream.read(_CHUNK)
        while not _END.search(content):
            more = stream.read(_CHUNK)
            if not more:
                break
            content += more
    return content.decode("utf-8", "replace")
