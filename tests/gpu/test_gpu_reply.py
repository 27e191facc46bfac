"""nvidia-smi's texts and exit codes (535.261.03 and 555.58.02), by NVML return code of the set call."""

from __future__ import annotations

import pytest

from remediate.effects import Completed
from remediate.gpu.commands import Setting
from remediate.gpu.reply import Answer, read_reply

G = "00000000:07:00.0"
T = "Treating as warning and moving on.\n"
E = "Terminating early due to previous errors.\n"
D = "All done.\n"
WARNING = (
    f"\nWarning: persistence mode is disabled on device {G}. See the Known Issues section of the nvidia-smi(1) man "
    "page for more information.\n"
)
PM, C, PL, MODULE, AC, LGC, LMC = Setting

DONE = [
    (PL, f"Power limit for GPU {G} was set to 300.00 W from 400.00 W.\n{D}", 0),
    (PL, f"Power limit for GPU {G} was set to 400.00 W from 400.00 W.\n{D}", 0),
    (PL, f"Power limit for GPU {G} was set to 300.00 W from 400.00 W.\n{WARNING}{D}", 0),
    (AC, f'Applications clocks set to "(MEM 1215, SM 1410)" for GPU {G}\n{D}', 0),
    (LGC, f'GPU clocks set to "(gpuClkMin 1410, gpuClkMax 1410)" for GPU {G}\n{D}', 0),
    (LMC, f'Memory clocks set to "(memClkMin 1215, memClkMax 1215)" for GPU {G}\n{D}', 0),
    (PM, f"Enabled persistence mode for GPU {G}.\n{D}", 0),
    (PM, f"Disabled persistence mode for GPU {G}.\n{D}", 0),
    (PM, f"Enabled persistence mode via daemon for GPU {G}.\n{D}", 0),
    (PM, f"Enabled Legacy persistence mode for GPU {G}.\n{D}", 0),
    (PM, f"Persistence mode is already Enabled for GPU {G}.\n{D}", 0),
]
REFUSED = [
    (PL, f"Changing power management limit is not supported for GPU: {G}.\n{T}{D}", 0),
    (PL, f"Changing power management limit is not supported in current scope for GPU: {G}.\n{D}", 0),
    (AC, f"Setting applications clocks is not supported for GPU {G}.\n{T}{D}", 0),
    (
        AC,
        f'Specified clock combination "(MEM 1410, SM 877)" is not supported for GPU {G}. Run \'nvidia-smi -q -d '
        f"SUPPORTED_CLOCKS' to see list of supported clock combinations\n{T}{D}",
        0,
    ),
    (LGC, f"Setting locked GPU clocks is not supported for GPU {G}.\n{T}{D}", 0),
    (LGC, f'Specified clock combination "(gpuClkMin 1410, gpuClkMax 210)" is not supported for GPU {G}.\n{T}{D}', 0),
    (LMC, f"Setting locked Memory clocks is not supported for GPU {G}.\n{D}", 0),
    (PM, f"Setting persistence mode is not supported for GPU {G} on this platform.\n{T}{D}", 0),
    (PM, f"Unable to set persistence mode for GPU {G}: Not Supported\n{T}{D}", 0),
    (
        PL,
        f"Provided power limit 50.00 W is not a valid power limit which should be between 100.00 W and 400.00 W for "
        f"GPU {G}\n{E}",
        2,
    ),
    (AC, 'Specified clocks "1215" are not valid. Please format input as memClk,smClk\n', 2),
    (PL, "Invalid combination of input arguments. Only one device modification may be done at a time.\n", 2),
]
NO_PERMISSION = [
    (PL, f"Failed to set power management limit for GPU {G}: Insufficient Permissions\n{E}", 4),
    (AC, f"The current user does not have permission to change clocks for GPU {G}.\n{E}", 4),
    (LGC, f"The current user does not have permission to change clocks for GPU {G}.\n{E}", 4),
    (LMC, f"The current user does not have permission to change clocks for GPU {G}.\n{E}", 4),
    (PM, f"Unable to set persistence mode for GPU {G}: Insufficient Permissions\n{E}", 4),
    (PM, "No devices were found. Please make sure /dev/nvidia* files are readable by current user.\n", 4),
]
FAILED = [
    (PL, f"Failed to set power management limit for GPU {G}: Invalid Argument\n{E}", 2),
    (PL, f"Failed to set power management limit for GPU {G}: GPU is lost\n{E}", 15),
    (PL, "Unable to determine the device handle for GPU0: GPU is lost.  Reboot the system to recover this GPU\n", 15),
    (PM, "No devices were found\n", 6),
    (PM, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", 9),
    (PM, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.163\n", 18),
    (
        AC,
        f'Unable to set applications clocks "(MEM 1215, SM 1410)" for GPU {G}: Requested functionality has been '
        f"deprecated\n{E}",
        255,
    ),
    (PL, "", 255),
    (PL, "", -9),
]
UNCLEAR = [
    (PL, "", 0),
    (PL, D, 0),
    (PL, "\x1b[31mgarbage\x00\n", 0),
    (LGC, f'Applications clocks set to "(MEM 1215, SM 1410)" for GPU {G}\n{D}', 0),
]


@pytest.mark.parametrize(
    ("setting", "text", "code", "answer"),
    [
        (*case, answer)
        for answer, cases in (
            (Answer.DONE, DONE),
            (Answer.REFUSED, REFUSED),
            (Answer.NO_PERMISSION, NO_PERMISSION),
            (Answer.FAILED, FAILED),
            (Answer.UNCLEAR, UNCLEAR),
        )
        for case in cases
    ],
)
def test_answers(setting: Setting, text: str, code: int, answer: Answer) -> None:
    reply = read_reply(setting, "x", Completed(("nvidia-smi",), code, text, ""))
    assert reply.answer is answer
    assert reply.line.strip() == reply.line != ""
    if text.strip() and answer is not Answer.UNCLEAR:
        assert reply.line in text
        assert reply.line not in (T.strip(), E.strip(), D.strip())


@pytest.mark.parametrize(
    ("setting", "text", "code", "answer"),
    [
        (LGC, D, 0, Answer.DONE),
        (LMC, D, 0, Answer.DONE),
        (LGC, f"Setting locked gpu clocks is not supported for GPU {G}.\n{T}{D}", 0, Answer.REFUSED),
        (LGC, f"The current user does not have permission to change clocks for GPU {G}.\n{E}", 4, Answer.NO_PERMISSION),
        (LGC, "", 0, Answer.UNCLEAR),
    ],
)
def test_a_reset_is_answered_without_a_line_of_its_own(setting: Setting, text: str, code: int, answer: Answer) -> None:
    assert read_reply(setting, "", Completed(("nvidia-smi",), code, text, "")).answer is answer


def test_a_build_that_writes_on_stderr_is_read_too() -> None:
    done = Completed(("nvidia-smi",), 0, "", f"Setting locked GPU clocks is not supported for GPU {G}.")
    assert read_reply(LGC, "210,1410", done).answer is Answer.REFUSED


def test_a_flood_of_text_is_cut() -> None:
    reply = read_reply(PL, "300", Completed(("nvidia-smi",), 1, "x" * 10_000, ""))
    assert len(reply.line) <= 300
