"""nvidia-smi argument lists, one setting each, and the script of them for a person.

nvidia-smi refuses two modifications in one call, and without `-i` it changes every GPU (535.261.03 and 555.58.02).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec

from remediate.model import Change, Withheld
from remediate.units import format_number

SMI = "nvidia-smi"


class Setting(enum.StrEnum):
    """A setting that one call changes.

    Values as text: `1`, `EXCLUSIVE_PROCESS`, `250`, `1215,1410`, `210,1305`; empty is "not locked".
    """

    PERSISTENCE_MODE = "persistence_mode"
    COMPUTE_MODE = "compute_mode"
    POWER_LIMIT = "power_limit"
    MODULE_POWER_LIMIT = "module_power_limit"
    APPLICATION_CLOCKS = "application_clocks"
    LOCKED_GPU_CLOCKS = "locked_gpu_clocks"
    LOCKED_MEMORY_CLOCKS = "locked_memory_clocks"


LOCKS = frozenset({Setting.LOCKED_GPU_CLOCKS, Setting.LOCKED_MEMORY_CLOCKS})
"""Settings that can be set and reset and that no call reads back."""

POWER_LIMITS = frozenset({Setting.POWER_LIMIT, Setting.MODULE_POWER_LIMIT})

_SWITCHES = {
    Setting.PERSISTENCE_MODE: "-pm",
    Setting.COMPUTE_MODE: "-c",
    Setting.POWER_LIMIT: "-pl",
    Setting.MODULE_POWER_LIMIT: "-pl",
    Setting.APPLICATION_CLOCKS: "-ac",
    Setting.LOCKED_GPU_CLOCKS: "-lgc",
    Setting.LOCKED_MEMORY_CLOCKS: "-lmc",
}
_SCOPES = {Setting.MODULE_POWER_LIMIT: ("-sc", "1")}
"""`-sc 1` means the whole module of a Grace board (nvidia-smi -h, 580)."""
_RESETS = {Setting.LOCKED_GPU_CLOCKS: "-rgc", Setting.LOCKED_MEMORY_CLOCKS: "-rmc"}
_NAMES = {
    Setting.PERSISTENCE_MODE: "persistence mode",
    Setting.COMPUTE_MODE: "compute mode",
    Setting.POWER_LIMIT: "power limit",
    Setting.MODULE_POWER_LIMIT: "module power limit",
    Setting.APPLICATION_CLOCKS: "applications clocks",
    Setting.LOCKED_GPU_CLOCKS: "locked graphics clocks",
    Setting.LOCKED_MEMORY_CLOCKS: "locked memory clocks",
}


class Operation(msgspec.Struct, frozen=True, tag="setting"):
    """One setting of one GPU, with the argument lists that make and undo it.

    Addressed by UUID: the index may change between boots.
    """

    setting: Setting
    uuid: str
    index: int
    before: str
    """Empty for a lock: none is known, so that undoing resets it."""
    after: str
    argv: tuple[str, ...]
    undo_argv: tuple[str, ...]


def make_operation(setting: Setting, uuid: str, index: int, before: str, after: str) -> Operation:
    """The operation that takes `setting` from one value to another."""
    return Operation(setting, uuid, index, before, after, command(setting, uuid, after), command(setting, uuid, before))


def command(setting: Setting, uuid: str, value: str) -> tuple[str, ...]:
    """The argument list that sets `value`; an empty value resets a lock."""
    if value == "" and setting in _RESETS:
        return (SMI, "-i", uuid, _RESETS[setting])
    return (SMI, "-i", uuid, _SWITCHES[setting], value, *_SCOPES.get(setting, ()))


def setting_name(setting: Setting) -> str:
    """The field's words for a setting."""
    return _NAMES[setting]


def show_value(setting: Setting, value: str) -> str:
    """A value for people: `250 W`, `1215 MHz memory, 1410 MHz graphics`, `on`, `not locked`."""
    if setting is Setting.PERSISTENCE_MODE:
        return "on" if value == "1" else "off"
    if setting is Setting.COMPUTE_MODE:
        return value.lower().replace("_", " ")
    if setting in POWER_LIMITS:
        return f"{value} W"
    if not value:
        return "not locked"
    first, second = value.split(",")
    if setting is Setting.APPLICATION_CLOCKS:
        return f"{first} MHz memory, {second} MHz graphics"
    return f"{first} MHz" if first == second else f"{first} to {second} MHz"


def power_value(limit_w: float) -> str:
    """The text of a power limit, as nvidia-smi takes it: W with at most two decimals and a full stop."""
    return format_number(limit_w)


def render_script(changes: Iterable[Change], withheld: Iterable[Withheld]) -> bytes:
    """A POSIX shell script of the commands, each with what it changes, for a person to read and run as root.

    nvidia-smi exits with 0 when it refuses, so the script prints what nvidia-smi answers and says so at its top.
    """
    from remediate.rendering import render_template

    return render_template("gpu-commands.sh.j2", changes=tuple(changes), withheld=tuple(withheld))
