"""Throttling and processes as advice. Readings after public dumps, named at each case."""

from __future__ import annotations

from typing import Any

import pytest
from gpu.support import A100, NOT_SUPPORTED, alter, shipped_device

from remediate.gpu.facts import Process
from remediate.gpu.health import judge_processes
from remediate.gpu.nvml import unknown_for
from remediate.gpu.reasons import decode, describe
from remediate.gpu.throttle import judge_throttling

HOT = {"temperature__gpu_c": 70, "temperature__memory_c": 97, "clocks__sm_mhz": 810}
CASES: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("idle", A100, {"events__active": 0x1}, []),
    ("idle at full clock, own H200", "h200", {"events__active": 0x1, "utilization_percent": 0}, []),
    ("nothing", A100, {"events__active": 0}, []),
    ("held by applications clocks", A100, {"events__active": 0x2}, []),
    ("sync boost and display", A100, {"events__active": 0x110}, []),
    ("mask can't be read", A100, {"events__active": unknown_for(3)}, []),
    ("hot memory at 70 C core", A100, {"events__active": 0x20, **HOT}, ["heat: the memory"]),
    (
        "Turing laptop, 86 C, 36 W (no memory sensor)",
        "rtx-3090",
        {"events__active": 0x20, "temperature__gpu_c": 86, "clocks__sm_mhz": 1410},
        ["held down by heat"],
    ),
    ("hardware thermal slowdown", A100, {"events__active": 0x48, **HOT}, ["heat: the hardware halves"]),
    (
        "RTX 4090 under true power cap, gpud 535.154.05",
        "rtx-3090",
        {
            "events__active": 0x4,
            "power__draw_w": 445.38,
            "power__enforced_w": 450.0,
            "power__max_w": 450.0,
            "utilization_percent": 97,
        },
        ["the limit is the board's maximum already"],
    ),
    (
        "RTX 3090, 363 of 370 W of at most 420, noonghunna/club-3090#104",
        "rtx-3090",
        {"events__active": 0x4, "power__draw_w": 363.35, "power__enforced_w": 370.0, "power__max_w": 420.0},
        ["held down by the power limit"],
    ),
    (
        "RTX 2080 SUPER at 39 of 250 W and idle, exporter 595.71.05",
        "rtx-3090",
        {"events__active": 0x4, "power__draw_w": 39.32, "power__enforced_w": 250.0, "utilization_percent": 8},
        [],
    ),
    (
        "A100 capped at 240 of 400 W under load, l4rz iDRAC notes",
        A100,
        {"events__active": 0x4, "power__draw_w": 240.0, "utilization_percent": 99},
        ["another limiter"],
    ),
    (
        "MIG: utilization unknown is not 0, H100 590.48.01",
        "h200",
        {"events__active": 0x4, "power__draw_w": 240.0, "utilization_percent": NOT_SUPPORTED},
        [],
    ),
    ("draw can't be read this time", A100, {"events__active": 0x4, "power__draw_w": unknown_for(999)}, ["read again"]),
    ("power brake", A100, {"events__active": 0x88}, ["a power brake is set in this one reading"]),
    ("hardware slowdown without a cause", A100, {"events__active": 0x8}, ["gives no cause"]),
    ("unknown reason, fangq/mcx#18", A100, {"events__active": 0x8000000000000000}, ["unknown reason"]),
    ("a bit of a newer driver", A100, {"events__active": 0x4000}, ["unknown reason"]),
    (
        "contradiction: thermal at 39 C, margin 47, full clock, gpud H100 535.183.01",
        "h200",
        {"events__active": 0xA4, "temperature__gpu_c": 39, "temperature__margin_c": 47, "power__draw_w": 118.0},
        ["contradict"],
    ),
    (
        "hot at a limit that is lowered already, RTX A4000 at 100 W, llm-rig#100",
        "rtx-3090",
        {"events__active": 0x20, "power__limit_w": 250.0, "clocks__sm_mhz": 628},
        ["although the power limit is lowered to 250 W already"],
    ),
    (
        "a power cap and a limit that can't be read, Turing laptop",
        "rtx-3090",
        {
            "events__active": 0x4,
            "power__limit_w": NOT_SUPPORTED,
            "power__enforced_w": NOT_SUPPORTED,
            "utilization_percent": 99,
        },
        ["the draw or the limit can't be read"],
    ),
    ("the board's own limit", A100, {"events__active": 0x200}, ["no setting here changes it"]),
    ("reliability voltage is where every boost ends", A100, {"events__active": 0x400}, []),
    (
        "stuck, GB10, model-serving-minefield#55",
        "rtx-3090",
        {"events__active": 0, "clocks__sm_mhz": 600, "utilization_percent": 96},
        ["600 of 2100 MHz under load and no reason"],
    ),
    (
        "a lock of this program explains a low clock",
        "rtx-3090",
        {"events__active": 0, "clocks__sm_mhz": 600, "utilization_percent": 96, "locked_gpu_clocks": "210,600"},
        [],
    ),
    (
        "applications clocks explain a low clock",
        A100,
        {
            "events__active": 2,
            "clocks__sm_mhz": 510,
            "utilization_percent": 96,
            "application_clocks__graphics_mhz": 510,
        },
        [],
    ),
    (
        "MIG: a low clock and an unknown utilization",
        "h200",
        {"events__active": 0, "clocks__sm_mhz": 345, "utilization_percent": NOT_SUPPORTED},
        [],
    ),
    (
        "contradiction without a margin reading",
        "rtx-3090",
        {"events__active": 0x20, "temperature__gpu_c": 40, "clocks__sm_mhz": 2100},
        ["contradict"],
    ),
    (
        "a cool core proves nothing where the memory has its own limit",
        A100,
        {"events__active": 0x20, "temperature__gpu_c": 40, "clocks__sm_mhz": 1410},
        ["held down by heat"],
    ),
]


