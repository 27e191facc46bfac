"""The versions in a `python -m torch.utils.collect_env` report, and in vLLM's of the same form.

It names some distributions only, so that one that is missing in it may well be installed. Its "CUDA runtime version" is
that of nvcc on the PATH; the CUDA version of torch stands in "CUDA used to build PyTorch".
"""

from __future__ import annotations

import re

from remediate.model import Reading, Unknown, UnknownKind
from remediate.packages.facts import DistributionFacts, TorchBuild
from remediate.packages.reports.found import NAME, VERSION, Found, distribution

KIND = "torch.utils.collect_env"
_TORCH = re.compile(rf"^[ \t]{{0,8}}PyTorch version *: *({VERSION}|N/A)\s*$", re.MULTILINE | re.ASCII)
_MARK = re.compile(r"^[ \t]{0,8}(?:Collecting environment information|Is debug build *:)", re.MULTILINE)
_CUDA = re.compile(r"^[ \t]{0,8}CUDA used to build PyTorch *: *(.{1,80}?)\s*$", re.MULTILINE)
_HIP = re.compile(r"^[ \t]{0,8}ROCM used to build PyTorch *: *(.{1,80}?)\s*$", re.MULTILINE)
_PYTHON = re.compile(r"^[ \t]{0,8}Python version *: *(\d+\.\d+(?:\.\d+)?)\S*(?: .*)?$", re.MULTILINE | re.ASCII)
_PIP = re.compile(rf"^[ \t]{{0,8}}\[pip3?\d?\] ({NAME})==({VERSION})\s*$", re.MULTILINE | re.ASCII)
_CONDA = re.compile(rf"^[ \t]{{0,8}}\[conda\] ({NAME}) +({VERSION}) +\S+(?: +(\S+))?\s*$", re.MULTILINE | re.ASCII)
_CONDA_NAMES = {"pytorch": "torch", "numpy": "numpy"}
"""conda packages that are the distribution of that name; the rest may be libraries."""
_VERSION_OF_CUDA = re.compile(r"\d{1,3}\.\d{1,3}(?:\.\d{1,3})?", re.ASCII)


def find_collected(text: str, name: str) -> Found | None:
    """The report of a text."""
    torch, python = _TORCH.search(text), _PYTHON.search(text)
    if torch is None or not _MARK.search(text):
        return None
    found = {entry.name: entry for entry in _distributions(text)}
    build = None
    if torch[1] != "N/A":
        build = TorchBuild(name, torch[1], _cuda(text), _hip(text))
        found.setdefault("torch", distribution("torch", torch[1]))
    version: Reading[str] | None = python[1] if python else None
    return Found(KIND, name, tuple(found.values()), is_complete=False, python=version, build=build)


def _distributions(text: str) -> list[DistributionFacts]:
    """Those of conda first, so that what pip says of the same name stands."""
    conda = _CONDA.findall(text)
    entries = [distribution(_CONDA_NAMES[name], version) for name, version, _ in conda if name in _CONDA_NAMES]
    entries += [distribution(name, version) for name, version, channel in conda if channel == "pypi"]
    return entries + [distribution(name, version) for name, version in _PIP.findall(text)]


def _cuda(text: str) -> Reading[str | None]:
    said = _CUDA.search(text)
    if said is None:
        return Unknown(UnknownKind.NOT_READ, "not in this report")
    if said[1] in ("None", "N/A"):
        return None
    if _VERSION_OF_CUDA.fullmatch(said[1]):
        return ".".join(said[1].split(".")[:2])
    return Unknown(UnknownKind.FAILED, f"the report says `{said[1]}`")


def _hip(text: str) -> str | None:
    said = _HIP.search(text)
    return said[1] if said and said[1] not in ("N/A", "None") and said[1][:1].isdigit() else None
