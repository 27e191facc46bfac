"""nvidia-smi refuses, fails, hangs, lies or loses the board half-way: the report is true, and rolling back brings back
what was there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from gpu.support import Recorder, context_for
from nvml import smi_texts as texts
from nvml.mock_board import Fault
from nvml.programs import NAMES
from nvml.scene import AFTER, BEFORE, UUID, Scene, set_scene, two_boards

from remediate.errors import ApplyError, NeedsRootError
from remediate.gpu import effects, watched
from remediate.gpu.commands import Setting, make_operation

SETTERS = {
    "-pm": "nvmlDeviceSetPersistenceMode",
    "-pl": "nvmlDeviceSetPowerManagementLimit",
    "-ac": "nvmlDeviceSetApplicationsClocks",
}
SOME_CODES = {"genuine": (2, 3, 4, 15, 26, 77), "fake": (3, 4, 15)}
ALL_CODES = (*range(1, 32), 77, 999)
APPLY = ("apply", "--only", "gpu", "--yes")
SetUp = Callable[..., Scene]
FAILED, NOT_HERE = 1, 4


@pytest.fixture
def set_up(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> SetUp:
    def make(program: str = "fake", **more: object) -> Scene:
        return set_scene(program, library, tmp_path, monkeypatch, capsys, **more)  # type: ignore[arg-type]

    return make


def no_traceback(ended: object) -> bool:
    return "Traceback" not in str(ended) and "unforeseen" not in str(ended)


@pytest.mark.parametrize("program", NAMES)
@pytest.mark.parametrize("switch", SETTERS)
def test_each_setter_fails_with_each_code(
    switch: str, program: str, set_up: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The changes before the one that fails stay, it and those after it are not made, and all of it is said."""
    stage = set_up(program)
    whole = stage.board.read_text("utf-8")
    order = list(SETTERS)
    for code in SOME_CODES[program]:
        stage.board.write_text(whole, "utf-8")
        stage.forget_calls()
        stage.fail(SETTERS[switch], code)
        ended = stage.run(monkeypatch, *APPLY)
        assert ended.code == (NOT_HERE if code == texts.NO_PERMISSION else FAILED), (code, ended)
        assert no_traceback(ended)
        assert [call[2] for call in stage.calls()] == order[: order.index(switch) + 1]
        assert "nvidia-smi" in ended.err
        assert ended.out.count("not done:") == len(order) - order.index(switch)
        set_now = stage.settings()
        assert (set_now["persistence"] == "1") is (order.index(switch) > 0)
        assert set_now["graphics"] == BEFORE["graphics"]
        # What failed has changed nothing, so that undoing it needs no command that would fail again.
        undone = stage.run(monkeypatch, "rollback", "--yes")
        assert undone.code == 0, (code, undone)
        assert stage.settings() == BEFORE


@pytest.mark.parametrize(
    ("switch", "setting", "before", "after"),
    [
        ("-pm", Setting.PERSISTENCE_MODE, "0", "1"),
        ("-c", Setting.COMPUTE_MODE, "0", "3"),
        ("-pl", Setting.POWER_LIMIT, "400", "250"),
        ("-ac", Setting.APPLICATION_CLOCKS, "1215,1095", "1215,1410"),
        ("-lgc", Setting.LOCKED_GPU_CLOCKS, "", "210,1305"),
        ("-lmc", Setting.LOCKED_MEMORY_CLOCKS, "", "1215,1215"),
    ],
)
def test_every_code_is_an_error_with_nvidia_smi_s_own_words(
    switch: str, setting: Setting, before: str, after: str, set_up: SetUp
) -> None:
    set_up()
    for code in ALL_CODES:
        text, exit_code = texts.answer(switch, after, code, "00000000:07:00.0")
        operation = make_operation(setting, UUID, 0, before, after)
        with pytest.raises(ApplyError) as caught:
            effects.perform(operation, context_for(None, Recorder(text, exit_code)))
        assert isinstance(caught.value, NeedsRootError) is (code == texts.NO_PERMISSION)
        assert any(line and line in caught.value.cause for line in text.splitlines()), code
        assert "was not set to" in caught.value.what


