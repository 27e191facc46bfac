"""Known traps that no metadata tells: combinations that install well and break later. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from remediate.model import Finding, Outcome
from remediate.packages.judge.base import SUBJECT, Evidence, Judgement, wrong
from remediate.packages.judge.requirements import Requirement, holds, read_requirements
from remediate.packages.names import contains
from remediate.packages.pins import PlannedPin, needs_numpy_1


def judge_numpy(evidence: Evidence) -> Iterator[Judgement]:
    """Judges what is installed; the pins see to what will be."""
    torch, numpy = evidence.version("torch"), evidence.version("numpy")
    if torch is None or numpy is None or not needs_numpy_1(torch):
        return
    is_broken = contains(">=2.dev0", numpy)
    yield Judgement(
        Finding(
            "PKG004",
            SUBJECT,
            "numpy",
            Outcome.DIFFERS if is_broken else Outcome.SAME,
            f"torch {torch} with numpy {numpy}" + (" is broken, and `pip check` does not see it" if is_broken else ""),
            observed=numpy,
            wanted="numpy<2",
            reason="`pipeline()` and `.numpy()` raise, and `torch.tensor(np.ones(2))` silently gives float32",
        )
    )


def judge_conflicts(evidence: Evidence) -> Iterator[Judgement]:
    """Installed distributions, not governed, that will not accept what the plan installs."""
    moving = {name: pin for name, pin in evidence.pins.items() if pin.needs_install}
    for found in evidence.facts.distributions if moving else ():
        if found.name in moving:
            continue
        for requirement in read_requirements(found.requires):
            pin = moving.get(requirement.name)
            if pin is None or not _rejects(requirement, pin, evidence):
                continue
            yield Judgement(
                wrong(
                    "PKG011",
                    found.name,
                    f"{found.name} {evidence.version(found.name) or ''} requires {requirement}, and {pin.planned} is "
                    "planned",
                    "pip may move it to another version or leave it broken",
                    observed=str(requirement),
                    wanted=f"{pin.name}=={pin.planned}",
                    evidence=found.metadata_path,
                    is_advice=True,
                )
            )


def _rejects(requirement: Requirement, pin: PlannedPin, evidence: Evidence) -> bool:
    specifier = requirement.specifier
    if not specifier or contains(specifier, pin.planned):
        return False
    # What it does not accept today either is no news.
    if pin.installed is not None and not contains(specifier, pin.installed):
        return False
    return holds(requirement.marker, evidence.facts.target)
