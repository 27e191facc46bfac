"""Performing, checking and undoing an install: the only place of this subject that changes the environment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from remediate.effects import read_bytes, sha256, write_file
from remediate.errors import ApplyError, EditedSinceError
from remediate.model import Performed, State, Unknown
from remediate.packages.facts import DistributionFacts
from remediate.packages.inspect import read_distributions, read_torch_build
from remediate.packages.install import CONSTRAINTS, LOCKED, Expected, Install, Installed, differing, is_uv, to_installed
from remediate.packages.names import is_same_version
from remediate.packages.piprun import pip_folder, refuse_running, run_pip, shorten
from remediate.packages.records import recorded_files
from remediate.packages.smoke import require_smoke
from remediate.packages.snapshot import Snapshot, load_snapshot, set_aside
from remediate.subject import Context
from remediate.units import gigabytes

_OTHER_PLACE = ".remediate-backup"


class Prepared(msgspec.Struct, frozen=True):
    """What `prepare` saved.

    Attributes:
        former: every distribution before.
        snapshot: folder of the set-aside files.
    """

    former: tuple[Installed, ...]
    snapshot: str


class _Afterwards(msgspec.Struct, frozen=True):
    """Every distribution after the install, so that a later edit can be told from the install itself."""

    present: tuple[Installed, ...]


def state(install: Install, context: Context) -> State:
    """`AFTER` when every governed distribution is there, complete and as expected; `BEFORE` for the former set."""
    del context
    inventory = read_distributions(install.layout.search_path)
    present = {found.name: found for found in inventory.distributions}
    is_pruned = not any(name in present for name in install.prune)
    if is_pruned and all(_is_there(expected, present.get(expected.name), install) for expected in install.expected):
        doubled = {problem.name for problem in inventory.problems}
        if not doubled & {expected.name for expected in install.expected}:
            return State.AFTER
    return State.OTHER if differing(install.former, map(to_installed, inventory.distributions)) else State.BEFORE


def prepare(install: Install, context: Context) -> dict[str, Any]:
    """Note the former set and set all its files aside.

    Raises:
        ApplyError: the files can't be set aside, or the disk is too full for what is to be installed.
    """
    _check_space(install)
    former = _present(install)
    folder = _snapshot_folder(install, context)
    if context.progress:
        context.progress("setting the present files aside")
    set_aside(_roots(install), recorded_files(install.layout.search_path), folder)
    prepared: dict[str, Any] = msgspec.to_builtins(Prepared(former, str(folder)))
    return prepared


def perform(install: Install, prepared: Any, context: Context) -> Performed:
    """Run the installer, then read the environment again and hold it against what was expected; try it out if asked.

    What an interrupted run left half done is put back first, so that pip always starts from a whole environment.

    Raises:
        ApplyError: pip failed, the environment is not as expected afterwards or does not pass the smoke test, or pip
            of an interrupted run still runs.
    """
    refuse_running(context)
    saved = msgspec.convert(prepared, Prepared)
    snapshot = load_snapshot(Path(saved.snapshot))
    if snapshot is not None and not snapshot.is_settled:
        intact = snapshot.is_intact(_recorded(install))
        if intact and state(install, context) is State.AFTER:
            return Performed("already so", changed=False)
        if not intact:
            snapshot.restore(_recorded(install))
    elif state(install, context) is State.AFTER:
        return Performed("already so", changed=False)
    output = _install(install, snapshot, context)
    _check(install)
    if install.smoke is not None:
        output += require_smoke(install.python, install.smoke, context)
    if snapshot is not None:
        _settle(install, snapshot)
    return Performed(_describe_done(saved.former, _present(install)), output=output)


def undo(install: Install, prepared: Any, context: Context) -> Performed:
    """Bring back the former files; where they are gone, the former versions by pip. Then compare with the former set.

    What the user installed after the run stays.

    Raises:
        EditedSinceError: a distribution that the run changed was changed again since.
        ApplyError: the former set is not there afterwards.
    """
    refuse_running(context)
    saved = msgspec.convert(prepared, Prepared)
    snapshot = load_snapshot(Path(saved.snapshot))
    later = _installed_later(install, saved, snapshot)
    count = snapshot.restore(_recorded(install)) if snapshot else 0
    output = _restore_by_pip(install, saved.former, later, context)
    left = _unrestored(install, saved.former, later)
    if left:
        raise ApplyError(
            f"the former set of `{install.layout.prefix}` is not complete: {', '.join(left)}",
            cause=_describe_unrestored(install, saved.former, left),
            hint="install those versions yourself: "
            + " ".join(f"{item.name}=={item.version}" for item in saved.former if item.name in left),
        )
    if snapshot is not None:
        snapshot.discard()
    if not count and not output:
        return Performed("already as it was", changed=False)
    return Performed(f"restored {len(saved.former)} distributions as they were", output=output)


def _describe_done(former: tuple[Installed, ...], present: tuple[Installed, ...]) -> str:
    names = {item.name for item in present}
    done = ", ".join(f"{item.name} {item.version}" for item in present if item not in former)
    gone = ", ".join(f"{item.name} {item.version}" for item in former if item.name not in names)
    parts = ((f"installed {done}", done), (f"removed {gone}", gone))
    return "; ".join(text for text, is_there in parts if is_there) or "installed again"


def _check_space(install: Install) -> None:
    """Refuse before anything is touched; the download's own space is not counted, it may lie elsewhere."""
    if install.needed_bytes is None:
        return
    folder = Path(install.layout.folders[0])
    while not folder.exists():
        folder = folder.parent
    system = os.statvfs(folder)
    free = system.f_bavail * system.f_frsize
    if free < install.needed_bytes:
        raise ApplyError(
            f"`{install.layout.prefix}` needs about {gigabytes(install.needed_bytes)} and has {gigabytes(free)} free",
            cause="the new distributions stand beside the former ones until the run is rolled back or deleted",
            hint="free some space on that file system; nothing was changed",
        )


