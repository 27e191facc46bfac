"""The subject through the core's interface, from observation to undo, and what it hands to others."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gpu.support import (
    A100,
    NAMES,
    alter,
    board_facts,
    context_for,
    copy_board,
    shipped_device,
    shipped_facts,
    whole_facts,
)

from remediate.gpu import judgement
from remediate.gpu.boot import codes as boot_codes
from remediate.gpu.codes import EXPLANATIONS
from remediate.gpu.commands import Operation, Setting, command, make_operation, render_script, show_value
from remediate.gpu.facts import Device, GpuFacts
from remediate.gpu.keys import read_key
from remediate.gpu.nvml import unknown_for
from remediate.gpu.subject import GpuSubject
from remediate.model import Change, Facts, Outcome, Request, Risk, State
from remediate.profile.schema import GpuWish, Profile
from remediate.subject import Ledger, Proposal, Settings, Situation, Subject

SUBJECT: Subject = GpuSubject()
PROFILE = Profile(
    schema_version=1,
    name="incident",
    gpu=GpuWish(
        power_limit_w=250,
        sm_clock="max",
        memory_clock="max",
        persistence_mode=True,
        why={"power_limit": "heat", "clocks": "speed", "persistence_mode": "keeps them"},
    ),
)


def observed(place: str, ledger: dict[str, str] | None = None) -> Facts:
    request = Request(folder="/sandbox", board=place)
    section = SUBJECT.observe(request, Settings(), Ledger(ledger or {})).facts
    assert isinstance(section, GpuFacts)
    return whole_facts(section, board=place)


def proposed(facts: Facts, profile: Profile = PROFILE) -> Proposal:
    situation = Situation(facts, profile)
    return SUBJECT.propose(situation, SUBJECT.compare(situation))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "wish",
    [
        PROFILE.gpu,
        GpuWish(power_limit_fraction=0.7, sm_clock_mhz=900, persistence_mode=True),
        GpuWish(power_limit="max", memory_clock_mhz=410, sm_clock="max", persistence_mode=False),
    ],
)
def test_plan_apply_plan_again_undo(tmp_path: Path, name: str, wish: GpuWish) -> None:
    place, ledger = copy_board(tmp_path, name), dict[str, str]()
    profile = msgspec.structs.replace(PROFILE, gpu=wish)
    facts, context = observed(place), context_for(place)
    proposal = proposed(facts, profile)
    prepared = {}
    for change in proposal.changes:
        prepared[change.id] = SUBJECT.prepare(change.operation, context)
        SUBJECT.perform(change.operation, prepared[change.id], context)
        ledger |= {key: value for key, value in SUBJECT.remember(change.operation, True).items() if value}
    after = observed(place, ledger)
    again = Situation(after, profile)
    left = [f for f in SUBJECT.compare(again) if f.outcome is Outcome.DIFFERS and not f.is_advice]
    assert left == []
    assert SUBJECT.propose(again, ()).changes == ()
    for change in reversed(proposal.changes):
        SUBJECT.undo(change.operation, prepared[change.id], context)
    assert board_facts(place) == shipped_facts(name)


def test_the_incidents_commands() -> None:
    proposal = proposed(whole_facts(shipped_facts()))
    uuid = shipped_device().uuid
    assert [change.command for change in proposal.changes] == [
        ("nvidia-smi", "-i", uuid, "-pm", "1"),
        ("nvidia-smi", "-i", uuid, "-pl", "250"),
        ("nvidia-smi", "-i", uuid, "-ac", "1215,1410"),
    ]
    assert [change.reason for change in proposal.changes] == ["keeps them", "heat", "speed"]
    assert [change.operation.undo_argv[3:] for change in proposal.changes] == [
        ("-pm", "0"),
        ("-pl", "400"),
        ("-ac", "1215,1095"),
    ]


def test_risks_on_a_real_host_and_on_a_board() -> None:
    real = proposed(whole_facts(shipped_facts())).changes
    assert [change.risks for change in real] == [
        (Risk.ROOT,),
        (Risk.ROOT, Risk.DISRUPTIVE),
        (Risk.ROOT, Risk.DISRUPTIVE),
    ]
    board = proposed(whole_facts(shipped_facts(), board=A100)).changes
    assert not any(change.needs_root for change in board), "a simulated board grants the rights itself"
    without = alter(shipped_facts(), has_cap_sys_admin=False)
    assert all(change.needs_root for change in proposed(whole_facts(without, board=A100)).changes)


def test_nobody_on_the_gpu_notices() -> None:
    quiet = alter(shipped_facts(), devices=(alter(shipped_device(), processes=()),))
    assert not any(Risk.DISRUPTIVE in change.risks for change in proposed(whole_facts(quiet)).changes)
    unread = alter(shipped_facts(), devices=(alter(shipped_device(), processes=unknown_for(4)),))
    assert any(Risk.DISRUPTIVE in change.risks for change in proposed(whole_facts(unread)).changes)


MOVES: list[tuple[dict[str, Any], set[str]]] = [
    ({"power__limit_w": 300.0}, {"power_limit"}),
    ({"power__max_w": 300.0}, {"power_limit"}),
    ({"power__min_w": 300.0}, {"power_limit"}),
    ({"persistence_mode": True}, {"persistence_mode"}),
    ({"application_clocks__graphics_mhz": 1410}, {"application_clocks"}),
    ({"supported_clocks": unknown_for(3)}, {"application_clocks"}),
    ({"uuid": "GPU-other"}, {"persistence_mode", "power_limit", "application_clocks"}),
    ({"clocks__sm_mhz": 810, "temperature__gpu_c": 70, "power__draw_w": 300.0, "utilization_percent": 45}, set()),
]


@pytest.mark.parametrize(("moved", "stale"), MOVES)
def test_a_plan_is_stale_for_what_it_depends_on_and_nothing_else(moved: dict[str, Any], stale: set[str]) -> None:
    changes = proposed(whole_facts(shipped_facts())).changes
    now = whole_facts(alter(shipped_facts(), devices=(alter(shipped_device(), **moved),)))
    found = {
        change.id.rpartition(":")[2]
        for change in changes
        if any(SUBJECT.read(now, key) != value for key, value in change.depends_on.items())
    }
    assert found == stale


def test_another_driver_makes_every_change_stale() -> None:
    now = whole_facts(alter(shipped_facts(), driver_version="580.1"))
    for change in proposed(whole_facts(shipped_facts())).changes:
        assert SUBJECT.read(now, "driver_version") != change.depends_on["driver_version"]


@pytest.mark.parametrize("key", ["", "/", "GPU-x/power_limit_w", "unknown", f"{shipped_device().uuid}/nothing"])
def test_keys_that_are_not_known_are_absent(key: str) -> None:
    assert read_key(shipped_facts(), key) == ""


def test_announcements_name_all_boards_and_the_lowest_capability() -> None:
    boards = (
        shipped_device("rtx-3090"),
        shipped_device("h200"),
        alter(shipped_device("l4"), compute_capability="10.0"),
    )
    announced = SUBJECT.announce(whole_facts(alter(shipped_facts("h200"), devices=boards)), PROFILE)
    assert announced == {
        "gpu:name": "NVIDIA GeForce RTX 3090\nNVIDIA H200\nNVIDIA L4",
        "gpu:driver_version": "580.159.04",
        "gpu:cuda_driver_version": "13.0",
        "gpu:compute_capability": "8.6",
        "gpu:compute_capabilities": "8.6\n9.0\n10.0",
    }


def test_without_a_driver_nothing_is_announced_and_one_thing_is_found() -> None:
    reason = unknown_for(12)
    facts = whole_facts(GpuFacts(reason, reason, reason, reason))
    assert SUBJECT.announce(facts, PROFILE) == {}
    assert [finding.code for finding in SUBJECT.compare(Situation(facts, PROFILE))] == ["GPU001"]
    assert proposed(facts) == Proposal()
    assert SUBJECT.describe(facts) == (("driver", f"unknown ({reason.reason})"),)


def test_every_reading_may_be_missing() -> None:
    bare = whole_facts(GpuFacts("580.1", devices=(Device(0, uuid="GPU-1"),), device_count=1))
    findings = SUBJECT.compare(Situation(bare, PROFILE))
    assert {finding.outcome for finding in findings} == {Outcome.UNKNOWN}
    assert proposed(bare).changes == ()
    assert len(SUBJECT.describe(bare)) > 10


def test_findings_carry_the_profiles_reason_and_a_page() -> None:
    findings = SUBJECT.compare(Situation(whole_facts(shipped_facts()), PROFILE))
    assert {finding.reason for finding in findings if not finding.is_advice} == {"heat", "speed", "keeps them"}
    assert {finding.code for finding in findings} <= set(SUBJECT.explanations())


def test_every_code_has_a_page_that_says_all_four_things() -> None:
    constants = {**vars(judgement), **vars(boot_codes)}.values()
    codes = {value for value in constants if isinstance(value, str) and re.fullmatch(r"GPU\d{3}", value)}
    assert set(EXPLANATIONS) == codes
    for code, page in EXPLANATIONS.items():
        assert page.code == code
        assert all(len(text) > 20 for text in (page.what, page.why, page.fix))
        assert page.sources


def test_an_operation_survives_a_plan_file() -> None:
    for change in proposed(whole_facts(shipped_facts())).changes:
        again = msgspec.json.decode(msgspec.json.encode(change.operation), type=Operation)
        assert again == change.operation


def test_state_is_read_afresh(tmp_path: Path) -> None:
    place = copy_board(tmp_path)
    change = proposed(observed(place)).changes[0]
    assert SUBJECT.state(change.operation, context_for(place)) is State.BEFORE
    SUBJECT.perform(change.operation, None, context_for(place))
    assert SUBJECT.state(change.operation, context_for(place)) is State.AFTER


NASTY = "$(touch /tmp/x)\n`id` 'quote\"\x1b[31m; rm -rf / #"


def test_the_script_is_valid_shell_and_quotes_everything(tmp_path: Path) -> None:
    change = Change(
        id="x",
        subject="gpu",
        codes=(),
        target="GPU 0",
        title=NASTY,
        before=NASTY,
        after="b",
        reason=NASTY,
        risks=(),
        depends_on={},
        operation=None,
        command=("printf", "%s", NASTY),
    )
    script = tmp_path / "gpu-commands.sh"
    script.write_bytes(render_script([change], []))
    subprocess.run(["sh", "-n", str(script)], check=True)
    done = subprocess.run(["sh", str(script)], check=True, capture_output=True, text=True)
    assert done.stdout == NASTY
    comments = [line for line in script.read_text().split("\n") if line.startswith("#")]
    assert not any("\x1b" in line for line in comments)


def test_the_script_lists_what_is_withheld_as_comments_only() -> None:
    mig = alter(shipped_facts(), devices=(alter(shipped_device(), mig_current=True),))
    proposal = proposed(whole_facts(mig))
    assert proposal.changes == ()
    (artifact,) = proposal.artifacts
    lines = [line for line in artifact.content.decode().splitlines() if line and not line.startswith("#")]
    assert lines == ["set -eu"]
    assert f"# nvidia-smi -i {shipped_device().uuid} -pl 250" in artifact.content.decode()
    (withheld,) = proposal.withheld
    expected = [f"nvidia-smi -i {shipped_device().uuid} {rest}" for rest in ("-pm 1", "-pl 250", "-ac 1215,1410")]
    assert list(withheld.commands) == expected


@pytest.mark.parametrize(
    ("setting", "value", "argv", "shown"),
    [
        (Setting.PERSISTENCE_MODE, "0", ("-pm", "0"), "off"),
        (Setting.COMPUTE_MODE, "EXCLUSIVE_PROCESS", ("-c", "EXCLUSIVE_PROCESS"), "exclusive process"),
        (Setting.MODULE_POWER_LIMIT, "900", ("-pl", "900", "-sc", "1"), "900 W"),
        (Setting.POWER_LIMIT, "250.5", ("-pl", "250.5"), "250.5 W"),
        (Setting.APPLICATION_CLOCKS, "1215,1410", ("-ac", "1215,1410"), "1215 MHz memory, 1410 MHz graphics"),
        (Setting.LOCKED_GPU_CLOCKS, "210,1305", ("-lgc", "210,1305"), "210 to 1305 MHz"),
        (Setting.LOCKED_GPU_CLOCKS, "", ("-rgc",), "not locked"),
        (Setting.LOCKED_MEMORY_CLOCKS, "405,405", ("-lmc", "405,405"), "405 MHz"),
        (Setting.LOCKED_MEMORY_CLOCKS, "", ("-rmc",), "not locked"),
    ],
)
def test_argument_lists(setting: Setting, value: str, argv: tuple[str, ...], shown: str) -> None:
    assert command(setting, "GPU-1", value) == ("nvidia-smi", "-i", "GPU-1", *argv)
    assert show_value(setting, value) == shown
    assert make_operation(setting, "GPU-1", 0, value, value).undo_argv[3:] == argv


def test_observation_on_a_plan_imports_nothing_heavy() -> None:
    code = (
        "import sys; from remediate.gpu.subject import GpuSubject; "
        "print([m for m in ('pynvml', 'jinja2', 'libcst', 'remediate.gpu.board') if m in sys.modules])"
    )
    import sys

    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
