"""Packages facts against the profile: one finding for each wish, and the known traps. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from remediate.model import Finding, Outcome, Unknown
from remediate.packages.advisories.judge import find_known
from remediate.packages.facts import PackagesFacts
from remediate.packages.judge.rules import judge
from remediate.packages.names import contains
from remediate.packages.pins import Blocker, PlannedPin, find_blockers, plan_pins
from remediate.packages.wanted import RequirementsPlan, plan_requirements
from remediate.profile.schema import Profile

SUBJECT = "packages"


def compare_packages(facts: PackagesFacts, profile: Profile, announced: Mapping[str, str]) -> tuple[Finding, ...]:
    """All findings, those of the pins first, by code and target."""
    pins = plan_pins(facts, profile)
    blockers = find_blockers(facts, profile, announced)
    findings = [
        *_compare_python(facts, profile),
        *(finding for pin in pins.values() for finding in _compare_pin(facts, pin)),
        *_compare_torch_build(facts, pins),
        *_compare_requirements(facts, pins, profile),
        *_compare_blockers(facts, pins, blockers),
        *(judgement.finding for judgement in judge(facts, pins, announced)),
        *find_known(facts, pins),
    ]
    return tuple(sorted(findings, key=lambda finding: finding.code))


def _compare_python(facts: PackagesFacts, profile: Profile) -> Iterator[Finding]:
    if not profile.python:
        return
    wanted = profile.python
    if facts.listing is not None and isinstance(facts.listing.python, str):
        version, evidence = facts.listing.python, facts.listing.source
    elif facts.target is not None:
        version, evidence = facts.target.version, facts.target.python
    else:
        reason = facts.target_unknown.reason if facts.target_unknown else "no interpreter was found"
        yield Finding("PKG008", SUBJECT, "python", Outcome.UNKNOWN, f"Python of the target: {reason}", wanted=wanted)
        return
    fits = contains(wanted, version)
    yield Finding(
        "PKG008",
        SUBJECT,
        "python",
        Outcome.SAME if fits else Outcome.DIFFERS,
        f"Python {version}" + ("" if fits else f" is outside of {wanted}, for which the pins have wheels"),
        observed=version,
        wanted=wanted,
        evidence=(evidence,),
    )


def _compare_pin(facts: PackagesFacts, pin: PlannedPin) -> Iterator[Finding]:
    if not pin.is_judged:
        return
    wanted = f"{pin.pin.version} ({pin.pin.accept})" if pin.pin.accept else pin.pin.version
    outcome, summary, observed = _judge(facts, pin)
    yield Finding("PKG001", SUBJECT, pin.name, outcome, summary, observed, wanted, reason=pin.pin.reason)


def _judge(facts: PackagesFacts, pin: PlannedPin) -> tuple[Outcome, str, str]:
    if not facts.has_list:
        reason = facts.target_unknown.reason if facts.target_unknown else "no interpreter was found"
        return Outcome.UNKNOWN, f"{pin.name}: {reason}", ""
    if not pin.is_known:
        from remediate.reports import NOT_IN_REPORT

        return Outcome.UNKNOWN, f"{pin.name}: {NOT_IN_REPORT.reason}", str(NOT_IN_REPORT)
    found = facts.installed(pin.name)
    if found is None:
        return Outcome.DIFFERS, f"{pin.name} is not installed", "absent"
    if isinstance(found.version, Unknown):
        return Outcome.UNKNOWN, f"{pin.name}: {found.version.reason}", str(found.version)
    if pin.is_met:
        return Outcome.SAME, f"{pin.name} {found.version}", found.version
    return Outcome.DIFFERS, f"{pin.name} is {found.version}, wanted is {pin.pin.version}", found.version


def _compare_torch_build(facts: PackagesFacts, pins: Mapping[str, PlannedPin]) -> Iterator[Finding]:
    torch = pins.get("torch")
    # A torch that is replaced for its version anyway gets the build with it.
    if torch is None or not torch.pin.cuda or not torch.is_met:
        return
    wanted = f"CUDA {torch.pin.cuda}"
    build = facts.torch_build
    if build is None or isinstance(build.cuda, Unknown):
        reason = build.cuda.reason if build is not None and isinstance(build.cuda, Unknown) else "no torch/version.py"
        yield Finding("PKG002", SUBJECT, "torch", Outcome.UNKNOWN, f"CUDA build of torch: {reason}", wanted=wanted)
        return
    observed = f"CUDA {build.cuda}" if build.cuda else (f"ROCm {build.hip}" if build.hip else "CPU only")
    yield Finding(
        "PKG002",
        SUBJECT,
        "torch",
        Outcome.DIFFERS if torch.cuda_differs else Outcome.SAME,
        f"torch is built for {observed}" + (f", wanted is {wanted}" if torch.cuda_differs else ""),
        observed=observed,
        wanted=wanted,
        evidence=(build.path,),
        reason=torch.pin.reason,
    )


def _compare_requirements(facts: PackagesFacts, pins: Mapping[str, PlannedPin], profile: Profile) -> Iterator[Finding]:
    judged = [pin for pin in pins.values() if pin.is_judged and (pin.pin.required or facts.requirements)]
    if not judged or facts.listing is not None:
        return
    if not facts.requirements:
        others = f"; {', '.join(facts.other_sources)} is not edited" if facts.other_sources else ""
        summary = f"the folder has no requirements file that pins {', '.join(pin.name for pin in judged)}{others}"
        yield Finding("PKG003", SUBJECT, "requirements", Outcome.DIFFERS, summary, is_advice=True)
        return
    plan = plan_requirements(facts, pins, profile.name)
    if plan.unreadable is not None:
        yield Finding("PKG003", SUBJECT, facts.requirements[0].path, Outcome.UNKNOWN, plan.unreadable.reason)
        return
    lines = (_compare_line(facts, pin, plan) for pin in judged)
    yield from (finding for finding in lines if finding is not None)
    if facts.other_sources:
        names = ", ".join(facts.other_sources)
        summary = f"dependencies are stated in {names} too, which is not edited"
        yield Finding("PKG012", SUBJECT, "other files", Outcome.DIFFERS, summary, is_advice=True)


def _compare_line(facts: PackagesFacts, pin: PlannedPin, plan: RequirementsPlan) -> Finding | None:
    """None for an optional distribution that no file names."""
    wanted = f"{pin.name}=={pin.planned}"
    obstacle, edit = plan.obstacle_of(pin.name), plan.edit_of(pin.name)
    if obstacle is not None:
        place = f"{Path(obstacle.place).name}:{obstacle.line}" if obstacle.line else Path(obstacle.place).name
        summary = f"{place} does not pin {wanted}: {obstacle.because}"
        evidence = (obstacle.place,)
        return Finding("PKG003", SUBJECT, pin.name, Outcome.UNSUPPORTED, summary, "", wanted, evidence)
    if edit is not None:
        file, line = edit
        name = Path(file.facts.path).name
        summary = f"{name}:{line.line} says {line.was}, wanted is {wanted}" if line.line else f"{name} lacks {wanted}"
        return Finding("PKG003", SUBJECT, pin.name, Outcome.DIFFERS, summary, line.was, wanted)
    if not pin.pin.required and pin.name not in plan.stated:
        return None
    summary = f"{Path(facts.requirements[0].path).name} pins {wanted}"
    return Finding("PKG003", SUBJECT, pin.name, Outcome.SAME, summary, wanted, wanted)


def _compare_blockers(
    facts: PackagesFacts, pins: Mapping[str, PlannedPin], blockers: tuple[Blocker, ...]
) -> Iterator[Finding]:
    """Only where there is something to install; the Python version has its own finding."""
    if facts.target is None or not any(pin.needs_install for pin in pins.values()):
        return
    for blocker in blockers:
        if blocker.code == "PKG010":
            yield Finding(
                blocker.code,
                SUBJECT,
                facts.target.prefix,
                Outcome.UNSUPPORTED,
                f"nothing can be installed: {blocker.because}",
                evidence=(facts.target.python,),
            )
