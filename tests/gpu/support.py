"""Helpers for the GPU tests: boards in a folder of their own, facts and contexts around them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from remediate.effects import Completed, run_process
from remediate.gpu.board import Board, BoardHost, SimulatedNvml
from remediate.gpu.facts import Device, GpuFacts
from remediate.gpu.observe import observe
from remediate.model import Facts, Host, Request, Unknown, UnknownKind
from remediate.subject import Context, Ledger

BOARDS = Path(__file__).parents[2] / "remediate" / "gpu" / "boards"
NAMES = tuple(sorted(path.stem for path in BOARDS.glob("*.json")))
A100 = "a100-sxm4-40gb-incident"
R = TypeVar("R", bound=msgspec.Struct)
NOT_SUPPORTED = Unknown(UnknownKind.NOT_SUPPORTED, "not supported by this device")
DEPRECATED = Unknown(UnknownKind.DEPRECATED, "the driver no longer answers this (deprecated)")
LOST = Unknown(UnknownKind.LOST, "the GPU is lost: it fell off the bus or is otherwise out of reach")


def copy_board(folder: Path, name: str = A100) -> str:
    """Path of a copy whose state stands beside it."""
    return shutil.copy(str(BOARDS / f"{name}.json"), str(folder / f"{name}.json"))


def shipped_facts(name: str = A100) -> GpuFacts:
    """The facts of a shipped board, without any state."""
    document = msgspec.json.decode((BOARDS / f"{name}.json").read_bytes())
    return msgspec.convert(document["gpu"], GpuFacts)


def shipped_device(name: str = A100) -> Device:
    """The only device of a shipped board."""
    (device,) = shipped_facts(name).devices
    return device


def alter(record: R, **changes: Any) -> R:
    """A copy with fields replaced; `power__limit_w=300` reaches into a nested record."""
    direct: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        outer, _, inner = name.partition("__")
        if inner:
            nested.setdefault(outer, {})[inner] = value
        else:
            direct[name] = value
    for outer, inner_changes in nested.items():
        direct[outer] = alter(getattr(record, outer), **inner_changes)
    return msgspec.structs.replace(record, **direct)


def with_device(facts: GpuFacts, device: Device) -> GpuFacts:
    """The facts with this device as the only one."""
    return msgspec.structs.replace(facts, devices=(device,), device_count=1)


def observe_simulated(facts: GpuFacts, selection: Sequence[str] = (), ledger: Ledger | None = None) -> GpuFacts:
    """What the observation makes of simulated facts."""
    return observe(selection, ledger=ledger, nvml=SimulatedNvml(facts), host=BoardHost(facts))


def write_board(folder: Path, facts: GpuFacts, **more: Any) -> str:
    """A board file with these facts."""
    path = folder / "board.json"
    path.write_bytes(msgspec.json.encode({"gpu": facts, **more}))
    return str(path)


def whole_facts(gpu: GpuFacts, board: str | None = None, *, is_root: bool = False) -> Facts:
    """A facts document around the GPU section."""
    request = Request(folder="/sandbox", board=board)
    host = Host("Linux", "x86_64", "boot", is_root=is_root)
    return Facts(1, "0", "2026-01-01T00:00:00Z", request, host, (), {"gpu": gpu})


def context_for(board: str | None, runner: Any = run_process) -> Context:
    """A context for effects."""
    return Context(Path("/nowhere"), ".tmp", Request(folder="/sandbox", board=board), runner=runner, is_root=True)


def board_facts(place: str) -> GpuFacts:
    """The board's facts as they stand now."""
    return Board.load(place).facts


class Recorder:
    """A runner that answers with one fixed result and keeps what it was asked."""

    def __init__(self, stdout: str = "", returncode: int = 0, error: Exception | None = None) -> None:
        self.calls: list[tuple[str, ...]] = []
        self._stdout = stdout
        self._returncode = returncode
        self._error = error

    def __call__(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> Completed:
        self.calls.append(tuple(argv))
        if self._error is not None:
            raise self._error
        return Completed(tuple(argv), self._returncode, self._stdout, "")
