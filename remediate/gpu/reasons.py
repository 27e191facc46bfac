"""What the bits of the clocks event reasons mean, and which of them are a fault."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

IDLE = 0x1
APPLICATION_CLOCKS = 0x2
SOFTWARE_POWER_CAP = 0x4
HARDWARE_SLOWDOWN = 0x8
SYNC_BOOST = 0x10
SOFTWARE_THERMAL = 0x20
HARDWARE_THERMAL = 0x40
POWER_BRAKE = 0x80
DISPLAY_CLOCKS = 0x100
BOARD_LIMIT = 0x200
RELIABILITY = 0x400
UNKNOWN_REASON = 0x8000000000000000
THERMAL = SOFTWARE_THERMAL | HARDWARE_THERMAL


class EventReason(msgspec.Struct, frozen=True):
    """One bit: its name as nvidia-smi prints it, a line on what it means, and whether speed is lost to a limit."""

    bit: int
    name: str
    meaning: str
    is_fault: bool


REASONS = (
    # nvml.h of CUDA 13.3, nvmlClocksEventReasons; the last two named bits are only in nvidia-ml-py 13.615.
    EventReason(IDLE, "idle", "nothing runs, so the clocks may drop; says nothing about the present clock", False),
    EventReason(APPLICATION_CLOCKS, "applications clocks setting", "held by the applications clocks", False),
    EventReason(SOFTWARE_POWER_CAP, "software power cap", "clocks are cut to stay under the power limit", True),
    EventReason(
        HARDWARE_SLOWDOWN,
        "hardware slowdown",
        "clocks are halved or worse: heat, a power brake, or a change of performance state",
        True,
    ),
    EventReason(SYNC_BOOST, "sync boost", "tied to the slowest GPU of its group", False),
    EventReason(
        SOFTWARE_THERMAL,
        "software thermal slowdown",
        "the GPU or its memory is above its maximum operating temperature",
        True,
    ),
    EventReason(HARDWARE_THERMAL, "hardware thermal slowdown", "the GPU is above its slowdown temperature", True),
    EventReason(
        POWER_BRAKE,
        "hardware power brake",
        "the power supply or the board controller asks for less power",
        True,
    ),
    EventReason(DISPLAY_CLOCKS, "display clock setting", "held by a display", False),
    EventReason(BOARD_LIMIT, "board limit", "the board's own limit", True),
    EventReason(RELIABILITY, "reliability", "limited to keep the voltage reliable", True),
    EventReason(UNKNOWN_REASON, "unknown", "the driver has no name for the reason", False),
)


def name_of(bit: int) -> str:
    """The name of one bit."""
    return next((reason.name for reason in REASONS if reason.bit == bit), f"bit {bit:#x}")


def decode(mask: int) -> Sequence[EventReason]:
    """The reasons in a mask, lowest bit first. Bits without a name come out as reasons that are no fault."""
    known = {reason.bit: reason for reason in REASONS}
    bits = [1 << position for position in range(mask.bit_length()) if mask >> position & 1]
    return tuple(
        known.get(bit, EventReason(bit, f"bit {bit:#x}", "not known to this program", is_fault=False)) for bit in bits
    )


def describe(mask: int) -> str:
    """Names of the reasons, or `none`."""
    return ", ".join(reason.name for reason in decode(mask)) or "none"
