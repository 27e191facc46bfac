"""Clock lists as compact text."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediate.gpu.clocktable import ClockTable, pack, unpack


@pytest.mark.parametrize(
    ("clocks", "text"),
    [
        (range(210, 1411, 15), "210..1410/15"),
        ([], ""),
        ([405], "405"),
        ([405, 810], "405, 810"),
        ([1380, 1372, 1365, 1357], "1357, 1365, 1372, 1380"),
        ([135, 142, 150, 157, 165, 180, 195], "135, 142, 150, 157, 165..195/15"),
        ([210, 225, 240, 300, 360, 420], "210..240/15, 300..420/60"),
        ([15, 15, 30], "15, 30"),
    ],
)
def test_packed_form(clocks: list[int], text: str) -> None:
    assert pack(clocks) == text


@pytest.mark.property
@given(st.sets(st.integers(1, 4000), max_size=300))
def test_unpacking_gives_the_clocks_back(clocks: set[int]) -> None:
    assert unpack(pack(clocks)) == tuple(sorted(clocks))


@pytest.mark.property
@given(st.text(max_size=40) | st.from_regex(r"[0-9./, ]{0,30}", fullmatch=True))
def test_any_text_is_read_or_refused_and_never_grows_without_bound(text: str) -> None:
    try:
        clocks = unpack(text)
    except ValueError:
        return
    assert unpack(pack(clocks)) == clocks


@pytest.mark.parametrize(
    "text",
    [
        "0..1000000000/1",
        "0",
        "0..15/15",
        "210..1410/0",
        "210..1410",
        "a",
        "300, 200",
        "1..3/1, 2",
        "1..2/-1, 0..5/x",
        "1" * 5000,
    ],
)
def test_malformed_text_is_refused_where_a_document_is_read(text: str) -> None:
    document = msgspec.json.encode({"memory_mhz": 1215, "graphics": text})
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(document, type=ClockTable)


def test_clocks_come_highest_first() -> None:
    assert ClockTable(1215, "210..240/15").graphics_mhz == (240, 225, 210)
