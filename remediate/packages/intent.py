"""Everything around the install operation: the lock that fits, what is pruned, how much it downloads. Pure, but for
reading the lock and the names in local wheel folders.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from remediate.model import ChangeItem, Withheld
from remediate.packages.facts import PackagesFacts, TargetFacts
from remediate.packages.install import SPACE_FACTOR, Install, Smoke, locked_entries, plan_install, prunable
from remediate.packages.lockfile import Lock, find_lock, read_lock
from remediate.packages.names import is_same_version
from remediate.packages.pins import PlannedPin
from remediate.packages.requirements import RequirementsError
from remediate.profile.schema import Profile
from remediate.subject import Situation
from remediate.units import gigabytes

_SUBJECT = "packages"


class Intent(msgspec.Struct, frozen=True):
    """The operation with what a person is told about it.

    Attributes:
        reason: with the lock, and the download's size as far as it is known.
        removals: items for what is pruned.
        withheld: what was asked for and can't be done.
    """

    install: Install
    reason: str
    removals: tuple[ChangeItem, ...] = ()
    withheld: tuple[Withheld, ...] = ()


class _Choice(msgspec.Struct, frozen=True):
    """The lock to use, or why there is none."""

    lock: Lock | None
    said: str


def plan_intent(
    facts: PackagesFacts, target: TargetFacts, pins: Mapping[str, PlannedPin], situation: Situation
) -> Intent:
    """The install operation for what the pins need and what the user asked for."""
    request = situation.facts.request
    asked = request.install
    is_moving = any(pin.needs_install for pin in pins.values())
    choice = _choose_lock(target, pins, situation) if is_moving or asked.prune else _Choice(None, "")
    prune = prunable(facts, pins, choice.lock) if asked.prune and choice.lock else ()
    download = _download_bytes(facts, pins, choice.lock, situation)
    install = plan_install(
        facts,
        target,
        pins,
        sources=situation.profile.install,
        settings=situation.settings,
        folder=request.folder,
        lock=choice.lock,
        prune=prune,
        needed_bytes=None if download is None else SPACE_FACTOR * download,
        smoke=smoke_of(situation.profile) if asked.smoke else None,
    )
    removals = tuple(
        ChangeItem(name, facts.version_of(name) or "installed", "removed", "neither the profile nor its lock names it")
        for name in prune
    )
    reason = "; ".join(
        filter(None, ("the profile's pins, and what they require", choice.said, _size(target, download)))
    )
    return Intent(install, reason, removals, _withhold_prune(target) if asked.prune and not choice.lock else ())


def smoke_of(profile: Profile) -> Smoke:
    """What the profile's environment should be able to do."""
    return Smoke(device_map="accelerate" in profile.packages, compile=profile.script.compile == "effective")


def _choose_lock(target: TargetFacts, pins: Mapping[str, PlannedPin], situation: Situation) -> _Choice:
    stems = situation.lock_stems if situation.profile.install.lock else ()
    path = find_lock(stems, target.version, target.system, target.machine)
    if path is None:
        return _Choice(None, "")
    try:
        lock = read_lock(path.read_bytes(), str(path))
    except (OSError, RequirementsError) as error:
        return _Choice(None, f"not locked: `{path.name}` can't be read ({error})")
    misfits = lock.misfits({name: pin.pin.version for name, pin in pins.items() if pin.needs_install})
    if misfits:
        because = f"its {', '.join(misfits)} is not the profile's; run `remediate profiles lock` again"
        return _Choice(None, f"not locked: `{path.name}` is stale, {because}")
    return _Choice(lock, f"{len(lock.entries)} distributions as `{path.name}` locks them, by hash")


def _download_bytes(
    facts: PackagesFacts, pins: Mapping[str, PlannedPin], lock: Lock | None, situation: Situation
) -> int | None:
    """Of what is not there yet, at most: what the installer has in its cache is not downloaded. None: not known."""
    if lock is not None:
        missing = [
            entry
            for entry in locked_entries(lock, pins)
            if not is_same_version(facts.version_of(entry.name) or "", entry.version)
        ]
        sizes = [entry.size for entry in missing]
        return None if None in sizes else sum(size for size in sizes if size is not None)
    folders = (*situation.settings.find_links, *situation.profile.install.find_links)
    moving = [pin for pin in pins.values() if pin.needs_install]
    if not folders or not moving:
        return None
    from remediate.packages.sizes import folder_sizes

    base = situation.facts.request.folder
    known = folder_sizes(str(Path(base, place)) if "://" not in place else place for place in folders)
    found = [known.get((pin.name, pin.planned)) for pin in moving]
    return None if None in found else sum(size for size in found if size is not None)


def _size(target: TargetFacts, download: int | None) -> str:
    free = "" if target.free_bytes is None else f", {gigabytes(target.free_bytes)} free"
    if download is None:
        return f"size of the download not known{free}"
    return f"at most {gigabytes(download)} to download, about {gigabytes(SPACE_FACTOR * download)} on disk{free}"


def _withhold_prune(target: TargetFacts) -> tuple[Withheld, ...]:
    because = "only a lock says what the profile's distributions need, and there is none that fits"
    enable = "make one with `remediate profiles lock`"
    return (Withheld(("PKG033",), _SUBJECT, target.prefix, "remove what is not governed", because, enable),)
