"""Whether a torch build fits the machine: its CUDA version, the GPUs it has code for, the Pythons it has wheels for.

Pure; below the pins, which are held back where it does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping

from remediate.packages.facts import PackagesFacts
from remediate.packages.knowledge import TorchBuilds, torch_builds, torch_release
from remediate.packages.names import contains

_RUNTIME = ("nvidia-cuda-runtime-cu11", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime")
_LOCAL_CUDA = 3
"""`cu121` has at least three digits; `cu12` names no minor version."""


def installed_cuda(facts: PackagesFacts) -> str | None:
    """CUDA version of the installed torch (`12.1`): from its `version.py`, else from what came with it.

    A list that somebody handed over has no `version.py`: then the local part of the version (`+cu121`) or the CUDA
    runtime's distribution tells. None for a build without CUDA, without torch, and where nothing tells.
    """
    version, build = facts.version_of("torch"), facts.torch_build
    if version is None and build is None:
        return None
    if build is not None and (build.cuda is None or isinstance(build.cuda, str)):
        return build.cuda
    local = (version or "").partition("+")[2]
    if local:
        digits = local.removeprefix("cu")
        return f"{digits[:-1]}.{digits[-1]}" if digits.isdigit() and len(digits) >= _LOCAL_CUDA else None
    runtime = next((found for name in _RUNTIME if (found := facts.version_of(name)) is not None), None)
    return ".".join(runtime.split(".")[:2]) if runtime is not None else None


def unsupported_gpus(
    facts: PackagesFacts, version: str, cuda: str | None, announced: Mapping[str, str]
) -> tuple[tuple[str, ...], TorchBuilds | None]:
    """Compute capabilities of the host's GPUs that a torch build has no code for, and the row that says so.

    Judged are the builds of the PyTorch project for Linux x86_64: others (conda, NVIDIA's containers, aarch64) are
    built for other GPUs, and nothing is said of them.

    Args:
        facts: of the target; its platform and the installed torch's origin.
        version: of torch, as planned.
        cuda: CUDA version of that build.
        announced: `gpu:compute_capabilities`, one a line, or `gpu:compute_capability`, the lowest.
    """
    row = torch_builds(version, cuda) if cuda is not None and _is_project_build(facts, version) else None
    capabilities = announced.get("gpu:compute_capabilities") or announced.get("gpu:compute_capability", "")
    if row is None:
        return (), None
    missing = {capability for capability in capabilities.splitlines() if not _has_code(row, capability)}
    return tuple(sorted(missing)), row


def is_without_wheel(version: str, python: str) -> bool:
    """Whether the package index has no wheel of that torch for that Python (`3.12.1`); False where nobody looked."""
    release = torch_release(version)
    return release is not None and bool(release.python) and not contains(release.python, python)


def _is_project_build(facts: PackagesFacts, version: str) -> bool:
    target, found = facts.target, facts.installed("torch")
    if target is not None and (target.system != "linux" or target.machine != "x86_64"):
        return False
    installed = facts.version_of("torch")
    if found is None or installed is None or not contains(f"=={version.partition('+')[0]}", installed):
        return True  # Another one will be installed, from an index.
    local = installed.partition("+")[2]
    is_release = "a0" not in installed and "dev" not in installed and (not local or local.startswith("cu"))
    return is_release and found.installer != "conda" and found.direct_url is None


def _has_code(row: TorchBuilds, capability: str) -> bool:
    """Machine code runs on the same or a higher minor of its major; intermediate code on everything newer."""
    wanted = _parts(capability)
    if wanted is None:
        return True
    native = any(part[0] == wanted[0] and part[1] <= wanted[1] for arch in row.archs if (part := _parts(arch)))
    ptx = _parts(row.ptx)
    return native or (ptx is not None and ptx <= wanted)


def _parts(capability: str) -> tuple[int, int] | None:
    major, _, minor = capability.strip().partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None
