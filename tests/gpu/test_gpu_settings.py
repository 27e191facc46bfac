"""Wishes against facts: what agrees, what differs, what is withheld, and the exact argument lists. Cases as data."""

from __future__ import annotations

from typing import Any

import pytest
from gpu.support import A100, DEPRECATED, NAMES, NOT_SUPPORTED, alter, shipped_device, shipped_facts, with_device
from hypothesis import given
from hypothesis import strategies as st

from remediate.gpu.facts import Device, GpuFacts, Power
from remediate.gpu.nvml import unknown_for
from remediate.gpu.read_device import ZERO_LIMIT
from remediate.gpu.settings import judge
from remediate.model import Outcome, Unknown, UnknownKind
from remediate.profile.schema import GpuWish

W = GpuWish
FULL = W(power_limit_w=250, sm_clock="max", memory_clock="max", persistence_mode=True)


def judged(name: str, wish: GpuWish, **changes: Any) -> list[tuple[str, str, str]]:
    """Code, outcome (with `advice`), and the command of each judgement but those about processes and persistence mode
    off where the profile says nothing of it.
    """
    facts = with_device(shipped_facts(name), alter(shipped_device(name), **changes))
    return [
        (
            found.code,
            found.outcome.name + (" advice" if found.is_advice else ""),
            " ".join(found.operation.argv[3:]) if found.operation else "",
        )
        for found in judge(facts, wish, False)
        if found.code != "GPU008" and (found.code, found.is_advice) != ("GPU005", True)
    ]


POWER = [
    # board, wish, changes to the facts, findings
    (A100, W(power_limit_w=250), {}, [("GPU003", "DIFFERS", "-pl 250")]),
    (A100, W(power_limit_w=250.5), {}, [("GPU003", "DIFFERS", "-pl 250.5")]),
    (A100, W(power_limit_w=400.9), {}, [("GPU003", "SAME", ""), ("GPU007", "UNSUPPORTED advice", "")]),
    (A100, W(power_limit_w=399.5), {}, [("GPU003", "SAME", "")]),
    (A100, W(power_limit="default"), {}, [("GPU003", "SAME", "")]),
    (A100, W(power_limit="default"), {"power__limit_w": 300.0}, [("GPU003", "DIFFERS", "-pl 400")]),
    ("rtx-3090", W(power_limit="max"), {}, [("GPU003", "DIFFERS", "-pl 375")]),
    ("l4", W(power_limit_fraction=0.8), {}, [("GPU003", "DIFFERS", "-pl 57")]),
    ("h200", W(power_limit_fraction=0.3), {}, [("GPU003", "DIFFERS", "-pl 210")]),
    ("h200", W(power_limit_w=750), {}, [("GPU003", "SAME", ""), ("GPU007", "UNSUPPORTED advice", "")]),
    (
        "h200",
        W(power_limit_w=750),
        {"power__limit_w": 500.0, "power__enforced_w": 500.0},
        [("GPU003", "DIFFERS", "-pl 700"), ("GPU007", "UNSUPPORTED advice", "")],
    ),
    ("h200", W(power_limit_w=150), {}, [("GPU007", "UNSUPPORTED", "")]),
    # An out-of-band cap (board controller, node) enforces less than what software asked for: llnl/variorum#445.
    (
        A100,
        W(power_limit="default"),
        {"power__enforced_w": 250.0},
        [("GPU003", "SAME", ""), ("GPU003", "DIFFERS advice", "")],
    ),
    # Laptop: the limit's getter is not supported, the enforced one is: Dreaming-Codes/nvidia_oc#22, nvitop#86.
    (A100, W(power_limit_w=250), {"power__limit_w": NOT_SUPPORTED}, [("GPU003", "UNSUPPORTED", "")]),
    (A100, W(power_limit_w=250), {"power__limit_w": unknown_for(4)}, [("GPU003", "UNKNOWN", "")]),
    (A100, W(power_limit_w=250), {"power__limit_w": unknown_for(999)}, [("GPU003", "UNKNOWN", "")]),
    # A vGPU guest that answers 0 with success: tensorrtllm_backend#363.
    (A100, W(power_limit_w=250), {"power__limit_w": ZERO_LIMIT}, [("GPU003", "UNSUPPORTED", "")]),
    (A100, W(power_limit="default"), {"power__default_w": unknown_for(3)}, [("GPU003", "UNKNOWN", "")]),
    (A100, W(power_limit_fraction=0.5), {"power__max_w": unknown_for(3)}, [("GPU003", "UNKNOWN", "")]),
    (A100, W(power_limit_w=250), {"power__min_w": unknown_for(3)}, [("GPU003", "UNKNOWN", "")]),
    (A100, W(power_limit_w=400), {"power__min_w": unknown_for(3)}, [("GPU003", "SAME", "")]),
]


