from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from fakes import FolderSubject

from remediate.documents import decode_facts, decode_plan, encode, encode_plan, read_document
from remediate.errors import DocumentError
from remediate.model import Facts, Plan, Reading, Request, Unknown, UnknownKind
from remediate.observation import observe
from remediate.planner import make_plan
from remediate.profile.load import load_profile


@pytest.fixture
def facts(folder: Path, subject: FolderSubject) -> Facts:
    return observe(Request(str(folder)))


@pytest.fixture
def plan(facts: Facts) -> Plan:
    return make_plan(facts, load_profile("base"))


def test_facts_round_trip_and_give_the_same_plan(facts: Facts, plan: Plan) -> None:
    again = decode_facts(encode(facts), "f.json")
    assert again == facts
    assert encode_plan(make_plan(again, load_profile("base"))) == encode_plan(plan)


def test_a_plan_round_trips(plan: Plan) -> None:
    assert decode_plan(encode_plan(plan), "p.json") == plan


@pytest.mark.parametrize(
    ("old", "new"), [('"before": "old b"', '"before": "old c"'), ('"a"', '"c"'), ('"content": "', '"content": "aaaa')]
)
def test_an_edited_plan_is_refused(plan: Plan, old: str, new: str) -> None:
    text = encode_plan(plan).decode()
    assert old in text
    with pytest.raises(DocumentError, match="edited after it was made"):
        decode_plan(text.replace(old, new, 1).encode(), "p.json")


def test_the_layout_of_the_json_does_not_count(plan: Plan) -> None:
    assert decode_plan(json.dumps(json.loads(encode_plan(plan))).encode(), "p.json") == plan


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"\x80\x81", "is not JSON"),
        (b"[]", "is not a facts document"),
        (b"{}", "has schema version None"),
        (b'{"schema_version": 99}', "has schema version 99"),
        (b'{"schema_version": 1}', "is not a valid document"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_facts_document(subject: FolderSubject, content: bytes, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        decode_facts(content, "f.json")


def test_facts_of_an_unknown_subject(facts: Facts) -> None:
    strange = msgspec.structs.replace(facts, sections={"weather": {}})
    with pytest.raises(DocumentError, match="`weather`"):
        decode_facts(encode(strange), "f.json")


def test_a_missing_document(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="can't be read"):
        read_document(tmp_path / "absent.json")


def test_unknown_keeps_kind_and_reason() -> None:
    class Readings(msgspec.Struct):
        value: Reading[int]

    unknown = Readings(Unknown(UnknownKind.NO_PERMISSION, "as user"))
    content = msgspec.json.encode(unknown)
    assert json.loads(content) == {"value": {"unknown": "no permission", "reason": "as user"}}
    assert msgspec.json.decode(content, type=Readings) == unknown


def test_findings_may_be_ignored_with_their_changes(facts: Facts) -> None:
    from remediate.subject import Settings

    plan = make_plan(facts, load_profile("base"), Settings(ignore={"FIL001": "known"}))
    assert plan.findings == ()
    assert plan.changes == ()
