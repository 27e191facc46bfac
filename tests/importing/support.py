"""Helpers: read texts as reports, and look at devices as places with readings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from remediate.gpu.facts import Device, GpuFacts
from remediate.gpu.reports import read_reports
from remediate.model import Unknown, UnknownKind
from remediate.reports import Report

Readings = dict[str, Any]
UUID = "GPU-5f1c2d3e-4a5b-4c6d-8e7f-0123456789ab"
HEAD = f"""
==============NVSMI LOG==============

Timestamp                                              : Wed Aug 12 21:54:00 2026
Driver Version                                         : 550.54.14
CUDA Version                                           : 12.4

Attached GPUs                                          : 1
GPU 00000000:0C:00.0
    Product Name                                       : NVIDIA A10G
    GPU UUID                                           : {UUID}
"""
BOARDS = sorted((Path(__file__).parents[2] / "remediate" / "gpu" / "boards").glob("*.json"))
FREEZE = "accelerate==0.25.0\nnumpy==2.0.1\ntorch==2.1.2+cu121\ntransformers==4.38.0\n"
COLLECTED = """Collecting environment information...
PyTorch version: 2.1.2+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.3 LTS (x86_64)
Libc version: glibc-2.35

Python version: 3.10.12 (main, Nov 20 2023, 15:14:05) [GCC 11.4.0] (64-bit runtime)
Python platform: Linux-5.15.0-91-generic-x86_64-with-glibc2.35
Is CUDA available: True
CUDA runtime version: 11.5.119
GPU models and configuration:
GPU 0: NVIDIA A100-SXM4-40GB
GPU 1: NVIDIA A100-SXM4-40GB

Nvidia driver version: 535.129.03

Versions of relevant libraries:
[pip3] numpy==1.26.4
[pip3] torch==2.1.2+cu121
[conda] Could not collect
"""


def board_facts(path: Path) -> GpuFacts:
    return msgspec.convert(msgspec.json.decode(path.read_bytes())["gpu"], GpuFacts)


def read(*texts: str, csv_fields: tuple[str, ...] = ()) -> GpuFacts:
    readout = read_reports([Report(f"report {index}", text, csv_fields) for index, text in enumerate(texts)])
    assert readout is not None
    assert isinstance(readout.facts, GpuFacts)
    return readout.facts


def only(*texts: str, csv_fields: tuple[str, ...] = ()) -> Device:
    (device,) = read(*texts, csv_fields=csv_fields).devices
    return device


def flat(value: Any, place: str = "") -> Readings:
    """Dotted place to reading; an unknown one as its kind."""
    if isinstance(value, Unknown):
        return {place: value.kind}
    if isinstance(value, msgspec.Struct):
        found: Readings = {}
        for name in value.__struct_fields__:
            found |= flat(getattr(value, name), f"{place}.{name}".lstrip("."))
        return found
    if isinstance(value, float):
        # nvidia-smi prints two decimals.
        return {place: round(value, 2)}
    return {place: [flat(item) for item in value] if isinstance(value, tuple) else value}


def said(device: Device) -> Readings:
    """What a report says of a device; the rest is `NOT_IN_REPORT`."""
    unsaid = {place for place, kind in flat(device).items() if kind is UnknownKind.NOT_READ}
    return {place: reading for place, reading in flat(device).items() if place not in unsaid}