def _install(install: Install, snapshot: Snapshot | None, context: Context) -> str:
    def is_whole() -> bool:
        return snapshot is not None and snapshot.is_intact(_recorded(install))

    folder = pip_folder(context)
    write_file(folder / CONSTRAINTS, "".join(f"{line}\n" for line in install.constraints).encode())
    write_file(folder / LOCKED, install.locked.encode())
    output = [run_pip(argv, folder, context, install.layout.prefix, is_whole) for argv in install.uninstall]
    _remove_metadata(install.discard)
    for argv in (install.argv, install.remove):
        if argv:
            output.append(run_pip(argv, folder, context, install.layout.prefix, is_whole))
    return shorten(output)


def _check(install: Install) -> None:
    present = {found.name: found for found in read_distributions(install.layout.search_path).distributions}
    wrong = [item for item in install.expected if not _is_there(item, present.get(item.name), install)]
    lines = [f"{name} is still there" for name in install.prune if name in present]
    if not wrong and not lines:
        return
    for item in wrong:
        found = present.get(item.name)
        is_build = found is not None and isinstance(found.version, str) and is_same_version(found.version, item.version)
        if is_build and item.cuda:
            build = read_torch_build(install.layout.search_path)
            lines.append(f"{item.name} is built for CUDA {build.cuda if build else 'unknown'}, wanted is {item.cuda}")
        else:
            lines.append(f"{item.name} is {found.version if found else 'absent'}, wanted is {item.version}")
    raise ApplyError(
        f"pip ended well and `{install.layout.prefix}` is not as planned",
        cause="; ".join(lines),
        hint="check the package index (`index_url`); `remediate rollback` brings the former set back",
    )


def _settle(install: Install, snapshot: Snapshot) -> None:
    # The set first: once the snapshot is settled, undoing relies on it.
    write_file(snapshot.folder / "present.json", msgspec.json.encode(_Afterwards(_present(install))), mode=0o600)
    snapshot.settle(_recorded(install))


def _installed_later(install: Install, saved: Prepared, snapshot: Snapshot | None) -> frozenset[str]:
    """Names that the user added after the run, which stay. Raises when one that the run changed was changed again."""
    content = read_bytes(snapshot.folder / "present.json") if snapshot and snapshot.is_settled else None
    if content is None:
        return frozenset()
    after = msgspec.json.decode(content, type=_Afterwards).present
    present = _present(install)
    changed = set(differing(saved.former, after))
    moved = set(differing(after, present)) - set(_same(saved.former, present))
    if changed & moved:
        raise EditedSinceError(
            f"`{install.layout.prefix}` was changed after the run: {', '.join(sorted(changed & moved))}",
            cause="undoing would overwrite that; nothing was undone",
            hint="install the versions that the run had installed again, then roll back",
        )
    return frozenset(moved)