def misbehave(stage: Scene, script: str) -> None:
    """Put a script in nvidia-smi's place; the well-behaved one is `$REAL`."""
    place = stage.program / "nvidia-smi"
    place.rename(stage.program / "real")
    place.write_text(f'#!/bin/sh\nREAL="{stage.program}/real"\nBOARD="{stage.board}"\n{script}\n')
    place.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("sleep 60", "did not end within"),
        ("head -c 4096 /dev/urandom", "reads off afterwards"),
        ("printf '\\377\\376\\000\\033[2J'", "reads off afterwards"),
        ("true", "reads off afterwards"),
        ('echo "Enabled persistence mode for GPU 00000000:07:00.0."; echo "All done."', "reads off afterwards"),
        ('echo "Treating as warning and moving on."; echo "All done."', "refused with exit code 0"),
        ("kill -SEGV $$", "failed with exit code -11"),
        ("exit 255", "failed with exit code 255"),
        ("yes nonsense | head -c 3000000; exit 1", "failed with exit code 1"),
    ],
    ids=["hang", "noise", "escapes", "silence", "lie", "refusal", "crash", "failure", "flood"],
)
def test_a_program_that_does_nothing_is_found_out(
    script: str, said: str, set_up: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effects, "TIMEOUT_S", 0.5)
    stage = set_up()
    misbehave(stage, script)
    ended = stage.run(monkeypatch, *APPLY)
    assert ended.code == FAILED
    assert said in ended.err
    assert len(ended.err) < 4000
    assert "\x1b" not in ended.err + ended.out
    assert no_traceback(ended)
    assert stage.settings() == BEFORE
    assert stage.run(monkeypatch, "rollback", "--yes").code == 0
    assert stage.settings() == BEFORE


def test_without_the_program_that_is_said(set_up: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = set_up()
    monkeypatch.setenv("PATH", str(stage.folder))
    ended = stage.run(monkeypatch, *APPLY)
    assert ended.code in (FAILED, NOT_HERE)
    assert "nvidia-smi" in ended.err + ended.out
    assert no_traceback(ended)
    assert stage.settings() == BEFORE


@pytest.mark.parametrize("script", ['"$REAL" "$@"; exit 255', '"$REAL" "$@"; sleep 60'], ids=["exit code", "hang"])
def test_what_was_set_in_spite_of_a_failure_is_known_and_undone(
    script: str, set_up: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effects, "TIMEOUT_S", 0.5)
    stage = set_up()
    misbehave(stage, script)
    ended = stage.run(monkeypatch, *APPLY)
    assert no_traceback(ended)
    assert stage.settings()["persistence"] == "1"
    assert "was not set to" not in ended.err
    (stage.program / "real").replace(stage.program / "nvidia-smi")
    assert stage.run(monkeypatch, "rollback", "--yes").code == 0
    assert stage.settings() == BEFORE


@pytest.mark.parametrize("code", [4, 15, 26, 999])
def test_a_value_that_can_not_be_read_back_does_not_count(
    code: int, set_up: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = set_up()
    misbehave(
        stage,
        'case "$*" in *-pl*) "$REAL" "$@"; '
        f'echo "{Fault("nvmlDeviceGetPowerManagementLimit", code)}" >>"$BOARD";; *) exec "$REAL" "$@";; esac',
    )
    ended = stage.run(monkeypatch, *APPLY)
    assert ended.code == FAILED
    assert "could not be read back" in ended.err
    assert "done: persistence mode" in ended.out
    assert no_traceback(ended)


def test_rights_that_are_gone_when_it_is_undone(set_up: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = set_up()
    assert stage.run(monkeypatch, *APPLY).code == 0
    stage.board.write_text(stage.board.read_text("utf-8").replace("-1 root 0 1\n", ""), "utf-8")
    undone = stage.run(monkeypatch, "rollback", "--yes")
    assert undone.code == NOT_HERE
    assert "does not have permission" in undone.err
    assert stage.settings() == AFTER


def test_a_board_that_is_lost_half_way(set_up: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = set_up()
    misbehave(stage, f'"$REAL" "$@"; code=$?; echo "{Fault("*", 15, device=0)}" >>"$BOARD"; exit $code')
    ended = stage.run(monkeypatch, *APPLY)
    assert ended.code == FAILED
    assert "the GPU is lost" in ended.err
    assert len(stage.calls()) == 1, "nothing more is tried"
    assert no_traceback(ended)

    undone = stage.run(monkeypatch, "rollback", "--yes")
    assert undone.code == FAILED
    assert "lost" in undone.err
    assert no_traceback(undone)


def test_a_driver_that_hangs_half_way(set_up: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "DEADLINE_S", 0.3)
    stage = set_up()
    misbehave(stage, f'"$REAL" "$@"; echo "{Fault("nvmlInit", seconds=600)}" >>"$BOARD"')
    ended = stage.run(monkeypatch, *APPLY)
    assert ended.code == FAILED
    assert "did not answer in time" in ended.err
    assert no_traceback(ended)


def test_another_lost_board_does_not_hide_this_one(set_up: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-smi finds no GPU by UUID while another one is lost, and the report says which and what helps."""
    stage = set_up(facts=two_boards())
    stage.fail("*", 15, device=0)
    planned = stage.run(monkeypatch, "plan", "--only", "gpu", "--check")
    assert planned.code == 3
    assert "GPU 0" in planned.out
    assert "-i GPU-b2004000-0000-4000-8000-000000000000 -pl 250" in planned.out.replace("\n", " ").replace("  ", " ")
    ended = stage.run(monkeypatch, *APPLY)
    assert ended.code == FAILED
    assert "Problem with GPU 0: GPU is lost" in ended.err
    assert "nvidia-smi -i 1 -pm 1" in ended.err
