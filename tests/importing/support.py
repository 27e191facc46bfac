"""Helpers: read texts as reports, and look at devices as places with readings."""

from __future__ import annotations

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
