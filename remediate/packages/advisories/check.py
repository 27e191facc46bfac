"""Which advisories stand against a set of versions, and which versions nobody could say anything about. Pure.

The rule is never to fail open: a version counts as free of advisories only where somebody who knows the distribution
was asked about it. Everything else is `unchecked`, with the reason, and makes the check fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from remediate.errors import ExitCode
from remediate.packages.advisories.records import Advisory, gravest_first, known_of, shipped
from remediate.packages.facts import DistributionFacts, PackagesFacts
from remediate.packages.names import public
from remediate.profile.schema import Profile

SCHEMA_VERSION = 1


class Candidate(msgspec.Struct, frozen=True):
    """A version to ask about.

    Attributes:
        name: canonical.
        version: without a local part; empty where it can't be told.
        obstacle: why no database can tell; empty where one can be asked.
    """

    name: str
    version: str
    obstacle: str = ""

    @property
    def key(self) -> str:
        """`torch==2.1.2`."""
        return f"{self.name}=={self.version}"


class Answer(msgspec.Struct, frozen=True):
    """What a database said of one version.

    Attributes:
        advisories: empty where it knows none.
        unchecked: why there is no answer; empty where there is one.
        source: who said it, and when.
    """

    source: str
    advisories: tuple[Advisory, ...] = ()
    unchecked: str = ""


class Checked(msgspec.Struct, frozen=True):
    """One version with all that is known of it.

    Attributes:
        sources: who was asked and answered.
        unchecked: why nobody could tell, or why an answer is missing; empty where the check is complete.
    """

    name: str
    version: str
    advisories: tuple[Advisory, ...]
    sources: tuple[str, ...]
    unchecked: str = ""


class Report(msgspec.Struct, frozen=True):
    """What `remediate advisories` prints. `complete` is False where some version could not be checked."""

    schema_version: int
    kind: str
    about: str
    found: int
    unchecked: int
    complete: bool
    distributions: tuple[Checked, ...]


def candidates_of_profile(profile: Profile) -> tuple[Candidate, ...]:
    """The profile's pins."""
    return tuple(Candidate(name, pin.version) for name, pin in sorted(profile.packages.items()))


def candidates_of_facts(facts: PackagesFacts) -> tuple[Candidate, ...]:
    """Everything that is installed."""
    return tuple(map(_candidate, facts.distributions))


def check(candidates: Iterable[Candidate], answers: Mapping[str, Answer], about: str, *, asked: bool = False) -> Report:
    """Join the shipped data with the answers of databases.

    Args:
        candidates: what to judge.
        answers: by `Candidate.key`, of this or an earlier question.
        about: what the candidates are, for the heading.
        asked: the user asked for answers of now, so that a missing one is an incomplete check.
    """
    rows = tuple(_check(candidate, answers.get(candidate.key), asked) for candidate in candidates)
    unchecked = sum(1 for row in rows if row.unchecked)
    found = sum(len(row.advisories) for row in rows)
    return Report(SCHEMA_VERSION, "remediate-advisories", about, found, unchecked, unchecked == 0, rows)


def exit_code(report: Report, *, asked: bool) -> ExitCode:
    """4 where a check that was asked for is incomplete, or nothing was found in an incomplete one; 3 where something
    was found; else 0.
    """
    if not report.complete and (asked or not report.found):
        return ExitCode.UNKNOWN
    return ExitCode.DIFFERS if report.found else ExitCode.OK


def _check(candidate: Candidate, answer: Answer | None, asked: bool) -> Checked:
    known = known_of(candidate.name, candidate.version) if candidate.version else ()
    sources = [f"data of {shipped().as_of}"] if candidate.name in shipped().covered and candidate.version else []
    if answer is not None and not answer.unchecked:
        known = join(known, answer.advisories)
        sources.append(answer.source)
    if answer is not None and answer.unchecked:
        unchecked = answer.unchecked
    elif answer is None and (candidate.obstacle or not sources):
        unchecked = candidate.obstacle or "the shipped data does not cover it"
    else:
        unchecked = "" if answer is not None or not asked else "it was not asked about"
    return Checked(candidate.name, candidate.version, known, tuple(sources), unchecked)


def join(known: Iterable[Advisory], answered: Iterable[Advisory]) -> tuple[Advisory, ...]:
    """Both, each advisory once: databases give it several numbers. What is known already keeps its words."""
    joined = list(known)
    for advisory in answered:
        numbers = (advisory.id, *advisory.aliases)
        if not any(found.is_known_as(number) for found in joined for number in numbers):
            joined.append(advisory)
    return gravest_first(joined)


def _candidate(found: DistributionFacts) -> Candidate:
    if not isinstance(found.version, str):
        return Candidate(found.name, "", f"its version is unknown ({found.version.reason})")
    version = public(found.version)
    if found.is_editable or (found.direct_url or "").startswith(("git+", "hg+", "svn+", "bzr+", "file://")):
        obstacle = f"it came from {found.direct_url or 'a folder'}, and databases know releases only"
        return Candidate(found.name, version, obstacle)
    return Candidate(found.name, version)
