"""All rules, in the order in which their findings are told, and what they would have a person do."""

from __future__ import annotations

from collections.abc import Mapping

from remediate.packages.facts import PackagesFacts
from remediate.packages.judge import build, companions, condition, origin, tokenizer, traps
from remediate.packages.judge.base import Evidence, Judgement, Rule
from remediate.packages.pins import PlannedPin

RULES: tuple[Rule, ...] = (
    traps.judge_numpy,
    companions.judge_accelerate,
    build.judge_driver,
    build.judge_architecture,
    build.judge_cpu_build,
    build.judge_python,
    companions.judge_requirements,
    companions.judge_pair,
    tokenizer.judge_tokenizer,
    condition.judge_metadata,
    condition.judge_rivals,
    condition.judge_pynvml,
    origin.judge_origin,
    traps.judge_conflicts,
)


def judge(facts: PackagesFacts, pins: Mapping[str, PlannedPin], announced: Mapping[str, str]) -> tuple[Judgement, ...]:
    """What all rules say of the installed distributions and of what the plan would make of them."""
    evidence = Evidence(facts, pins, announced)
    return tuple(judgement for rule in RULES for judgement in rule(evidence))