@pytest.mark.parametrize(("name", "wish", "changes", "expected"), POWER)
def test_power_limit(name: str, wish: GpuWish, changes: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    assert judged(name, wish, **changes) == expected


APP = {"application_clocks__memory_mhz": 6251, "application_clocks__graphics_mhz": 2040}
LOCKED = {"locked_gpu_clocks": "210,1500", "clocks__sm_mhz": 1500}
LOCKED_MEMORY = {"locked_memory_clocks": "405,405", "clocks__memory_mhz": 405}
CLOCKS = [
    (A100, W(sm_clock="max"), {}, [("GPU004", "DIFFERS", "-ac 1215,1410")]),
    (A100, W(sm_clock="max", memory_clock="max"), {}, [("GPU004", "DIFFERS", "-ac 1215,1410")]),
    (A100, W(sm_clock="max"), {"application_clocks__graphics_mhz": 1410}, [("GPU004", "SAME", "")]),
    (A100, W(sm_clock="default"), {}, [("GPU004", "SAME", "")]),
    (A100, W(sm_clock="default"), {"application_clocks__graphics_mhz": 1410}, [("GPU004", "DIFFERS", "-ac 1215,1095")]),
    (A100, W(sm_clock_mhz=1305), {}, [("GPU004", "DIFFERS", "-ac 1215,1305")]),
    (
        A100,
        W(sm_clock_mhz=1300),
        {},
        [("GPU004", "DIFFERS", "-ac 1215,1290"), ("GPU007", "UNSUPPORTED advice", "")],
    ),
    (
        A100,
        W(sm_clock_mhz=9999),
        {},
        [("GPU004", "DIFFERS", "-ac 1215,1410"), ("GPU007", "UNSUPPORTED advice", "")],
    ),
    (A100, W(sm_clock_mhz=100), {}, [("GPU007", "UNSUPPORTED", "")]),
    # The report's 877 MHz is a V100's memory clock; below everything that this board lists.
    (A100, W(sm_clock="max", memory_clock_mhz=877), {}, [("GPU007", "UNSUPPORTED", "")]),
    (A100, W(memory_clock="max"), {}, [("GPU004", "SAME", "")]),
    ("h200", W(memory_clock_mhz=2201, sm_clock="max"), {}, [("GPU004", "DIFFERS", "-ac 2201,1980")]),
    ("h200", W(sm_clock="max", memory_clock="max"), {}, [("GPU004", "SAME", "")]),
    # A pair is validated as a pair: at 405 MHz memory an L4 goes to 645 MHz.
    ("l4", W(sm_clock="max", memory_clock_mhz=405), APP, [("GPU004", "DIFFERS", "-ac 405,645")]),
    # A current reading of 6250 MHz means the listed 6251 MHz.
    (
        "l4",
        W(sm_clock="max", memory_clock_mhz=6250),
        APP,
        [("GPU004", "SAME", ""), ("GPU007", "UNSUPPORTED advice", "")],
    ),
    (A100, W(sm_clock="max"), {"supported_clocks": unknown_for(3)}, [("GPU004", "UNKNOWN", "")]),
    (A100, W(sm_clock="max"), {"supported_clocks": ()}, [("GPU004", "UNKNOWN", "")]),
    (A100, W(sm_clock="max"), {"application_clocks__graphics_mhz": unknown_for(4)}, [("GPU004", "UNKNOWN", "")]),
    # No applications clocks: GeForce, and any board from driver 590 on.
    ("rtx-3090", W(sm_clock="max", memory_clock="max"), {}, [("GPU004", "SAME", "")]),
    ("l4", W(sm_clock="max"), {}, [("GPU004", "SAME", "")]),
    ("l4", W(sm_clock="default"), {}, [("GPU004", "SAME", "")]),
    ("l4", W(sm_clock_mhz=1500), {}, [("GPU004", "DIFFERS", "-lgc 210,1500")]),
    ("l4", W(sm_clock_mhz=1500), LOCKED, [("GPU004", "SAME", "")]),
    ("l4", W(sm_clock_mhz=1500), {"locked_gpu_clocks": "1410,1410"}, [("GPU004", "DIFFERS", "-lgc 210,1500")]),
    ("l4", W(sm_clock="max"), LOCKED, [("GPU004", "DIFFERS", "-rgc")]),
    ("l4", W(sm_clock_mhz=2040), {}, [("GPU004", "SAME", "")]),
    ("l4", W(sm_clock_mhz=5000), {}, [("GPU004", "SAME", ""), ("GPU007", "UNSUPPORTED advice", "")]),
    ("l4", W(sm_clock_mhz=200), {}, [("GPU007", "UNSUPPORTED", "")]),
    ("l4", W(memory_clock_mhz=405), {}, [("GPU004", "DIFFERS", "-lmc 405,405")]),
    ("l4", W(memory_clock_mhz=405), LOCKED_MEMORY, [("GPU004", "SAME", "")]),
    ("l4", W(memory_clock="max"), LOCKED_MEMORY, [("GPU004", "DIFFERS", "-rmc")]),
    ("l4", W(memory_clock_mhz=6251), {}, [("GPU004", "SAME", "")]),
    ("l4", W(memory_clock_mhz=100), {}, [("GPU007", "UNSUPPORTED", "")]),
    (
        "l4",
        W(memory_clock_mhz=405, sm_clock_mhz=600),
        {},
        [("GPU004", "DIFFERS", "-lmc 405,405"), ("GPU004", "DIFFERS", "-lgc 210,600")],
    ),
    # A floor is a lock on every board, with and without applications clocks.
    ("l4", W(sm_clock_mhz=1500, sm_clock_min_mhz=1500), {}, [("GPU004", "DIFFERS", "-lgc 1500,1500")]),
    ("l4", W(sm_clock_min_mhz=900), {}, [("GPU004", "DIFFERS", "-lgc 900,2040")]),
    ("l4", W(sm_clock_min_mhz=210), {}, [("GPU004", "SAME", "")]),
    (
        "l4",
        W(sm_clock="max", sm_clock_min_mhz=905),
        {},
        [("GPU004", "DIFFERS", "-lgc 915,2040"), ("GPU007", "UNSUPPORTED advice", "")],
    ),
    (
        "l4",
        W(sm_clock_mhz=1505, sm_clock_min_mhz=1505),
        {},
        [("GPU004", "DIFFERS", "-lgc 1500,1500"), *[("GPU007", "UNSUPPORTED advice", "")] * 2],
    ),
    ("l4", W(sm_clock_min_mhz=3000), {}, [("GPU007", "UNSUPPORTED", "")]),
    (A100, W(sm_clock_min_mhz=1410, sm_clock="max"), {}, [("GPU004", "DIFFERS", "-lgc 1410,1410")]),
    (
        "h200",
        W(sm_clock_min_mhz=900, memory_clock_mhz=2201),
        {},
        [("GPU004", "DIFFERS", "-ac 2201,1980"), ("GPU004", "DIFFERS", "-lgc 900,1980")],
    ),
    ("l4", W(sm_clock_fraction=0.5), {}, [("GPU004", "DIFFERS", "-lgc 210,1020")]),
    ("l4", W(sm_clock_fraction=1.0), {}, [("GPU004", "SAME", "")]),
    ("l4", W(sm_clock_fraction=0.01), {}, [("GPU007", "UNSUPPORTED", "")]),
    (A100, W(sm_clock_fraction=0.9), {}, [("GPU004", "DIFFERS", "-ac 1215,1260")]),
    (
        "h200",
        W(memory_clock="default"),
        {"application_clocks__memory_mhz": 2201},
        [("GPU004", "DIFFERS", "-ac 3201,1980")],
    ),
    ("l4", W(memory_clock="default"), LOCKED_MEMORY, [("GPU004", "DIFFERS", "-rmc")]),
    # What an earlier run locked goes before applications clocks, so it has to go.
    (
        A100,
        W(sm_clock="max"),
        {"locked_gpu_clocks": "210,1410", "application_clocks__graphics_mhz": 1410},
        [("GPU004", "DIFFERS", "-rgc"), ("GPU004", "SAME", "")],
    ),
    # A clock above the lock shows that the lock is gone.
    ("l4", W(sm_clock_mhz=1500), {**LOCKED, "clocks__sm_mhz": 2040}, [("GPU004", "DIFFERS", "-lgc 210,1500")]),
    ("l4", W(sm_clock_mhz=1500), {**LOCKED, "clocks__sm_mhz": 1515}, [("GPU004", "SAME", "")]),
    ("l4", W(sm_clock="max"), {**LOCKED, "clocks__sm_mhz": 2040}, [("GPU004", "SAME", "")]),
    (
        "l4",
        W(memory_clock_mhz=405),
        {**LOCKED_MEMORY, "clocks__memory_mhz": 6250},
        [("GPU004", "DIFFERS", "-lmc 405,405")],
    ),
    # Applications clocks and a list, but no clock of the moment (laptop Maxwell, SysMonTask#60): no verdict.
    (
        A100,
        W(sm_clock="max"),
        {"clocks__graphics_mhz": NOT_SUPPORTED, "max_clocks__graphics_mhz": NOT_SUPPORTED},
        [("GPU004", "UNSUPPORTED", "")],
    ),
    ("l4", W(memory_clock_mhz=405), {"compute_capability": "7.5"}, [("GPU004", "UNSUPPORTED", "")]),
    ("l4", W(sm_clock_mhz=1500), {"compute_capability": "7.5"}, [("GPU004", "DIFFERS", "-lgc 210,1500")]),
    ("l4", W(sm_clock_mhz=1500), {"compute_capability": "6.1"}, [("GPU004", "UNSUPPORTED", "")]),
    ("l4", W(sm_clock_mhz=1500), {"compute_capability": unknown_for(999)}, [("GPU004", "UNKNOWN", "")]),
    ("l4", W(sm_clock_mhz=1500), {"supported_clocks": NOT_SUPPORTED}, [("GPU004", "UNSUPPORTED", "")]),
    ("l4", W(sm_clock_mhz=1500), {"supported_clocks": ()}, [("GPU004", "UNKNOWN", "")]),
    ("l4", W(sm_clock="max"), {"max_clocks__graphics_mhz": NOT_SUPPORTED}, [("GPU004", "UNSUPPORTED", "")]),
]


@pytest.mark.parametrize(("name", "wish", "changes", "expected"), CLOCKS)
def test_clocks(name: str, wish: GpuWish, changes: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    assert judged(name, wish, **changes) == expected


@pytest.mark.parametrize(
    ("present", "wanted", "expected"),
    [
        (False, True, ("GPU005", "DIFFERS", "-pm 1")),
        (True, False, ("GPU005", "DIFFERS", "-pm 0")),
        (True, True, ("GPU005", "SAME", "")),
        (NOT_SUPPORTED, True, ("GPU005", "UNSUPPORTED", "")),  # Windows and WSL2
        (unknown_for(4), True, ("GPU005", "UNKNOWN", "")),
    ],
)
def test_persistence_mode(present: Any, wanted: bool, expected: tuple[str, str, str]) -> None:
    assert judged(A100, W(persistence_mode=wanted), persistence_mode=present) == [expected]


COMPUTE = [
    ("default", "default", "SAME", ""),
    ("default", "exclusive_process", "DIFFERS", "-c EXCLUSIVE_PROCESS"),
    ("exclusive process", "default", "DIFFERS", "-c DEFAULT"),
    ("exclusive thread", "prohibited", "DIFFERS", "-c PROHIBITED"),
    (NOT_SUPPORTED, "default", "UNSUPPORTED", ""),
    (unknown_for(4), "default", "UNKNOWN", ""),
]


@pytest.mark.parametrize(("present", "wanted", "outcome", "command"), COMPUTE)
def test_compute_mode(present: Any, wanted: Any, outcome: str, command: str) -> None:
    assert judged(A100, W(compute_mode=wanted), compute_mode=present) == [("GPU014", outcome, command)]


MODULE = Power(500.0, 900.0, 900.0, 900.0, 300.0, 1000.0)
MODULE_LIMITS = [
    (W(module_power_limit_w=700), [("GPU015", "DIFFERS", "-pl 700 -sc 1")]),
    (W(module_power_limit="default"), [("GPU015", "SAME", "")]),
    (W(module_power_limit="max"), [("GPU015", "DIFFERS", "-pl 1000 -sc 1")]),
    (W(module_power_limit_w=2000), [("GPU015", "DIFFERS", "-pl 1000 -sc 1"), ("GPU007", "UNSUPPORTED advice", "")]),
    (W(module_power_limit_w=200), [("GPU007", "UNSUPPORTED", "")]),
]


@pytest.mark.parametrize(("wish", "expected"), MODULE_LIMITS)
def test_module_power_limit(wish: GpuWish, expected: list[tuple[str, str, str]]) -> None:
    assert judged("h200", wish, module_power=MODULE) == expected
    assert judged("h200", wish) == [], "a board without a module scope is left alone"


@pytest.mark.parametrize(
    ("daemon", "platform", "mode", "advice"),
    [
        (True, "host", True, False),
        (False, "host", True, True),
        (False, "container", True, False),
        (False, "host", False, False),
        (NOT_SUPPORTED, "host", True, False),
    ],
)
def test_the_legacy_flag_is_told_from_the_daemon(daemon: Any, platform: str, mode: bool, advice: bool) -> None:
    facts = alter(shipped_facts(), devices=(alter(shipped_device(), persistence_mode=mode),))
    facts = alter(facts, persistence_daemon=daemon, platform=platform)
    found = [item for item in judge(facts, W(persistence_mode=True), False) if item.is_advice and item.code == "GPU005"]
    assert bool(found) is advice
    if advice:
        assert "near its end of life" in found[0].summary
        assert "systemctl enable --now nvidia-persistenced" in found[0].evidence[0]


def test_persistence_mode_is_not_missed_under_wsl2() -> None:
    gpu = alter(with_device(shipped_facts(), alter(shipped_device(), persistence_mode=NOT_SUPPORTED)), platform="wsl2")
    found = next(item for item in judge(gpu, W(persistence_mode=True), False) if item.code == "GPU005")
    assert found.is_advice
    assert "normal on Windows" in found.summary


def test_persistence_comes_before_what_is_lost_without_it() -> None:
    assert [command for _, _, command in judged(A100, FULL)] == ["-pm 1", "-pl 250", "-ac 1215,1410"]


def test_a_profile_without_wishes_judges_nothing() -> None:
    assert judged(A100, W(why={"clocks": "no wish"})) == []


OBSTACLES = [
    ({"mig_current": True}, {}, False, "MIG"),
    ({"virtualization": "vgpu guest"}, {}, False, "vGPU"),
    ({}, {"has_cap_sys_admin": False}, True, "CAP_SYS_ADMIN"),
    ({}, {"has_cap_sys_admin": False, "platform": "container"}, False, "CAP_SYS_ADMIN"),
    ({}, {"platform": "wsl2"}, True, "WSL2"),
    ({"virtualization": NOT_SUPPORTED, "name": "GRID A100D-80C"}, {}, True, "vGPU"),
    ({}, {"smi": NOT_SUPPORTED}, False, "nvidia-smi"),
]


@pytest.mark.parametrize(("device", "facts", "is_root", "word"), OBSTACLES)
def test_what_can_be_read_and_not_be_set_here_is_withheld_with_its_command(
    device: dict[str, Any], facts: dict[str, Any], is_root: bool, word: str
) -> None:
    gpu = alter(with_device(shipped_facts(), alter(shipped_device(), **device)), **facts)
    *settings, line = [item for item in judge(gpu, FULL, is_root) if not item.is_advice]
    assert [item.code for item in settings] == ["GPU005", "GPU003", "GPU004"]
    assert all(item.operation is None and item.outcome is Outcome.UNSUPPORTED for item in settings)
    assert (line.code, line.outcome) == ("GPU009", Outcome.UNSUPPORTED)
    assert line.summary == "persistence mode, power limit and clocks can't be set from here"
    assert word in line.because
    own = [("nvidia-smi", "-q", "-d")] if word == "vGPU" else [("nvidia-smi", "-i", str(shipped_device().uuid))] * 3
    assert [command[:3] for command in line.commands] == own


def test_an_obstacle_leaves_what_agrees_alone() -> None:
    gpu = with_device(shipped_facts("h200"), alter(shipped_device("h200"), mig_current=True))
    outcomes = [item.outcome for item in judge(gpu, W(power_limit="default", persistence_mode=True), False)]
    assert outcomes == [Outcome.SAME, Outcome.SAME]


def test_a_user_who_is_not_root_still_gets_the_changes() -> None:
    gpu = alter(shipped_facts(), has_cap_sys_admin=False)
    assert [item.operation is None for item in judge(gpu, FULL, False)][:3] == [False, False, False]


def test_a_vgpu_guest_where_nothing_can_be_read_is_said_in_one_line() -> None:
    nothing = {f"power__{name}": NOT_SUPPORTED for name in ("draw_w", "limit_w", "enforced_w", "min_w", "max_w")}
    nothing |= {f"max_clocks__{name}": NOT_SUPPORTED for name in ("graphics_mhz", "sm_mhz")}
    nothing |= {f"application_clocks__{name}": NOT_SUPPORTED for name in ("graphics_mhz", "memory_mhz")}
    found = judged(A100, FULL, virtualization="vgpu guest", persistence_mode=True, **nothing)
    assert found == [("GPU005", "SAME", ""), ("GPU009", "UNSUPPORTED", "")]


@pytest.mark.parametrize("reason", [unknown_for(15), unknown_for(16), unknown_for(999)])
def test_a_device_without_a_handle_is_one_finding(reason: Unknown) -> None:
    good = alter(shipped_device(), index=1)
    gpu = alter(shipped_facts(), devices=(Device(0, lost=reason), good))
    found = judge(gpu, FULL, False)
    assert [item.code for item in found if item.device.index == 0] == ["GPU002"]
    assert sum(item.operation is not None for item in found) == 3


def test_a_device_that_is_lost_between_two_readings_is_not_judged() -> None:
    lost = Unknown(UnknownKind.LOST, "the GPU needs a reset")
    assert judged(A100, FULL, clocks__sm_mhz=lost) == [("GPU002", "UNKNOWN", "")]


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (GpuFacts(unknown_for(12), unknown_for(12), unknown_for(12), unknown_for(12)), "libnvidia-ml.so.1"),
        (GpuFacts("580.1", "13.580.1", "13.0", 0), "sees no GPU"),
    ],
)
def test_without_a_gpu_there_is_one_finding(facts: GpuFacts, text: str) -> None:
    (found,) = judge(facts, FULL, False)
    assert (found.code, found.outcome, found.is_advice) == ("GPU001", Outcome.UNKNOWN, False)
    assert text in found.summary
    assert found.evidence, "what to do"
    (advice,) = judge(facts, GpuWish(), False)
    assert advice.is_advice, "a profile without GPU wishes is not held up by a missing GPU"


