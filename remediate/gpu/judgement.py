"""What a wish came to on one device: a finding's content, and the operation that would meet it."""

from __future__ import annotations

import msgspec

from remediate.gpu.commands import Operation, Setting, command, make_operation
from remediate.gpu.facts import Device
from remediate.model import Outcome, Reading, Unknown, UnknownKind

NO_DRIVER = "GPU001"
LOST = "GPU002"
POWER_LIMIT = "GPU003"
CLOCKS = "GPU004"
PERSISTENCE = "GPU005"
THROTTLED = "GPU006"
NOT_MET = "GPU007"
PROCESSES = "GPU008"
BLOCKED = "GPU009"
POWER_CAP = "GPU010"
POWER_BRAKE = "GPU011"
UNCLEAR_READINGS = "GPU012"
STUCK = "GPU013"
COMPUTE_MODE = "GPU014"
MODULE_POWER = "GPU015"
FOREIGN_LOCK = "GPU016"


class Judgement(msgspec.Struct, frozen=True):
    """One comparison on one device.

    Attributes:
        why: key of the profile's reason (`GpuWish.why`).
        operation: what would close the gap; None where nothing is to be done or nothing can be.
        because: why nothing can be done here although something differs; empty otherwise.
        commands: lines for a person, where `because` is given.
    """

    code: str
    device: Device
    outcome: Outcome
    summary: str
    observed: str = ""
    wanted: str = ""
    evidence: tuple[str, ...] = ()
    why: str = ""
    is_advice: bool = False
    operation: Operation | None = None
    because: str = ""
    commands: tuple[tuple[str, ...], ...] = ()
    reason: str = ""
    """The profile's reason, filled in from `why` when all judgements of a device are made."""


def operation_for(device: Device, setting: Setting, before: str, after: str) -> Operation | None:
    """The operation, or None where the device can't be named safely."""
    uuid = _safe_uuid(device)
    return None if uuid is None else make_operation(setting, uuid, device.index, before, after)


def commands_for(device: Device, setting: Setting, value: str) -> tuple[tuple[str, ...], ...]:
    """The command as something for a person to run."""
    uuid = _safe_uuid(device)
    return () if uuid is None else (command(setting, uuid, value),)


def _safe_uuid(device: Device) -> str | None:
    """The UUID, if it looks like one: facts may come from a file, and nvidia-smi must not take it for an option."""
    uuid = device.uuid
    if isinstance(uuid, Unknown) or uuid.startswith("-"):
        return None
    return uuid if uuid.isascii() and uuid.replace("-", "").isalnum() else None


def outcome_of(unknown: Unknown) -> Outcome:
    """Whether a reading is missing because the device has no such thing, or because it could not be had."""
    absent = (UnknownKind.NOT_SUPPORTED, UnknownKind.DEPRECATED)
    return Outcome.UNSUPPORTED if unknown.kind in absent else Outcome.UNKNOWN


def first_unknown(*readings: Reading[object]) -> Unknown | None:
    """The first of the readings that has no value."""
    return next((reading for reading in readings if isinstance(reading, Unknown)), None)
