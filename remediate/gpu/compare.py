"""Findings from judgements. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from remediate.gpu.facts import GpuFacts
from remediate.gpu.judgement import NO_DRIVER, Judgement
from remediate.gpu.settings import judge
from remediate.model import Finding
from remediate.profile.schema import Profile

SUBJECT = "gpu"


def compare(facts: GpuFacts, profile: Profile, is_root: bool) -> Sequence[Finding]:
    """One finding for each judgement, in its order."""
    return tuple(_finding(found) for found in judge(facts, profile.gpu, is_root, profile.gpu_for))


def target_of(found: Judgement) -> str:
    """What a judgement is about, for people: a GPU, or `GPU` where none could be read."""
    return "GPU" if found.code == NO_DRIVER else found.device.label


def _finding(found: Judgement) -> Finding:
    return Finding(
        code=found.code,
        subject=SUBJECT,
        target=target_of(found),
        outcome=found.outcome,
        summary=found.summary + (f"; {found.because}" if found.because else ""),
        observed=found.observed,
        wanted=found.wanted,
        evidence=found.evidence,
        reason=found.reason,
        is_advice=found.is_advice,
    )