@pytest.mark.parametrize(("name", "changes", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_throttling(name: str, changes: dict[str, Any], expected: list[str]) -> None:
    found = judge_throttling(alter(shipped_device(name), **changes))
    assert len(found) == len(expected)
    for judgement, words in zip(found, expected, strict=True):
        assert words in judgement.summary
        assert judgement.is_advice
        assert judgement.operation is None


def test_evidence_holds_the_readings_of_the_moment() -> None:
    (found,) = judge_throttling(alter(shipped_device(), events__active=0x20, power__draw_w=400.0, **HOT))
    assert found.evidence == (
        "reasons: software thermal slowdown",
        "GPU 70 C, GPU maximum operating 85 C, GPU slowdown 89 C, memory 97 C, memory maximum operating 95 C",
        "draws 400 W of 400 W",
        "look at the airflow over the board's memory; a lower power limit cools it only in part",
        "SM clock 810 of at most 1410 MHz",
    )


def test_processes_are_listed_with_what_is_known_of_them() -> None:
    processes = (
        Process(7, "compute", 100, "python", "ann"),
        Process(8, "graphics", NOT_SUPPORTED, unknown_for(6), unknown_for(6)),
    )
    (found,) = judge_processes(alter(shipped_device(), processes=processes))
    assert found.evidence == ("7 python (ann), compute, 100 MiB", "8 ? (?), graphics, memory unknown")
    assert found.is_advice


@pytest.mark.parametrize("processes", [(), NOT_SUPPORTED])
def test_no_processes_no_advice(processes: Any) -> None:
    assert judge_processes(alter(shipped_device(), processes=processes)) == ()


@pytest.mark.parametrize(
    ("mask", "text"),
    [(0, "none"), (0x1, "idle"), (0x24, "software power cap, software thermal slowdown"), (1 << 20, "bit 0x100000")],
)
def test_mask_in_words(mask: int, text: str) -> None:
    assert describe(mask) == text


def test_every_bit_of_a_mask_is_accounted_for() -> None:
    mask = 0x80000000000087FF
    assert sum(reason.bit for reason in decode(mask)) == mask
