"""States of real boards and what is to be concluded from them: tests/cases/gpu/known_states.json, one case a state.

Each case starts from a shipped board, puts the readings of its source into it, and says which findings, commands and
answers of nvidia-smi are expected, and which codes must not be there.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gpu.support import shipped_facts

from remediate.effects import Completed
from remediate.gpu.commands import Setting
from remediate.gpu.compare import compare
from remediate.gpu.facts import GpuFacts
from remediate.gpu.propose import propose
from remediate.gpu.reply import read_reply
from remediate.profile.schema import GpuWish, Profile

CASES: list[dict[str, Any]] = msgspec.json.decode(
    (Path(__file__).parents[1] / "cases" / "gpu" / "known_states.json").read_bytes()
)
IDS = [case["id"] for case in CASES]


def facts_of(case: dict[str, Any]) -> GpuFacts:
    """The board with the case's readings; decoded strictly, as a facts document is."""
    document = msgspec.to_builtins(shipped_facts(case["board"]))
    document.update(case.get("facts", {}))
    (device,) = document["devices"]
    for path, value in case.get("readings", {}).items():
        place = device
        *outer, name = path.split(".")
        for key in outer:
            place = place[key]
        assert name in place, path
        place[name] = value
    if "sample" in case:
        device["sample"] = case["sample"]
    return msgspec.convert(document, GpuFacts)


def profile_of(case: dict[str, Any]) -> Profile:
    return Profile(schema_version=1, name="case", gpu=msgspec.convert(case.get("wish", {}), GpuWish))


def test_every_case_is_told_apart_and_says_where_it_comes_from() -> None:
    assert len(set(IDS)) == len(IDS) >= 40
    assert all(case["source"] and case["conclusion"] and case["certainty"] for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_conclusion_is_reached(case: dict[str, Any]) -> None:
    found = compare(facts_of(case), profile_of(case), True)
    for code, outcome, is_advice, words in case.get("findings", []):
        fitting = [
            item
            for item in found
            if (item.code, str(item.outcome), item.is_advice) == (code, outcome, is_advice) and words in item.summary
        ]
        assert len(fitting) == 1, f"{code} {outcome} `{words}` in {[(f.code, f.outcome, f.summary) for f in found]}"
    assert not {item.code for item in found} & set(case.get("absent", []))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_commands_are_those_and_name_their_gpu(case: dict[str, Any]) -> None:
    facts = facts_of(case)
    changes = propose(facts, profile_of(case), True).changes
    assert all(change.command[:3] == ("nvidia-smi", "-i", facts.devices[0].uuid) for change in changes)
    if "commands" in case:
        assert [shlex.join(change.command[3:]) for change in changes] == case["commands"]


REPLIES = [(case["id"], reply) for case in CASES for reply in case.get("replies", [])]


@pytest.mark.parametrize("reply", [reply for _, reply in REPLIES], ids=[name for name, _ in REPLIES])
def test_nvidia_smis_answer_is_read_for_what_it_is(reply: dict[str, Any]) -> None:
    done = Completed(("nvidia-smi",), reply["exit_code"], reply["stdout"], "")
    assert read_reply(Setting(reply["setting"]), reply["value"], done).answer.value == reply["answer"]
