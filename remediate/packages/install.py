"""The install operation: one run of pip or uv that brings the governed distributions to their pins. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remediate.model import Unknown
from remediate.packages.facts import DistributionFacts, PackagesFacts, ProblemKind, TargetFacts
from remediate.packages.pins import PlannedPin
from remediate.profile.schema import InstallSource
from remediate.subject import Settings

if TYPE_CHECKING:
    from remediate.packages.lockfile import Lock, LockEntry

CONSTRAINTS = "constraints.txt"
LOCKED = "locked.txt"
SPACE_FACTOR = 2
"""Bytes on disk for one byte of download: 5.1 GB against 2.7 GB for torch 2.2.0 with what it requires (unpacked, with
the compiled modules)."""
_KEPT = frozenset({"pip", "setuptools", "wheel", "uv", "remediate"})
"""Never pruned: they install, and are not what runs."""


class Installed(msgspec.Struct, frozen=True):
    """One distribution of an environment, as far as restoring has to tell them apart.

    Attributes:
        version: empty when its metadata has none.
    """

    name: str
    version: str
    direct_url: str | None = None
    is_editable: bool = False


class Smoke(msgspec.Struct, frozen=True):
    """What is tried beside importing, generating and going through numpy.

    Attributes:
        device_map: load with `device_map="auto"`, which needs accelerate.
        compile: compile the forward pass and compare it with eager.
    """

    device_map: bool = False
    compile: bool = False


class Expected(msgspec.Struct, frozen=True):
    """What has to be there afterwards: the version without its local part, and torch's CUDA build where judged."""

    name: str
    version: str
    cuda: str = ""


class Layout(msgspec.Struct, frozen=True):
    """The folders of the target, fixed in the operation so that its state can be read without a process.

    Attributes:
        search_path: where distributions are looked for.
        folders: what pip writes below, and this operation may restore: module folders and, in a virtual environment,
            that of the commands.
        prefix: the environment's root.
    """

    search_path: tuple[str, ...]
    folders: tuple[str, ...]
    prefix: str


class Install(msgspec.Struct, frozen=True, tag="install"):
    """One run of pip or uv and how to know that it is done.

    Attributes:
        python: the target interpreter.
        layout: its folders.
        argv: the exact argument list. It runs in a folder of its own, where `constraints.txt` is written first.
        uninstall: argument lists that run before it, for builds that pip would take for already satisfied.
        discard: metadata of distributions that have it broken or twice; what an uninstall leaves of it is removed.
        constraints: content of `constraints.txt`: the pins that need no install, so that pip moves none of them. Those
            of the argument list stay out: pip would report a missing version of one as a conflict with itself.
        former: every distribution before.
        expected: every governed distribution after.
        locked: content of `locked.txt`, with hashes, where the profile has a lock for the target; else empty.
        prune: names that go, and `remove` the argument list that does it.
        needed_bytes: about what it takes on the file system of the environment; None where it is not known.
        smoke: what is tried afterwards.
    """

    python: str
    layout: Layout
    argv: tuple[str, ...]
    constraints: tuple[str, ...]
    former: tuple[Installed, ...]
    expected: tuple[Expected, ...]
    uninstall: tuple[tuple[str, ...], ...] = ()
    discard: tuple[str, ...] = ()
    locked: str = ""
    prune: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    needed_bytes: int | None = None
    smoke: Smoke | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """Where distributions come from and what they go into, of the argument list."""
        if "install" not in self.argv:
            return ()
        return self.argv[self.argv.index("install") + 1 : self.argv.index("--constraint")]


def plan_install(
    facts: PackagesFacts,
    target: TargetFacts,
    pins: Mapping[str, PlannedPin],
    *,
    sources: InstallSource,
    settings: Settings,
    folder: str,
    lock: Lock | None = None,
    prune: tuple[str, ...] = (),
    needed_bytes: int | None = None,
    smoke: Smoke | None = None,
) -> Install:
    """The operation for all pins that need an install.

    Args:
        folder: the sandbox folder, against which relative `find_links` are meant.
        lock: what it installs then, with hashes: all that the lock names but for what is left as it is.
        prune: names to remove.
        needed_bytes: see `Install`.
    """
    tool = installer_command(facts, target)
    moving = [pin for pin in pins.values() if pin.needs_install]
    discard = _discarded(facts, pins)
    locked = _render_locked(lock, pins) if lock and moving else ""
    argv = (
        *_command(tool, "install", target),
        *source_options(sources, settings, folder),
        "--constraint",
        CONSTRAINTS,
        *(("--require-hashes", "--requirement", LOCKED) if locked else _requirements(moving)),
    )
    return Install(
        python=target.python,
        layout=_layout(target),
        argv=argv if moving else (),
        uninstall=tuple(
            (*_command(tool, "uninstall", target), pin.name)
            for pin in moving
            if pin.cuda_differs or _can_be_uninstalled(pin, facts, discard)
        ),
        discard=discard,
        constraints=tuple(f"{pin.name}=={pin.planned}" for pin in pins.values() if not pin.needs_install),
        former=tuple(map(to_installed, facts.distributions)),
        expected=tuple(_expected(pin) for pin in pins.values() if pin.is_judged),
        locked=locked,
        prune=prune,
        remove=(*_command(tool, "uninstall", target), *prune) if prune else (),
        needed_bytes=needed_bytes,
        smoke=smoke,
    )


