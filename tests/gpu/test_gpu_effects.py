"""Performing and undoing one setting: refusals with exit code 0, hangs, garbage, values that come back different."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gpu.support import (
    Recorder,
    alter,
    board_facts,
    context_for,
    copy_board,
    shipped_device,
    shipped_facts,
    with_device,
    write_board,
)

from remediate.errors import ApplyError, EditedSinceError, NeedsRootError
from remediate.gpu import effects
from remediate.gpu.board import Board, SimulatedSmi
from remediate.gpu.commands import Operation, Setting, make_operation
from remediate.model import Performed, State

UUID = str(shipped_device().uuid)
G = "00000000:07:00.0"
OPERATIONS = [
    (Setting.PERSISTENCE_MODE, "0", "1"),
    (Setting.POWER_LIMIT, "400", "250"),
    (Setting.APPLICATION_CLOCKS, "1215,1095", "1215,1410"),
]


def operation(setting: Setting, before: str, after: str, uuid: str = UUID) -> Operation:
    return make_operation(setting, uuid, 0, before, after)


POWER = operation(Setting.POWER_LIMIT, "400", "250")
LOCK = operation(Setting.LOCKED_GPU_CLOCKS, "", "210,1305")


class Script:
    """Stands in for the board's nvidia-smi: a fixed answer, or the board's own and then something else."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, runner: Any) -> None:
        monkeypatch.setattr(effects, "_runner", lambda context: runner)


@pytest.mark.parametrize(("setting", "before", "after"), OPERATIONS)
def test_perform_reads_back_and_undo_brings_the_former_value_back(
    tmp_path: Path, setting: Setting, before: str, after: str
) -> None:
    place = copy_board(tmp_path)
    context, work = context_for(place), operation(setting, before, after)
    assert effects.state(work, context) is State.BEFORE
    prepared = effects.prepare(work, context)
    assert prepared == {"before": before}
    done = effects.perform(work, context)
    assert done.changed
    assert "read back" in done.detail
    assert effects.state(work, context) is State.AFTER
    undone = effects.undo(work, prepared, context)
    assert undone.changed
    assert effects.state(work, context) is State.BEFORE
    assert board_facts(place) == shipped_facts()


@pytest.mark.parametrize(("setting", "before", "after"), OPERATIONS)
def test_a_goal_that_is_met_runs_nothing(
    tmp_path: Path, setting: Setting, before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, work = context_for(copy_board(tmp_path)), operation(setting, before, after)
    effects.perform(work, context)
    recorder = Recorder()
    Script(monkeypatch, recorder)
    assert not effects.perform(work, context).changed
    effects.undo(work, {"before": after}, context)
    assert recorder.calls == []


def test_undo_restores_what_was_there_and_not_the_default(tmp_path: Path) -> None:
    place = write_board(tmp_path, with_device(shipped_facts(), alter(shipped_device(), power__limit_w=333.0)))
    context, work = context_for(place), operation(Setting.POWER_LIMIT, "333", "250")
    prepared = effects.prepare(work, context)
    effects.perform(work, context)
    effects.undo(work, prepared, context)
    assert board_facts(place).devices[0].power.limit_w == 333


def test_undo_leaves_a_later_setting_by_somebody_else_alone(tmp_path: Path) -> None:
    place = copy_board(tmp_path)
    context = context_for(place)
    prepared = effects.prepare(POWER, context)
    effects.perform(POWER, context)
    SimulatedSmi(place, Recorder())(["nvidia-smi", "-pl", "200"], timeout_s=1)
    assert effects.state(POWER, context) is State.OTHER
    with pytest.raises(EditedSinceError) as caught:
        effects.undo(POWER, prepared, context)
    assert "200 W" in caught.value.what
    assert board_facts(place).devices[0].power.limit_w == 200


def test_undo_without_saved_values_uses_what_the_plan_saw(tmp_path: Path) -> None:
    context = context_for(copy_board(tmp_path))
    effects.perform(POWER, context)
    assert effects.undo(POWER, None, context).changed
    assert effects.state(POWER, context) is State.BEFORE


T = "Treating as warning and moving on.\nAll done.\n"
REFUSALS = [
    (POWER, f"Changing power management limit is not supported for GPU: {G}.\n{T}", 0, ApplyError),
    (
        POWER,
        f"Changing power management limit is not supported in current scope for GPU: {G}.\nAll done.\n",
        0,
        ApplyError,
    ),
    (POWER, f"Failed to set power management limit for GPU {G}: Insufficient Permissions\n", 4, NeedsRootError),
    (POWER, "No devices were found\n", 6, ApplyError),
    (POWER, f"Failed to set power management limit for GPU {G}: GPU is lost\n", 15, ApplyError),
    (LOCK, f"Setting locked GPU clocks is not supported for GPU {G}.\n{T}", 0, ApplyError),
    (LOCK, f"The current user does not have permission to change clocks for GPU {G}.\n", 4, NeedsRootError),
    (LOCK, "", 0, ApplyError),
    (LOCK, "\x00\x1b]0;garbage\x07", 0, ApplyError),
    # nvidia-smi claims success and the value is still the former one.
    (POWER, f"Power limit for GPU {G} was set to 250.00 W from 400.00 W.\nAll done.\n", 0, ApplyError),
    (POWER, "", 0, ApplyError),
    (POWER, "\x00\x1b]0;garbage\x07", 0, ApplyError),
]


@pytest.mark.parametrize(("work", "text", "code", "error"), REFUSALS)
def test_a_setting_that_did_not_take_is_an_error_whatever_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Operation, text: str, code: int, error: type[ApplyError]
) -> None:
    context = context_for(copy_board(tmp_path))
    recorder = Recorder(text, code)
    Script(monkeypatch, recorder)
    with pytest.raises(error) as caught:
        effects.perform(work, context)
    assert type(caught.value) is error
    assert UUID in caught.value.what
    assert caught.value.cause
    assert caught.value.hint
    assert recorder.calls == [work.argv]


