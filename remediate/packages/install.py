"""The install operation: one pip run that brings the governed distributions to their pins. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from remediate.model import Unknown
from remediate.packages.facts import DistributionFacts, PackagesFacts, ProblemKind, TargetFacts
from remediate.packages.pins import PlannedPin
from remediate.profile.schema import InstallSource
from remediate.subject import Settings

CONSTRAINTS = "constraints.txt"


class Installed(msgspec.Struct, frozen=True):
    """One distribution of an environment, as far as restoring has to tell them apart.

    Attributes:
        version: empty when its metadata has none.
    """

    name: str
    version: str
    direct_url: str | None = None
    is_editable: bool = False


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
    """One pip run and how to know that it is done.

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
    """

    python: str
    layout: Layout
    argv: tuple[str, ...]
    constraints: tuple[str, ...]
    former: tuple[Installed, ...]
    expected: tuple[Expected, ...]
    uninstall: tuple[tuple[str, ...], ...] = ()
    discard: tuple[str, ...] = ()


def plan_install(
    facts: PackagesFacts,
    target: TargetFacts,
    pins: Mapping[str, PlannedPin],
    *,
    sources: InstallSource,
    settings: Settings,
    folder: str,
) -> Install:
    """The operation for all pins that need an install.

    Args:
        folder: the sandbox folder, against which relative `find_links` are meant.
    """
    pip = pip_command(facts, target)
    moving = [pin for pin in pins.values() if pin.needs_install]
    discard = _discarded(facts, pins)
    return Install(
        python=target.python,
        layout=_layout(target),
        argv=(
            *pip,
            "install",
            "--disable-pip-version-check",
            "--no-input",
            *source_options(sources, settings, folder),
            "--constraint",
            CONSTRAINTS,
            *(f"{pin.name}=={pin.planned}" for pin in moving),
        ),
        uninstall=tuple(
            (*pip, "uninstall", "--disable-pip-version-check", "--yes", pin.name)
            for pin in moving
            if pin.cuda_differs or _can_be_uninstalled(pin, facts, discard)
        ),
        discard=discard,
        constraints=tuple(f"{pin.name}=={pin.planned}" for pin in pins.values() if not pin.needs_install),
        former=tuple(map(to_installed, facts.distributions)),
        expected=tuple(_expected(pin) for pin in pins.values() if pin.is_judged),
    )


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