def _render_locked(lock: Lock, pins: Mapping[str, PlannedPin]) -> str:
    # Most plans find nothing to install and never look at a lock.
    from remediate.packages.lockfile import render_entries

    return render_entries(locked_entries(lock, pins), with_notes=False)


def locked_entries(lock: Lock, pins: Mapping[str, PlannedPin]) -> tuple[LockEntry, ...]:
    """What a locked install names: all of the lock but for pins that are met and optional ones that are absent."""
    return tuple(lock.select({name for name, pin in pins.items() if not pin.needs_install}))


def prunable(facts: PackagesFacts, pins: Mapping[str, PlannedPin], lock: Lock) -> tuple[str, ...]:
    """Installed distributions that neither the pins nor the lock name, sorted.

    What installs stays, and so does what is installed in development mode or not by an installer that records it.
    """
    known = {*lock.entries, *pins, *_KEPT}
    return tuple(
        found.name
        for found in facts.distributions
        if found.name not in known and not found.is_editable and found.has_record
    )


def installer_command(facts: PackagesFacts, target: TargetFacts) -> tuple[str, ...]:
    """The beginning of the installer's command line: uv's where it is asked for, else pip's."""
    return (facts.uv, "pip") if isinstance(facts.uv, str) else pip_command(facts, target)


def is_uv(tool: tuple[str, ...]) -> bool:
    """Whether the command line begins as uv's does, and not as that of `python -m pip`."""
    return "-m" not in tool[:2]


def _command(tool: tuple[str, ...], verb: str, target: TargetFacts) -> tuple[str, ...]:
    if is_uv(tool):
        return (*tool, verb, "--python", target.python)
    return (*tool, verb, "--disable-pip-version-check", "--no-input" if verb == "install" else "--yes")


def _requirements(moving: Iterable[PlannedPin]) -> tuple[str, ...]:
    return tuple(f"{pin.name}=={pin.planned}" for pin in moving)


def pip_command(facts: PackagesFacts, target: TargetFacts) -> tuple[str, ...]:
    """The beginning of a pip command line for the target: its own pip, else this program's with `--python`."""
    if not isinstance(facts.pip, Unknown):
        return (target.python, "-m", "pip")
    return (facts.tool_python, "-m", "pip", "--python", target.python)


def source_options(sources: InstallSource, settings: Settings, folder: str) -> tuple[str, ...]:
    """Options that say where distributions come from. The user's settings win over the profile.

    Without any of them pip's own configuration decides. `no_index` leaves no index of the profile in force either.
    """
    options: list[str] = []
    index = settings.index_url or sources.index_url
    if settings.no_index:
        options.append("--no-index")
    elif index:
        options += ["--index-url", index]
    if not settings.no_index:
        for url in sources.extra_index_urls:
            options += ["--extra-index-url", url]
    for place in (*settings.find_links, *sources.find_links):
        options += ["--find-links", _absolute(place, folder)]
    return tuple(options)


def to_installed(distribution: DistributionFacts) -> Installed:
    """What is compared when a former set is restored."""
    version = distribution.version if isinstance(distribution.version, str) else ""
    return Installed(distribution.name, version, distribution.direct_url, distribution.is_editable)


def differing(former: Iterable[Installed], present: Iterable[Installed]) -> tuple[str, ...]:
    """Names that are in one set only, or differently, sorted."""
    one = {item.name: item for item in former}
    other = {item.name: item for item in present}
    return tuple(sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)))


def _layout(target: TargetFacts) -> Layout:
    folders = [target.purelib, target.platlib]
    if target.user_site:
        folders.append(target.user_site)
    if target.is_virtual:
        # Elsewhere the commands lie among those of the whole system; there only the recorded ones are looked after.
        folders.append(target.scripts)
    distinct = tuple(dict.fromkeys(map(os.path.realpath, folders)))
    return Layout(target.search_path, distinct, os.path.realpath(target.prefix))


def _expected(pin: PlannedPin) -> Expected:
    return Expected(pin.name, pin.planned, pin.pin.cuda if pin.name == "torch" else "")


def _discarded(facts: PackagesFacts, pins: Mapping[str, PlannedPin]) -> tuple[str, ...]:
    """All metadata of the distributions that have it broken or twice, and are installed anew."""
    problems = [
        problem for problem in facts.problems if problem.kind is ProblemKind.BROKEN or problem.kind.needs_reinstall
    ]
    names = {problem.name for problem in problems if problem.name in pins and pins[problem.name].needs_install}
    whole = [found.metadata_path for found in facts.distributions if found.name in names]
    return tuple(sorted({*whole, *(problem.path for problem in problems if problem.name in names)}))


def _can_be_uninstalled(pin: PlannedPin, facts: PackagesFacts, discard: tuple[str, ...]) -> bool:
    found = facts.installed(pin.name)
    return found is not None and found.has_record and found.metadata_path in discard


def _absolute(place: str, folder: str) -> str:
    return place if "://" in place else str(Path(folder, Path(place).expanduser()))
