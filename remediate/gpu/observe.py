"""Facts from NVML: the driver and its devices, or the plain reason why there are none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from remediate.errors import ObserveError
from remediate.gpu.facts import Device, GpuFacts
from remediate.gpu.host import LiveHost, Surroundings
from remediate.gpu.nvml import Nvml, ask, hint_for, open_nvml
from remediate.gpu.read_device import read_device
from remediate.model import Reading, Unknown
from remediate.subject import Ledger


def observe(
    selection: Sequence[str] = (),
    *,
    ledger: Ledger | None = None,
    nvml: Nvml | None = None,
    host: Surroundings | None = None,
) -> GpuFacts:
    """Read the driver and the selected devices; all of them for an empty selection.

    A device that fails is a `Device` with `lost` set, and the others are read all the same. Without a usable driver
    the facts say why and have no devices.

    Raises:
        ObserveError: a UUID or index was asked for and there is no such device.
    """
    host = host or LiveHost()
    with open_nvml(nvml) as opened:
        facts = (
            _without_driver(opened, selection)
            if isinstance(opened, Unknown)
            else _read_driver(opened, selection, host, ledger or Ledger())
        )
    return msgspec.structs.replace(
        facts,
        smi=host.smi_path(),
        persistence_daemon=host.persistence_daemon(),
        has_cap_sys_admin=host.has_cap_sys_admin(),
    )


def find_handle(nvml: Nvml, uuid: str) -> Any:
    """The handle of the device with that UUID, or `Unknown` with the reason why there is none."""
    return ask(nvml, "nvmlDeviceGetHandleByUUID", uuid)


def _without_driver(reason: Unknown, selection: Sequence[str]) -> GpuFacts:
    if selection:
        raise ObserveError(
            f"GPU `{selection[0]}` can't be looked at: no NVIDIA driver could be used",
            cause=reason.reason,
            hint=hint_for(reason),
        )
    return GpuFacts(reason, reason, reason, reason)


def _read_driver(nvml: Nvml, selection: Sequence[str], host: Surroundings, ledger: Ledger) -> GpuFacts:
    count = ask(nvml, "nvmlDeviceGetCount")
    handles = {} if isinstance(count, Unknown) else _handles(nvml, count)
    wanted = _select(nvml, handles, selection)
    return GpuFacts(
        driver_version=ask(nvml, "nvmlSystemGetDriverVersion"),
        nvml_version=ask(nvml, "nvmlSystemGetNVMLVersion"),
        cuda_driver_version=_cuda_version(ask(nvml, "nvmlSystemGetCudaDriverVersion_v2")),
        device_count=count,
        devices=tuple(
            Device(index=index, lost=handle)
            if isinstance(handle, Unknown)
            else read_device(nvml, index, handle, host, ledger)
            for index, handle in handles.items()
            if index in wanted
        ),
    )


def _handles(nvml: Nvml, count: int) -> dict[int, Any]:
    """Index to handle or `Unknown`. Getting a handle initialises that GPU, and one failure leaves the others alone."""
    return {index: ask(nvml, "nvmlDeviceGetHandleByIndex", index) for index in range(count)}


def _select(nvml: Nvml, handles: dict[int, Any], selection: Sequence[str]) -> set[int]:
    """Indices of the selected devices, before the costly readings.

    Raises:
        ObserveError: a wish matches nothing.
    """
    if not selection:
        return set(handles)
    names: dict[str, int] = {}
    for index, handle in handles.items():
        names[str(index)] = index
        uuid = handle if isinstance(handle, Unknown) else ask(nvml, "nvmlDeviceGetUUID", handle)
        if not isinstance(uuid, Unknown):
            names[uuid] = index
    for wish in selection:
        if wish not in names:
            present = [f"{index} ({_name_of(names, index)})" for index in handles]
            raise ObserveError(
                f"there is no GPU `{wish}`",
                cause=f"present are: {', '.join(present) or 'none'}",
                hint="give an index or a full UUID, as `nvidia-smi -L` lists them",
            )
    return {names[wish] for wish in selection}


def _name_of(names: dict[str, int], index: int) -> str:
    return next((name for name, known in names.items() if known == index and name != str(index)), "unreadable")


def _cuda_version(reading: Reading[int]) -> Reading[str]:
    """`13000` is 13.0 (cuda.h: 1000 times major plus 10 times minor)."""
    return reading if isinstance(reading, Unknown) else f"{reading // 1000}.{reading % 1000 // 10}"
