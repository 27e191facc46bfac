"""What torch, transformers and the pinned distributions require, with what is installed; extras as well. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from remediate.model import Finding, Outcome
from remediate.packages.facts import DistributionFacts
from remediate.packages.fit import installed_cuda
from remediate.packages.judge.base import SUBJECT, Evidence, Judgement, Remedy, wrong
from remediate.packages.judge.requirements import Requirement, holds, read_requirements
from remediate.packages.knowledge import torch_release, transformers_floor
from remediate.packages.names import contains

_STACK = frozenset(
    ("torch", "torchvision", "torchaudio", "transformers", "accelerate", "tokenizers", "huggingface-hub", "peft")
)
_PROFILE = "the profile governs neither of them"


def judge_requirements(evidence: Evidence) -> Iterator[Judgement]:
    """Each unmet `Requires-Dist` of the stack and of pinned distributions.

    torch requires its `nvidia-*` distributions in one exact version, so that a mixed NCCL shows here.
    """
    for found in evidence.facts.distributions:
        if found.name not in _STACK and found.name not in evidence.pins:
            continue
        for requirement in _requirements(found, evidence):
            judgement = _judge(found, requirement, evidence)
            if judgement is not None:
                yield judgement


def judge_pair(evidence: Evidence) -> Iterator[Judgement]:
    """What transformers itself checks: an older torch is disabled, with a message that misleads.

    What is planned is judged too, for a profile may name a pair that does not work.
    """
    seen = set()
    for transformers, torch, when in (
        (evidence.version("transformers"), evidence.version("torch"), "are installed"),
        (evidence.planned("transformers"), evidence.planned("torch"), "are planned"),
    ):
        if transformers is None or torch is None or (transformers, torch) in seen:
            continue
        seen.add((transformers, torch))
        floor = transformers_floor(transformers)
        if floor is None or not floor.torch or contains(floor.torch, _release(torch)):
            continue
        yield Judgement(
            wrong(
                "PKG015",
                "transformers",
                f"transformers {transformers} needs torch{floor.torch}; {transformers} and {torch} {when}",
                f"no installer checks it; a program ends with `{floor.says}`, whatever is installed"
                if floor.says
                else "no installer checks it; transformers goes on as if there were no torch",
                observed=f"torch {torch}",
                wanted=f"torch{floor.torch}",
            )
        )


def judge_accelerate(evidence: Evidence) -> Iterator[Judgement]:
    """Whether accelerate is there where the script needs it, in a version that transformers takes."""
    needed = evidence.is_needed("script:needs_accelerate")
    version, transformers = evidence.version("accelerate"), evidence.version("transformers")
    floor = transformers_floor(transformers) if transformers is not None else None
    wanted = f"accelerate{floor.accelerate}" if floor is not None else "accelerate"
    pin = evidence.pins.get("accelerate")
    is_pinned = pin is not None and pin.is_judged
    if version is None:
        # Where the profile requires it, the pin's own finding says it.
        if needed and not is_pinned and evidence.facts.tells_absence("accelerate"):
            yield _missing_accelerate(wanted)
    elif floor is not None and floor.accelerate and not contains(floor.accelerate, version):
        yield _old_accelerate(version, f"transformers {transformers}", wanted, needed, is_pinned)
    elif needed and not is_pinned:
        summary = "the script uses `device_map`, accelerate is there"
        yield Judgement(Finding("PKG005", SUBJECT, "accelerate", Outcome.SAME, summary, version, wanted))


def _missing_accelerate(wanted: str) -> Judgement:
    return Judgement(
        wrong(
            "PKG005",
            "accelerate",
            "the script uses `device_map`, and accelerate is absent",
            "`from_pretrained` with a device map raises without it, and transformers does not install it",
            observed="absent",
            wanted=wanted,
        ),
        Remedy("install accelerate", "the profile does not say which version", install=(wanted,)),
    )


def _old_accelerate(version: str, by: str, wanted: str, needed: bool, is_pinned: bool) -> Judgement:
    finding = wrong(
        "PKG015",
        "accelerate",
        f"{by} needs {wanted}, and {version} is installed",
        "no installer checks it; `device_map` raises as if accelerate were absent",
        observed=version,
        wanted=wanted,
        is_advice=not needed,
    )
    remedy = Remedy("install a newer accelerate", "the profile does not say which version", install=(wanted,))
    return Judgement(finding, None if is_pinned else remedy)


def _requirements(found: DistributionFacts, evidence: Evidence) -> Iterator[Requirement]:
    if found.metadata_path:
        yield from read_requirements(found.requires)
    elif isinstance(found.version, str):
        # A list that somebody handed over says no requirements; what is known of the version stands in.
        yield from _known_requirements(found.name, found.version, evidence)


def _known_requirements(name: str, version: str, evidence: Evidence) -> Iterator[Requirement]:
    release = torch_release(version) if name == "torch" else None
    if release is not None and installed_cuda(evidence.facts) in (None, release.cuda):
        nccl = f"nvidia-nccl-cu{release.cuda.partition('.')[0]}=={release.nccl}"
        yield from read_requirements((nccl, f"triton=={release.triton}"))
    floor = transformers_floor(version) if name == "transformers" else None
    if floor is not None:
        yield from read_requirements(floor.requires)


def _judge(found: DistributionFacts, requirement: Requirement, evidence: Evidence) -> Judgement | None:
    """None where it is met, where its marker does not hold, or where a pin sees to it."""
    name, version, pin = requirement.name, evidence.version(requirement.name), evidence.pins.get(requirement.name)
    sees_to_it = pin is not None and pin.needs_install and contains(requirement.specifier, pin.planned)
    # conda's own distributions carry these libraries under other names.
    is_conda = found.installer == "conda" and name.startswith(("nvidia-", "triton"))
    if sees_to_it or is_conda or not _is_unmet(requirement, version, found, evidence):
        return None
    finding = wrong(
        "PKG014",
        name,
        f"{found.name} {found.version} requires {requirement}, and {version or 'it'} is "
        f"{'installed' if version else 'not installed'}",
        _symptom(found.name, requirement),
        observed=version or "absent",
        wanted=str(requirement),
        evidence=found.metadata_path,
        is_advice=not _breaks(found.name, requirement, version),
    )
    if evidence.moves(found.name) or (pin is not None and pin.is_judged):
        return Judgement(finding)
    return Judgement(finding, Remedy(f"install {requirement}", _PROFILE, install=(str(requirement),)))


def _is_unmet(requirement: Requirement, version: str | None, found: DistributionFacts, evidence: Evidence) -> bool:
    """The marker is asked last, for that costs most."""
    if version is not None:
        is_unmet = bool(requirement.specifier) and not contains(requirement.specifier, version)
    else:
        is_absent = evidence.facts.installed(requirement.name) is None
        is_unmet = is_absent and evidence.facts.tells_absence(requirement.name) and bool(found.metadata_path)
    return is_unmet and holds(requirement.marker, evidence.facts.target)


def _breaks(name: str, requirement: Requirement, version: str | None) -> bool:
    """Whether an import surely fails: transformers checks its requirements, torch needs symbols of older libraries."""
    if name == "transformers":
        return True
    if name != "torch" or not requirement.name.startswith("nvidia-"):
        return False
    exact = requirement.specifier.removeprefix("==")
    return version is None or contains(f"<{exact}", version)


def _symptom(name: str, requirement: Requirement) -> str:
    if name == "torch" and requirement.name.startswith("nvidia-nccl"):
        return "with an older NCCL `import torch` fails: `undefined symbol: ncclCommRegister`; a newer one is untested"
    if name == "torch" and requirement.name.startswith("nvidia-"):
        return "torch is linked against exactly these libraries"
    if name == "torch":
        return "torch.compile uses it; other versions are untested"
    if name == "transformers":
        return "`import transformers` checks it and raises ImportError"
    return "it was installed past its installer's check, or moved afterwards"


def _release(torch: str) -> str:
    """A pre-release as its release, for transformers takes NVIDIA's `2.2.0a0` for a 2.2.0."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(torch).base_version
    except InvalidVersion:
        return torch
