"""Plan, apply, verify, apply again, roll back: genuine nvidia-ml-py, and nvidia-smi as genuine as can be had."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from gpu.support import shipped_facts
from nvml.programs import NAMES
from nvml.scene import AFTER, BEFORE, LOCK_PROFILE, UUID, Scene, set_scene, two_boards

SetUp = Callable[..., Scene]


@pytest.fixture(params=NAMES)
def scene(
    request: pytest.FixtureRequest,
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> SetUp:
    def set_up(**more: object) -> Scene:
        return set_scene(str(request.param), library, tmp_path, monkeypatch, capsys, **more)  # type: ignore[arg-type]

    return set_up


def test_the_whole_cycle(scene: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = scene()
    planned = stage.run(monkeypatch, "plan", "--only", "gpu", "--check")
    assert planned.code == 3
    assert stage.calls() == []
    assert stage.settings() == BEFORE

    applied = stage.run(monkeypatch, "apply", "--only", "gpu", "--yes")
    assert (applied.code, applied.err.count("error")) == (0, 0), applied.err
    assert stage.settings() == AFTER
    assert [call[:2] for call in stage.calls()] == [["-i", UUID]] * 3
    assert [call[2:] for call in stage.calls()] == [["-pm", "1"], ["-pl", "250"], ["-ac", "1215,1410"]]
    assert stage.run(monkeypatch, "verify", "--only", "gpu").code == 0

    stage.forget_calls()
    again = stage.run(monkeypatch, "apply", "--only", "gpu", "--yes")
    assert again.code == 0
    assert stage.calls() == []

    undone = stage.run(monkeypatch, "rollback", "--yes")
    assert undone.code == 0, undone.err
    assert stage.settings() == BEFORE
    assert [call[2] for call in stage.calls()] == ["-ac", "-pl", "-pm"]


def test_a_lock_is_set_remembered_and_reset(scene: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = scene(facts=shipped_facts("rtx-3090"), profile=LOCK_PROFILE)
    applied = stage.run(monkeypatch, "apply", "--only", "gpu", "--yes")
    assert applied.code == 0, applied.err
    assert str(stage.settings()["lock"]).endswith(",1500")
    stage.forget_calls()
    assert stage.run(monkeypatch, "apply", "--only", "gpu", "--yes").code == 0
    assert stage.calls() == []
    assert stage.run(monkeypatch, "rollback", "--yes").code == 0
    assert stage.settings()["lock"] is None


def test_both_boards_are_set_by_their_uuid(scene: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = two_boards()
    stage = scene(facts=facts)
    applied = stage.run(monkeypatch, "apply", "--only", "gpu", "--yes")
    assert applied.code == 0, applied.err
    assert stage.settings(0) == stage.settings(1) == AFTER
    assert {call[1] for call in stage.calls()} == {device.uuid for device in facts.devices}
    assert stage.run(monkeypatch, "rollback", "--yes").code == 0
    assert stage.settings(0) == stage.settings(1) == BEFORE


def test_without_rights_nothing_is_set_and_the_lines_are_printed(scene: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root by number, and yet the driver refuses, as in a container."""
    stage = scene(root=False)
    applied = stage.run(monkeypatch, "apply", "--only", "gpu", "--yes")
    assert applied.code in (1, 4)
    assert "Insufficient Permissions" in applied.err
    assert stage.settings() == BEFORE
