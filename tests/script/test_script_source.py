"""Text positions in bytes: encodings, byte order marks, line endings."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediate.script.source import Edit, SourceError, decode

ENCODINGS = ["utf-8", "latin-1", "shift_jis", "euc-jp", "gb18030", "cp1252", "koi8-r"]


def cookie(encoding: str, newline: str = "\n") -> str:
    return f"# -*- coding: {encoding} -*-{newline}"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_byte_order_mark_is_kept_and_not_counted(newline: str) -> None:
    raw = b"\xef\xbb\xbf" + f"x = 'é'{newline}y = 2{newline}".encode()
    source = decode(raw)
    start = source.offset(2, 0)
    assert source.splice([Edit(start, start + 1, "z")]) == raw.replace(b"y = 2", b"z = 2")
    assert source.newline == newline


def test_columns_are_counted_in_utf8_whatever_the_file_is_written_in() -> None:
    raw = (cookie("shift_jis") + "表 = '能力'; after = 1\n").encode("shift_jis")
    source = decode(raw)
    target = ast.parse(source.text).body[1]
    assert isinstance(target, ast.Assign)
    start = source.offset(target.lineno, target.col_offset)
    assert source.text[start : start + 5] == "after"
    assert source.splice([Edit(start, start + 5, "later")]) == raw.replace(b"after", b"later")


def test_a_stateful_encoding_keeps_its_bytes_or_is_refused() -> None:
    raw = (cookie("iso2022_jp") + "x = '日本'\ny = 1\n").encode("iso2022_jp")
    source = decode(raw)
    start = source.offset(3, 0)
    assert source.splice([Edit(start, start, "z = 0\n")]) == raw.replace(b"y = 1", b"z = 0\ny = 1")


@pytest.mark.parametrize(
    ("raw", "problem", "line"),
    [
        (b"x = 1\n\0\n", "NUL", 2),
        (b"x = 1\ny = '\xff'\n", "not utf-8", 2),
        (b"# coding: klingon\nx = 1\n", "unknown encoding", 1),
        (b"\xef\xbb\xbf# coding: latin-1\n", "encoding problem", 1),
    ],
)
def test_what_is_not_text_says_why_and_where(raw: bytes, problem: str, line: int) -> None:
    with pytest.raises(SourceError) as caught:
        decode(raw)
    assert problem in caught.value.problem
    assert caught.value.line == line


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(SourceError, match="overlap"):
        decode(b"abcdef\n").splice([Edit(0, 4, "x"), Edit(2, 5, "y")])


def test_a_character_the_encoding_lacks_is_refused() -> None:
    with pytest.raises(SourceError, match="lacks a character"):
        decode(cookie("latin-1").encode()).splice([Edit(0, 0, "表")])


@pytest.mark.property
@given(
    st.sampled_from(ENCODINGS),
    st.lists(st.text(alphabet="ab é表яß\t\x0c\x85\u2028", max_size=12), min_size=1, max_size=6),
    st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=6, max_size=6),
    st.booleans(),
    st.data(),
)
def test_a_splice_changes_its_own_place_only(
    encoding: str, lines: list[str], newlines: list[str], ends: bool, data: st.DataObject
) -> None:
    body = "".join(line + newline for line, newline in zip(lines, newlines, strict=False))
    text = cookie(encoding) + (body if ends else body.rstrip("\r\n"))
    raw = text.encode(encoding, "ignore")
    source = decode(raw)
    start = data.draw(st.integers(0, len(source.text)))
    end = data.draw(st.integers(start, len(source.text)))
    result = source.splice([Edit(start, end, "new")])
    head, tail = source.text[:start], source.text[end:]
    if not (head.endswith("\r") and tail.startswith("\n")):
        assert result.decode(encoding) == head + "new" + tail
    prefix = len(head.encode(encoding))
    assert result.startswith(raw[:prefix])
    assert result.endswith(tail.encode(encoding))


@pytest.mark.property
@given(st.text(alphabet="a= é表\n\r\t'", max_size=60))
def test_offsets_agree_with_the_parser(text: str) -> None:
    raw = text.encode()
    try:
        source = decode(raw)
        tree = ast.parse(source.text)
    except (SyntaxError, SourceError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            start = source.offset(node.lineno, node.col_offset)
            assert source.text[start : start + len(node.id)] == node.id or not node.id.isascii()
