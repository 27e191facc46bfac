"""NVML's numbers and their words, in both directions. Source: nvml.h of CUDA 13.3 and nvidia-ml-py 13.615."""

from __future__ import annotations

from collections.abc import Mapping

from remediate.model import Reading, Unknown, UnknownKind

CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY, CLOCK_VIDEO = range(4)
THRESHOLD_SHUTDOWN, THRESHOLD_SLOWDOWN, THRESHOLD_MEMORY_MAX, THRESHOLD_GPU_MAX = range(4)
PERFORMANCE_STATE_UNKNOWN = 32
VIOLATION_POWER, VIOLATION_THERMAL, VIOLATION_SYNC_BOOST = range(3)

FIELD_POWER_CAP = 74
FIELD_SYNC_BOOST = 76
FIELD_MEMORY_TEMPERATURE = 82
FIELD_POWER_AVERAGE = 185
FIELD_POWER_MIN_LIMIT = 187
FIELD_POWER_MAX_LIMIT = 188
FIELD_POWER_DEFAULT_LIMIT = 189
FIELD_POWER_CURRENT_LIMIT = 190
FIELD_POWER_REQUESTED_LIMIT = 192
FIELD_SHUTDOWN_MARGIN = 193
FIELD_SLOWDOWN_MARGIN = 194
FIELD_MEMORY_MAX_MARGIN = 195
FIELD_MAX_OPERATING_MARGIN = 196
FIELD_SOFTWARE_THERMAL = 269
FIELD_HARDWARE_THERMAL = 270
FIELD_POWER_BRAKE = 271
FIELDS = (
    FIELD_MEMORY_TEMPERATURE,
    FIELD_SHUTDOWN_MARGIN,
    FIELD_SLOWDOWN_MARGIN,
    FIELD_MEMORY_MAX_MARGIN,
    FIELD_MAX_OPERATING_MARGIN,
    FIELD_POWER_CAP,
    FIELD_SYNC_BOOST,
    FIELD_SOFTWARE_THERMAL,
    FIELD_HARDWARE_THERMAL,
    FIELD_POWER_BRAKE,
)

SCOPE_MODULE = 1
"""`NVML_POWER_SCOPE_MODULE`: the whole module of a Grace board, in a field's `scopeId`."""
MODULE_FIELDS = (
    FIELD_POWER_AVERAGE,
    FIELD_POWER_MIN_LIMIT,
    FIELD_POWER_MAX_LIMIT,
    FIELD_POWER_DEFAULT_LIMIT,
    FIELD_POWER_CURRENT_LIMIT,
    FIELD_POWER_REQUESTED_LIMIT,
)

VALUE_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
"""Member of the value union by `nvmlValueType_t`. A margin of -8 read as unsigned is 4294967288."""
VALUE_SIGNED_INT = 5

ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
VGPU_GUEST = "vgpu guest"
VIRTUALIZATION_MODES = {0: "none", 1: "pass-through", 2: VGPU_GUEST, 3: "vgpu host", 4: "vsga host"}


def word(number: Reading[int], words: Mapping[int, str]) -> Reading[str]:
    """The word for a number, or the number itself where a newer driver has one that this table lacks."""
    return number if isinstance(number, Unknown) else words.get(number, str(number))


def number(word_: Reading[str], words: Mapping[int, str]) -> Reading[int]:
    """The number behind a word that `word` gave."""
    if isinstance(word_, Unknown):
        return word_
    for known, text in words.items():
        if text == word_:
            return known
    return int(word_) if word_.isdecimal() else Unknown(UnknownKind.FAILED, "the driver reports an unknown error")
