"""Shares of time by cause: from readings and counters to a sample, and from a sample to advice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from gpu.support import A100, BOARDS, LOST, NOT_SUPPORTED, alter, copy_board, shipped_device, shipped_facts, write_board
from hypothesis import given
from hypothesis import strategies as st

from remediate.gpu.board import Board, BoardPace, SimulatedNvml
from remediate.gpu.facts import Device, Events, ReasonShare, Sample, Span
from remediate.gpu.observe import Sampling, observe
from remediate.gpu.read_device import Moment
from remediate.gpu.sampling import sample_devices, summarise
from remediate.gpu.subject import GpuSubject
from remediate.gpu.throttle import judge_throttling
from remediate.model import Outcome, Request, Unknown
from remediate.subject import Ledger, Settings

SUBJECT = GpuSubject()


def moment(active: Any = 0, power_cap_us: Any = 0, **changes: Any) -> Moment:
    """A reading of a healthy board under load."""
    values: dict[str, Any] = {
        "sm_mhz": 1410,
        "draw_w": 300.0,
        "enforced_w": 400.0,
        "gpu_c": 60,
        "memory_c": 70,
        "margin_c": NOT_SUPPORTED,
        "utilization_percent": 99,
        "events": Events(active=active, power_cap_us=power_cap_us, software_thermal_us=NOT_SUPPORTED),
    }
    return Moment(active=active, **{**values, **changes})


def test_shares_are_of_readings_and_of_counters() -> None:
    masks = [0x4, 0x4, 0x0, 0x4]
    moments = [moment(mask, 1_000_000 + number * 500_000) for number, mask in enumerate(masks)]
    sample = summarise(moments, 3.0)
    assert sample.reasons == {"software power cap": ReasonShare(0.75, 2, 0.5)}
    assert (sample.readings, sample.seconds) == (4, 3.0)
    assert sample.draw_to_limit == Span(0.75, 0.75, 0.75)


def test_a_counter_that_grows_between_readings_shows_without_a_bit() -> None:
    sample = summarise([moment(0, 0), moment(0, 400_000)], 2.0)
    assert sample.reasons == {"software power cap": ReasonShare(0.0, 0, 0.2)}


def test_a_counter_that_goes_back_is_unknown_and_no_share() -> None:
    sample = summarise([moment(0x4, 900_000), moment(0x4, 100)], 2.0)
    assert isinstance(sample.reasons["software power cap"].counted, Unknown)
    assert sample.reasons["software power cap"].polled == 1.0


def test_what_can_not_be_read_is_left_out_of_the_span_and_is_no_zero() -> None:
    sample = summarise([moment(draw_w=NOT_SUPPORTED), moment(draw_w=200.0, sm_mhz=NOT_SUPPORTED)], 1.0)
    assert sample.draw_w == Span(200.0, 200.0, 200.0)
    assert sample.margin_c is None


@pytest.mark.property
@given(
    st.lists(st.tuples(st.integers(0, 0x7FF) | st.just(1 << 63), st.integers(0, 2_000_000)), min_size=2, max_size=20),
    st.floats(0.01, 60),
)
def test_every_share_is_one(readings: Sequence[tuple[int, int]], seconds: float) -> None:
    sample = summarise([moment(mask, counter) for mask, counter in readings], seconds)
    for share in sample.reasons.values():
        assert 0 <= share.polled <= 1
        assert share.longest_run <= len(readings)
        assert isinstance(share.counted, Unknown) or 0 <= share.counted <= 1
    judge_throttling(alter(shipped_device(), sample=sample))


def sampled(reasons: dict[str, ReasonShare], name: str = A100, **changes: Any) -> Device:
    """A board with a sample of 10 s and 21 readings."""
    values: dict[str, Any] = {
        "sm_mhz": Span(900, 1100, 1200),
        "draw_w": Span(200, 210, 220),
        "draw_to_limit": Span(0.5, 0.5, 0.55),
        "utilization_percent": Span(95, 97, 99),
    }
    return alter(shipped_device(name), sample=Sample(10.0, 21, reasons, **{**values, **changes}))


IDLE: dict[str, Any] = {"utilization_percent": Span(0, 3, 8)}
NEAR: dict[str, Any] = {"draw_to_limit": Span(0.9, 0.97, 0.99)}
FULL: dict[str, Any] = {"sm_mhz": Span(1410, 1410, 1410)}
CASES: list[tuple[str, Device, list[tuple[str, str, str]]]] = [
    ("nothing", sampled({}), []),
    ("idle", sampled({"idle": ReasonShare(1, 21)}, **IDLE), []),
    ("brief cap", sampled({"software power cap": ReasonShare(0.0476, 1, 0.02)}, **NEAR), []),
    (
        "cap near the limit",
        sampled({"software power cap": ReasonShare(0.8, 15, 0.9)}, **NEAR),
        [("GPU010", "DIFFERS", "held down by the power limit")],
    ),
    (
        "counter of an idle RTX 2080 SUPER, +8.76 s in 14.8 s at 39 to 112 W of 250 W",
        sampled({"software power cap": ReasonShare(0.5, 1, 0.59)}, **IDLE),
        [],
    ),
    ("L40S: counter grows, no reading shows it", sampled({"software power cap": ReasonShare(0, 0, 0.26)}), []),
    (
        "hidden limiter",
        sampled({"software power cap": ReasonShare(1, 21, 1.0)}),
        [("GPU010", "DIFFERS", "another limiter")],
    ),
    (
        "software thermal by the counter alone",
        sampled({"software thermal slowdown": ReasonShare(0, 0, 0.4)}),
        [("GPU006", "DIFFERS", "held down by heat")],
    ),
    ("brief heat", sampled({"software thermal slowdown": ReasonShare(0, 0, 0.01)}), []),
    ("brake, two readings in a row", sampled({"hardware power brake": ReasonShare(0.5, 2, 0.1)}), []),
    (
        "brake that lasts",
        sampled({"hardware power brake": ReasonShare(0.5, 9, 0.5), "hardware slowdown": ReasonShare(0.5, 9)}),
        [("GPU011", "DIFFERS", "9 readings in a row; no setting fixes it")],
    ),
    ("slowdown, one reading", sampled({"hardware slowdown": ReasonShare(0.05, 1)}), []),
    (
        "slowdown that lasts",
        sampled({"hardware slowdown": ReasonShare(0.5, 9)}),
        [("GPU006", "DIFFERS", "gives no cause")],
    ),
    (
        "a lasting brake at full clock contradicts itself",
        sampled({"hardware power brake": ReasonShare(1, 21)}, **FULL),
        [("GPU012", "UNKNOWN", "contradict")],
    ),
    ("stuck", sampled({}, sm_mhz=Span(300, 310, 345)), [("GPU013", "DIFFERS", "345 of 1410 MHz under load")]),
    ("a bit without a name", sampled({"bit 0x4000": ReasonShare(0.5, 3)}), [("GPU012", "UNKNOWN", "bit 0x4000")]),
]


@pytest.mark.parametrize(("device", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_advice_from_a_sample(device: Device, expected: list[tuple[str, str, str]]) -> None:
    found = judge_throttling(device)
    assert [(item.code, item.outcome.name) for item in found] == [case[:2] for case in expected]
    for item, (_, _, words) in zip(found, expected, strict=True):
        assert words in item.summary
        assert item.is_advice


def test_the_evidence_gives_the_shares() -> None:
    (found,) = judge_throttling(sampled({"software power cap": ReasonShare(0.8, 15, 0.86)}, **NEAR))
    assert found.evidence[0] == "reasons: software power cap 86% of 10 s"
    assert "SM clock 900 to 1200 of at most 1410 MHz" in found.evidence


class Vanishing(SimulatedNvml):
    """A board that falls off the bus after some readings."""

    left = 8

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: int) -> int:
        type(self).left -= 1
        if self.left < 0:
            raise self.NVMLError(15)
        return super().nvmlDeviceGetCurrentClocksEventReasons(handle)


class NoTime:
    """Time that passes by itself."""

    seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> None:
        self.seconds += seconds


def test_a_board_that_is_lost_while_it_is_watched_is_lost() -> None:
    facts = observe(nvml=Vanishing(shipped_facts()), sampling=Sampling(10.0, NoTime()))
    (device,) = facts.devices
    assert device.clocks.sm_mhz == LOST
    assert device.sample is None


def test_all_devices_are_read_in_turn() -> None:
    two = (shipped_device("l4"), alter(shipped_device(), index=1))
    nvml = SimulatedNvml(alter(shipped_facts("l4"), devices=two, device_count=2))
    asked: list[str] = []
    found = sample_devices(nvml, {0: (two[0], 0), 1: (two[1], 1)}, 1.0, NoTime(), asked.append)
    assert asked == ["0", "1"] * 3
    assert [device.sample.readings for device in found.values() if device.sample] == [3, 3]


def observed(place: str, seconds: float) -> Device:
    (device,) = SUBJECT.observe(Request("/sandbox", board=place, sample_s=seconds), Settings(), Ledger()).facts.devices  # type: ignore[attr-defined]
    return device  # type: ignore[no-any-return]


def test_a_board_runs_on_while_it_is_sampled_and_stays_as_it_was(tmp_path: Path) -> None:
    place = copy_board(tmp_path)
    board = Board.load(place)
    board.advance(3600, 1.0)
    board.save()
    device = observed(place, 30.0)
    assert device.sample is not None
    assert device.sample.readings == 61
    assert device.sample.reasons["software thermal slowdown"].polled > 0.5
    assert any(item.code == "GPU006" for item in judge_throttling(device))
    assert Board.load(place).facts == board.facts


def test_a_recording_is_not_sampled(tmp_path: Path) -> None:
    assert observed(write_board(tmp_path, shipped_facts()), 5.0).sample is None


def test_no_sample_unless_asked_for(tmp_path: Path) -> None:
    assert observed(copy_board(tmp_path), 0.0).sample is None


def test_a_pace_shows_the_board_as_it_goes_on(tmp_path: Path) -> None:
    board = Board.load(copy_board(tmp_path, "l4"))
    assert (BOARDS / "l4.json").exists()
    nvml = SimulatedNvml(board.facts)
    pace = BoardPace(board, nvml)
    pace.wait(2.0)
    assert pace.now() == 2.0
    assert nvml.nvmlDeviceGetClockInfo(0, 1) == board.facts.devices[0].clocks.sm_mhz


def test_outcomes_are_only_those_two() -> None:
    assert {case[1] for _, _, cases in CASES for case in cases} <= {Outcome.DIFFERS.name, Outcome.UNKNOWN.name}


def test_the_command_prints_the_sample_and_refuses_it_for_a_recording(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from remediate.cli import app

    place = copy_board(tmp_path)
    board = Board.load(place)
    board.advance(3600, 1.0)
    board.save()
    runner, options = CliRunner(), ["--only", "gpu", "-C", str(tmp_path), "--state-dir", str(tmp_path / "state")]
    shown = runner.invoke(app, ["facts", "--board", place, "--sample", "30", *options])
    assert shown.exit_code == 0
    assert "software thermal slowdown" in shown.stdout
    assert "sample of 30.0 s" in shown.stdout
    document = tmp_path / "facts.json"
    runner.invoke(app, ["facts", "--board", place, "--sample", "30", "-o", str(document), *options])
    kept = runner.invoke(app, ["plan", "--facts", str(document), "--profile", "base"])
    assert "of 30 s" in kept.stdout
    refused = runner.invoke(app, ["plan", "--facts", str(document), "--sample", "5"])
    assert refused.exception is not None
