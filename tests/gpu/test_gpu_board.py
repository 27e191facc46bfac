"""The simulated board: its files, its state, its nvidia-smi."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from gpu.support import (
    A100,
    DEPRECATED,
    LOST,
    NAMES,
    NOT_SUPPORTED,
    Recorder,
    alter,
    board_facts,
    copy_board,
    shipped_device,
    shipped_facts,
    whole_facts,
    with_device,
    write_board,
)

from remediate.errors import DocumentError
from remediate.gpu.board import Board, SimulatedSmi, shipped_boards
from remediate.gpu.commands import Setting
from remediate.gpu.facts import Device, GpuFacts
from remediate.gpu.reply import Answer, read_reply

G = "00000000:07:00.0"
PERSISTENT = alter(shipped_device(), persistence_mode=True)


def smi(place: str, *arguments: str) -> tuple[int, str]:
    """Exit code and text of one call."""
    done = SimulatedSmi(place, Recorder("real", 77))(["nvidia-smi", *arguments], timeout_s=1)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_shipped_boards_load_by_name_and_say_where_they_come_from(name: str) -> None:
    board = Board.load(name)
    assert board.facts == shipped_facts(name)
    assert len(board.file.source) > 40
    assert not board.file.is_recording
    assert board.file.assumed or "assumption" in board.file.source, "no board is known in every reading"


def test_a_shipped_board_keeps_its_state_out_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMEDIATE_STATE_DIR", str(tmp_path))
    smi(A100, "-pm", "1")
    assert (tmp_path / "boards" / f"{A100}.state.json").is_file()
    assert Board.load(A100).facts.devices[0].persistence_mode is True
    monkeypatch.delenv("REMEDIATE_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert Board.load(A100).facts.devices[0].persistence_mode is False
    Board.load(A100).save()
    assert (tmp_path / "xdg" / "remediate" / "boards" / f"{A100}.state.json").is_file()


def test_three_forms_of_a_board_file(tmp_path: Path) -> None:
    facts = shipped_facts("h200")
    forms = [facts, whole_facts(facts), {"gpu": facts, "physics": {"ambient_c": 30}}]
    for index, form in enumerate(forms):
        path = tmp_path / f"{index}.json"
        path.write_bytes(msgspec.json.encode(form))
        assert Board.load(path).facts == facts


def test_a_recording_of_the_second_gpu_alone_is_a_board_with_one(tmp_path: Path) -> None:
    recorded = alter(shipped_facts(), devices=(alter(shipped_device(), index=1),), device_count=2)
    facts = Board.load(write_board(tmp_path, recorded)).facts
    assert [device.index for device in facts.devices] == [0]
    assert facts.device_count == 1


BAD = [
    (b"", "can't be used"),
    (b"\xff\xfe", "can't be used"),
    (b"[]", "can't be used"),
    (b'{"sections": {}}', "can't be used"),
    (b'{"gpu": {"devices": [{}]}}', "can't be used"),
    (b'{"gpu": {}, "physics": {"ambient": 1}}', "can't be used"),
    (b'{"gpu": {}, "extra": 1}', "can't be used"),
    (b'{"devices": [{"index": 0, "supported_clocks": [{"memory_mhz": 1, "graphics": "1..9/0"}]}]}', "can't be used"),
    (b"[" * 100_000, "can't be used"),
]


@pytest.mark.parametrize(("content", "text"), BAD)
def test_a_bad_board_file_is_one_clear_error(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "board.json"
    path.write_bytes(content)
    with pytest.raises(DocumentError) as caught:
        Board.load(path)
    assert text in caught.value.what
    assert caught.value.cause


@pytest.mark.parametrize("place", ["no-such-board", "/nowhere/board.json", "."])
def test_a_board_that_is_not_there_is_an_error_that_lists_the_shipped_ones(place: str) -> None:
    with pytest.raises(DocumentError) as caught:
        Board.load(place)
    assert A100 in caught.value.hint


def test_state_of_another_content_of_the_file_is_left_aside(tmp_path: Path) -> None:
    place = copy_board(tmp_path)
    smi(place, "-pl", "250")
    assert board_facts(place).devices[0].power.limit_w == 250
    Path(place).write_text(Path(place).read_text().replace("535.161.08", "535.161.09"))
    assert board_facts(place).devices[0].power.limit_w == 400


def test_damaged_state_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    place = copy_board(tmp_path)
    Path(f"{place}.state.json").write_text("{")
    with pytest.raises(DocumentError) as caught:
        Board.load(place)
    assert "delete" in caught.value.hint


def test_a_reboot_loses_what_a_reboot_loses(tmp_path: Path) -> None:
    place = copy_board(tmp_path)
    for arguments in (["-pm", "1"], ["-pl", "250"], ["-ac", "1215,1410"], ["-lgc", "210,1305"]):
        assert smi(place, *arguments)[0] == 0
    board = Board.load(place)
    board.advance(600, 1.0)
    assert board.hidden(0).locked_gpu_clocks == "210,1305"
    board.reboot()
    board.save()
    board = Board.load(place)
    device, first = board.facts.devices[0], shipped_device()
    assert device.power.limit_w == device.power.enforced_w == 400
    assert device.application_clocks == first.application_clocks
    assert device.persistence_mode is False
    assert device.events.power_cap_us == 0
    assert board.hidden(0).locked_gpu_clocks == ""


def test_reset_goes_back_to_the_file(tmp_path: Path) -> None:
    place = copy_board(tmp_path)
    smi(place, "-pl", "250")
    Board.load(place).reset()
    assert not Path(f"{place}.state.json").exists()
    assert board_facts(place) == shipped_facts()


def test_other_programs_go_to_the_real_runner(tmp_path: Path) -> None:
    real = Recorder("real", 77)
    done = SimulatedSmi(copy_board(tmp_path), real)(["pip", "check"], timeout_s=1)
    assert (done.stdout, done.returncode, real.calls) == ("real", 77, [("pip", "check")])


UUID = str(shipped_device().uuid)
ANSWERS: list[tuple[list[str], dict[str, Any], int, str]] = [
    (["-pl", "250"], {}, 0, f"Power limit for GPU {G} was set to 250.00 W from 400.00 W.\nAll done.\n"),
    (["-pl", "1e2"], {}, 0, f"Power limit for GPU {G} was set to 100.00 W from 400.00 W.\nAll done.\n"),
    (["-pl=300W"], {}, 0, f"Power limit for GPU {G} was set to 300.00 W from 400.00 W.\nAll done.\n"),
    (["--power-limit=300"], {}, 0, f"Power limit for GPU {G} was set to 300.00 W from 400.00 W.\nAll done.\n"),
    (
        ["-pl", "50"],
        {},
        2,
        "Provided power limit 50.00 W is not a valid power limit which should be between 100.00 W and 400.00 W for "
        f"GPU {G}\nTerminating early due to previous errors.\n",
    ),
    (
        ["-pl", "250"],
        {"power__limit_w": NOT_SUPPORTED},
        0,
        f"Changing power management limit is not supported for GPU: {G}.\nTreating as warning and moving on.\n"
        "All done.\n",
    ),
    (
        ["-pl", "250"],
        {"virtualization": "vgpu guest"},
        0,
        f"Changing power management limit is not supported in current scope for GPU: {G}.\nAll done.\n",
    ),
    (["-ac", "1215,1410"], {}, 0, f'Applications clocks set to "(MEM 1215, SM 1410)" for GPU {G}\nAll done.\n'),
    (
        ["-ac", "1410,877"],
        {},
        0,
        f'Specified clock combination "(MEM 1410, SM 877)" is not supported for GPU {G}. Run \'nvidia-smi -q -d '
        "SUPPORTED_CLOCKS' to see list of supported clock combinations\nTreating as warning and moving on.\n"
        "All done.\n",
    ),
    (
        ["-ac", "1215,1410"],
        {"application_clocks__graphics_mhz": DEPRECATED},
        255,
        f'Unable to set applications clocks "(MEM 1215, SM 1410)" for GPU {G}: Requested functionality has been '
        "deprecated\nTerminating early due to previous errors.\n",
    ),
    (["-rac"], {}, 0, "All done.\n"),
    (
        ["-lgc", "1410"],
        {},
        0,
        f'GPU clocks set to "(gpuClkMin 1410, gpuClkMax 1410)" for GPU {G}\nAll done.\n',
    ),
    (
        ["-lmc", "1215,1215"],
        {},
        0,
        f'Memory clocks set to "(memClkMin 1215, memClkMax 1215)" for GPU {G}\nAll done.\n',
    ),
    (
        ["-lmc", "1215"],
        {"compute_capability": "7.5"},
        0,
        f"Setting locked Memory clocks is not supported for GPU {G}.\nAll done.\n",
    ),
    (["-rgc"], {}, 0, "All done.\n"),
    (["-rmc"], {}, 0, "All done.\n"),
    (["-pm", "1"], {}, 0, f"Persistence mode is already Enabled for GPU {G}.\nAll done.\n"),
    (["-pm", "DISABLED"], {}, 0, f"Disabled persistence mode for GPU {G}.\nAll done.\n"),
    (["-i", UUID, "-pl", "250"], {}, 0, f"Power limit for GPU {G} was set to 250.00 W from 400.00 W.\nAll done.\n"),
    (["-i", G, "-pm", "1"], {}, 0, f"Persistence mode is already Enabled for GPU {G}.\nAll done.\n"),
    (["-i", UUID[:12], "-pl", "250"], {}, 6, "No devices were found\n"),
    (["-i", "7", "-pl", "250"], {}, 6, "No devices were found\n"),
    (
        ["-pm", "1", "-pl", "300"],
        {},
        2,
        "Invalid combination of input arguments. Only one device modification may be done at a time.\n",
    ),
]


@pytest.mark.parametrize(("arguments", "changes", "code", "text"), ANSWERS)
def test_texts_and_exit_codes(
    tmp_path: Path, arguments: list[str], changes: dict[str, Any], code: int, text: str
) -> None:
    place = write_board(tmp_path, with_device(shipped_facts(), alter(PERSISTENT, **changes)))
    assert smi(place, *arguments) == (code, text)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-pl", "abc"], 2),
        (["-pl"], 255),
        (["-pm", "2"], 2),
        (["-ac", "1215"], 2),
        (["-lgc", "a,b"], 2),
        (["-q"], 255),
        ([], 255),
        (["-i", "0", "-i", "0", "-pl", "300"], 2),
    ],
)
def test_a_wrong_command_line_changes_nothing(tmp_path: Path, arguments: list[str], code: int) -> None:
    place = copy_board(tmp_path)
    assert smi(place, *arguments)[0] == code
    assert board_facts(place) == shipped_facts()


@pytest.mark.parametrize(
    ("arguments", "setting"),
    [
        (["-pl", "250"], Setting.POWER_LIMIT),
        (["-ac", "1215,1410"], Setting.APPLICATION_CLOCKS),
        (["-rac"], Setting.APPLICATION_CLOCKS),
        (["-lgc", "210,1305"], Setting.LOCKED_GPU_CLOCKS),
        (["-rgc"], Setting.LOCKED_GPU_CLOCKS),
        (["-lmc", "1215"], Setting.LOCKED_MEMORY_CLOCKS),
        (["-pm", "1"], Setting.PERSISTENCE_MODE),
    ],
)
def test_without_rights_every_setter_ends_with_exit_code_4(
    tmp_path: Path, arguments: list[str], setting: Setting
) -> None:
    place = write_board(tmp_path, shipped_facts(), root=False)
    done = SimulatedSmi(place, Recorder())(["nvidia-smi", *arguments], timeout_s=1)
    assert done.returncode == 4
    assert read_reply(setting, "x", done).answer is Answer.NO_PERMISSION
    assert board_facts(place) == shipped_facts()


def test_a_setting_with_persistence_off_warns(tmp_path: Path) -> None:
    code, text = smi(copy_board(tmp_path), "-pl", "250")
    assert code == 0
    assert f"Warning: persistence mode is disabled on device {G}." in text


def two_boards(tmp_path: Path, first: Device) -> str:
    second = alter(shipped_device(), index=1, uuid="GPU-second", pci_bus_id="00000000:0B:00.0")
    return write_board(tmp_path, GpuFacts("535.1", "12.535.1", "12.2", 2, (first, second), "/usr/bin/nvidia-smi"))


def test_without_an_id_every_gpu_is_changed(tmp_path: Path) -> None:
    place = two_boards(tmp_path, shipped_device())
    smi(place, "-pl", "250")
    assert [device.power.limit_w for device in board_facts(place).devices] == [250, 250]


def test_a_hard_error_stops_at_its_gpu(tmp_path: Path) -> None:
    place = two_boards(tmp_path, alter(shipped_device(), power__min_w=300.0))
    assert smi(place, "-pl", "250")[0] == 2
    assert [device.power.limit_w for device in board_facts(place).devices] == [400, 400]


def test_a_lost_gpu_ends_with_exit_code_15(tmp_path: Path) -> None:
    place = two_boards(tmp_path, Device(0, lost=LOST))
    code, text = smi(place, "-i", "0", "-pl", "250")
    assert code == 15
    assert "GPU is lost" in text
    assert smi(place, "-i", "GPU-second", "-pl", "250")[0] == 0


def test_an_out_of_band_cap_stays_below_a_new_limit(tmp_path: Path) -> None:
    place = write_board(tmp_path, with_device(shipped_facts(), alter(PERSISTENT, power__enforced_w=200.0)))
    smi(place, "-pl", "300")
    power = board_facts(place).devices[0].power
    assert (power.limit_w, power.enforced_w) == (300, 200)


def test_names_of_shipped_boards() -> None:
    assert shipped_boards() == NAMES
    assert A100 in NAMES
