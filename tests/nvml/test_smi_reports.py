"""What the genuine nvidia-smi prints of a board, imported again: no value that is another one than the board's."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gpu.support import shipped_facts
from nvml.leaves import leaves
from nvml.mock_board import Fault, write_board
from nvml.mock_library import environment
from nvml.programs import install

from remediate.gpu.board import shipped_boards
from remediate.gpu.facts import GpuFacts
from remediate.gpu.reports import read_reports
from remediate.reports import Report

pytestmark = pytest.mark.slow
QUERY = (
    "index,name,uuid,driver_version,pci.bus_id,persistence_mode,compute_mode,power.draw,power.limit,"
    "enforced.power.limit,power.default_limit,power.min_limit,power.max_limit,clocks.sm,clocks.mem,clocks.gr,"
    "clocks.max.sm,clocks.max.mem,clocks.applications.graphics,clocks.applications.memory,temperature.gpu,"
    "temperature.memory,memory.total,memory.used,utilization.gpu,pstate,mig.mode.current,ecc.mode.current,"
    "clocks_throttle_reasons.active"
)
FORMS = {
    "text": ("-q",),
    "xml": ("-q", "-x"),
    "csv": (f"--query-gpu={QUERY}", "--format=csv"),
    "bare csv": (f"--query-gpu={QUERY}", "--format=csv,nounits"),
}
FEWEST = {"text": 35, "xml": 35, "csv": 20, "bare csv": 20}
"""Readings that a report of an H200 gives; a vGPU guest has far fewer."""
# `-q` has no place for these, or asks for them by calls that the mock has not.
NOT_SHOWN = ("/processes", "/smi", "/has_cap_sys_admin", "/persistence_daemon", "/platform")


def printed(form: str, facts: GpuFacts, library: Path, folder: Path, *faults: Fault) -> str:
    board = write_board(folder / "mock.board", facts, faults)
    program = install("genuine", folder / "bin") / "nvidia-smi"
    done = subprocess.run(
        [str(program), *FORMS[form]], env=environment(library, board), capture_output=True, text=True, check=False
    )
    program.unlink()
    return done.stdout


def imported(text: str) -> dict[str, Any]:
    """Path and value of each reading that the report gives."""
    readout = read_reports([Report("report", text, ())])
    assert readout is not None
    known = leaves(msgspec.to_builtins(readout.facts))
    return {path: value for path, value in known if not isinstance(value, dict) and value is not None}


def same(said: Any, is_so: Any) -> bool:
    """Watts are printed with two decimals."""
    return said == is_so or (isinstance(said, float) and isinstance(is_so, float) and abs(said - is_so) < 0.006)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", shipped_boards())
def test_a_report_says_what_the_board_is(name: str, form: str, library: Path, tmp_path: Path) -> None:
    facts = shipped_facts(name)
    said = imported(printed(form, facts, library, tmp_path))
    is_so = dict(leaves(msgspec.to_builtins(facts)))
    wrong = {
        path: (value, is_so.get(path))
        for path, value in said.items()
        if not same(value, is_so.get(path)) and not any(part in path for part in NOT_SHOWN)
    }
    assert wrong == {}
    assert len(said) >= (FEWEST[form] if name == "h200" else 10)


@pytest.mark.parametrize("form", FORMS)
def test_an_error_token_is_no_number(form: str, library: Path, tmp_path: Path) -> None:
    """Each code in the place of the limit, the temperature and the draw."""
    facts = shipped_facts("h200")
    functions = ("nvmlDeviceGetPowerUsage", "nvmlDeviceGetTemperature", "nvmlDeviceGetClockInfo")
    for code in (3, 4, 6, 13, 15, 16, 17, 18, 19, 21, 24, 26, 27, 28, 999):
        faults = [Fault(function, code) for function in functions]
        said = imported(printed(form, facts, library, tmp_path, *faults))
        for path in ("/devices/0/temperature/gpu_c", "/devices/0/clocks/sm_mhz"):
            assert path not in said, code