def test_a_hang_is_reported_and_nothing_is_assumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Script(monkeypatch, Recorder(error=ApplyError("`nvidia-smi` did not end within 60 s and was killed")))
    context = context_for(copy_board(tmp_path))
    with pytest.raises(ApplyError, match="60 s"):
        effects.perform(POWER, context)
    assert effects.state(POWER, context) is State.BEFORE


def test_a_text_that_confirms_nothing_is_no_failure_when_the_value_reads_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = copy_board(tmp_path)
    board = SimulatedSmi(place, Recorder())

    def reworded(argv: Any, *, timeout_s: float, env: Any = None, cwd: Any = None) -> Any:
        done = board(argv, timeout_s=timeout_s)
        return type(done)(done.argv, done.returncode, "New words of a later driver.\n", "")

    Script(monkeypatch, reworded)
    assert effects.perform(POWER, context_for(place)).changed


@pytest.mark.parametrize(("read", "is_accepted"), [(250.9, True), (249.1, True), (252.0, False)])
def test_a_limit_may_come_back_rounded_by_a_watt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: float, is_accepted: bool
) -> None:
    place = copy_board(tmp_path)

    def rounding(argv: Any, *, timeout_s: float, env: Any = None, cwd: Any = None) -> Any:
        board = Board.load(place)
        board.set_device(alter(shipped_device(), power__limit_w=read))
        board.save()
        return Recorder(f"Power limit for GPU {G} was set to 250.00 W from 400.00 W.\n")(argv, timeout_s=timeout_s)

    Script(monkeypatch, rounding)
    if is_accepted:
        assert isinstance(effects.perform(POWER, context_for(place)), Performed)
    else:
        with pytest.raises(ApplyError, match="250 W"):
            effects.perform(POWER, context_for(place))


def test_a_lock_can_not_be_read_back_and_is_taken_from_the_answer(tmp_path: Path) -> None:
    place = copy_board(tmp_path)
    context = context_for(place)
    assert effects.state(LOCK, context) is State.UNKNOWN
    prepared = effects.prepare(LOCK, context)
    done = effects.perform(LOCK, context)
    assert "no driver call reads it back" in done.detail
    assert Board.load(place).hidden(0).locked_gpu_clocks == "210,1305"
    effects.undo(LOCK, prepared, context)
    assert Board.load(place).hidden(0).locked_gpu_clocks == ""


def test_undoing_a_lock_over_a_known_lock_sets_the_former_one(tmp_path: Path) -> None:
    place = copy_board(tmp_path)
    context, work = context_for(place), operation(Setting.LOCKED_GPU_CLOCKS, "210,900", "210,1305")
    effects.perform(work, context)
    effects.undo(work, effects.prepare(work, context), context)
    assert Board.load(place).hidden(0).locked_gpu_clocks == "210,900"
    assert effects.remember(work, False) == {f"{UUID}/locked_gpu_clocks": "210,900"}


def test_what_is_remembered() -> None:
    reset = operation(Setting.LOCKED_MEMORY_CLOCKS, "405,405", "")
    assert effects.remember(LOCK, True) == {f"{UUID}/locked_gpu_clocks": "210,1305"}
    assert effects.remember(LOCK, False) == {f"{UUID}/locked_gpu_clocks": None}
    assert effects.remember(reset, True) == {f"{UUID}/locked_memory_clocks": None}
    assert effects.remember(POWER, True) == {}


def test_a_device_that_is_gone_is_unknown_and_an_error(tmp_path: Path) -> None:
    context, work = context_for(copy_board(tmp_path)), operation(Setting.POWER_LIMIT, "400", "250", "GPU-gone")
    assert effects.state(work, context) is State.UNKNOWN
    with pytest.raises(ApplyError, match="GPU-gone"):
        effects.perform(work, context)


def test_without_rights_on_the_board(tmp_path: Path) -> None:
    place = write_board(tmp_path, shipped_facts(), root=False)
    with pytest.raises(NeedsRootError):
        effects.perform(POWER, context_for(place))
    assert board_facts(place) == shipped_facts()


def test_a_real_host_uses_the_contexts_runner() -> None:
    recorder = Recorder("No devices were found\n", 6)
    with pytest.raises(ApplyError):
        effects.perform(operation(Setting.POWER_LIMIT, "400", "250", "GPU-gone"), context_for(None, recorder))
    assert recorder.calls == [("nvidia-smi", "-i", "GPU-gone", "-pl", "250")]
