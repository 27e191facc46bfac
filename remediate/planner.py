"""Profile and facts to plan. Pure: no device, no process, no file but those that facts name."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from remediate._version import __version__
from remediate.model import SCHEMA_VERSION, Artifact, Change, Facts, Finding, Plan, Withheld
from remediate.profile.load import ResolvedProfile
from remediate.profile.schema import Profile
from remediate.registry import select_subjects
from remediate.subject import Settings, Situation, Subject


def announce(facts: Facts, profile: Profile) -> dict[str, str]:
    """What the subjects tell each other about the state that is planned."""
    announced: dict[str, str] = {}
    for subject in observed_subjects(facts):
        announced.update(subject.announce(facts, profile))
    return announced


def pinned_versions(profile: Profile) -> dict[str, str]:
    """The versions that a profile pins, as they are announced where an environment is known."""
    return {f"distribution:{name}": pin.version for name, pin in profile.packages.items() if pin.required}


def observed_subjects(facts: Facts) -> tuple[Subject, ...]:
    """The subjects that the facts speak of, in registry order."""
    return select_subjects(tuple(facts.sections)) if facts.sections else ()


def make_plan(facts: Facts, resolved: ResolvedProfile, settings: Settings | None = None) -> Plan:
    """Compare and render. The same facts, profile and settings give the same plan.

    Findings with an ignored code stay out, and so do changes that rest on ignored codes alone.
    """
    settings = settings or Settings()
    announced = announce(facts, resolved.profile)
    situation = Situation(facts, resolved.profile, settings, announced, resolved.lock_stems)
    findings: list[Finding] = []
    changes: list[Change] = []
    withheld: list[Withheld] = []
    artifacts: list[Artifact] = []
    costs: list[str] = list(resolved.profile.costs)
    for subject in observed_subjects(facts):
        found = tuple(finding for finding in subject.compare(situation) if finding.code not in settings.ignore)
        proposal = subject.propose(situation, found)
        findings += found
        changes += (change for change in proposal.changes if _is_wanted(change.codes, settings.ignore))
        withheld += (item for item in proposal.withheld if _is_wanted(item.codes, settings.ignore))
        artifacts += proposal.artifacts
        costs += proposal.costs
    return Plan(
        schema_version=SCHEMA_VERSION,
        tool_version=__version__,
        profile_name=resolved.profile.name,
        profile_sha256=resolved.sha256,
        request=msgspec.structs.replace(facts.request, sample_s=0.0),
        choices=facts.choices,
        findings=tuple(findings),
        changes=tuple(changes),
        withheld=tuple(withheld),
        artifacts=tuple(artifacts),
        costs=tuple(costs),
        reports=facts.reports,
    )


def moved_facts(changes: tuple[Change, ...], facts: Facts) -> tuple[str, ...]:
    """One line for each fact that the changes depend on and that has another value now."""
    known = {subject.name: subject for subject in observed_subjects(facts)}
    moved = []
    for change in changes:
        subject = known.get(change.subject)
        for key, planned in change.depends_on.items():
            now = subject.read(facts, key) if subject else "not observed"
            if now != planned:
                moved.append(f"{change.subject} {key}: was {planned or 'absent'}, is {now or 'absent'}")
    return tuple(dict.fromkeys(moved))


def _is_wanted(codes: tuple[str, ...], ignore: Mapping[str, str]) -> bool:
    return not codes or any(code not in ignore for code in codes)