def _same(one: Iterable[Installed], other: Iterable[Installed]) -> frozenset[str]:
    """Names that two sets hold, or lack, alike."""
    first, second = {item.name: item for item in one}, {item.name: item for item in other}
    return frozenset(name for name in first if first[name] == second.get(name))


def _unrestored(install: Install, former: tuple[Installed, ...], later: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in differing(former, _present(install)) if name not in later)


def _restore_by_pip(install: Install, former: tuple[Installed, ...], later: frozenset[str], context: Context) -> str:
    """Only for what the files could not bring back: the snapshot was deleted or damaged."""
    left = _unrestored(install, former, later)
    if not left:
        return ""
    wanted = [item for item in former if item.name in left]
    argv = install.argv or install.remove
    head = argv[: argv.index("install" if install.argv else "uninstall")]
    gone = sorted(set(left) - {item.name for item in wanted})
    folder = pip_folder(context)
    runs: list[tuple[str, ...]] = []
    if gone:
        confirmed = ("--python", install.python) if is_uv(head) else ("--yes", "--disable-pip-version-check")
        runs.append((*head, "uninstall", *confirmed, *gone))
    if wanted:
        again = [argument for item in wanted for argument in _requirement(item)]
        target = ("--python", install.python) if is_uv(head) and not install.argv else ()
        runs.append((*head, "install", *target, *install.options, "--no-deps", "--force-reinstall", *again))
    output = [run_pip(argv, folder, context, install.layout.prefix) for argv in runs]
    return shorten(output)


def _requirement(item: Installed) -> tuple[str, ...]:
    if item.is_editable and item.direct_url:
        return ("--editable", item.direct_url.removeprefix("file://"))
    return (f"{item.name} @ {item.direct_url}" if item.direct_url else f"{item.name}=={item.version}",)


def _describe_unrestored(install: Install, former: tuple[Installed, ...], left: tuple[str, ...]) -> str:
    before = {item.name: item.version for item in former}
    present = {item.name: item.version for item in _present(install)}
    return "; ".join(f"{name} was {before.get(name, 'absent')}, is {present.get(name, 'absent')}" for name in left)


def _is_there(expected: Expected, found: DistributionFacts | None, install: Install) -> bool:
    """Right version and build, and complete: pip writes `INSTALLER` and `RECORD` last."""
    if found is None or not isinstance(found.version, str) or not is_same_version(found.version, expected.version):
        return False
    if found.metadata_path.endswith(".dist-info") and not found.has_record:
        return False
    if not expected.cuda:
        return True
    build = read_torch_build(install.layout.search_path)
    return build is None or isinstance(build.cuda, Unknown) or build.cuda == expected.cuda


def _present(install: Install) -> tuple[Installed, ...]:
    return tuple(map(to_installed, read_distributions(install.layout.search_path).distributions))


def _recorded(install: Install) -> Iterator[str]:
    return recorded_files(install.layout.search_path)


def _roots(install: Install) -> tuple[str, ...]:
    return (*install.layout.folders, install.layout.prefix)


def _snapshot_folder(install: Install, context: Context) -> Path:
    """Below the run's folder where hard links reach it, else in the environment itself."""
    context.run_folder.mkdir(parents=True, exist_ok=True)
    prefix = Path(install.layout.folders[0])
    while not prefix.exists():
        prefix = prefix.parent
    if context.run_folder.stat().st_dev == prefix.stat().st_dev:
        return context.run_folder / "environment"
    name = sha256(str(context.run_folder).encode())[:12]
    return Path(install.layout.prefix, _OTHER_PLACE, name)


def _remove_metadata(paths: Iterable[str]) -> None:
    import shutil

    for path in paths:
        if Path(path).is_dir():
            shutil.rmtree(path)
        elif os.path.lexists(path):
            Path(path).unlink()
