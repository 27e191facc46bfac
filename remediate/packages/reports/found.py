"""What one list of distributions tells, before several are joined."""

from __future__ import annotations

import re

import msgspec

from remediate.model import Reading, Unknown, UnknownKind
from remediate.packages.facts import DistributionFacts, TorchBuild
from remediate.packages.metadata import without_credentials
from remediate.packages.names import canonical

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,100}[A-Za-z0-9])?"
VERSION = r"[0-9][A-Za-z0-9.!+_-]{0,100}"
"""As an installed version is written; a specifier or a place is none."""
NO_VERSION = Unknown(UnknownKind.NOT_READ, "the list names a place and no version")
_WHEEL = re.compile(r"/[A-Za-z0-9._]{1,100}-([0-9][A-Za-z0-9.!+_%]{0,100})-[^/?#]{1,200}\.whl(?:[#?].*)?$", re.ASCII)


class Found(msgspec.Struct, frozen=True):
    """One list.

    Attributes:
        kind: what printed it.
        is_complete: it names everything that is installed, but for `left_out`.
        python: version of the interpreter, where it is said.
        build: how torch was built, where it is said.
    """

    kind: str
    name: str
    distributions: tuple[DistributionFacts, ...]
    is_complete: bool
    left_out: tuple[str, ...] = ()
    python: Reading[str] | None = None
    build: TorchBuild | None = None

    @property
    def source(self) -> str:
        """For messages."""
        return f"{self.kind} in {self.name}"


def distribution(
    name: str, version: Reading[str], *, url: str | None = None, editable: bool = False
) -> DistributionFacts:
    """A distribution that a list names; its metadata was not looked at."""
    place = None if url is None else without_credentials(url)
    return DistributionFacts(canonical(name), name, version, "", direct_url=place, is_editable=editable)


def version_in(url: str) -> Reading[str]:
    """The version of a wheel that a URL names; `Unknown` for another place."""
    from urllib.parse import unquote

    wheel = _WHEEL.search(url)
    return unquote(wheel[1]) if wheel else NO_VERSION
