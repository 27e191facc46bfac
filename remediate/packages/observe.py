"""Read the target environment and the requirements files into facts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from msgspec.structs import replace

from remediate.model import Choice, Reading, Unknown, UnknownKind
from remediate.packages.facts import PackagesFacts, TargetFacts
from remediate.packages.inspect import Inventory, read_distributions
from remediate.packages.sources import Sources, read_sources
from remediate.packages.target import Probe, find_interpreter, finish_probe, start_probe, tool_python

_PIP_VERSION = re.compile(r"""^__version__\s*=\s*["']([^"']+)["']""", re.MULTILINE)


def observe_packages(
    folder: Path, python: str | None, requirements: str | None, probe: Probe | None = None, installer: str = "pip"
) -> tuple[PackagesFacts, tuple[Choice, ...]]:
    """Facts of the folder's target environment, and what was chosen on the way.

    The files are read while the interpreter starts.

    Args:
        folder: the sandbox.
        python: the interpreter or environment that was named.
        requirements: the requirements file that was named.
        probe: the interpreter, where it is started already.
        installer: `uv` is looked for where it is to be used.

    Raises:
        TargetError: `python` was given and can't be used.
        RequirementsError: `requirements` was given and can't be read or parsed.
    """
    candidate = probe.candidate if probe is not None else find_interpreter(folder, python)
    if candidate is None:
        unknown = Unknown(UnknownKind.NOT_READ, "no environment in the folder, none active, and no `python3` on PATH")
        sources = read_sources(folder, requirements)
        facts = PackagesFacts(None, unknown, requirements=sources.files, other_sources=sources.other)
        return facts, sources.choices
    probe = probe or start_probe(candidate)
    try:
        sources = read_sources(folder, requirements)
    finally:
        target = finish_probe(probe)
    choices = (*((candidate.choice,) if candidate.choice else ()), *sources.choices)
    if isinstance(target, Unknown):
        return PackagesFacts(None, target, requirements=sources.files, other_sources=sources.other), choices
    facts = _assemble(target, read_distributions(target.search_path), sources)
    return (replace(facts, uv=read_uv()) if installer == "uv" else facts), choices


def _assemble(target: TargetFacts, inventory: Inventory, sources: Sources) -> PackagesFacts:
    found = next((item.version for item in inventory.distributions if item.name == "pip"), None)
    pip: Reading[str] = found if found is not None else Unknown(UnknownKind.NOT_SUPPORTED, "the target has no pip")
    return PackagesFacts(
        target=target,
        distributions=inventory.distributions,
        problems=inventory.problems,
        torch_build=inventory.torch_build,
        requirements=sources.files,
        other_sources=sources.other,
        pip=pip,
        tool_pip=read_tool_pip() if isinstance(pip, Unknown) else Unknown(UnknownKind.NOT_READ, "not needed"),
        tool_python=tool_python(),
    )


def read_uv() -> Reading[str]:
    """Path of uv: the one beside this program's interpreter, else the one on PATH."""
    import shutil

    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.is_file() else shutil.which("uv")
    return found or Unknown(UnknownKind.NOT_SUPPORTED, "uv is asked for and not installed: there is none on PATH")


def read_tool_pip() -> Reading[str]:
    """Version of the pip that is installed beside this program, from its text; pip-tools brings one."""
    for folder in sys.path:
        try:
            text = Path(folder, "pip", "__init__.py").read_text("utf-8", "replace")
        except OSError:
            continue
        match = _PIP_VERSION.search(text)
        if match:
            return match[1]
    return Unknown(UnknownKind.NOT_SUPPORTED, "this program's environment has no pip")
