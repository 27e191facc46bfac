"""nvidia-smi for a simulated board: the same command lines, texts and exit codes, and the same exit code 0 on refusal.

Texts of nvidia-smi 535.261.03 and 555.58.02, which print everything on stdout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from remediate.effects import Completed, Runner
from remediate.gpu.board.board import Board
from remediate.gpu.board.smi_settings import ALL_DONE, SETTERS, Result, set_module_power_limit
from remediate.gpu.facts import Device
from remediate.gpu.nvml import code_for

_USAGE = 2
_NO_SUCH_DEVICE = 6
_OTHER = 255
_TERMINATING = "Terminating early due to previous errors."
_LONG = {
    "--persistence-mode": "-pm",
    "--compute-mode": "-c",
    "--power-limit": "-pl",
    "--applications-clocks": "-ac",
    "--reset-applications-clocks": "-rac",
    "--lock-gpu-clocks": "-lgc",
    "--reset-gpu-clocks": "-rgc",
    "--lock-memory-clocks": "-lmc",
    "--reset-memory-clocks": "-rmc",
    "--id": "-i",
    "--scope": "-sc",
}
_SCOPE = "-sc"
_MODULE = "-pl module"
_MODULE_SCOPES = ("1", "TOTAL_MODULE")
_WITHOUT_VALUE = frozenset({"-rac", "-rgc", "-rmc"})


class _BadArgumentsError(Exception):
    """The command line is wrong; nothing is changed."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class SimulatedSmi:
    """A `Runner` that answers nvidia-smi's set commands and hands every other program on to the real runner.

    Each call loads the board and saves it, so that commands of different processes see each other's work.
    """

    def __init__(self, place: str, other: Runner) -> None:
        self._place = place
        self._other = other

    def __call__(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> Completed:
        """Run one command line.

        Raises:
            DocumentError: the board can't be read.
            ApplyError: its state can't be written, or another program could not be run.
        """
        if PurePath(argv[0]).name != "nvidia-smi":
            return self._other(argv, timeout_s=timeout_s, env=env, cwd=cwd)
        code, text = self._run(list(argv[1:]))
        return Completed(tuple(argv), code, text, "")

    def _run(self, arguments: list[str]) -> tuple[int, str]:
        board = Board.load(self._place)
        try:
            switch, value, ids = _parse(arguments)
            devices = _select(board, ids)
        except _BadArgumentsError as error:
            return error.code, error.text + "\n"
        setter = set_module_power_limit if switch == _MODULE else SETTERS[switch]
        lines: list[str] = []
        for device in devices:
            result = _set(board, device, setter, value)
            lines += result.lines
            if result.code:
                # A hard error stops here; the devices before this one stay changed.
                board.save()
                return result.code, "\n".join([*lines, _TERMINATING]) + "\n"
            lines += _warning(board.facts.devices[device.index], switch, result)
        board.save()
        return 0, "\n".join([*lines, ALL_DONE]) + "\n"


def _set(board: Board, device: Device, setter: Callable[..., Result], value: str) -> Result:
    if device.lost is not None:
        gone = f"Unable to determine the device handle for GPU{device.index}: GPU is lost.  "
        return Result(code_for(device.lost), (gone + "Reboot the system to recover this GPU",))
    result = setter(device, board.hidden(device.index), value, board.file.root)
    if result.device is not None:
        board.set_device(result.device, result.hidden)
    return result


def _warning(device: Device, switch: str, result: Result) -> list[str]:
    """Drivers warn when a setting was made that the last client takes along."""
    if (
        result.device is None
        or switch in ("-pm", "-c")
        or switch in _WITHOUT_VALUE
        or device.persistence_mode is not False
    ):
        return []
    return [
        "",
        f"Warning: persistence mode is disabled on device {device.pci_bus_id}. See the Known Issues section of the "
        "nvidia-smi(1) man page for more information. Run with [--help | -h] switch to get more information on how "
        "to enable persistence mode.",
    ]


def _parse(arguments: list[str]) -> tuple[str, str, str | None]:
    """The one modification, its value, and the ids.

    Raises:
        _BadArgumentsError: more than one modification, an unknown option, or a value that is missing.
    """
    found: list[tuple[str, str]] = []
    ids: list[str] = []
    scope = "0"
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        switch = _LONG.get(name, name)
        if switch not in SETTERS and switch not in ("-i", _SCOPE):
            raise _BadArgumentsError(_OTHER, f"Option {name} is not simulated; the board obeys set commands only.")
        if switch not in _WITHOUT_VALUE and not equals:
            if not rest:
                raise _BadArgumentsError(_OTHER, f"Option {name} is missing its value.")
            value = rest.pop(0)
        if switch == _SCOPE:
            scope = value
        elif switch == "-i":
            ids.append(value)
        else:
            found.append((switch, value))
    if len(found) > 1 or len(ids) > 1:
        raise _BadArgumentsError(
            _USAGE,
            "Invalid combination of input arguments. Only one device modification may be done at a time.",
        )
    if not found:
        raise _BadArgumentsError(_OTHER, "No set command. The simulated board obeys set commands only.")
    switch, value = found[0]
    return _MODULE if switch == "-pl" and scope in _MODULE_SCOPES else switch, value, ids[0] if ids else None


def _select(board: Board, ids: str | None) -> list[Device]:
    """The devices by index, full UUID or PCI bus id, comma separated; all of them without `-i`."""
    devices = board.facts.devices
    if ids is None:
        return list(devices)
    chosen = []
    for wanted in ids.split(","):
        match = [d for d in devices if wanted in (str(d.index), d.uuid, d.pci_bus_id)]
        if not match:
            raise _BadArgumentsError(_NO_SUCH_DEVICE, "No devices were found")
        chosen += match
    return chosen
