"""The one importer of `pynvml` (distribution nvidia-ml-py): opens NVML and turns its errors into `Unknown`.

Decisions rest on an error's number, never on its text: the package's texts differ from the driver's, a driver older
than the package answers "Unknown Error", and `NVMLError` instances can be neither hashed nor compared with other types.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from remediate.model import Unknown, UnknownKind

Nvml = Any
"""The module `pynvml`, or an object with its functions (`remediate.gpu.board.nvml.SimulatedNvml`)."""

FUNCTION_NOT_FOUND = 13
_KINDS = UnknownKind
_MEANINGS: dict[int, tuple[UnknownKind, str]] = {
    # nvmlReturn_t of nvml.h, CUDA 13.3.
    1: (_KINDS.NOT_READ, "NVML is not initialised"),
    2: (_KINDS.FAILED, "the driver refused the question (invalid argument)"),
    3: (_KINDS.NOT_SUPPORTED, "not supported by this device"),
    4: (_KINDS.NO_PERMISSION, "no permission"),
    5: (_KINDS.FAILED, "NVML was initialised twice"),
    6: (_KINDS.FAILED, "not found"),
    7: (_KINDS.FAILED, "the answer did not fit"),
    8: (_KINDS.FAILED, "the external power cables are not attached"),
    9: (_KINDS.FAILED, "the NVIDIA driver is not loaded"),
    10: (_KINDS.FAILED, "the driver did not answer in time"),
    11: (_KINDS.FAILED, "the kernel sees a problem with the GPU's interrupts"),
    12: (_KINDS.FAILED, "libnvidia-ml.so.1 was not found"),
    FUNCTION_NOT_FOUND: (_KINDS.NOT_SUPPORTED, "not offered by this driver"),
    14: (_KINDS.FAILED, "the GPU's infoROM is corrupt"),
    15: (_KINDS.LOST, "the GPU is lost: it fell off the bus or is otherwise out of reach"),
    16: (_KINDS.LOST, "the GPU needs a reset"),
    17: (_KINDS.NO_PERMISSION, "the operating system blocks access to the GPU"),
    18: (_KINDS.FAILED, "the loaded driver and libnvidia-ml.so.1 are of different versions"),
    19: (_KINDS.FAILED, "in use by another client"),
    20: (_KINDS.FAILED, "not enough memory"),
    21: (_KINDS.FAILED, "the driver has no data for it"),
    22: (_KINDS.NOT_SUPPORTED, "not supported by this device with ECC in a vGPU"),
    23: (_KINDS.FAILED, "the driver ran out of resources"),
    24: (_KINDS.FAILED, "the frequency is not supported"),
    25: (_KINDS.NOT_SUPPORTED, "not offered by this driver in that version"),
    26: (_KINDS.DEPRECATED, "the driver no longer answers this (deprecated)"),
    27: (_KINDS.FAILED, "the system is not ready"),
    28: (_KINDS.FAILED, "no GPU was found"),
    29: (_KINDS.FAILED, "not possible in the present state"),
    30: (_KINDS.NOT_SUPPORTED, "that kind of reset is not supported"),
    999: (_KINDS.FAILED, "the driver reports an unknown error"),
}
_STANDARD_CODES = {
    _KINDS.NOT_READ: 1,
    _KINDS.NOT_SUPPORTED: 3,
    _KINDS.NO_PERMISSION: 4,
    _KINDS.DEPRECATED: 26,
    _KINDS.LOST: 15,
    _KINDS.FAILED: 999,
}
_NO_PYNVML = Unknown(UnknownKind.FAILED, "the Python package nvidia-ml-py can't be imported")
_OLD_PYNVML = Unknown(UnknownKind.NOT_SUPPORTED, "not offered by the installed nvidia-ml-py")

_INIT_HINTS = {
    4: "check the permissions of /dev/nvidia*; in a container, start it with the GPUs",
    9: "load it with `modprobe nvidia`, or see `dmesg` for why it does not load",
    10: "see `dmesg` for Xid messages; a driver that hangs mostly needs a restart of the machine",
    12: "install the NVIDIA driver; in a container, start it with the GPUs (`--gpus all`)",
    18: "the driver was updated while it was loaded: reboot, or unload and load the kernel modules",
    999: "see `dmesg` for messages of the NVIDIA driver",
}

_INIT_COMMANDS: dict[int, tuple[tuple[str, ...], ...]] = {
    9: (("sudo", "modprobe", "nvidia"), ("sudo", "dmesg", "--level=err,warn")),
    18: (
        ("sudo", "modprobe", "-r", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia"),
        ("sudo", "modprobe", "nvidia"),
    ),
}


def unknown_for(code: int) -> Unknown:
    """The reading that NVML's return code `code` stands for."""
    kind, reason = _MEANINGS.get(code, (UnknownKind.FAILED, f"the driver reports NVML error {code}"))
    return Unknown(kind, reason)


