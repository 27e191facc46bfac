"""Commands for a person about what is wrong and no pin governs: shown with the plan, never run by it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from remediate.model import Finding, Outcome, Withheld
from remediate.packages.facts import PackagesFacts
from remediate.packages.install import pip_command, source_options
from remediate.packages.judge.base import SUBJECT, Judgement, Remedy
from remediate.packages.metadata import without_credentials
from remediate.subject import Situation


def withhold_remedies(
    judgements: Iterable[Judgement], findings: Iterable[Finding], facts: PackagesFacts, situation: Situation
) -> list[Withheld]:
    """One entry for each remedy whose finding is among the plan's and differs. Without a target there is none."""
    told = {(finding.code, finding.target) for finding in findings if finding.outcome is Outcome.DIFFERS}
    if facts.target is None:
        return []
    return [
        _withhold(judgement.finding, judgement.remedy, facts, situation)
        for judgement in judgements
        if judgement.remedy is not None and (judgement.finding.code, judgement.finding.target) in told
    ]


def _withhold(finding: Finding, remedy: Remedy, facts: PackagesFacts, situation: Situation) -> Withheld:
    if remedy.remove or remedy.reinstall:
        enable = "run the commands below"
    else:
        enable = f"add `[packages.{finding.target}]` to the profile, or install it yourself"
    return Withheld(
        (finding.code,),
        SUBJECT,
        finding.target,
        remedy.summary,
        remedy.because,
        enable,
        _lines(remedy, facts, situation),
    )


def _lines(remedy: Remedy, facts: PackagesFacts, situation: Situation) -> tuple[str, ...]:
    if facts.target is None:
        return ()
    pip = pip_command(facts, facts.target)
    lines = [(*pip, "uninstall", *remedy.remove)] if remedy.remove else []
    if remedy.install:
        sources = source_options(situation.profile.install, situation.settings, situation.facts.request.folder)
        again = ("--force-reinstall", "--no-deps") if remedy.reinstall else ()
        lines.append((*pip, "install", *sources, *again, *remedy.install))
    return tuple(shlex.join(map(without_credentials, line)) for line in lines)
