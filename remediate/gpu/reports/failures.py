"""What nvidia-smi says when it can't say more, and the lines about a GPU that it could not open.

Texts of nvidia-smi 535.261.03 and 555.58.02, and of public reports (JosephKJ/OWOD#81, pdbear/syno_nvidia_gpu_driver#22,
NVIDIA/open-gpu-kernel-modules#387).
"""

from __future__ import annotations

import re
from typing import Any

from remediate.gpu.nvml import unknown_for
from remediate.gpu.reports import cells
from remediate.gpu.reports.snapshot import INDEX, LOST, Snapshot
from remediate.model import Reading

KIND = "message of nvidia-smi"
_DRIVER = (
    ("couldn't communicate with the NVIDIA driver", 9),
    ("couldn't find libnvidia-ml.so library", 12),
    ("Failed to initialize NVML: Driver/library version mismatch", 18),
    ("Failed to initialize NVML: Insufficient Permissions", 4),
    ("Failed to initialize NVML: GPU access blocked by the operating system", 17),
    ("Failed to initialize NVML: Unknown Error", 999),
)
_NO_DEVICE = "No devices were found"
_HANDLE = re.compile(
    r"Unable to determine the device handle for GPU ?"
    r"(\d{1,3}|[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]): "
    r"(GPU is lost|GPU requires reset|Unknown Error|Insufficient Permissions|Not Found|No data)",
    re.ASCII,
)


def find_failures(text: str, name: str) -> tuple[Snapshot, ...]:
    """One snapshot for all messages of a text; none where there are none."""
    source = f"{name}: {KIND}"
    for message, code in _DRIVER:
        if message in text:
            reason = unknown_for(code)
            return (Snapshot(source, {"driver_version": reason, "device_count": reason}, ()),)
    lost = tuple(_lost(found) for found in _HANDLE.finditer(text))
    if lost:
        return (Snapshot(source, {}, lost),)
    return (Snapshot(source, {"device_count": 0}, ()),) if _NO_DEVICE in text else ()


def _lost(found: re.Match[str]) -> dict[str, Reading[Any]]:
    reason = cells.unknown_cell(found[2])
    if found[1].isdecimal():
        return {INDEX: int(found[1]), LOST: reason}
    return {"pci_bus_id": cells.pci_bus_id(found[1]), LOST: reason}
