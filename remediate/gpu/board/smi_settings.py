# One signature for all setters, so that they can stand in a table.
# ruff: noqa: ARG001
"""How nvidia-smi answers each set command for one device: the text, the exit code, and the device afterwards."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from remediate.gpu.board.simulate import Hidden
from remediate.gpu.facts import Device, Power
from remediate.gpu.numbers import COMPUTE_MODES, VGPU_GUEST
from remediate.model import Reading, Unknown, UnknownKind

ALL_DONE = "All done."
_WARNING = "Treating as warning and moving on."
_USAGE = 2
_PERMISSION = 4
_OTHER = 255
_COMPUTE_MODES = {
    word: mode for number, mode in COMPUTE_MODES.items() for word in (str(number), mode.upper().replace(" ", "_"))
}
_LOCK_SINCE = {"GPU": (7, 0), "Memory": (8, 0)}


class Result(msgspec.Struct, frozen=True):
    """Exit code 0 goes on to the next device. `device` is None where nothing changed."""

    code: int
    lines: tuple[str, ...]
    device: Device | None = None
    hidden: Hidden | None = None


Setter = Callable[[Device, Hidden, str, bool], Result]


def set_persistence_mode(device: Device, hidden: Hidden, value: str, root: bool) -> Result:
    """`-pm 0|1`."""
    words = {"0": False, "1": True, "DISABLED": False, "ENABLED": True}
    gpu = device.pci_bus_id
    if value.upper() not in words:
        return Result(_USAGE, (f"Invalid persistence mode: {value}",))
    wanted = words[value.upper()]
    name = "Enabled" if wanted else "Disabled"
    if isinstance(device.persistence_mode, Unknown):
        return Result(0, (f"Setting persistence mode is not supported for GPU {gpu} on this platform.", _WARNING))
    if device.persistence_mode == wanted:
        return Result(0, (f"Persistence mode is already {name} for GPU {gpu}.",))
    if not root:
        return Result(_PERMISSION, (f"Unable to set persistence mode for GPU {gpu}: Insufficient Permissions",))
    return Result(
        0, (f"{name} persistence mode for GPU {gpu}.",), msgspec.structs.replace(device, persistence_mode=wanted)
    )


def set_power_limit(device: Device, hidden: Hidden, value: str, root: bool) -> Result:
    """`-pl WATTS`. nvidia-smi checks the range itself, before the rights."""
    gpu, power = device.pci_bus_id, device.power
    wanted = _watts(value)
    if wanted is None:
        return Result(_USAGE, (f"Invalid power limit: {value}",))
    if device.virtualization == VGPU_GUEST:
        return Result(0, (f"Changing power management limit is not supported in current scope for GPU: {gpu}.",))
    lowest, highest, limit = power.min_w, power.max_w, power.limit_w
    if isinstance(limit, Unknown) or isinstance(lowest, Unknown) or isinstance(highest, Unknown):
        return Result(0, (f"Changing power management limit is not supported for GPU: {gpu}.", _WARNING))
    if not lowest <= wanted <= highest:
        return Result(_USAGE, (_out_of_range(gpu, wanted, lowest, highest),))
    if not root:
        return Result(_PERMISSION, (f"Failed to set power management limit for GPU {gpu}: Insufficient Permissions",))
    cap = _cap(hidden, power)
    fresh = msgspec.structs.replace(power, limit_w=wanted, enforced_w=_enforced(power.enforced_w, wanted, cap))
    line = f"Power limit for GPU {gpu} was set to {wanted:.2f} W from {limit:.2f} W."
    capped = msgspec.structs.replace(hidden, cap_w=cap)
    return Result(0, (line,), msgspec.structs.replace(device, power=fresh), capped)


def set_module_power_limit(device: Device, hidden: Hidden, value: str, root: bool) -> Result:
    """`-pl WATTS -sc 1`; boards without a module are answered as unsupported in that scope, with exit code 0."""
    gpu, power, wanted = device.pci_bus_id, device.module_power, _watts(value)
    if power is None:
        return Result(0, (f"Changing power management limit is not supported in current scope for GPU: {gpu}.",))
    lowest, highest, limit = power.min_w, power.max_w, power.limit_w
    if wanted is None:
        return Result(_USAGE, (f"Invalid power limit: {value}",))
    if isinstance(limit, Unknown) or isinstance(lowest, Unknown) or isinstance(highest, Unknown):
        return Result(0, (f"Changing power management limit is not supported in current scope for GPU: {gpu}.",))
    if not lowest <= wanted <= highest:
        return Result(_USAGE, (_out_of_range(gpu, wanted, lowest, highest),))
    if not root:
        return Result(_PERMISSION, (f"Failed to set power management limit for GPU {gpu}: Insufficient Permissions",))
    fresh = msgspec.structs.replace(power, limit_w=wanted, enforced_w=_enforced(power.enforced_w, wanted, None))
    line = f"Power limit for GPU {gpu} was set to {wanted:.2f} W from {limit:.2f} W."
    return Result(0, (line,), msgspec.structs.replace(device, module_power=fresh))


def set_compute_mode(device: Device, hidden: Hidden, value: str, root: bool) -> Result:
    """`-c MODE`, by word or number."""
    gpu = device.pci_bus_id
    mode = _COMPUTE_MODES.get(value.upper())
    if mode is None:
        return Result(_USAGE, (f"Invalid compute mode: {value}",))
    word = mode.upper().replace(" ", "_")
    if isinstance(device.compute_mode, Unknown):
        return Result(0, (f"Compute mode is not supported for GPU {gpu}.", _WARNING))
    if device.compute_mode == mode:
        return Result(0, (f"Compute mode is already set to {word} for GPU {gpu}.",))
    if not root:
        return Result(_PERMISSION, (f"Unable to set the compute mode for GPU {gpu}: Insufficient Permissions",))
    return Result(
        0, (f"Set compute mode to {word} for GPU {gpu}.",), msgspec.structs.replace(device, compute_mode=mode)
    )


def set_application_clocks(device: Device, hidden: Hidden, value: str, root: bool) -> Result:
    """`-ac MEMORY,GRAPHICS`."""
    gpu, pair = device.pci_bus_id, _numbers(value)
    if len(pair) != 2:  # noqa: PLR2004 - memory and graphics
        return Result(
            _USAGE,
            (
                f'Specified clocks "{value}" are not valid. Please format input as memClk,smClk e.g. '
                "--applications-clocks=2000,300",
            ),
        )
    memory, graphics = pair
    present = device.application_clocks.graphics_mhz
    if isinstance(present, Unknown):
        return _no_application_clocks(gpu, present, f"(MEM {memory}, SM {graphics})")
    if not root:
        return _no_rights(gpu)
    if not _is_supported(device, memory, graphics):
        return _bad_combination(gpu, f"(MEM {memory}, SM {graphics})")
    clocks = msgspec.structs.replace(device.application_clocks, memory_mhz=memory, graphics_mhz=graphics)
    line = f'Applications clocks set to "(MEM {memory}, SM {graphics})" for GPU {gpu}'
    return Result(0, (line,), msgspec.structs.replace(device, application_clocks=clocks))


def reset_application_clocks(device: Device, hidden: Hidden, value: str, root: bool) -> Result:
    """`-rac`."""
    gpu = device.pci_bus_id
    if isinstance(device.application_clocks.graphics_mhz, Unknown):
        return Result(0, (f"Setting applications clocks is not supported for GPU {gpu}.", _WARNING))
    if not root:
        return _no_rights(gpu)
    return Result(0, (), msgspec.structs.replace(device, application_clocks=device.default_application_clocks))


def lock_gpu_clocks(device: Device, hidden: Hidden, value: str, root: bool) -> Result:
    """`-lgc MIN,MAX`; one value stands for both."""
    return _lock(device, hidden, value, root, "GPU")


def lock_memory_clocks(device: Device, hidden: Hidden, value: str, root: bool) -> Result:
    """`-lmc MIN,MAX`."""
    return _lock(device, hidden, value, root, "Memory")


def reset_gpu_clocks(device: Device, hidden: Hidden, value: str, root: bool) -> Result:
    """`-rgc`."""
    return _reset_lock(device, hidden, root, "GPU")


def reset_memory_clocks(device: Device, hidden: Hidden, value: str, root: bool) -> Result:
    """`-rmc`."""
    return _reset_lock(device, hidden, root, "Memory")


SETTERS: dict[str, Setter] = {
    "-pm": set_persistence_mode,
    "-c": set_compute_mode,
    "-pl": set_power_limit,
    "-ac": set_application_clocks,
    "-rac": reset_application_clocks,
    "-lgc": lock_gpu_clocks,
    "-rgc": reset_gpu_clocks,
    "-lmc": lock_memory_clocks,
    "-rmc": reset_memory_clocks,
}


def _out_of_range(gpu: Reading[str], wanted: float, lowest: float, highest: float) -> str:
    return (
        f"Provided power limit {wanted:.2f} W is not a valid power limit which should be between "
        f"{lowest:.2f} W and {highest:.2f} W for GPU {gpu}"
    )


def _lock(device: Device, hidden: Hidden, value: str, root: bool, domain: str) -> Result:
    gpu, pair = device.pci_bus_id, _numbers(value)
    if not pair or len(pair) > 2:  # noqa: PLR2004 - lowest and highest
        return Result(_USAGE, (f'Specified clocks "{value}" are not valid.',))
    lowest, highest = pair[0], pair[-1]
    if not _can_lock(device, domain):
        return _no_lock(gpu, domain)
    if not root:
        return _no_rights(gpu)
    unit = "gpuClk" if domain == "GPU" else "memClk"
    shown = f"({unit}Min {lowest}, {unit}Max {highest})"
    if lowest > highest or not _is_lockable(device, domain, highest):
        return _bad_combination(gpu, shown)
    return Result(
        0,
        (f'{domain} clocks set to "{shown}" for GPU {gpu}',),
        _bounded(device, domain, lowest, highest),
        _with_lock(_remembering(device, hidden), domain, f"{lowest},{highest}"),
    )


def _reset_lock(device: Device, hidden: Hidden, root: bool, domain: str) -> Result:
    if not _can_lock(device, domain):
        name = "gpu" if domain == "GPU" else domain
        line = f"Setting locked {name} clocks is not supported for GPU {device.pci_bus_id}."
        return Result(0, (line, _WARNING))
    if not root:
        return _no_rights(device.pci_bus_id)
    return Result(0, (), _freed(device, hidden, domain), _with_lock(hidden, domain, ""))


def _bounded(device: Device, domain: str, lowest: int, highest: int) -> Device:
    """A lock takes effect at once, whether anything runs or not."""
    names = ("memory_mhz",) if domain == "Memory" else ("graphics_mhz", "sm_mhz")
    present = {name: getattr(device.clocks, name) for name in names}
    bounded = {
        name: min(max(clock, lowest), highest) for name, clock in present.items() if not isinstance(clock, Unknown)
    }
    return msgspec.structs.replace(device, clocks=msgspec.structs.replace(device.clocks, **bounded))


def _freed(device: Device, hidden: Hidden, domain: str) -> Device:
    """Without its lock a clock goes back to where it was, as long as nothing ran in between."""
    names = ("memory_mhz",) if domain == "Memory" else ("graphics_mhz", "sm_mhz")
    if hidden.free_clocks is None:
        return device
    freed = {name: getattr(hidden.free_clocks, name) for name in names}
    return msgspec.structs.replace(device, clocks=msgspec.structs.replace(device.clocks, **freed))


def _no_lock(gpu: Reading[str], domain: str) -> Result:
    """For memory clocks nvidia-smi leaves the warning line out, but not when they are reset."""
    line = f"Setting locked {domain} clocks is not supported for GPU {gpu}."
    return Result(0, (line, _WARNING) if domain == "GPU" else (line,))


def _no_application_clocks(gpu: Reading[str], reason: Unknown, shown: str) -> Result:
    if reason.kind is UnknownKind.DEPRECATED:
        text = f'Unable to set applications clocks "{shown}" for GPU {gpu}: Requested functionality has been deprecated'
        return Result(_OTHER, (text,))
    return Result(0, (f"Setting applications clocks is not supported for GPU {gpu}.", _WARNING))


def _no_rights(gpu: Reading[str]) -> Result:
    return Result(_PERMISSION, (f"The current user does not have permission to change clocks for GPU {gpu}.",))


def _bad_combination(gpu: Reading[str], shown: str) -> Result:
    return Result(
        0,
        (
            f'Specified clock combination "{shown}" is not supported for GPU {gpu}. Run \'nvidia-smi -q -d '
            "SUPPORTED_CLOCKS' to see list of supported clock combinations",
            _WARNING,
        ),
    )


def _can_lock(device: Device, domain: str) -> bool:
    capability = device.compute_capability
    if isinstance(capability, Unknown) or isinstance(device.supported_clocks, Unknown):
        return False
    return tuple(int(part) for part in capability.split(".")) >= _LOCK_SINCE[domain]


def _is_lockable(device: Device, domain: str, highest: int) -> bool:
    """Graphics locks may lie between listed clocks; memory locks name a listed clock."""
    tables = () if isinstance(device.supported_clocks, Unknown) else device.supported_clocks
    if domain == "Memory":
        return any(table.memory_mhz == highest for table in tables)
    return any(min(table.graphics_mhz) <= highest <= max(table.graphics_mhz) for table in tables if table.graphics_mhz)


def _is_supported(device: Device, memory: int, graphics: int) -> bool:
    tables = () if isinstance(device.supported_clocks, Unknown) else device.supported_clocks
    return any(table.memory_mhz == memory and graphics in table.graphics_mhz for table in tables)


def _remembering(device: Device, hidden: Hidden) -> Hidden:
    is_free = not hidden.locked_gpu_clocks and not hidden.locked_memory_clocks
    return msgspec.structs.replace(hidden, free_clocks=device.clocks) if is_free else hidden


def _with_lock(hidden: Hidden, domain: str, value: str) -> Hidden:
    if domain == "GPU":
        return msgspec.structs.replace(hidden, locked_gpu_clocks=value)
    return msgspec.structs.replace(hidden, locked_memory_clocks=value)


def _cap(hidden: Hidden, power: Power) -> float | None:
    """Another limiter that lies below the limit that software set (board controller, node cap), in W."""
    if hidden.cap_w is not None or isinstance(power.enforced_w, Unknown) or isinstance(power.limit_w, Unknown):
        return hidden.cap_w
    return power.enforced_w if power.enforced_w < power.limit_w else None


def _enforced(enforced: Reading[float], wanted: float, cap: float | None) -> Reading[float]:
    """The enforced limit follows, where it can be read, unless another limiter lies lower."""
    if isinstance(enforced, Unknown):
        return enforced
    return wanted if cap is None else min(wanted, cap)


def _watts(value: str) -> float | None:
    """nvidia-smi also takes `1e2` and `300W`."""
    try:
        return float(value.removesuffix("W"))
    except ValueError:
        return None


def _numbers(value: str) -> tuple[int, ...]:
    parts = value.split(",")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()
