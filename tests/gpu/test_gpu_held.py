"""Locks that no call reads back: observed clocks confirm one, contradict one, or show somebody else's."""

from __future__ import annotations

from typing import Any

import pytest
from gpu.support import A100, alter, shipped_device, shipped_facts, with_device

from remediate.gpu.facts import Device, ReasonShare, Sample, Span
from remediate.gpu.held import held_at_idle, held_under_load
from remediate.gpu.settings import judge
from remediate.model import Outcome
from remediate.profile.schema import GpuWish


def sampled(lowest: float, highest: float, utilization: float, name: str = "l4", **more: Any) -> Device:
    """A board with a sample of these SM clocks at a constant utilization."""
    busy = Span(utilization, utilization, utilization)
    values = {"readings": 10, "sm_mhz": Span(lowest, lowest, highest), "utilization_percent": busy, **more}
    return alter(shipped_device(name), sample=Sample(5.0, **values), clocks__sm_mhz=round(lowest))


IDLE: dict[str, Any] = {"reasons": {"idle": ReasonShare(1.0, 10)}}


@pytest.mark.parametrize(
    ("device", "mhz"),
    [
        (sampled(1365, 1365, 99), 1365),
        (sampled(1365, 1380, 99), None),
        (sampled(1365, 1365, 30), None),
        # Boards may stop short of what they list; the maximum is no lock.
        (sampled(1950, 1950, 99), None),
        (sampled(2040, 2040, 99), None),
        (sampled(210, 210, 99), None),
        (sampled(1365, 1365, 99, readings=2), None),
        (sampled(1365, 1365, 99, reasons={"software power cap": ReasonShare(0.2, 1)}), None),
        (shipped_device("l4"), None),
    ],
)
def test_a_clock_that_stands_still_under_load(device: Device, mhz: int | None) -> None:
    found = held_under_load(device)
    assert (None if found is None else found.mhz) == mhz


@pytest.mark.parametrize(
    ("device", "mhz"),
    [
        # Turing laptop under `-lgc 1365,1365`: 1365 MHz and 13.9 W idle, 300 MHz and 3.9 W without.
        (sampled(1365, 1365, 0, **IDLE), 1365),
        (sampled(1365, 1365, 0), 1365),
        (sampled(210, 210, 0, **IDLE), None),
        (sampled(2040, 2040, 0, **IDLE), None),
        # An applications clock is where a board with a context rests.
        (sampled(1095, 1095, 0, A100, **IDLE), None),
    ],
)
def test_an_idle_clock_that_does_not_fall(device: Device, mhz: int | None) -> None:
    found = held_at_idle(device)
    assert (None if found is None else found.mhz) == mhz


def clock_judgement(device: Device, wish: GpuWish) -> Any:
    return next(item for item in judge(with_device(shipped_facts("l4"), device), wish, False) if item.code == "GPU004")


def test_somebody_elses_lock_is_an_answer() -> None:
    found = clock_judgement(sampled(1365, 1365, 99), GpuWish(sm_clock="max"))
    assert (found.outcome, found.operation) == (Outcome.UNKNOWN, None)
    assert "locked by somebody else" in found.summary
    assert "1365 of at most 2040 MHz in all 10 readings over 5 s" in found.evidence


def test_a_sample_under_load_confirms_the_ledger() -> None:
    device = alter(sampled(1485, 1500, 99), locked_gpu_clocks="210,1500")
    found = clock_judgement(device, GpuWish(sm_clock_mhz=1500))
    assert found.outcome is Outcome.SAME
    assert "reached 1500 MHz, which confirms it" in found.evidence[0]


def test_a_sample_contradicts_the_ledger() -> None:
    device = alter(sampled(1485, 1900, 99), locked_gpu_clocks="210,1500")
    found = clock_judgement(device, GpuWish(sm_clock_mhz=1500))
    assert found.outcome is Outcome.DIFFERS
    assert found.operation is not None
    assert (found.operation.before, found.operation.after) == ("", "210,1500")
    assert "seen at 1900 MHz: it is not in force" in found.evidence[0]
