"""The state of the installation itself: metadata, leftovers, files that two distributions write. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from remediate.packages.facts import ProblemKind
from remediate.packages.judge.base import Evidence, Judgement, Remedy, wrong
from remediate.packages.judge.requirements import read_requirements
from remediate.packages.knowledge import Member, Rivals, rivals
from remediate.packages.names import contains

_NOT_GOVERNED = "the profile does not govern it"
_CODES = {
    ProblemKind.ORPHAN: "PKG017",
    ProblemKind.EMPTY: "PKG017",
    ProblemKind.MIXED: "PKG017",
    ProblemKind.CHANGED: "PKG018",
}
_REASONS = {
    "PKG007": "installers guess which version is there, and an upgrade may leave files of the other behind",
    "PKG017": "an uninstall or an install ended half-way: an import finds an empty or foreign module",
    "PKG018": "it is not what was installed; a reinstall discards the changes",
}


def judge_metadata(evidence: Evidence) -> Iterator[Judgement]:
    """Broken, duplicate, left-over metadata, modules without a distribution, changed files."""
    for problem in evidence.facts.problems:
        code = _CODES.get(problem.kind, "PKG007")
        pin = evidence.pins.get(problem.name)
        is_governed = pin is not None and problem.kind is not ProblemKind.LEFTOVER
        finding = wrong(
            code,
            problem.name.removeprefix("?"),
            f"{problem.kind}: {problem.detail}",
            _REASONS[code],
            observed=problem.path,
            evidence=problem.path,
            is_advice=not is_governed or problem.kind is ProblemKind.CHANGED,
        )
        yield Judgement(finding, _remedy(problem.kind, problem.name) if not is_governed else None)


def judge_rivals(evidence: Evidence) -> Iterator[Judgement]:
    """Two distributions that write the same files, as pynvml beside nvidia-ml-py."""
    for group in rivals():
        there = [member.name for member in group.members if _writes(member, evidence)]
        if len(there) < 2:  # noqa: PLR2004 (a rival needs another one)
            continue
        keep = _kept(group, there, evidence)
        yield Judgement(
            wrong(
                "PKG016",
                group.module,
                f"{' and '.join(there)} write the same module `{group.module}`",
                group.effect,
                observed=", ".join(f"{name} {evidence.version(name)}" for name in there),
                wanted=keep,
                evidence=group.source,
                is_advice=not group.is_broken,
            ),
            Remedy(
                f"keep {keep} alone",
                _NOT_GOVERNED,
                remove=tuple(name for name in there if name != keep),
                install=(_pinned(keep, evidence),),
                reinstall=True,
            ),
        )


def judge_pynvml(evidence: Evidence) -> Iterator[Judgement]:
    """The deprecated distributions that bring the module `pynvml`."""
    for name, says in (
        ("pynvml", "the distribution `pynvml` warns in every program"),
        ("nvidia-ml-py3", "nvidia-ml-py3 is of 2018 and knows no later GPU"),
    ):
        if evidence.facts.installed(name) is None:
            continue
        version = evidence.version(name) or ""
        yield Judgement(
            wrong(
                "PKG009",
                name,
                f"the deprecated distribution {name} {version} is installed".rstrip(),
                f"the module `pynvml` comes from nvidia-ml-py; {says}",
                observed=version,
                wanted="nvidia-ml-py",
                is_advice=True,
            )
        )


def _writes(member: Member, evidence: Evidence) -> bool:
    version = evidence.version(member.name)
    return version is not None and (not member.versions or contains(member.versions, version))


def _kept(group: Rivals, there: list[str], evidence: Evidence) -> str:
    """The one to keep; of the libraries of torch that which torch requires, else that of its CUDA version."""
    if group.keep != "torch":
        return group.keep if group.keep in there else there[0]
    torch = evidence.facts.installed("torch")
    required = {requirement.name for requirement in read_requirements(torch.requires)} if torch is not None else set()
    return next((name for name in there if name in required), there[-1])


def _pinned(name: str, evidence: Evidence) -> str:
    """As torch requires it, else the installed version again."""
    torch = evidence.facts.installed("torch")
    for requirement in read_requirements(torch.requires) if torch is not None else ():
        if requirement.name == name:
            return str(requirement)
    return f"{name}=={evidence.version(name)}"


def _remedy(kind: ProblemKind, name: str) -> Remedy | None:
    """Only for what an installer can put right by itself."""
    if kind is ProblemKind.EMPTY:
        return Remedy(f"install {name} again", _NOT_GOVERNED, install=(name,), reinstall=True)
    return None