def test_a_device_without_a_uuid_gets_no_command() -> None:
    found = judged(A100, FULL, uuid=unknown_for(999))
    assert [command for _, _, command in found] == ["", "", ""]


@pytest.mark.property
@given(
    st.sampled_from(NAMES),
    st.floats(1, 2000, allow_nan=False) | st.none(),
    st.integers(1, 4000),
    st.none() | st.integers(1, 12_000),
)
def test_every_command_is_within_what_the_board_itself_states(
    name: str, watts: float | None, sm_mhz: int, memory_mhz: int | None
) -> None:
    device = shipped_device(name)
    wish = W(power_limit_w=watts, sm_clock_mhz=sm_mhz, memory_clock_mhz=memory_mhz)
    for found in judge(shipped_facts(name), wish, False):
        if found.operation is None:
            continue
        switch, *values = found.operation.argv[3:]
        if switch == "-pl":
            assert isinstance(device.power.min_w, float)
            assert isinstance(device.power.max_w, float)
            assert device.power.min_w <= float(values[0]) <= device.power.max_w
            assert watts is not None
            assert float(values[0]) <= watts + 0.01
        else:
            assert not isinstance(device.supported_clocks, Unknown)
            first, second = map(int, values[0].split(","))
            pairs = {(table.memory_mhz, mhz) for table in device.supported_clocks for mhz in table.graphics_mhz}
            if switch == "-ac":
                assert (first, second) in pairs
            if switch == "-lgc":
                assert second in {mhz for _, mhz in pairs}
                assert second <= sm_mhz + 1
            if switch == "-lmc":
                assert (first, second) == (second, second)
                assert first in {memory for memory, _ in pairs}