def code_for(unknown: Unknown) -> int:
    """The return code that leads to `unknown`; the usual one of its kind where the reason is not NVML's."""
    for code, meaning in _MEANINGS.items():
        if meaning == (unknown.kind, unknown.reason):
            return code
    return _STANDARD_CODES[unknown.kind]


def hint_for(unknown: Unknown) -> str:
    """What to do when NVML could not be opened; empty when there is no particular advice."""
    if unknown == _NO_PYNVML:
        return "install `nvidia-ml-py` beside this program; the packages `pynvml` and `nvidia-ml-py3` hide it"
    return _INIT_HINTS.get(code_for(unknown), "")


def commands_after(unknown: Unknown) -> tuple[tuple[str, ...], ...]:
    """What a person can run on the host when NVML could not be opened; empty when there is no particular command."""
    return _INIT_COMMANDS.get(code_for(unknown), ()) if unknown != _NO_PYNVML else ()


def ask(nvml: Nvml, function: str, *arguments: Any) -> Any:
    """The answer of one NVML function, or `Unknown` with the reason.

    `NVMLLibraryMismatchError` (process lists of old drivers) is no `NVMLError` and means that a function is missing.
    """
    call = getattr(nvml, function, None)
    if call is None:
        return _OLD_PYNVML
    try:
        return call(*arguments)
    except nvml.NVMLError as error:
        return unknown_for(error.value)
    except nvml.NVMLLibraryMismatchError:
        return unknown_for(FUNCTION_NOT_FOUND)
    except UnicodeDecodeError:
        return Unknown(UnknownKind.FAILED, "the driver's text is not UTF-8")


def ask_first(nvml: Nvml, functions: tuple[str, ...], *arguments: Any) -> Any:
    """The answer of the first function that this driver and package offer: new name first, former names after it."""
    missing = unknown_for(FUNCTION_NOT_FOUND)
    answer: Any = _OLD_PYNVML
    for function in functions:
        latest = ask(nvml, function, *arguments)
        if latest not in (missing, _OLD_PYNVML):
            return latest
        # A driver without the function says more than a package without it.
        answer = missing if missing in (answer, latest) else latest
    return answer


def load_pynvml() -> Nvml:
    """The module `pynvml`. Costs about 20 ms, hence not at the top.

    Raises:
        ImportError: it is not installed.
    """
    import pynvml

    return pynvml


@contextmanager
def open_nvml(nvml: Nvml | None = None) -> Iterator[Nvml | Unknown]:
    """Initialise NVML and shut it down again; gives `Unknown` where that fails. Initialising touches no GPU.

    Args:
        nvml: stands in for the real module, as a simulated board does.
    """
    if nvml is None:
        try:
            nvml = load_pynvml()
        except ImportError:
            yield _NO_PYNVML
            return
    failure = ask(nvml, "nvmlInit")
    if isinstance(failure, Unknown):
        yield failure
        return
    try:
        yield nvml
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()
