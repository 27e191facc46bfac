"""nvidia-smi on the mock library: its texts and exit codes for each NVML code, and how they are understood."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from gpu.support import alter, shipped_device, shipped_facts
from nvml import smi_texts as texts
from nvml.mock_board import Fault, read_line, write_board
from nvml.mock_library import environment
from nvml.programs import NAMES, install

from remediate.effects import Completed
from remediate.gpu.commands import Setting
from remediate.gpu.facts import GpuFacts
from remediate.gpu.nvml import unknown_for
from remediate.gpu.reply import Answer, read_reply

UUID = str(shipped_device().uuid)
GPU = "00000000:07:00.0"
COMMANDS = {
    "-pm": ("0", "nvmlDeviceSetPersistenceMode"),
    "-pl": ("300", "nvmlDeviceSetPowerManagementLimit"),
    "-ac": ("1215,1410", "nvmlDeviceSetApplicationsClocks"),
    "-lgc": ("210,1305", "nvmlDeviceSetGpuLockedClocks"),
    "-lmc": ("1215,1215", "nvmlDeviceSetMemoryLockedClocks"),
    "-rgc": ("", "nvmlDeviceResetGpuLockedClocks"),
    "-rmc": ("", "nvmlDeviceResetMemoryLockedClocks"),
    "-c": ("3", "nvmlDeviceSetComputeMode"),
}
SETTINGS = {
    "-pm": Setting.PERSISTENCE_MODE,
    "-c": Setting.COMPUTE_MODE,
    "-pl": Setting.POWER_LIMIT,
    "-ac": Setting.APPLICATION_CLOCKS,
    "-lgc": Setting.LOCKED_GPU_CLOCKS,
    "-lmc": Setting.LOCKED_MEMORY_CLOCKS,
    "-rgc": Setting.LOCKED_GPU_CLOCKS,
    "-rmc": Setting.LOCKED_MEMORY_CLOCKS,
}
ALL_CODES = (*range(31), 31, 77, 999)
SOME_CODES = (0, 2, 3, 4, 13, 15, 26, 999)
CLOCKS = ("-ac", "-lgc", "-lmc")
Run = Callable[..., Completed]


@pytest.fixture(params=NAMES)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder with the program, genuine and fake."""
    return install(str(request.param), tmp_path / "bin")


@pytest.fixture
def run(program: Path, library: Path, tmp_path: Path) -> Run:
    """Runs one command line on a board."""

    def smi(*arguments: str, facts: GpuFacts, faults: tuple[Fault, ...] = (), root: bool = True) -> Completed:
        board = write_board(tmp_path / "mock.board", facts, faults, root=root)
        argv = [str(program / "nvidia-smi"), *arguments]
        done = subprocess.run(argv, env=environment(library, board), capture_output=True, check=False)
        return Completed(tuple(argv), done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode())

    return smi


def persistent() -> GpuFacts:
    """With persistence mode on, so that no warning about it is added."""
    return alter(shipped_facts(), devices=(alter(shipped_device(), persistence_mode=True),))


def expected_answer(switch: str, code: int) -> Answer:
    if code in (texts.SUCCESS, texts.NO_PERMISSION):
        return Answer.DONE if code == texts.SUCCESS else Answer.NO_PERMISSION
    # 22 is "vGPU ECC not supported".
    is_refused = code in (texts.NOT_SUPPORTED, 22) or (code == texts.INVALID_ARGUMENT and switch in CLOCKS)
    return Answer.REFUSED if is_refused else Answer.FAILED


@pytest.mark.parametrize("switch", COMMANDS)
def test_texts_and_exit_codes_by_return_code(switch: str, run: Run, request: pytest.FixtureRequest) -> None:
    value, function = COMMANDS[switch]
    codes = ALL_CODES if request.node.callspec.params["program"] == "genuine" else SOME_CODES
    for code in codes:
        arguments = ("-i", UUID, switch, *([value] if value else []))
        done = run(*arguments, facts=persistent(), faults=(Fault(function, code),) if code else ())
        assert (done.stdout, done.returncode) == texts.answer(switch, value, code, GPU, 400.0), code
        assert done.stderr == ""
        if switch in SETTINGS:
            reply = read_reply(SETTINGS[switch], value, done)
            assert reply.answer is expected_answer(switch, code), (code, reply)
            assert code == 0 or reply.line in done.stdout
            assert code == 0 or reply.line not in (texts.ALL_DONE, texts.TERMINATING)


