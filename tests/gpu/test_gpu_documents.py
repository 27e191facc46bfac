"""Documents that somebody edited: one clear error, or facts that all that follows copes with; never a traceback."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gpu.support import BOARDS, NAMES, context_for, whole_facts
from hypothesis import given, settings
from hypothesis import strategies as st

from remediate.errors import RemediateError
from remediate.gpu.board import Board
from remediate.gpu.subject import GpuSubject
from remediate.model import Request
from remediate.profile.schema import GpuWish, Profile
from remediate.subject import Ledger, Settings, Situation

SUBJECT = GpuSubject()
UNKNOWN_JSON = {"unknown": "failed", "reason": "r"}
VALUES = st.sampled_from(
    [None, True, -1, 0, 1, 2**63, 1e308, -0.5, "", "x", "0", "1,2", "GPU-1", "\x1b[31m", [], [1], {}, UNKNOWN_JSON]
)
WISHES = [
    GpuWish(power_limit_w=250, sm_clock="max", memory_clock="max", persistence_mode=True),
    GpuWish(power_limit_fraction=0.5, sm_clock_mhz=900, memory_clock_mhz=5000),
    GpuWish(power_limit="default", sm_clock="default"),
]


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON document."""
    children = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


def put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The document with another value at one place."""
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = put(copy[path[0]], path[1:], value)
    return copy


DOCUMENTS = {name: msgspec.json.decode((BOARDS / f"{name}.json").read_bytes()) for name in NAMES}
PLACES = [(name, path) for name in NAMES for path in places(DOCUMENTS[name]) if path]


def go_through(place: str, wish: GpuWish) -> None:
    """Everything that the commands do with a board."""
    request = Request(folder="/sandbox", board=place)
    section: Any = SUBJECT.observe(request, Settings(), Ledger()).facts
    facts = whole_facts(section, board=place)
    profile = Profile(schema_version=1, name="p", gpu=wish)
    situation = Situation(facts, profile)
    SUBJECT.describe(facts)
    SUBJECT.announce(facts, profile)
    SUBJECT.compare(situation)
    for change in SUBJECT.propose(situation, ()).changes:
        SUBJECT.perform(change.operation, SUBJECT.prepare(change.operation, context_for(place)), context_for(place))
    board = Board.load(place)
    board.advance(60, 0.9)
    board.advance(10, 0)
    board.latency_ms(1) if board.facts.devices else None
    board.reboot()
    board.save()


@pytest.mark.property
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PLACES), VALUES, st.sampled_from(WISHES))
def test_one_wrong_value_anywhere(where: tuple[str, tuple[Any, ...]], value: Any, wish: GpuWish) -> None:
    name, path = where
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "board.json"
        place.write_bytes(msgspec.json.encode(put(DOCUMENTS[name], path, value)))
        with contextlib.suppress(RemediateError):
            go_through(str(place), wish)


@pytest.mark.parametrize("text", ["x", "", "1,2,3", "-1,5"])
def test_a_ledger_that_somebody_edited_is_no_knowledge(text: str) -> None:
    request = Request(folder="/sandbox", board="l4")
    uuid = DOCUMENTS["l4"]["gpu"]["devices"][0]["uuid"]
    section: Any = SUBJECT.observe(request, Settings(), Ledger({f"{uuid}/locked_gpu_clocks": text})).facts
    assert not isinstance(section.devices[0].locked_gpu_clocks, str)
