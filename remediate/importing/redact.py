"""Takes out of facts who and where: UUIDs, boot, host and user names, home folders, credentials, names of reports.

What stands in the place of a name has as many characters, so that positions in a script keep their meaning. The same
original gets the same replacement throughout a document, so that several GPUs or users stay apart; it follows from the
order of appearance and from nothing else. Serial numbers are in no facts.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import msgspec

from remediate import public_index
from remediate.effects import sha256
from remediate.model import Facts

_UUID = re.compile(r"(?:(?<=GPU-)|(?<=MIG-)|(?<![\w-]))[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?!\w)")
_HOME = re.compile(r"((?:/|\\{1,4})(?:home|Users)(?:/|\\{1,4}))([\w.@-]+)")
_CREDENTIALS = re.compile(r"(?<=://)(?!git@|\$\{)([^/\s@]+)(?=@)")
_TOKEN = re.compile(r"\b(?:hf_[A-Za-z0-9]{20,200}|gh[pousr]_[A-Za-z0-9]{20,200}|glpat-[\w-]{20,200})\b", re.ASCII)
_URL_HOST = re.compile(r"((?:://|git@)(?:[^/\s@'\"]{0,200}@)?)([A-Za-z0-9][A-Za-z0-9.-]{0,250})", re.ASCII)
_PUBLIC = frozenset(
    {
        *("conda.anaconda.org", "repo.anaconda.com", "developer.download.nvidia.com", "pypi.nvidia.com"),
        *("download.pytorch.org", "huggingface.co"),
        *("github.com", "raw.githubusercontent.com", "gitlab.com", "localhost", "127.0.0.1"),
    }
)
_KEPT_USERS = frozenset({"root", "nobody"})
_MIN_HOST = 3


@cache
def _is_public(host: str) -> bool:
    """Whether a host name says nothing about the machine's owner."""
    return host in _PUBLIC or host in public_index.hosts()


class Redaction(msgspec.Struct, frozen=True):
    """What came of it.

    Attributes:
        replaced: kind, as `UUID`, to the number of different originals.
    """

    facts: Facts
    replaced: dict[str, int]


def redact(facts: Facts, *, hosts: Iterable[str] = (), files: Iterable[str] = ()) -> Redaction:
    """The facts without what identifies a machine or a person.

    Args:
        hosts: names of the machine.
        files: names of files, as of the reports, that may tell where they come from.
    """
    redactor = _Redactor(hosts, files)
    clean: Facts = redactor.value(facts)
    return Redaction(clean, {kind: len(known) for kind, known in redactor.known.items() if known})


class _Redactor:
    """Replaces in text, and remembers what by what."""

    def __init__(self, hosts: Iterable[str], files: Iterable[str]) -> None:
        self.known: dict[str, dict[str, str]] = {}
        # The short name too, as a prompt or a path has it.
        names = {part for host in hosts for part in (host, host.partition(".")[0])}
        kept = sorted(
            (name for name in names if len(name) >= _MIN_HOST and not _is_public(name)), key=len, reverse=True
        )
        self._hosts = _words(kept)
        self._files = _words(sorted(set(files), key=len, reverse=True))

    def value(self, value: Any) -> Any:
        """The value with every text in it redacted."""
        if isinstance(value, enum.Enum):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.text(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if isinstance(value, msgspec.Struct):
            return self._record(value)
        if isinstance(value, tuple | list):
            return type(value)(map(self.value, value))
        return {key: self.value(item) for key, item in value.items()} if isinstance(value, dict) else value

    def text(self, text: str) -> str:
        """One text. Paths go before bare names, for a name may stand in one."""
        text = _UUID.sub(self._by("UUID", _alias_uuid), text)
        text = _HOME.sub(lambda match: match[1] + self._user(match[2]), text)
        text = _CREDENTIALS.sub(self._by("credential", _stars), text)
        text = _TOKEN.sub(self._by("credential", _stars), text)
        text = _URL_HOST.sub(lambda match: match[1] + self._host(match[2]), text)
        if self._hosts is not None:
            text = self._hosts.sub(lambda match: self._host(match[0]), text)
        return text if self._files is None else self._files.sub(self._by("file name", _alias_file), text)

    def _record(self, record: msgspec.Struct) -> msgspec.Struct:
        changed: dict[str, Any] = {}
        for name in record.__struct_fields__:
            value = getattr(record, name)
            clean = self._user(value) if name == "user" and isinstance(value, str) else self.value(value)
            if clean is not value and clean != value:
                changed[name] = clean
        content = changed.get("content")
        if isinstance(content, bytes) and isinstance(getattr(record, "sha256", None), str):
            # The digest tells whether a file is as it was read, here of the redacted content.
            changed["sha256"] = sha256(content)
        return msgspec.structs.replace(record, **changed) if changed else record

    def _user(self, name: str) -> str:
        if name in _KEPT_USERS:
            return name
        return self._replace("user name", name, lambda number, old: _alias("user", number, len(old)))

    def _host(self, name: str) -> str:
        if _is_public(name.lower()):
            return name
        return self._replace("host name", name, lambda number, old: _alias("host", number, len(old)))

    def _by(self, kind: str, make: Callable[[int, str], str]) -> Callable[[re.Match[str]], str]:
        return lambda match: self._replace(kind, match[0], make)

    def _replace(self, kind: str, old: str, make: Callable[[int, str], str]) -> str:
        known = self.known.setdefault(kind, {})
        # A replacement that is met again, as where a text is redacted twice, stays.
        if old in known.values():
            return old
        return known.setdefault(old, make(len(known) + 1, old))


def _words(names: list[str]) -> re.Pattern[str] | None:
    if not names:
        return None
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, names))})(?![\w-])")


def _alias_uuid(number: int, old: str) -> str:
    del old
    return f"00000000-0000-4000-8000-{number:012x}"


def _alias_file(number: int, old: str) -> str:
    return _alias("report", number, len(old))


def _stars(number: int, old: str) -> str:
    del number
    return "*" * len(old)


def _alias(lead: str, number: int, length: int) -> str:
    """`user1xx` for 7 characters; where they don't suffice `u1`, or the last digits of the number."""
    for text in (f"{lead}{number}", f"{lead[0]}{number}"):
        if len(text) <= length:
            return text.ljust(length, "x")
    return f"{number:0{length}}"[-length:]