def test_a_setting_without_persistence_mode_is_done_and_warned_of(run: Run, tmp_path: Path) -> None:
    done = run("-i", UUID, "-pl", "300", facts=shipped_facts())
    assert texts.PERSISTENCE_OFF.format(gpu=GPU) in done.stdout
    assert read_reply(Setting.POWER_LIMIT, "300", done).answer is Answer.DONE
    assert read_line(tmp_path / "mock.board", "nvmlDeviceGetPowerManagementLimit") == "300000"


def test_a_limit_out_of_range_is_refused_by_nvidia_smi_itself(run: Run, tmp_path: Path) -> None:
    done = run("-i", UUID, "-pl", "50", facts=persistent())
    line = texts.RANGE.format(value=50, lowest=100, highest=400, gpu=GPU)
    assert (done.stdout, done.returncode) == (f"{line}\n{texts.TERMINATING}\n", 2)
    assert read_reply(Setting.POWER_LIMIT, "50", done).answer is Answer.REFUSED
    assert read_line(tmp_path / "mock.board", "nvmlDeviceGetPowerManagementLimit") == "400000"


def test_graphics_before_memory_is_refused_with_exit_code_0(run: Run, tmp_path: Path) -> None:
    done = run("-i", UUID, "-ac", "1410,877", facts=persistent())
    assert done.returncode == 0
    assert '"(MEM 1410, SM 877)" is not supported' in done.stdout
    assert read_reply(Setting.APPLICATION_CLOCKS, "1410,877", done).answer is Answer.REFUSED
    assert read_line(tmp_path / "mock.board", "nvmlDeviceGetApplicationsClock.0") == "1095"


def test_what_is_set_already_is_no_failure(run: Run) -> None:
    done = run("-i", UUID, "-pm", "1", facts=persistent())
    assert done.stdout.startswith("Persistence mode is already Enabled")
    assert read_reply(Setting.PERSISTENCE_MODE, "1", done).answer is Answer.DONE
    same = run("-i", UUID, "-pl", "400", facts=persistent())
    assert "was set to 400.00 W from 400.00 W." in same.stdout
    assert read_reply(Setting.POWER_LIMIT, "400", same).answer is Answer.DONE


def test_without_rights_it_says_so(run: Run) -> None:
    for switch, setting in SETTINGS.items():
        value, _ = COMMANDS[switch]
        done = run("-i", UUID, switch, *([value] if value else []), facts=persistent(), root=False)
        assert read_reply(setting, value, done).answer is Answer.NO_PERMISSION, switch
        assert done.returncode == 4


def test_an_unknown_gpu_is_a_failure(run: Run) -> None:
    done = run("-i", "GPU-12345678-0000-4000-8000-000000000000", "-pl", "300", facts=persistent())
    assert (done.stdout, done.returncode) == (texts.NO_DEVICES + "\n", 6)
    assert read_reply(Setting.POWER_LIMIT, "300", done).answer is Answer.FAILED


def test_a_lost_gpu_stands_in_the_way_of_the_others(run: Run, tmp_path: Path) -> None:
    """nvidia-smi looks for a UUID among all GPUs and stops at one that it can't look at."""
    first = shipped_device()
    second = alter(first, index=1, uuid="GPU-b2004000-0000-4000-8000-000000000000")
    facts = alter(persistent(), devices=(first, second), device_count=2)
    done = run("-i", str(second.uuid), "-pl", "300", facts=facts, faults=(Fault("*", 15, device=0),))
    assert done.stdout.startswith("Problem with GPU 0: GPU is lost.")
    assert done.returncode == 255
    reply = read_reply(Setting.POWER_LIMIT, "300", done)
    assert reply.answer is Answer.FAILED
    assert reply.line.startswith("Problem with GPU 0")


@pytest.mark.parametrize(
    ("code", "text"),
    [(9, "couldn't communicate with the NVIDIA driver"), (18, "version mismatch"), (999, "Unknown Error")],
)
def test_without_a_usable_driver_it_fails(run: Run, code: int, text: str) -> None:
    reason = unknown_for(code)
    done = run("-i", UUID, "-pl", "300", facts=GpuFacts(reason, reason, reason, reason))
    assert text in done.stdout
    assert done.returncode == (code if code < 255 else 255)
    assert read_reply(Setting.POWER_LIMIT, "300", done).answer is Answer.FAILED
