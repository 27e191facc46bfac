"""Choose a profile for a host, and say why; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from remediate.profile.schema import Match, Profile


def mismatches(match: Match, announced: Mapping[str, str]) -> tuple[str, ...]:
    """Why the profile does not fit a host; empty when it does.

    Args:
        match: the profile's conditions.
        announced: `gpu:name` (names of all boards, one a line), `gpu:driver_version`, `gpu:compute_capability` (the
            lowest of all boards); a key that is missing could not be read.
    """
    reasons = []
    names = announced.get("gpu:name", "").splitlines()
    if match.gpu and not names:
        reasons.append("no GPU could be read")
    elif match.gpu and not all(any(fnmatchcase(name, glob) for glob in match.gpu) for name in names):
        reasons.append(f"GPU is {', '.join(sorted(set(names)))}, the profile is for {' or '.join(match.gpu)}")
    for label, key, specifier in (
        ("driver", "gpu:driver_version", match.driver),
        ("compute capability", "gpu:compute_capability", match.compute_capability),
    ):
        if specifier and not _accepts(specifier, announced.get(key)):
            reasons.append(f"{label} is {announced.get(key, 'unknown')}, the profile is for {specifier}")
    return tuple(reasons)


def select(profiles: Iterable[Profile], announced: Mapping[str, str]) -> tuple[Profile | None, str]:
    """The profile with the most conditions among those that fit, and the reason in words.

    Profiles marked `on_request` are left out. Ties go to the name that sorts first. None when nothing fits.
    """
    refused = []
    fitting = []
    candidates = sorted(
        (profile for profile in profiles if not profile.match.on_request), key=lambda candidate: candidate.name
    )
    if "gpu:name" not in announced:
        spare = next((profile for profile in candidates if profile.match.without_gpu), None)
        if spare is not None:
            return spare, "no GPU could be read, and it is the one for that case"
    for profile in candidates:
        reasons = mismatches(profile.match, announced)
        if reasons:
            refused.append(f"{profile.name}: {'; '.join(reasons)}")
        else:
            fitting.append(profile)
    if not fitting:
        return None, "; ".join(refused)
    best = max(fitting, key=lambda candidate: _conditions(candidate.match))
    return best, _describe(best.match, announced)


def _conditions(match: Match) -> int:
    return sum(map(bool, (match.gpu, match.driver, match.compute_capability)))


def _describe(match: Match, announced: Mapping[str, str]) -> str:
    parts = []
    if match.gpu:
        parts.append(f"GPU {announced['gpu:name'].splitlines()[0]}")
    if match.driver:
        parts.append(f"driver {announced['gpu:driver_version']} ({match.driver})")
    if match.compute_capability:
        parts.append(f"compute capability {announced['gpu:compute_capability']} ({match.compute_capability})")
    return "it fits " + ", ".join(parts) if parts else "it fits any host"


def _accepts(specifier: str, version: str | None) -> bool:
    try:
        return version is not None and SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False
