"""Facts from NVML: the driver and its devices, or the plain reason why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from remediate.errors import ObserveError
from remediate.gpu.facts import Device, GpuFacts
from remediate.gpu.host import LiveHost, Surroundings
from remediate.gpu.nvml import Nvml, ask, hint_for, open_nvml
from remediate.gpu.read_device import read_device, with_known_locks
from remediate.gpu.watched import Note, Stuck, Watch, start, watched
from remediate.model import Reading, Unknown
from remediate.subject import Ledger

if TYPE_CHECKING:
    from remediate.gpu.sampling import Pace


def _unheard(step: str) -> None:
    """Where nobody follows the steps."""


def observe(
    selection: Sequence[str] = (),
    *,
    ledger: Ledger | None = None,
    nvml: Nvml | None = None,
    host: Surroundings | None = None,
    sampling: Sampling | None = None,
    begun: Watch[GpuFacts] | None = None,
) -> GpuFacts:
    """Read the driver and the selected devices; all of them for an empty selection.

    A device that fails is a `Device` with `lost` set, and the others are read all the same. Without a usable driver
    the facts say why and have no devices. A real driver is asked under a deadline, for it may never answer.

    Args:
        sampling: read the devices for so long again and again, for shares of time by cause.
        begun: what `begin` started for the same selection and sampling.

    Raises:
        ObserveError: a UUID or index was asked for and there is no such device.
    """
    host = host or LiveHost()
    look = _Look(tuple(selection), host, ledger or Ledger(), sampling or Sampling())
    facts = _read_watched(look, begun) if nvml is None else _read(look, nvml)
    return msgspec.structs.replace(
        facts,
        smi=host.smi_path(),
        persistence_daemon=host.persistence_daemon(),
        has_cap_sys_admin=host.has_cap_sys_admin(),
        platform=host.platform(),
    )


def begin(selection: Sequence[str], sampling: Sampling) -> Watch[GpuFacts] | None:
    """Start reading the real driver, beside what else is looked at; None where that can't be."""
    # What earlier runs locked is not known yet; `observe` puts it in.
    return start(partial(_read_noting, _Look(tuple(selection), LiveHost(), Ledger(), sampling)), GpuFacts)


def find_handle(nvml: Nvml, uuid: str) -> Any:
    """The handle of the device with that UUID, or `Unknown` with the reason why there is none."""
    return ask(nvml, "nvmlDeviceGetHandleByUUID", uuid)


class Sampling(msgspec.Struct, frozen=True):
    """How long to sample, and the clock to do it by."""

    seconds: float = 0.0
    pace: Any = None
    """A `remediate.gpu.sampling.Pace`; None is real time."""


class _Look(msgspec.Struct, frozen=True):
    """One look at the driver. Devices in `hung` did not answer before and are not asked again."""

    selection: tuple[str, ...]
    host: Surroundings
    ledger: Ledger
    sampling: Sampling = Sampling()
    hung: Mapping[int, Unknown] = {}
    note: Note = _unheard
    """Told the index of the device that is asked next."""


def _read_watched(look: _Look, begun: Watch[GpuFacts] | None = None) -> GpuFacts:
    """As `_read`, of the real driver. A device that hangs is left out of the next try, so that the others are read."""
    while True:
        facts = watched(partial(_read_noting, look), GpuFacts) if begun is None else begun.finish()
        begun = None
        if not isinstance(facts, Stuck):
            devices = tuple(with_known_locks(device, look.ledger) for device in facts.devices)
            return msgspec.structs.replace(facts, devices=devices)
        if not facts.at:
            return _without_driver(facts.reason, look.selection)
        look = msgspec.structs.replace(look, hung={**look.hung, int(facts.at): facts.reason})


def _read_noting(look: _Look, note: Note) -> GpuFacts:
    return _read(msgspec.structs.replace(look, note=note), None)