def test_deprecated_and_unsupported_applications_clocks_lead_to_the_same_lock() -> None:
    wish = W(sm_clock_mhz=1500)
    results = [
        judged("l4", wish, application_clocks__graphics_mhz=reason, application_clocks__memory_mhz=reason)
        for reason in (DEPRECATED, NOT_SUPPORTED, unknown_for(13))
    ]
    assert results[0] == results[1] == results[2] == [("GPU004", "DIFFERS", "-lgc 210,1500")]


@pytest.mark.parametrize("uuid", ["-pl", "GPU-1 -r", "GPU-1\n", "GPU-é", "", "GPU-$(id)"])
def test_a_uuid_that_is_none_gets_no_command(uuid: str) -> None:
    assert [command for _, _, command in judged(A100, FULL, uuid=uuid)] == ["", "", ""]


def test_a_setting_that_will_not_last_says_so() -> None:
    wish = W(power_limit_w=250)
    found = next(item for item in judge(shipped_facts(), wish, False) if item.code == "GPU003")
    assert any("lost when the last client leaves" in line for line in found.evidence)
    kept = judge(shipped_facts(), W(power_limit_w=250, persistence_mode=True), False)
    assert not any("lost" in line for item in kept for line in item.evidence)


def test_gpus_that_can_not_be_counted_are_not_called_absent() -> None:
    (found,) = judge(GpuFacts("580.1", "13.580.1", "13.0", unknown_for(4)), FULL, False)
    assert "no permission" in found.summary


@pytest.mark.parametrize(
    ("code", "because", "command"),
    [
        (18, "the driver was updated while it was loaded", ("sudo", "modprobe", "-r", "nvidia_uvm")),
        (9, "load it with `modprobe nvidia`", ("sudo", "modprobe", "nvidia")),
    ],
)
def test_a_driver_that_does_not_answer_comes_with_the_hosts_commands(
    code: int, because: str, command: tuple[str, ...]
) -> None:
    reason = unknown_for(code)
    (found,) = judge(GpuFacts(reason, reason, reason, reason), FULL, False)
    assert found.because.startswith(because)
    assert found.commands[0][: len(command)] == command
    (quiet,) = judge(GpuFacts(reason, reason, reason, reason), GpuWish(), False)
    assert quiet.because == "", "a profile without wishes leaves nothing out"


def test_a_lost_board_is_left_out_with_what_to_look_at() -> None:
    (found,) = judge(alter(shipped_facts(), devices=(Device(0, lost=unknown_for(15)),)), FULL, False)
    assert found.because == "read the kernel log, then restart the machine"
    assert found.commands == (("journalctl", "-k", "-g", "NVRM|Xid"),)
