"""Conversions between NVML's units and those that the program speaks.

NVML gives power in milliwatts and memory in bytes (nvml.h, nvmlDeviceGetPowerManagementLimit and nvmlMemory_t);
nvidia-smi takes and prints watts and MiB.
"""

from __future__ import annotations

BYTES_PER_MIB = 1024 * 1024


def watts(milliwatts: int) -> float:
    """Power in W from NVML's mW."""
    return milliwatts / 1000


def milliwatts(watts_: float) -> int:
    """Power in whole mW from W, rounded to the nearest."""
    return round(watts_ * 1000)


def mebibytes(count: int) -> int:
    """Memory in whole MiB from bytes, rounded down."""
    return count // BYTES_PER_MIB


def format_watts(value: float) -> str:
    """`250 W`, `250.5 W`: at most two decimals, none when they are zero."""
    return f"{format_number(value)} W"


def format_number(value: float) -> str:
    """At most two decimals, without trailing zeros; always with a full stop, as nvidia-smi parses it."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def gigabytes(count: int) -> str:
    """Bytes as people read download sizes: `2.7 GB`, `134 kB`, in powers of 1000."""
    for unit, size in (("GB", 1_000_000_000), ("MB", 1_000_000)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count // 1000} kB"
