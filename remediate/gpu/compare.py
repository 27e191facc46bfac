"""Findings from judgements. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from remediate.gpu.facts import GpuFacts
from remediate.gpu.judgement import NO_DRIVER, Judgement
from remediate.gpu.settings import judge
from remediate.model import Finding
from remediate.profile.schema import GpuWish

SUBJECT = "gpu"


def compare(facts: GpuFacts, wish: GpuWish, is_root: bool) -> Sequence[Finding]:
    """One finding for each judgement, in its order."""
    return tuple(_finding(found, wish) for found in judge(facts, wish, is_root))


def target_of(found: Judgement) -> str:
    """What a judgement is about, for people: a GPU, or `GPU` where none could be read."""
    return "GPU" if found.code == NO_DRIVER else found.device.label


def _finding(found: Judgement, wish: GpuWish) -> Finding:
    return Finding(
        code=found.code,
        subject=SUBJECT,
        target=target_of(found),
        outcome=found.outcome,
        summary=found.summary + (f"; {found.because}" if found.because else ""),
        observed=found.observed,
        wanted=found.wanted,
        evidence=found.evidence,
        reason=wish.why.get(found.why, ""),
        is_advice=found.is_advice,
    )
