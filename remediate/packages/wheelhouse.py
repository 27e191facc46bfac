"""Collecting what a profile's environment is made of, for a host without network."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from remediate.effects import Runner, run_process, write_file
from remediate.errors import ApplyError, UsageError
from remediate.packages.facts import PackagesFacts
from remediate.packages.lockfile import Lock, find_lock, read_lock, render_entries
from remediate.packages.locking import find_python, own_platform, own_python
from remediate.packages.metadata import without_credentials
from remediate.packages.pins import plan_pins
from remediate.packages.pipoutput import meaningful_lines
from remediate.profile.load import ResolvedProfile

_TIMEOUT_S = 7200.0
_GLIBC = (28, 27, 26, 24, 17, 12, 5)
"""Versions of glibc that wheels are built for; pip takes exactly the platforms that it is given."""


class Wheelhouse(msgspec.Struct, frozen=True):
    """What was collected.

    Attributes:
        files: names of the wheels and archives in the folder.
        size: their bytes.
        lock: the lock that they were taken from, by hash; None where there is none.
    """

    folder: Path
    files: tuple[str, ...]
    size: int
    lock: Path | None


def collect(
    resolved: ResolvedProfile,
    folder: Path,
    *,
    python: str,
    platform: str,
    sources: Sequence[str] = (),
    runner: Runner = run_process,
) -> Wheelhouse:
    """Download everything that the profile's lock names, or without one what pip finds for the pins.

    Args:
        python: version of the target, as `3.11`.
        platform: as `linux_x86_64`.
        sources: pip's options that say where files come from.

    Raises:
        UsageError: without a lock only for a Python of this machine.
        ApplyError: something could not be had.
    """
    system, _, machine = platform.partition("_")
    path = find_lock(resolved.lock_stems, python, system, machine)
    lock = read_lock(path.read_bytes(), str(path)) if path else None
    pins = plan_pins(PackagesFacts(None), resolved.profile)
    if lock is not None and lock.misfits({name: pin.pin.version for name, pin in pins.items()}):
        raise UsageError(
            f"lock `{lock.place}` is stale",
            cause="the profile's pins changed after it was made",
            hint="run `remediate profiles lock` again",
        )
    if lock is None and not pins:
        raise UsageError(f"profile `{resolved.profile.name}` pins nothing", hint="name one with `[packages]`")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ApplyError(f"`{folder}` can't be made", cause=str(error)) from error
    with tempfile.TemporaryDirectory(prefix="remediate-wheels-") as name:
        wanted = _wanted(lock, [f"{pin.name}=={pin.pin.version}" for pin in pins.values()], Path(name))
        pip = _pip(python, platform, runner, is_locked=lock is not None)
        argv = (*pip, "--dest", str(folder), *sources, *wanted)
        done = runner(argv, timeout_s=_TIMEOUT_S, cwd=name)
    if done.returncode != 0:
        lines = meaningful_lines(without_credentials(f"{done.stdout}\n{done.stderr}"))
        raise ApplyError(
            f"not everything could be collected (exit code {done.returncode})",
            cause="\n         ".join(lines) or "pip printed nothing",
            hint="what is in the folder stays, and is not downloaded again",
        )
    if path is not None:
        write_file(folder / path.name, path.read_bytes())
    files = sorted(found for found in folder.iterdir() if found.suffix in (".whl", ".gz", ".zip"))
    size = sum(found.stat().st_size for found in files)
    return Wheelhouse(folder, tuple(found.name for found in files), size, path)


def _wanted(lock: Lock | None, pins: Sequence[str], folder: Path) -> tuple[str, ...]:
    if lock is None:
        return tuple(pins)
    (folder / "locked.txt").write_text(render_entries(lock.entries.values(), with_notes=False))
    return ("--no-deps", "--require-hashes", "--requirement", "locked.txt")


def _pip(python: str, platform: str, runner: Runner, *, is_locked: bool) -> tuple[str, ...]:
    """The `pip download` for the target: natively where it can, else told which wheels to take."""
    options = ("--disable-pip-version-check", "--no-input", "--quiet")
    own = (sys.executable, "-m", "pip")
    if (python, platform) == (own_python(), own_platform()):
        return (*own, "download", *options)
    found = find_python(python, runner) if platform == own_platform() else None
    if found is not None:
        return (*own, "--python", found, "download", *options)
    if not is_locked:
        raise UsageError(
            f"Python {python} on {platform} is not this machine's, and the profile has no lock for it",
            cause="only a lock says what another Python or platform needs",
            hint=f"run `remediate profiles lock NAME --python {python} --platform {platform} --uv` first",
        )
    system, _, machine = platform.partition("_")
    tags = [platform]
    if system == "linux":
        tags += [f"manylinux_2_{minor}_{machine}" for minor in _GLIBC]
        tags += [f"manylinux{year}_{machine}" for year in ("2014", "2010", "1")]
    foreign = ("--only-binary=:all:", "--python-version", python, "--implementation", "cp")
    return (*own, "download", *options, *foreign, *(word for tag in tags for word in ("--platform", tag)))
