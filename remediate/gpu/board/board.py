"""A board file, its present state beside it, and the clock that drives it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from remediate.effects import read_bytes, remove_file, sha256, write_file
from remediate.errors import ApplyError, DocumentError
from remediate.gpu.board.physics import Physics, latency_ms, resting_heat
from remediate.gpu.board.simulate import Hidden, simulate
from remediate.gpu.facts import Device, GpuFacts
from remediate.model import Unknown

_SHIPPED = Path(__file__).resolve().parent.parent / "boards"
_MAX_BYTES = 16 * 1024 * 1024


class BoardFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A board file's content. A bare GPU section or a whole facts document is read as one, too."""

    gpu: GpuFacts
    source: str = ""
    """Where the values come from."""
    root: bool = True
    """Whether nvidia-smi has the rights to change settings."""
    physics: Physics = Physics()


class BoardState(msgspec.Struct, frozen=True):
    """What differs from the board file by now. `board_sha256` ties it to one content of that file."""

    board_sha256: str
    facts: GpuFacts
    hidden: dict[int, Hidden]
    elapsed_s: float = 0.0


class Board:
    """A simulated board, as it stands now.

    Attributes:
        place: the name or path that it was loaded from.
        file: what the board file says.
        facts: the present facts, as NVML would give them.
        elapsed_s: simulated time since the board was first loaded.
    """

    def __init__(self, place: str, file: BoardFile, state: BoardState, state_path: Path) -> None:
        self.place = place
        self.file = file
        self.facts = state.facts
        self.elapsed_s = state.elapsed_s
        self._hidden = dict(state.hidden)
        self._sha256 = state.board_sha256
        self._state_path = state_path

    @classmethod
    def load(cls, place: str | Path) -> Board:
        """The board of that name or path, with the state that earlier commands left it in.

        Raises:
            DocumentError: there is no such board, or the file is none.
        """
        path, state_path = _locate(str(place))
        content = _read(path)
        file = _parse(content, str(place))
        digest = sha256(content)
        state = _read_state(state_path, digest) or _first_state(file, digest)
        return cls(str(place), file, state, state_path)

    def save(self) -> None:
        """Keep the present state beside the board file, for the next process.

        Raises:
            ApplyError: it can't be written.
        """
        state = BoardState(self._sha256, self.facts, self._hidden, self.elapsed_s)
        try:
            self._state_path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ApplyError(f"`{self._state_path.parent}` could not be created", cause=str(error.strerror)) from error
        write_file(self._state_path, msgspec.json.format(msgspec.json.encode(state), indent=2) + b"\n")

    def reset(self) -> None:
        """Go back to what the board file says, and forget the state.

        Raises:
            ApplyError: the state can't be removed.
        """
        if self._state_path.exists():
            remove_file(self._state_path)
        state = _first_state(self.file, self._sha256)
        self.facts, self._hidden, self.elapsed_s = state.facts, dict(state.hidden), state.elapsed_s

    def reboot(self) -> None:
        """Lose all settings, as a restart of the machine does: limits, clocks, locks, persistence, counters, heat."""
        self.facts = msgspec.structs.replace(
            self.facts, devices=tuple(_rebooted(device) for device in self.facts.devices)
        )
        self._hidden = {index: Hidden(resting_heat(self.file.physics)) for index in self._hidden}

    def advance(self, seconds: float, utilization: float) -> None:
        """Let every device run for `seconds` under a utilization of 0 to 1. Costs some 5 ms for 10 minutes."""
        devices = []
        for device in self.facts.devices:
            fresh, self._hidden[device.index] = simulate(
                device, self._hidden[device.index], self.file.physics, seconds, utilization
            )
            devices.append(fresh)
        self.facts = msgspec.structs.replace(self.facts, devices=tuple(devices))
        self.elapsed_s += seconds

    def latency_ms(self, tokens: int, index: int = 0) -> float:
        """Time to generate `tokens` tokens at the present SM clock; infinite where that is unknown."""
        device = self.facts.devices[index]
        now, top = device.clocks.sm_mhz, device.max_clocks.sm_mhz
        if isinstance(now, Unknown) or isinstance(top, Unknown):
            return float("inf")
        return latency_ms(self.file.physics, now, top, tokens)

    def hidden(self, index: int) -> Hidden:
        """The state of one device that NVML does not tell."""
        return self._hidden[index]

    def set_device(self, device: Device, hidden: Hidden | None = None) -> None:
        """Replace one device, as a setting that was changed does."""
        devices = tuple(device if former.index == device.index else former for former in self.facts.devices)
        self.facts = msgspec.structs.replace(self.facts, devices=devices)
        if hidden is not None:
            self._hidden[device.index] = hidden


