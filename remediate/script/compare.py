"""Facts about scripts and the profile's wish to findings. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from remediate.model import Finding, Outcome
from remediate.script.facts import FileFacts, ScriptFacts
from remediate.script.patch import is_ignored
from remediate.script.rules import RULES, UNREADABLE, rank
from remediate.script.rules.base import Rule, Verdict, Wanted
from remediate.subject import Situation

SUBJECT = "script"


def compare(situation: Situation) -> tuple[Finding, ...]:
    """The findings of all scripts: those of one file by what they cost, then in the order of their lines."""
    facts: ScriptFacts = situation.facts.sections[SUBJECT]
    wanted = wanted_of(situation)
    folder = situation.facts.request.folder
    return tuple(finding for file in facts.files for finding in _compare_file(file, wanted, folder))


def wanted_of(situation: Situation) -> Wanted:
    """What the rules hold scripts against."""
    return Wanted(situation.profile.script, situation.announced, situation.settings.unsafe_fixes)


def display_path(path: str, folder: str) -> str:
    """A script's path as people name it: relative to the sandbox where it is below it."""
    relative = os.path.relpath(path, folder)
    return path if relative.startswith("..") else relative


def _compare_file(file: FileFacts, wanted: Wanted, folder: str) -> list[Finding]:
    found = [
        (rank(rule.code), verdict.line, _finding(file, rule, verdict, folder))
        for rule, verdict in verdicts_of(file, wanted)
        if not is_ignored(file, rule.code, verdict.line, verdict.end_line)
    ]
    return [finding for _, _, finding in sorted(found, key=lambda item: item[:2])]


def open_codes(file: FileFacts, wanted: Wanted) -> set[str]:
    """Codes of the rules that a script differs from."""
    return {
        rule.code
        for rule, verdict in verdicts_of(file, wanted)
        if verdict.outcome is Outcome.DIFFERS and not is_ignored(file, rule.code, verdict.line, verdict.end_line)
    }


def verdicts_of(file: FileFacts, wanted: Wanted) -> Iterator[tuple[Rule, Verdict]]:
    """What each rule says about a script, before comments that ignore a line are heeded."""
    rules: Iterable[Rule] = RULES
    if file.problem or not file.is_inference:
        is_run = bool(file.generates) and not file.training and not file.loads
        rules = (UNREADABLE, *(rule for rule in RULES if is_run and not rule.needs_load))
    for rule in rules:
        for verdict in rule.check(file, wanted) if rule.code not in wanted.wish.ignore else ():
            yield rule, verdict


def _finding(file: FileFacts, rule: Rule, verdict: Verdict, folder: str) -> Finding:
    target = f"{display_path(file.path, folder)}:{file.place(verdict.line)}"
    return Finding(
        code=rule.code,
        subject=SUBJECT,
        target=target,
        outcome=verdict.outcome,
        summary=f"{target}: {verdict.summary}",
        observed=verdict.observed,
        wanted=verdict.wanted,
        evidence=verdict.evidence,
        reason=verdict.reason,
        is_advice=verdict.is_advice or bool(file.benchmark),
    )
