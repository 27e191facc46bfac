"""Facts of the boot unit, from files alone: a plan that runs often asks no process about it."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

from remediate.gpu.boot import places
from remediate.gpu.boot.facts import BootFacts
from remediate.gpu.boot.unit import MARK, boot_command, command_of
from remediate.model import Reading, Request, Unknown, UnknownKind
from remediate.subject import Ledger

_MAX_BYTES = 256 * 1024
_RUNNING = Path("/run/systemd/system")
"""It exists where systemd manages the machine (sd_booted(3)); in most containers it does not."""


def observe_boot(request: Request, ledger: Ledger) -> BootFacts:
    """The boot unit; nothing beside a simulated board, which must not reach this machine, but in a staging root."""
    if request.board is not None and not places.staging_root():
        return BootFacts()
    return read_boot(ledger.place)


def read_boot(state_dir: str, root: str | None = None) -> BootFacts:
    """The boot unit of this machine, or of the staging root.

    Args:
        state_dir: state folder, which the unit names so that the locks it sets are known later.
        root: folder in place of `/`; None takes it from the environment.
    """
    root = places.staging_root() if root is None else root
    unit_path = Path(places.below(root, places.UNIT_PATH))
    is_masked = unit_path.is_symlink() and os.path.realpath(unit_path) == os.devnull
    unit = "" if is_masked else _read(unit_path)
    command = command_of(unit) if isinstance(unit, str) and unit.startswith(MARK) else ()
    program = own_program()
    return BootFacts(
        root=root,
        systemd=_has_systemd(root),
        unit=unit,
        unit_command=command if command and (root or os.access(command[0], os.X_OK)) else (),
        is_masked=is_masked,
        is_enabled=os.path.lexists(places.below(root, places.LINK_PATH)),
        packaged=_packaged(root),
        drop_ins=_drop_ins(root),
        settings=_read(Path(places.below(root, places.SETTINGS_PATH))),
        command=boot_command(program, state_dir),
        distrust="" if root else distrust(program[0], str(Path(__file__).parents[2])),
    )


def own_program() -> tuple[str, ...]:
    """The argument list that starts this program, by absolute path: its interpreter, for a script may be moved."""
    return (sys.executable, "-m", "remediate")


def distrust(*paths: str) -> str:
    """Who else than root can change one of the paths or a folder above it; empty where nobody can.

    A unit that root runs and somebody else can rewrite hands them the machine.
    """
    seen: set[Path] = set()
    for path in (Path(given) for text in paths for given in (text, os.path.realpath(text))):
        for part in (path, *path.parents):
            if part not in seen:
                seen.add(part)
                problem = _problem(part)
                if problem:
                    return problem
    return ""


def _problem(path: Path) -> str:
    try:
        found = path.lstat()
    except OSError as error:
        return f"`{path}` can't be looked at: {error.strerror}"
    if found.st_uid != 0:
        return f"`{path}` belongs to user {found.st_uid}"
    if stat.S_ISLNK(found.st_mode):
        return ""  # What it leads to is looked at by itself; replacing it takes rights to its folder.
    is_open = bool(found.st_mode & stat.S_IWOTH) or bool(found.st_mode & stat.S_IWGRP and found.st_gid != 0)
    # In a folder with the sticky bit only owners can replace entries.
    return f"`{path}` can be written by others than root" if is_open and not found.st_mode & stat.S_ISVTX else ""


def _has_systemd(root: str) -> Reading[bool]:
    if not root:
        return _RUNNING.is_dir()
    if shutil.which("systemctl"):
        return True
    return Unknown(UnknownKind.NOT_SUPPORTED, "systemctl is not on PATH, and a staged unit needs it")


def _read(path: Path) -> Reading[str]:
    """The file's text, empty where there is none."""
    try:
        with path.open("rb") as stream:
            return stream.read(_MAX_BYTES).decode("utf-8", "backslashreplace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        kind = UnknownKind.NO_PERMISSION if isinstance(error, PermissionError) else UnknownKind.FAILED
        return Unknown(kind, f"`{path}` can't be read: {error.strerror}")


def _packaged(root: str) -> str:
    paths = (places.below(root, f"{folder}/{places.UNIT}") for folder in places.PACKAGED_FOLDERS)
    return next((path for path in paths if Path(path).exists()), "")


def _drop_ins(root: str) -> tuple[str, ...]:
    folder = Path(places.below(root, f"{places.UNIT_PATH}.d"))
    return tuple(sorted(path.name for path in folder.glob("*.conf")))
