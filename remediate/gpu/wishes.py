"""Which wishes hold for one GPU: `[gpu]` of the profile with the fitting `[[gpu_for]]` tables laid over it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeAlias

from remediate.gpu.facts import Device
from remediate.model import Unknown
from remediate.profile.schema import EXCLUSIVE_GPU_WISHES, GpuFor, GpuWish

NO_WISHES = GpuWish()
WishFor: TypeAlias = Callable[[Device], GpuWish]
"""The wishes that hold for a device."""


def wishes_of(everywhere: GpuWish, tables: Sequence[GpuFor] = ()) -> WishFor:
    """A function from device to wishes, for a profile's `gpu` and `gpu_for`."""
    return partial(wish_for, everywhere=everywhere, tables=tuple(tables))


def wish_for(device: Device, everywhere: GpuWish, tables: Sequence[GpuFor]) -> GpuWish:
    """The wishes for a device. A later table replaces what an earlier one says, key by key, rivals included."""
    values = _given(everywhere)
    for table in tables:
        if not matches(table, device):
            continue
        if table.leave_alone:
            return NO_WISHES
        for key, value in _given(table).items():
            for rival in _rivals(key):
                values.pop(rival, None)
            values[key] = {**values.get("why", {}), **value} if key == "why" else value
    return GpuWish(**values)


def has_wishes(wish: GpuWish) -> bool:
    """Whether the profile wants anything of a GPU."""
    return bool(_given(wish).keys() - {"why"})


def matches(table: GpuFor, device: Device) -> bool:
    """Whether a table speaks of this device. A condition on something that could not be read does not hold."""
    checks = ((table.uuid, _has_uuid), (table.pci, _has_address), (table.name, _has_name))
    return all(any(fits(device, value) for value in values) for values, fits in checks if values)


def _has_uuid(device: Device, uuid: str) -> bool:
    return isinstance(device.uuid, str) and device.uuid.lower() == uuid.lower()


def _has_address(device: Device, address: str) -> bool:
    present = device.pci_bus_id
    return not isinstance(present, Unknown) and _address(present) == _address(address)


def _has_name(device: Device, glob: str) -> bool:
    return isinstance(device.name, str) and fnmatchcase(device.name, glob)


def _address(text: str) -> tuple[int, ...] | str:
    """Domain, bus, device and function as numbers: NVML writes the domain with 8 digits, lspci with 4 or none."""
    head, _, function = text.partition(".")
    try:
        parts = [int(part, 16) for part in head.split(":")]
        return (*([0] * (3 - len(parts))), *parts, int(function or "0", 16))
    except ValueError:
        return text


def _given(wish: GpuWish) -> dict[str, Any]:
    """The keys that a table gives of a GPU: without its conditions, and without what is of the host."""
    names = (name for name in GpuWish.__struct_fields__ if name != "survive_reboot")
    present = {name: getattr(wish, name) for name in names}
    return {name: value for name, value in present.items() if value != getattr(NO_WISHES, name)}


def _rivals(key: str) -> tuple[str, ...]:
    return next((group for group in EXCLUSIVE_GPU_WISHES if key in group), ())
