"""A simulated board as it stands now, and the clock that drives it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from remediate.effects import remove_file, sha256, write_file
from remediate.errors import ApplyError
from remediate.gpu.board.files import BoardFile, BoardState, locate, parse, read_file, read_state
from remediate.gpu.board.physics import latency_ms, resting_heat
from remediate.gpu.board.simulate import Hidden, simulate
from remediate.gpu.facts import Device
from remediate.model import Unknown


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
        path, state_path = locate(str(place))
        content = read_file(path)
        file = parse(content, str(place))
        digest = sha256(content)
        state = read_state(state_path, digest) or _first_state(file, digest)
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

    def advance(self, seconds: float, utilization: float | None = None) -> None:
        """Let every device run for `seconds` under a utilization of 0 to 1; None keeps the one that each has.

        Costs some 5 ms for 10 minutes.
        """
        devices = []
        for device in self.facts.devices:
            load = _utilization(device) if utilization is None else utilization
            fresh, self._hidden[device.index] = simulate(
                device, self._hidden[device.index], self.file.physics, seconds, load
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


def _first_state(file: BoardFile, digest: str) -> BoardState:
    heat = resting_heat(file.physics)
    return BoardState(digest, file.gpu, {device.index: Hidden(heat) for device in file.gpu.devices})


def _utilization(device: Device) -> float:
    percent = device.utilization_percent
    return 0.0 if isinstance(percent, Unknown) else percent / 100


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
