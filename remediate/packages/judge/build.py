"""torch's build against the machine: driver, GPU architecture, Python. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from remediate.model import Finding, Outcome
from remediate.packages.fit import unsupported_gpus
from remediate.packages.judge.base import SUBJECT, Evidence, Judgement, wrong
from remediate.packages.names import contains
from remediate.packages.pins import driver_needed, planned_torch_cuda


def judge_driver(evidence: Evidence) -> Iterator[Judgement]:
    """The driver must be of the build's CUDA major version, or newer (minor version compatibility)."""
    cuda = planned_torch_cuda(evidence.facts, evidence.pins)
    needed = driver_needed(cuda) if cuda else None
    if cuda is None or needed is None:
        return
    driver = evidence.announced.get("gpu:driver_version", "")
    wanted = f">={needed}"
    summary = f"a torch built for CUDA {cuda} needs driver {needed} or newer"
    if not driver:
        # On a machine without a GPU this is no fault of the packages; the GPU subject says what could not be read.
        text = f"{summary}; the driver's version is not known"
        yield Judgement(Finding("PKG006", SUBJECT, "driver", Outcome.UNKNOWN, text, wanted=wanted, is_advice=True))
        return
    fits = contains(wanted, driver)
    newer = evidence.announced.get("gpu:cuda_driver_version", "")
    by_minor = f" (of CUDA {newer}, which runs it by minor version compatibility)" if _is_older(newer, cuda) else ""
    yield Judgement(
        Finding(
            "PKG006",
            SUBJECT,
            "driver",
            Outcome.SAME if fits else Outcome.DIFFERS,
            f"{summary}, and it is {driver}{by_minor if fits else ''}",
            observed=driver,
            wanted=wanted,
            reason="with an older driver torch finds no GPU",
        )
    )


def judge_architecture(evidence: Evidence) -> Iterator[Judgement]:
    """The build that there will be must hold code for every GPU; only known builds for Linux x86_64 are judged."""
    torch, cuda = evidence.planned("torch"), planned_torch_cuda(evidence.facts, evidence.pins)
    if torch is None:
        return
    missing, row = unsupported_gpus(evidence.facts, torch, cuda, evidence.announced)
    if not missing or row is None:
        return
    gpus = ", ".join(missing)
    yield Judgement(
        wrong(
            "PKG013",
            "torch",
            f"torch {torch} for CUDA {cuda} has no code for compute capability {gpus}",
            _what_to_do(missing[0], row.archs),
            observed=f"compute capability {gpus}",
            wanted=f"compute capability {row.archs[0]} to {row.archs[-1]}",
            evidence=row.source,
        )
    )


def judge_cpu_build(evidence: Evidence) -> Iterator[Judgement]:
    """A torch without CUDA or ROCm on a machine with a GPU. Where a pin names the CUDA version, it says so itself."""
    build, pin = evidence.facts.torch_build, evidence.pins.get("torch")
    if build is None or build.cuda is not None or build.hip is not None or evidence.moves("torch"):
        return
    if not evidence.announced.get("gpu:name") or (pin is not None and pin.pin.cuda):
        return
    yield Judgement(
        wrong(
            "PKG013",
            "torch",
            f"torch {build.version} is built for the CPU only, and the machine has a GPU",
            "everything runs on the CPU, and `.to('cuda')` raises `Torch not compiled with CUDA enabled`",
            observed="CPU only",
            wanted="a build for CUDA",
            evidence=build.path,
        )
    )


def judge_python(evidence: Evidence) -> Iterator[Judgement]:
    """Requires-Python of the installed distributions that a pin governs, with the target's version."""
    target = evidence.facts.target
    for name in evidence.pins if target is not None else ():
        found = evidence.facts.installed(name)
        if found is None or target is None or evidence.moves(name) or not found.requires_python:
            continue
        if not contains(found.requires_python, target.version):
            yield Judgement(
                wrong(
                    "PKG008",
                    name,
                    f"{name} {found.version} requires Python {found.requires_python}, and the target is "
                    f"{target.version}",
                    "it was installed by another Python, or past its installer's check",
                    observed=target.version,
                    wanted=found.requires_python,
                    evidence=found.metadata_path,
                )
            )


def _what_to_do(capability: str, archs: tuple[str, ...]) -> str:
    symptom = "kernels fail with `no kernel image is available for execution on the device`"
    if float(capability) < float(archs[0]):
        return f"{symptom}; GPUs below 7.5 need a build for CUDA 12, of torch 2.10 or older, or for CUDA 12.6"
    return f"{symptom}; Blackwell GPUs need torch 2.7 or newer, built for CUDA 12.8 or newer"


def _is_older(driver_cuda: str, cuda: str) -> bool:
    return bool(driver_cuda) and contains(f"<{cuda}", driver_cuda)