def shipped_boards() -> tuple[str, ...]:
    """Names of the boards that come with the program."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.json")))


def board_content(name: str) -> bytes:
    """The file of a board that comes with the program, to make a copy of.

    Raises:
        DocumentError: there is no such board.
    """
    return _read(_locate(name)[0])


def _locate(place: str) -> tuple[Path, Path]:
    """Board file and state file. A shipped board's state goes to the user's state folder, not beside the program."""
    path = Path(place)
    if place in shipped_boards():
        return _SHIPPED / f"{place}.json", _state_folder() / f"{place}.state.json"
    if not path.is_file():
        raise DocumentError(
            f"there is no board `{place}`",
            cause="it is neither a file nor one of the boards that come with the program",
            hint=f"these come with it: {', '.join(shipped_boards())}",
        )
    return path, path.with_name(f"{path.name}.state.json")


def _state_folder() -> Path:
    """`boards` in the state folder, which docs/configuration.md describes."""
    explicit = os.environ.get("REMEDIATE_STATE_DIR")
    if explicit:
        return Path(explicit) / "boards"
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "remediate" / "boards"


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise DocumentError(f"board `{path}` can't be read", cause=str(error.strerror)) from error
    if len(content) > _MAX_BYTES:
        raise DocumentError(f"board `{path}` is larger than 16 MiB", cause="a board file is far smaller")
    return content


def _parse(content: bytes, place: str) -> BoardFile:
    try:
        document = msgspec.json.decode(content)
        file = msgspec.convert(_as_board(document), BoardFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DocumentError(
            f"board `{place}` can't be used",
            cause=str(error),
            hint="a board file is what `remediate facts --json -o FILE` writes, with or without `physics` beside it",
        ) from error
    return msgspec.structs.replace(file, gpu=_renumbered(file.gpu))


def _as_board(document: Any) -> Any:
    """The three accepted forms as one."""
    if isinstance(document, dict) and isinstance(document.get("sections"), dict):
        return {"gpu": document["sections"].get("gpu"), "source": "recorded facts"}
    if isinstance(document, dict) and "devices" in document:
        return {"gpu": document, "source": "recorded facts"}
    return document


def _renumbered(facts: GpuFacts) -> GpuFacts:
    """A recording of some of a host's GPUs makes a board with just those."""
    devices = tuple(msgspec.structs.replace(device, index=index) for index, device in enumerate(facts.devices))
    count = len(devices) if devices or not isinstance(facts.device_count, Unknown) else facts.device_count
    return msgspec.structs.replace(facts, devices=devices, device_count=count)


def _read_state(path: Path, digest: str) -> BoardState | None:
    """The state, unless there is none, it belongs to another content of the board file, or it is damaged."""
    content = read_bytes(path)
    if content is None:
        return None
    try:
        state = msgspec.json.decode(content, type=BoardState)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DocumentError(
            f"the board's state `{path}` is damaged", cause=str(error), hint="delete it to start afresh"
        ) from error
    return state if state.board_sha256 == digest else None


def _first_state(file: BoardFile, digest: str) -> BoardState:
    heat = resting_heat(file.physics)
    return BoardState(digest, file.gpu, {device.index: Hidden(heat) for device in file.gpu.devices})


def _rebooted(device: Device) -> Device:
    power = device.power
    limit = power.limit_w if isinstance(power.default_w, Unknown) else power.default_w
    events = device.events
    counters = {
        name: 0
        for name in events.__struct_fields__
        if name.endswith("_us") and not isinstance(getattr(events, name), Unknown)
    }
    return msgspec.structs.replace(
        device,
        power=msgspec.structs.replace(power, limit_w=limit, enforced_w=limit),
        application_clocks=device.default_application_clocks,
        persistence_mode=device.persistence_mode if isinstance(device.persistence_mode, Unknown) else False,
        events=msgspec.structs.replace(events, **counters),
    )
