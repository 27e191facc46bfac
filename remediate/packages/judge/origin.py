"""Where a distribution that the plan replaces came from, and what that means for it. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator

from remediate.packages.facts import DistributionFacts, TargetFacts
from remediate.packages.judge.base import Evidence, Judgement, wrong

_VCS = ("git+", "hg+", "svn+", "bzr+")


def judge_origin(evidence: Evidence) -> Iterator[Judgement]:
    """Advice on each installed distribution that is about to be replaced and that no package index brought."""
    target = evidence.facts.target
    for name in evidence.pins if target is not None else ():
        found = evidence.facts.installed(name)
        if found is None or target is None or not evidence.moves(name):
            continue
        told = describe_origin(found, target)
        if told is not None:
            what, means = told
            yield Judgement(
                wrong(
                    "PKG019",
                    name,
                    f"{name} {found.version} {what}",
                    means,
                    observed=found.direct_url or found.installer or found.metadata_path,
                    wanted=f"{name} {evidence.planned(name)} from an index",
                    evidence=found.metadata_path,
                    is_advice=True,
                )
            )


def describe_origin(found: DistributionFacts, target: TargetFacts) -> tuple[str, str] | None:
    """What it is and what replacing it means; None for one that an installer took from an index or a wheel."""
    return _by_url(found) or _by_installer(found) or _by_place(found, target)


def _by_url(found: DistributionFacts) -> tuple[str, str] | None:
    if found.is_editable:
        what = f"is an editable install of {found.direct_url or 'a folder'}"
        return what, "the plan puts a wheel in its place; the folder stays, and a rollback brings the link back"
    if found.direct_url is None:
        return None
    if found.direct_url.startswith(_VCS):
        return f"was built from {found.direct_url}", "the plan puts a release in its place; a rollback brings it back"
    return f"came from {found.direct_url}", "the plan puts the index's wheel in its place"


def _by_installer(found: DistributionFacts) -> tuple[str, str] | None:
    if found.installer == "conda":
        means = "pip replaces its files and conda goes on believing in its own: change it with `conda install` instead"
        return "was installed by conda", means
    if found.metadata_path.endswith(".egg-info") and not found.has_record:
        return "was installed by distutils", "pip can't uninstall it, for it lists no files; remove it by hand first"
    return None


def _by_place(found: DistributionFacts, target: TargetFacts) -> tuple[str, str] | None:
    if target.user_site and _is_below(found.metadata_path, target.user_site):
        return "was installed with `--user`", "it belongs to this user and goes before what the environment has"
    if target.is_virtual and not _is_below(found.metadata_path, target.prefix):
        means = "the plan installs beside it; in this environment the new one goes before it, elsewhere nothing changes"
        return "belongs to the system, outside of the environment", means
    return None


def _is_below(path: str, folder: str) -> bool:
    real = os.path.realpath(folder)
    return os.path.realpath(path).startswith(real.rstrip(os.sep) + os.sep)
