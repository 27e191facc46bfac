"""What nvidia-smi prints and exits with, by the NVML return code of the set call.

Taken from nvidia-smi 535.261.03 (the Debian package of bookworm) on the mock library; `test_smi_table.py` holds the
genuine program against it wherever that is at hand. Imports nothing, for the stand-in runs in a bare interpreter.
"""

ALL_DONE = "All done."
MOVING_ON = "Treating as warning and moving on."
TERMINATING = "Terminating early due to previous errors."
NO_DEVICES = "No devices were found"
SUCCESS, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION = 0, 2, 3, 4
OTHER = 255

ERRORS = {
    1: "Uninitialized",
    2: "Invalid Argument",
    3: "Not Supported",
    4: "Insufficient Permissions",
    5: "Already Initialized",
    6: "Not Found",
    7: "Insufficient Size",
    8: "Insufficient External Power",
    9: "Driver Not Loaded",
    10: "Timeout",
    11: "Interrupt Request Issue",
    12: "NVML Shared Library Not Found",
    13: "Function Not Found",
    14: "Corrupted infoROM",
    15: "GPU is lost",
    16: "GPU requires reset",
    17: "GPU access blocked by the operating system",
    18: "Driver/library version mismatch",
    19: "In use by another client",
    20: "Insufficient Memory",
    21: "No data",
    22: "vGPU ECC not supported",
    23: "Insufficient Resources",
    24: "Invalid Frequency",
    25: "Argument version mismatch",
    26: "Requested functionality has been deprecated",
    27: "System is not in ready state",
    28: "No GPUs were found",
}
"""nvidia-smi's own texts; a code that a build does not know, as 29 and 30 for 535, is an unknown error."""
EXIT_CODES = frozenset({2, 4, 6, 8, 9, 11, 12, 13, 14, 15, 17, 18, 19, 23})
"""NVML codes that become the exit code; all others become 255."""

PERMISSION = "The current user does not have permission to change clocks for GPU {gpu}."
COMBINATION = (
    "Specified clock combination \"{shown}\" is not supported for GPU {gpu}. Run 'nvidia-smi -q -d SUPPORTED_CLOCKS' "
    "to see list of supported clock combinations"
)
FAILURES = {
    "-pl": "Failed to set power management limit for GPU {gpu}: {error}",
    "-pm": "Unable to set persistence mode for GPU {gpu}: {error}",
    "-c": "Unable to set the compute mode for GPU {gpu}: {error}",
    "-ac": 'Unable to set applications clocks "{shown}" for GPU {gpu}: {error}',
    "-lgc": 'Unable to set GPU locked clocks "(gpuClockMin {low}, gpuClockMax {high})" for GPU {gpu}: {error}',
    "-lmc": 'Unable to set Memory locked clocks "(memClockMin {low}, memClockMax {high})" for GPU {gpu}: {error}',
    "-rac": "Unable to reset applications clocks for GPU {gpu}: {error}",
    "-rgc": "Unable to reset locked gpu clocks for GPU {gpu}: {error}",
    "-rmc": "Unable to reset locked Memory clocks for GPU {gpu}: {error}",
}
UNSUPPORTED = {
    "-pl": "Changing power management limit is not supported for GPU: {gpu}.",
    "-ac": "Setting applications clocks is not supported for GPU {gpu}.",
    "-lgc": "Setting locked GPU clocks is not supported for GPU {gpu}.",
    "-lmc": "Setting locked Memory clocks is not supported for GPU {gpu}.",
    "-rac": "Setting applications clocks is not supported for GPU {gpu}.",
    "-rgc": "Setting locked gpu clocks is not supported for GPU {gpu}.",
    "-rmc": "Setting locked Memory clocks is not supported for GPU {gpu}.",
}
DONE = {
    "-pl": "Power limit for GPU {gpu} was set to {value:.2f} W from {before:.2f} W.",
    "-ac": 'Applications clocks set to "{shown}" for GPU {gpu}',
    "-lgc": 'GPU clocks set to "{shown}" for GPU {gpu}',
    "-lmc": 'Memory clocks set to "{shown}" for GPU {gpu}',
}
_SHOWN = {
    "-ac": "(MEM {low}, SM {high})",
    "-lgc": "(gpuClkMin {low}, gpuClkMax {high})",
    "-lmc": "(memClkMin {low}, memClkMax {high})",
}
COMPUTE_MODES = ("DEFAULT", "EXCLUSIVE_THREAD", "PROHIBITED", "EXCLUSIVE_PROCESS")
SCOPE = "Changing power management limit is not supported in current scope for GPU: {gpu}."
"""Where the board has no power scope that the caller may set: any `-pl` in a vGPU guest."""
RANGE = (
    "Provided power limit {value:.2f} W is not a valid power limit which should be between {lowest:.2f} W and "
    "{highest:.2f} W for GPU {gpu}"
)
PERSISTENCE_OFF = (
    "\nWarning: persistence mode is disabled on device {gpu}. See the Known Issues section of the nvidia-smi(1) man "
    "page for more information. Run with [--help | -h] switch to get more information on how to enable persistence "
    "mode."
)


def answer(switch: str, value: str, code: int, gpu: str, before: float = 0.0) -> tuple[str, int]:
    """Text and exit code for one device whose set call returned `code`; `before` is the former power limit in W."""
    low, _, high = value.partition(",")
    words = {"gpu": gpu, "low": low, "high": high or low, "error": ERRORS.get(code, "Unknown Error")}
    words["shown"] = _SHOWN.get(switch, "").format(**words)
    is_clocks = switch not in ("-pl", "-pm", "-c")
    if code == SUCCESS:
        return _success(switch, value, before, words), 0
    if code == NOT_SUPPORTED:
        line = UNSUPPORTED.get(switch, FAILURES[switch]).format(**words)
        # For locked memory clocks, and for these only, the line about the warning is left out.
        return _lines(line, *([] if switch == "-lmc" else [MOVING_ON]), ALL_DONE), 0
    if code == INVALID_ARGUMENT and switch in _SHOWN:
        return _lines(COMBINATION.format(**words), MOVING_ON, ALL_DONE), 0
    line = (PERMISSION if is_clocks and code == NO_PERMISSION else FAILURES[switch]).format(**words)
    return _lines(line, TERMINATING), code if code in EXIT_CODES else OTHER


def _success(switch: str, value: str, before: float, words: dict[str, str]) -> str:
    if switch == "-pm":
        return _lines(f"{'Enabled' if value == '1' else 'Disabled'} persistence mode for GPU {words['gpu']}.", ALL_DONE)
    if switch == "-c":
        return _lines(f"Set compute mode to {COMPUTE_MODES[int(value)]} for GPU {words['gpu']}.", ALL_DONE)
    if switch in DONE:
        watts = float(value) if switch == "-pl" else 0.0
        return _lines(DONE[switch].format(**words, value=watts, before=before), ALL_DONE)
    return _lines(ALL_DONE)


def _lines(*lines: str) -> str:
    return "\n".join(lines) + "\n"
