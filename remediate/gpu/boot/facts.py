"""What is known of the boot unit, as a record."""

from __future__ import annotations

import msgspec

from remediate.model import Reading, Unknown, UnknownKind

_NOT_READ = Unknown(UnknownKind.NOT_READ, "a simulated board or recorded facts do not tell it")


class BootFacts(msgspec.Struct, frozen=True):
    """The boot unit as its files tell. An empty content means that there is no such file."""

    root: str = ""
    """Folder in place of `/`; empty for the machine itself."""
    systemd: Reading[bool] = _NOT_READ
    """Whether systemd manages this machine (sd_booted(3)), or systemctl can work on the staging root."""
    unit: Reading[str] = _NOT_READ
    unit_command: tuple[str, ...] = ()
    """Argument list of the installed unit, where it is one that this program wrote and its program exists."""
    is_masked: bool = False
    is_enabled: Reading[bool] = _NOT_READ
    packaged: str = ""
    """Path of a unit of the same name that a package or a generator brought."""
    drop_ins: tuple[str, ...] = ()
    """Names of files that change the unit."""
    settings: Reading[str] = _NOT_READ
    command: tuple[str, ...] = ()
    """Argument list that runs this program at boot."""
    distrust: str = ""
    """Why root should not run this program at boot; empty where only root can change it."""
