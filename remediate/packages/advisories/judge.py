"""What the shipped data says of an environment and of a profile's pins. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from remediate.model import Finding, Outcome
from remediate.packages.advisories.records import Advisory, Kind, Sure, known_of, shipped
from remediate.packages.facts import PackagesFacts
from remediate.packages.pins import PlannedPin
from remediate.profile.schema import Profile

_SUBJECT = "packages"
_NAMED = {Kind.VULNERABILITY: 2, Kind.REGRESSION: 1, Kind.CLAIM: 1}
"""How many of a kind are named; `remediate advisories` lists them all."""


def find_known(facts: PackagesFacts, pins: Mapping[str, PlannedPin]) -> Iterator[Finding]:
    """One piece of advice for each installed distribution of which something is known.

    Where the plan keeps a pinned version, its costs tell the rest, so that the finding only counts.
    """
    for name in sorted(shipped().covered):
        version = facts.version_of(name)
        known = known_of(name, version) if version is not None else ()
        if version is None or not known:
            continue
        pin = pins.get(name)
        stays = pin is not None and pin.is_judged and not pin.needs_install
        yield Finding(
            "PKG020",
            _SUBJECT,
            name,
            Outcome.DIFFERS,
            f"{name} {version}: {count(known)}",
            observed=version,
            wanted=leaves_behind(known),
            evidence=() if stays else tuple(map(describe, _named(known))),
            is_advice=True,
        )


def pin_costs(successor: Profile | None, versions: Mapping[str, str]) -> tuple[str, ...]:
    """What the data says it costs to be on these versions, and how much of it a successor leaves behind.

    Args:
        successor: the profile that the present one names as such.
        versions: version by canonical name.
    """
    known = {name: found for name, version in sorted(versions.items()) if (found := known_of(name, version))}
    costs = [f"{name} {versions[name]}: {_with_fix(found)}" for name, found in known.items()]
    return (*costs, *(_way_out(known, successor) if successor is not None else ()))


def count(known: tuple[Advisory, ...]) -> str:
    """Counts by kind, the gravest named: `23 published vulnerabilities (CVE-2025-32434, …), 2 known regressions`."""
    words = {
        Kind.VULNERABILITY: ("published vulnerability", "published vulnerabilities"),
        Kind.REGRESSION: ("known regression", "known regressions"),
        Kind.CLAIM: ("claim that could not be verified", "claims that could not be verified"),
    }
    parts = []
    for kind, (one, several) in words.items():
        ids = [advisory.id for advisory in known if advisory.kind is kind]
        if ids:
            rest = ", …" if len(ids) > 1 else ""
            parts.append(f"{len(ids)} {one if len(ids) == 1 else several} ({ids[0]}{rest})")
    return ", ".join(parts)


def summarise(known: tuple[Advisory, ...]) -> str:
    """Counts by kind, the gravest named: `23 published vulnerabilities, the gravest CVE-2025-32434 (…)`."""
    parts = []
    vulnerabilities = [advisory for advisory in known if advisory.kind is Kind.VULNERABILITY]
    if vulnerabilities:
        noun = "vulnerability" if len(vulnerabilities) == 1 else "vulnerabilities"
        gravest = vulnerabilities[0]
        label = "" if len(vulnerabilities) == 1 else "the gravest "
        parts.append(f"{len(vulnerabilities)} published {noun}, {label}{gravest.id} ({gravest.effect})")
    regressions = [advisory for advisory in known if advisory.kind is Kind.REGRESSION]
    if regressions:
        noun = "regression" if len(regressions) == 1 else "regressions"
        parts.append(f"{len(regressions)} known {noun}, as {regressions[0].id} ({regressions[0].effect})")
    parts += [f"claimed and not verified: {found.effect}" for found in known if found.kind is Kind.CLAIM]
    return "; ".join(parts)


def describe(advisory: Advisory) -> str:
    """One line: number, effect, fixed version, how sure it is."""
    if advisory.kind is Kind.CLAIM:
        return f"{advisory.id}: {advisory.effect} ({advisory.sure})"
    fixed = f"fixed in {advisory.fixed}" if advisory.fixed else "no fixed version is known"
    sure = "" if advisory.sure in (Sure.ADVISORY, Sure.TESTED) else f"; {advisory.sure}"
    return f"{advisory.id}: {advisory.effect} ({fixed}{sure})"


def _named(known: tuple[Advisory, ...]) -> Iterator[Advisory]:
    for kind, most in _NAMED.items():
        yield from [advisory for advisory in known if advisory.kind is kind][:most]


def leaves_behind(known: tuple[Advisory, ...]) -> str:
    """The lowest version above every fixed version that is known, as `>=2.13.0`; empty where none is known."""
    from packaging.version import Version

    fixed = [Version(advisory.fixed) for advisory in known if advisory.fixed and advisory.kind is not Kind.CLAIM]
    return f">={max(fixed)}" if fixed else ""


def _with_fix(known: tuple[Advisory, ...]) -> str:
    fixed = leaves_behind(known)
    unfixed = sum(1 for advisory in known if not advisory.fixed and advisory.kind is not Kind.CLAIM)
    unverified = sum(1 for advisory in known if advisory.sure is Sure.UNVERIFIED and advisory.kind is not Kind.CLAIM)
    tail = [f"{fixed} leaves behind what has a fix"] if fixed else []
    tail += [f"{unfixed} without a known fix"] if unfixed else []
    tail += [f"{unverified} not verified"] if unverified else []
    return f"{summarise(known)}; {', '.join(tail)}" if tail else summarise(known)


def _way_out(known: Mapping[str, tuple[Advisory, ...]], successor: Profile) -> Iterator[str]:
    """What becomes of the vulnerabilities with the successor's pins; nothing where it leaves none behind."""
    here = {(name, found.id) for name, all_found in known.items() for found in all_found if _is_vulnerability(found)}
    pins = {name: successor.packages[name].version for name in known if name in successor.packages}
    there = {
        (name, found.id)
        for name, version in pins.items()
        for found in known_of(name, version)
        if _is_vulnerability(found)
    }
    gone = {entry for entry in here - there if entry[0] in pins}
    if not gone:
        return
    fits = f" where the driver is {successor.match.driver}" if successor.match.driver else ""
    open_ones = f"; open there: {', '.join(sorted(number for _, number in there))}" if there else ""
    versions = ", ".join(f"{name} {version}" for name, version in pins.items())
    yield f"profile `{successor.name}` ({versions}) leaves {len(gone)} of {len(here)} behind{fits}{open_ones}"


def _is_vulnerability(advisory: Advisory) -> bool:
    return advisory.kind is Kind.VULNERABILITY
