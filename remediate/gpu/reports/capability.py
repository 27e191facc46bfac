"""The compute capability of a GPU whose report names the architecture and not the capability, as `-q` does.

Taken only where the architecture, or the chip in the PCI device id, has one capability. Source: the architectures of
nvml.h, developer.nvidia.com/cuda-gpus, and the chips in pci.ids; GeForce RTX 2080 SUPER, RTX 4080 SUPER, L40S, H100 and
H200 as a `--query-gpu=compute_cap,pci.device_id` shows them.
"""

from __future__ import annotations

import re

from remediate.gpu.reports.fields import DEVICE_ID
from remediate.gpu.reports.snapshot import Readings
from remediate.model import Choice, Unknown

_BY_ARCHITECTURE = {"Turing": "7.5", "Ada Lovelace": "8.9", "Hopper": "9.0"}
_BY_CHIP = {
    ("Volta", "1D"): "7.0",
    ("Ampere", "20"): "8.0",
    ("Ampere", "22"): "8.6",
    ("Ampere", "24"): "8.6",
    ("Ampere", "25"): "8.6",
    ("Blackwell", "29"): "10.0",
    ("Blackwell", "31"): "10.3",
    ("Blackwell", "2B"): "12.0",
    ("Blackwell", "2C"): "12.0",
    ("Blackwell", "2D"): "12.0",
    ("Blackwell", "2F"): "12.0",
}
"""By the first byte of the device id: GV100; GA100, GA102, GA104, GA106 with GA107; GB100, GB110, GB202, GB203, GB206,
GB205.
"""
_DEVICE_ID = re.compile(r"(?:0x)?([0-9A-F]{2})[0-9A-F]{2}10DE", re.ASCII | re.IGNORECASE)


def complete(readings: Readings) -> tuple[Readings, Choice | None]:
    """The readings with the capability, and the reason for it; as they are where it is said or can't be told."""
    if isinstance(readings.get("compute_capability"), str):
        return readings, None
    architecture, device_id = readings.get("architecture"), readings.get(DEVICE_ID)
    if isinstance(architecture, Unknown) or architecture is None:
        return readings, None
    match = _DEVICE_ID.fullmatch(device_id) if isinstance(device_id, str) else None
    chip = match[1].upper() if match else ""
    capability = _BY_ARCHITECTURE.get(architecture) or _BY_CHIP.get((architecture, chip))
    if capability is None:
        return readings, None
    because = f"the report names the architecture {architecture}" + (f" and the chip {chip}xx" if chip else "")
    return {**readings, "compute_capability": capability}, Choice("compute capability", capability, because)
