"""The simulated board's nvidia-smi answers as nvidia-smi does: same command, same board, same text and exit code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from gpu.support import alter, board_facts, shipped_device, shipped_facts, write_board
from nvml import mock_board
from nvml.mock_library import environment
from nvml.programs import install

from remediate.effects import run_process
from remediate.gpu.board import SimulatedSmi, shipped_boards
from remediate.gpu.facts import GpuFacts
from remediate.gpu.numbers import VGPU_GUEST

COMMANDS = [
    ("-pm", "1"),
    ("-pm", "0"),
    ("-c", "0"),
    ("-c", "3"),
    ("-pl", "LOWEST"),
    ("-pl", "10000"),
    ("-pl", "1"),
    ("-ac", "HIGHEST"),
    ("-ac", "1410,877"),
    ("-lgc", "210,1305"),
    ("-lgc", "1305,210"),
    ("-lmc", "MEMORY"),
    ("-rgc",),
    ("-rmc",),
]
PERSISTENT = "a100-sxm4-40gb-incident with persistence mode"
ALL = [pytest.param("genuine", name, marks=pytest.mark.slow) for name in (PERSISTENT, *shipped_boards())]
# The stand-in is itself held against the genuine program, so that some boards do for it.
SOME = [("fake", name) for name in (PERSISTENT, "h200", "t4", "vgpu-a100d-80c")]


def facts_of(name: str) -> GpuFacts:
    if name == PERSISTENT:
        return alter(shipped_facts(), devices=(alter(shipped_device(), persistence_mode=True),))
    return shipped_facts(name)


def filled_in(command: tuple[str, ...], facts: GpuFacts) -> list[str]:
    """The command with values that this board can meet."""
    device = facts.devices[0]
    tables = device.supported_clocks if isinstance(device.supported_clocks, tuple) else ()
    memory, graphics = (tables[0].memory_mhz, tables[0].graphics_mhz[0]) if tables else (1000, 1000)
    lowest = device.power.min_w if isinstance(device.power.min_w, float) else 100.0
    values = {"LOWEST": f"{lowest:g}", "HIGHEST": f"{memory},{graphics}", "MEMORY": f"{memory},{memory}"}
    return ["-i", str(device.uuid), *(values.get(word, word) for word in command)]


def is_told(facts: GpuFacts) -> bool:
    """Whether nvidia-smi reads a limit, or is told that there is none. It asks by fields, and what these answer on
    laptops and on a GB10, whose limit no getter tells, was never seen.
    """
    device = facts.devices[0]
    return isinstance(device.power.limit_w, float) or device.virtualization == VGPU_GUEST


@pytest.mark.parametrize("root", [True, False], ids=["root", "user"])
@pytest.mark.parametrize(("program", "name"), [*ALL, *SOME])
def test_the_simulated_board_answers_alike(name: str, root: bool, program: str, library: Path, tmp_path: Path) -> None:
    facts = facts_of(name)
    folder = install(program, tmp_path / "bin")
    for command in COMMANDS:
        if command[0] == "-pl" and not is_told(facts):
            continue
        board = mock_board.write_board(tmp_path / "mock.board", facts, root=root)
        arguments = filled_in(command, facts)
        place = write_board(tmp_path, facts, root=root)
        simulated = SimulatedSmi(place, run_process)(["nvidia-smi", *arguments], timeout_s=10)
        done = subprocess.run(
            [str(folder / "nvidia-smi"), *arguments],
            env=environment(library, board),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (simulated.stdout, simulated.returncode) == (done.stdout, done.returncode), arguments
        Path(f"{place}.state.json").unlink(missing_ok=True)
    assert board_facts(place) == facts
