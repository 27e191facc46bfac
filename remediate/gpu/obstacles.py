"""Where nothing can or should be set from here, although something can be read: who can, and with which commands."""

from __future__ import annotations

import msgspec

from remediate.gpu.facts import Device, GpuFacts
from remediate.gpu.host import CONTAINER, JETSON, WSL2
from remediate.gpu.judgement import BLOCKED, Judgement
from remediate.gpu.numbers import VGPU_GUEST
from remediate.model import Outcome, Unknown, UnknownKind

Command = tuple[str, ...]


class Obstacle(msgspec.Struct, frozen=True):
    """What stands in the way of every setting of a device.

    Attributes:
        because: who can set it instead, in one line.
        commands: lines to run there, where they differ from the settings' own; None keeps those.
        hides_readings: the device does not tell its settings here either, so that one line says it all.
    """

    because: str
    commands: tuple[Command, ...] | None = None
    hides_readings: bool = False


_VGPU = Obstacle(
    "this is a vGPU guest; its host administers the board",
    (("nvidia-smi", "-q", "-d", "POWER,CLOCK,PERFORMANCE"),),
    hides_readings=True,
)
_JETSON = Obstacle(
    "this is a Jetson, whose power and clocks belong to nvpmodel and jetson_clocks",
    (("sudo", "nvpmodel", "-q"), ("sudo", "nvpmodel", "-m", "0"), ("sudo", "jetson_clocks")),
    hides_readings=True,
)
"""Mode 0 is the one with the most power on Orin (NVIDIA Jetson Linux Developer Guide, power modes)."""
_MIG = Obstacle("MIG is on, and a setting belongs to the whole GPU and would reach every instance")
_WSL2 = Obstacle("this is WSL2: the Windows driver holds the GPU; set it there, as administrator")
_CONTAINER = Obstacle("this container lacks CAP_SYS_ADMIN, without which root can't set anything; its host can")
_NO_SMI = Obstacle("nvidia-smi is not on PATH")


def find_obstacle(facts: GpuFacts, device: Device, is_root: bool) -> Obstacle | None:
    """What stands in the way of every setting; None where nothing does.

    Args:
        is_root: the facts were read by root, who in a container may still lack CAP_SYS_ADMIN.
    """
    cases = (
        (_is_vgpu_guest(device), _VGPU),
        (facts.platform == JETSON or _is_jetson(device), _JETSON),
        (facts.platform == WSL2, _WSL2),
        (device.mig_current is True, _MIG),
        (facts.has_cap_sys_admin is False and (is_root or facts.platform == CONTAINER), _CONTAINER),
        (isinstance(facts.smi, Unknown) and facts.smi.kind is UnknownKind.NOT_SUPPORTED, _NO_SMI),
    )
    return next((obstacle for holds, obstacle in cases if holds), None)


def hold_back(device: Device, found: tuple[Judgement, ...], obstacle: Obstacle) -> tuple[Judgement, ...]:
    """The judgements without their operations, and one more that says why, with the commands to run elsewhere."""
    blocked = [item for item in found if item.operation is not None]
    unread = [item for item in found if obstacle.hides_readings and _is_open(item)]
    if not blocked and not unread:
        return found
    commands = obstacle.commands
    if commands is None:
        commands = tuple(item.operation.argv for item in blocked if item.operation is not None)
    rest = tuple(_without_operation(item) for item in found if item not in unread)
    line = Judgement(
        BLOCKED,
        device,
        Outcome.UNSUPPORTED,
        f"{_topics([*blocked, *unread])} can't be set from here",
        because=obstacle.because,
        commands=commands,
    )
    return (*rest, line)


def _is_vgpu_guest(device: Device) -> bool:
    """By NVML's virtualization mode; a guest that does not tell it has a name such as `GRID A100D-80C`."""
    if isinstance(device.virtualization, str):
        return device.virtualization == VGPU_GUEST
    return isinstance(device.name, str) and device.name.removeprefix("NVIDIA ").startswith("GRID ")


def _is_jetson(device: Device) -> bool:
    """The integrated GPUs' driver is called nvgpu, and so NVML calls the device: `Orin (nvgpu)`."""
    return isinstance(device.name, str) and device.name.endswith("(nvgpu)")


def _is_open(found: Judgement) -> bool:
    return found.operation is None and not found.is_advice and found.outcome in (Outcome.UNSUPPORTED, Outcome.UNKNOWN)


def _without_operation(found: Judgement) -> Judgement:
    if found.operation is None:
        return found
    return msgspec.structs.replace(found, outcome=Outcome.UNSUPPORTED, operation=None)


def _topics(found: list[Judgement]) -> str:
    words = {"power_limit": "power limit", "persistence_mode": "persistence mode", "compute_mode": "compute mode"}
    topics = list(dict.fromkeys(words.get(item.why, item.why) for item in found if item.why))
    return " and ".join([", ".join(topics[:-1]), topics[-1]] if len(topics) > 1 else topics) or "settings"