def _read(look: _Look, nvml: Nvml | None) -> GpuFacts:
    with open_nvml(nvml) as opened:
        if isinstance(opened, Unknown):
            return _without_driver(opened, look.selection)
        facts = _read_driver(opened, look)
        look.note("")  # What hangs from here on is the driver, and no device.
        return facts


def _without_driver(reason: Unknown, selection: Sequence[str]) -> GpuFacts:
    if selection:
        raise ObserveError(
            f"GPU `{selection[0]}` can't be looked at: no NVIDIA driver could be used",
            cause=reason.reason,
            hint=hint_for(reason),
        )
    return GpuFacts(reason, reason, reason, reason)


def _read_driver(nvml: Nvml, look: _Look) -> GpuFacts:
    count = ask(nvml, "nvmlDeviceGetCount")
    driver = GpuFacts(
        driver_version=ask(nvml, "nvmlSystemGetDriverVersion"),
        nvml_version=ask(nvml, "nvmlSystemGetNVMLVersion"),
        cuda_driver_version=_cuda_version(ask(nvml, "nvmlSystemGetCudaDriverVersion_v2")),
        device_count=count,
    )
    handles = {} if isinstance(count, Unknown) else _handles(nvml, count, look)
    wanted = _select(nvml, handles, look)
    devices = {index: _read_one(nvml, index, handle, look) for index, handle in handles.items() if index in wanted}
    if look.sampling.seconds > 0:
        devices |= _sample(nvml, devices, handles, look)
    return msgspec.structs.replace(driver, devices=tuple(devices.values()))


def _sample(nvml: Nvml, devices: Mapping[int, Device], handles: Mapping[int, Any], look: _Look) -> dict[int, Device]:
    from remediate.gpu.sampling import WallClock, sample_devices

    pace: Pace = look.sampling.pace or WallClock()
    alive = {index: (device, handles[index]) for index, device in devices.items() if device.lost is None}
    return sample_devices(nvml, alive, look.sampling.seconds, pace, look.note)


def _read_one(nvml: Nvml, index: int, handle: Any, look: _Look) -> Device:
    if isinstance(handle, Unknown):
        return Device(index=index, lost=handle)
    look.note(str(index))
    return read_device(nvml, index, handle, look.host, look.ledger)


def _handles(nvml: Nvml, count: int, look: _Look) -> dict[int, Any]:
    """Index to handle or `Unknown`. Getting a handle initialises that GPU, and one failure leaves the others alone."""
    handles: dict[int, Any] = {}
    for index in range(count):
        if index in look.hung:
            handles[index] = look.hung[index]
            continue
        look.note(str(index))
        handles[index] = ask(nvml, "nvmlDeviceGetHandleByIndex", index)
    return handles


def _select(nvml: Nvml, handles: dict[int, Any], look: _Look) -> set[int]:
    """Indices of the selected devices, before the costly readings.

    Raises:
        ObserveError: a wish matches nothing.
    """
    if not look.selection:
        return set(handles)
    names: dict[str, int] = {}
    for index, handle in handles.items():
        look.note(str(index))
        names[str(index)] = index
        uuid = handle if isinstance(handle, Unknown) else ask(nvml, "nvmlDeviceGetUUID", handle)
        if not isinstance(uuid, Unknown):
            names[uuid] = index
    for wish in look.selection:
        if wish not in names:
            present = [f"{index} ({_name_of(names, index)})" for index in handles]
            raise ObserveError(
                f"there is no GPU `{wish}`",
                cause=f"present are: {', '.join(present) or 'none'}",
                hint="give an index or a full UUID, as `nvidia-smi -L` lists them",
            )
    return {names[wish] for wish in look.selection}


def _name_of(names: dict[str, int], index: int) -> str:
    return next((name for name, known in names.items() if known == index and name != str(index)), "unreadable")


def _cuda_version(reading: Reading[int]) -> Reading[str]:
    """`13000` is 13.0 (cuda.h: 1000 times major plus 10 times minor)."""
    return reading if isinstance(reading, Unknown) else f"{reading // 1000}.{reading % 1000 // 10}"
