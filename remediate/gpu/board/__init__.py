"""A simulated board: recorded facts that obey nvidia-smi, heat up under load and slow down when hot.

It stands in for NVML and nvidia-smi at their two gateways, so that everything else runs as on a real host.
"""

from __future__ import annotations

from remediate.gpu.board.board import Board
from remediate.gpu.board.files import board_content, shipped_boards
from remediate.gpu.board.nvml import BoardHost, SimulatedNvml
from remediate.gpu.board.pace import BoardPace
from remediate.gpu.board.physics import Physics
from remediate.gpu.board.smi import SimulatedSmi

__all__ = [
    "Board",
    "BoardHost",
    "BoardPace",
    "Physics",
    "SimulatedNvml",
    "SimulatedSmi",
    "board_content",
    "shipped_boards",
]
