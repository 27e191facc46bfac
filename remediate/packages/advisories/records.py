"""The shipped data of known regressions and vulnerabilities, read strictly."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec
from packaging.version import InvalidVersion, Version

from remediate.packages.names import contains

_DATA = Path(__file__).parent.with_name("data") / "advisories.json"


class Kind(enum.StrEnum):
    """What is known of a version."""

    VULNERABILITY = "vulnerability"
    REGRESSION = "regression"
    """Something that worked before, or works in other versions, does not."""
    CLAIM = "claim"
    """Somebody says so, and nothing was found that supports it."""


class Sure(enum.StrEnum):
    """How sure it is, from surest to least."""

    TESTED = "tested"
    """Seen with these versions when the data was made."""
    ADVISORY = "advisory"
    """The advisory itself was read."""
    REPORTED = "reported"
    """Second-hand: trackers, audits and fixes of others name range and fixed version."""
    UNVERIFIED = "unverified"
    """Not confirmed by anything that was read."""


class Severity(enum.StrEnum):
    """As the advisory rates it, gravest first; UNKNOWN where that was not read."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    UNKNOWN = ""


class Advisory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One known regression or vulnerability.

    Attributes:
        id: the number that most databases know (`CVE-…`), or where it is discussed (`transformers#29206`).
        aliases: its numbers in other databases.
        distribution: canonical name.
        affected: PEP 440 specifiers, any of them; local parts of versions don't count.
        fixed: the first version without it; empty where none is known.
        effect: what happens, in a few words.
        note: what limits it or what is disputed.
        source: where range and effect were read.
    """

    id: str
    distribution: str
    kind: Kind
    affected: tuple[str, ...]
    effect: str
    source: str
    sure: Sure
    aliases: tuple[str, ...] = ()
    severity: Severity = Severity.UNKNOWN
    fixed: str = ""
    note: str = ""

    def affects(self, version: str) -> bool:
        """Whether that version is in one of the ranges; nonsense is in none.

        A pre-release of the fixed version counts as affected, other than PEP 440 has it for `<`: nobody knows whether
        it had the fix.
        """
        return any(contains(specifier, version) or _is_before(specifier, version) for specifier in self.affected)

    def is_known_as(self, name: str) -> bool:
        """Whether `name` is its number in one of the databases."""
        return name == self.id or name in self.aliases


def _is_before(specifier: str, version: str) -> bool:
    """Whether it is a pre-release of the bound of a `<`, and in the range otherwise."""
    if version.replace(".", "").isdigit():
        return False  # No pre-release of anything, and the usual case.
    rest, _, bound = specifier.rpartition("<")
    if not bound[:1].isdigit() or not contains(f"=={bound}.*", _base(version)):
        return False
    parsed, limit = Version(version), Version(bound)
    return parsed < limit and (not rest.rstrip(",") or contains(rest.rstrip(","), version))


def _base(version: str) -> str:
    try:
        return Version(version).base_version
    except InvalidVersion:
        return ""


class Shipped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file: its advisories, and the day they were collected."""

    schema_version: int
    as_of: str
    advisories: tuple[Advisory, ...]

    @property
    def covered(self) -> frozenset[str]:
        """The distributions that the file speaks of; of others it knows nothing."""
        return frozenset(advisory.distribution for advisory in self.advisories)


@cache
def shipped() -> Shipped:
    """The data that comes with this version of the program."""
    return msgspec.json.decode(_DATA.read_bytes(), type=Shipped)


def known_of(name: str, version: str) -> tuple[Advisory, ...]:
    """What the shipped data says of a version, gravest first.

    Args:
        name: canonical name.
        version: with or without a local part.
    """
    return gravest_first(found for found in _of_distribution().get(name, ()) if found.affects(version))


def gravest_first(advisories: Iterable[Advisory]) -> tuple[Advisory, ...]:
    """Vulnerabilities before regressions before claims, then by severity, how sure it is, and number."""
    return tuple(sorted(advisories, key=_gravity))


def _gravity(advisory: Advisory) -> tuple[int, int, int, str]:
    ranks = (Kind, advisory.kind), (Severity, advisory.severity), (Sure, advisory.sure)
    kind, severity, sure = (list(order).index(value) for order, value in ranks)
    return kind, severity, sure, advisory.id


@cache
def _of_distribution() -> dict[str, list[Advisory]]:
    grouped: dict[str, list[Advisory]] = {}
    for advisory in shipped().advisories:
        grouped.setdefault(advisory.distribution, []).append(advisory)
    return grouped
