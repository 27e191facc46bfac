"""A simulated board's own time: it runs on while it is sampled, and nobody has to wait for it."""

from __future__ import annotations

from remediate.gpu.board.board import Board
from remediate.gpu.board.nvml import SimulatedNvml


class BoardPace:
    """Implements `remediate.gpu.sampling.Pace`. What the board does meanwhile is not kept."""

    def __init__(self, board: Board, nvml: SimulatedNvml) -> None:
        self._board = board
        self._nvml = nvml

    def now(self) -> float:
        """Simulated seconds."""
        return self._board.elapsed_s

    def wait(self, seconds: float) -> None:
        """Let the board run on under the load that it has."""
        self._board.advance(seconds)
        self._nvml.show(self._board.facts)
