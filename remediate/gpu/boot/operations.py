"""The operations on the boot unit: a file with what has to follow, and switching the unit on or off."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from remediate.files import FileEdit


class BootFile(msgspec.Struct, frozen=True, tag="boot_file"):
    """Write or remove a file, and tell systemd.

    Attributes:
        edit: the file; `content` None removes it.
        reload: argument list that makes systemd read its units again; empty where it need not.
        owns_folder: the folder is this program's own and goes with the file when nothing else is in it.
    """

    edit: FileEdit
    reload: tuple[str, ...] = ()
    owns_folder: bool = False


class UnitSwitch(msgspec.Struct, frozen=True, tag="unit_switch"):
    """Enable or disable a unit, with the argument lists that do it, undo it and read it back."""

    unit: str
    enable: bool
    argv: tuple[str, ...]
    undo_argv: tuple[str, ...]
    read_argv: tuple[str, ...]


BootOperation: TypeAlias = BootFile | UnitSwitch
