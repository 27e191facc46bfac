from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from nvml.mock_board import Fault, write_board
from nvml.mock_library import COMPILER, build, use_in_process

from remediate.gpu.facts import GpuFacts


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The mock libnvidia-ml.so.1, built once."""
    if COMPILER is None:
        pytest.skip("needs a C compiler to build the mock libnvidia-ml.so.1")
    return build(tmp_path_factory.mktemp("mock"))


@pytest.fixture
def mock(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put a board's facts behind the genuine package in this process; gives the board file, which setters rewrite."""

    def use(facts: GpuFacts, *faults: Fault, root: bool = True) -> Path:
        board = write_board(tmp_path / "mock.board", facts, faults, root=root)
        use_in_process(library, board, monkeypatch)
        return board

    return use
