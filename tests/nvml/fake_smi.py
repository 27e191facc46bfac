"""A stand-in for nvidia-smi where the genuine one can't be had: the same calls of NVML, texts and exit codes.

Run as `python fake_smi.py -i UUID SWITCH [VALUE]`, with the mock library on LD_LIBRARY_PATH. Only the set commands.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from nvml import smi_texts as texts

GRAPHICS, MEMORY = 0, 2
SETTERS = {
    "-pm": "SetPersistenceMode",
    "-c": "SetComputeMode",
    "-pl": "SetPowerManagementLimit",
    "-ac": "SetApplicationsClocks",
    "-lgc": "SetGpuLockedClocks",
    "-lmc": "SetMemoryLockedClocks",
    "-rac": "ResetApplicationsClocks",
    "-rgc": "ResetGpuLockedClocks",
    "-rmc": "ResetMemoryLockedClocks",
}
ALREADY = {
    "-pm": (
        "GetPersistenceMode",
        "Setting persistence mode is not supported for GPU {gpu} on this platform.",
        "Persistence mode is already {name} for GPU {gpu}.",
    ),
    "-c": (
        "GetComputeMode",
        "Compute mode is not supported for GPU {gpu}.",
        "Compute mode is already set to {name} for GPU {gpu}.",
    ),
}
MODES = {"-pm": ("Disabled", "Enabled"), "-c": texts.COMPUTE_MODES}
AFTER_INIT = {
    9: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
    "driver is installed and running.\n",
    18: "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161\n",
}


class Nvml:
    """The few calls that a set command makes."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libnvidia-ml.so.1")

    def number(self, handle: ctypes.c_void_p, function: str) -> tuple[int, int]:
        """Code and value."""
        value = ctypes.c_uint()
        code = getattr(self.library, f"nvmlDevice{function}")(handle, ctypes.byref(value))
        return code, value.value

    def text(self, handle: ctypes.c_void_p, function: str) -> tuple[int, str]:
        """Code and text."""
        buffer = ctypes.create_string_buffer(96)
        code = getattr(self.library, f"nvmlDevice{function}")(handle, buffer, 96)
        return code, buffer.value.decode()

    def bus_id(self, handle: ctypes.c_void_p) -> str:
        """The last 32 bytes of nvmlPciInfo_t, which has 68."""
        buffer = ctypes.create_string_buffer(68)
        self.library.nvmlDeviceGetPciInfo_v3(handle, buffer)
        return buffer.raw[36:].split(b"\0")[0].decode()

    def range_w(self, handle: ctypes.c_void_p) -> tuple[float, float]:
        """Lowest and highest power limit in W."""
        low, high = ctypes.c_uint(), ctypes.c_uint()
        self.library.nvmlDeviceGetPowerManagementLimitConstraints(handle, ctypes.byref(low), ctypes.byref(high))
        return low.value / 1000, high.value / 1000

    def is_without_scope(self, handle: ctypes.c_void_p) -> bool:
        """Whether the requested limit can't be read as field 192, as in a vGPU guest. A field has 40 bytes."""
        field = (ctypes.c_uint * 10)(192)
        self.library.nvmlDeviceGetFieldValues(handle, 1, field)
        return field[7] != 0

    def set(self, handle: ctypes.c_void_p, switch: str, value: str) -> int:
        """The code of the set call."""
        numbers = [int(float(part) * (1000 if switch == "-pl" else 1)) for part in value.split(",") if part]
        if switch in ("-lgc", "-lmc") and len(numbers) == 1:
            numbers *= 2
        code: int = getattr(self.library, f"nvmlDevice{SETTERS[switch]}")(handle, *map(ctypes.c_uint, numbers))
        return code


def find(nvml: Nvml, wanted: str) -> tuple[ctypes.c_void_p | None, str, int]:
    """The device with that UUID; like the genuine program it stops at the first one that it can't look at."""
    count = ctypes.c_uint()
    nvml.library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    for index in range(count.value):
        handle = ctypes.c_void_p()
        code = nvml.library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
        if code == texts.NO_PERMISSION:
            continue
        if code:
            more = ".  Reboot the system to recover this GPU\n\n" if code == 15 else ""
            return None, f"Problem with GPU {index}: {texts.ERRORS.get(code, 'Unknown Error')}{more}\n", texts.OTHER
        if nvml.text(handle, "GetUUID") == (0, wanted):
            return handle, "", 0
    return None, texts.NO_DEVICES + "\n", 6


def look_first(nvml: Nvml, handle: ctypes.c_void_p, switch: str, value: str, gpu: str) -> tuple[str, int] | None:
    """What is answered without a set call, for what the device lacks or is set to already; None where one is made."""
    if switch == "-pl":
        low, high = nvml.range_w(handle)
        if nvml.is_without_scope(handle):
            return f"{texts.SCOPE.format(gpu=gpu)}\n{texts.ALL_DONE}\n", 0
        if high and not low <= float(value) <= high:
            line = texts.RANGE.format(value=float(value), lowest=low, highest=high, gpu=gpu)
            return f"{line}\n{texts.TERMINATING}\n", texts.INVALID_ARGUMENT
    if switch in ALREADY:
        getter, unsupported, already = ALREADY[switch]
        code, mode = nvml.number(handle, getter)
        if code == texts.NOT_SUPPORTED:
            return f"{unsupported.format(gpu=gpu)}\n{texts.MOVING_ON}\n{texts.ALL_DONE}\n", 0
        if mode == int(value):
            return f"{already.format(name=MODES[switch][mode], gpu=gpu)}\n{texts.ALL_DONE}\n", 0
    return None


def change(nvml: Nvml, handle: ctypes.c_void_p, switch: str, value: str) -> tuple[str, int]:
    """Set one thing on one device."""
    gpu = nvml.bus_id(handle)
    known = look_first(nvml, handle, switch, value, gpu)
    if known is not None:
        return known
    before = nvml.number(handle, "GetPowerManagementLimit")[1] / 1000 if switch == "-pl" else 0.0
    code = nvml.set(handle, switch, value)
    text, exit_code = texts.answer(switch, value, code, gpu, before)
    is_off = nvml.number(handle, "GetPersistenceMode") == (0, 0)
    if code == 0 and is_off and switch in texts.DONE:
        warning = texts.PERSISTENCE_OFF.format(gpu=gpu)
        text = text.replace(texts.ALL_DONE, f"{warning}\n{texts.ALL_DONE}")
    return text, exit_code


def main(arguments: list[str]) -> int:
    """One command line."""
    nvml = Nvml()
    code: int = nvml.library.nvmlInitWithFlags(0)
    if code:
        text = AFTER_INIT.get(code, f"Failed to initialize NVML: {texts.ERRORS.get(code, 'Unknown Error')}\n")
        exit_code = code if code in texts.EXIT_CODES else texts.OTHER
    else:
        _, wanted, switch, *value = arguments
        handle, text, exit_code = find(nvml, wanted)
        if handle is not None:
            text, exit_code = change(nvml, handle, switch, "".join(value))
    sys.stdout.write(text)
    return exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
