"""Requirements files: parsing, rendering, and that nothing else in them moves."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remediate.packages.render import Wanted, add_pins, render_pins
from remediate.packages.requirements import LineKind, RequirementsError, parse

WANTED = {
    "torch": Wanted("2.1.2", "the report's pin"),
    "transformers": Wanted("4.36.2"),
    "numpy": Wanted("1.26.4", "below 2"),
    "huggingface-hub": Wanted("0.36.2"),
}
LINUX = {"python_version": "3.11", "python_full_version": "3.11.7", "sys_platform": "linux", "platform_system": "Linux"}


def render(content: bytes, *, is_constraints: bool = False) -> bytes:
    return render_pins(parse(content, "r.txt"), WANTED, environment=LINUX, is_constraints=is_constraints).content


@dataclass(frozen=True)
class Case:
    name: str
    before: str
    after: str


CASES = (
    Case("reason becomes the comment", "torch==2.2.0\n", "torch==2.1.2  # the report's pin\n"),
    Case("a comment stays", "torch==2.2.0   # mine\n", "torch==2.1.2   # mine\n"),
    Case(
        "name and extras stay as written", "Torch[opt_einsum] >= 2\n", "Torch[opt_einsum]==2.1.2  # the report's pin\n"
    ),
    Case("names compare by PEP 503", "HuggingFace_Hub\n", "HuggingFace_Hub==0.36.2\n"),
    Case("a marker stays", 'numpy>=1; python_version>"3.8"\n', 'numpy==1.26.4 ; python_version>"3.8"  # below 2\n'),
    Case("a marker for others", 'numpy>=2; sys_platform=="win32"\n', 'numpy>=2; sys_platform=="win32"\n'),
    Case("old style parentheses", "transformers (>=4.30,<5)\n", "transformers==4.36.2\n"),
    Case("continuation", "numpy \\\n  >=1.20 \\\n  ,<3\n", "numpy==1.26.4  # below 2\n"),
    Case("options stay", 'transformers>=4 --config-settings="a=b"\n', 'transformers==4.36.2 --config-settings="a=b"\n'),
    Case("indentation stays", "  transformers\n", "  transformers==4.36.2\n"),
    Case("Windows line ends", "a\r\ntransformers\r\nb\r\n", "a\r\ntransformers==4.36.2\r\nb\r\n"),
    Case("no last line end", "transformers", "transformers==4.36.2"),
    Case("pinned already", "torch==2.1.2\n", "torch==2.1.2\n"),
    Case("pinned in another form", "numpy === 1.26.4 # x\n", "numpy === 1.26.4 # x\n"),
    Case("equal versions", "torch==2.1.2.0\n", "torch==2.1.2.0\n"),
    Case("a range is no pin", "torch==2.1.*\n", "torch==2.1.2  # the report's pin\n"),
    Case("two clauses are no pin", "torch==2.1.2,>2\n", "torch==2.1.2  # the report's pin\n"),
    Case("local part without a source", "torch==2.1.2+cu121\n", "torch==2.1.2  # the report's pin\n"),
    Case(
        "local part with a source",
        "--extra-index-url https://example.org/whl\ntorch==2.1.2+cu121\n",
        "--extra-index-url https://example.org/whl\ntorch==2.1.2+cu121\n",
    ),
    Case("a direct URL stays", "torch @ https://example.org/t.whl\n", "torch @ https://example.org/t.whl\n"),
    Case("hashes stay", "torch==2.2.0 \\\n  --hash=sha256:00\n", "torch==2.2.0 \\\n  --hash=sha256:00\n"),
    Case("an egg name stays", "-e git+https://h/x#egg=torch\n", "-e git+https://h/x#egg=torch\n"),
    Case("others stay", "# c\n\nflask>2 # f\n./pkg\n-c c.txt\n", "# c\n\nflask>2 # f\n./pkg\n-c c.txt\n"),
    Case("names that begin alike", "torchvision==0.17\ntorch-geometric\n", "torchvision==0.17\ntorch-geometric\n"),
    Case("a line separator as line end", "torch==2.2.0 # a\u2028flask\n", "torch==2.1.2 # a\u2028flask\n"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_render(case: Case) -> None:
    rendered = render(case.before.encode())
    assert rendered.decode() == case.after
    assert render(rendered) == rendered


@pytest.mark.parametrize(
    ("before", "because"),
    [
        (b"torch==2.2.0 --hash=sha256:00\n", "hashes"),
        (b"torch @ https://example.org/t.whl\n", "file, folder or repository"),
        (b"-e git+https://h/x#egg=torch\n", "file, folder or repository"),
        (b"https://h/x.zip#egg=torch\n", "file, folder or repository"),
    ],
)
def test_obstacles_are_said(before: bytes, because: str) -> None:
    (obstacle,) = render_pins(parse(before, "r.txt"), WANTED).obstacles
    assert because in obstacle.because
    assert (obstacle.name, obstacle.line) == ("torch", 1)


def test_constraints_that_allow_the_pin_stay() -> None:
    assert render(b"numpy<2\ntorch>=2.2\n", is_constraints=True) == b"numpy<2\ntorch==2.1.2  # the report's pin\n"


def test_missing_pins_come_last_under_a_comment() -> None:
    added = add_pins(parse(b"flask", "r.txt"), WANTED, {"torch", "numpy"}, "incident")
    header = b"# added by remediate: profile incident\n"
    assert added.content == b"flask\n" + header + b"numpy==1.26.4  # below 2\ntorch==2.1.2  # the report's pin\n"
    again = add_pins(parse(added.content, "r.txt"), WANTED, {"transformers"}, "incident")
    assert again.content == added.content + b"transformers==4.36.2\n"


@pytest.mark.parametrize(
    ("reason", "comment"),
    [
        ("needs it, and more; because of this: that. And so on", "needs it, and more"),
        ("4.38.0 made it slow (transformers#29206)", "4.38.0 made it slow (transformers#29206)"),
        ("two\nlines", "two lines"),
    ],
)
def test_the_comment_is_the_reasons_first_clause(reason: str, comment: str) -> None:
    rendered = render_pins(parse(b"torch==2.2.0\n", "r.txt"), {"torch": Wanted("2.1.2", reason)})
    assert rendered.content == f"torch==2.1.2  # {comment}\n".encode()


def test_appended_lines_end_as_the_others() -> None:
    added = add_pins(parse(b"flask\r\nx\r\ny\n", "r.txt"), WANTED, {"transformers"}, "p")
    assert added.content.endswith(b"# added by remediate: profile p\r\ntransformers==4.36.2\r\n")


def test_nothing_is_added_to_a_file_with_hashes() -> None:
    content = b"flask==1 --hash=sha256:00\n"
    added = add_pins(parse(content, "r.txt"), WANTED, {"torch"}, "p")
    assert (added.content, added.obstacles[0].name) == (content, "torch")


@pytest.mark.parametrize(
    ("mark", "encoding"), [(codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (b"", "utf-8")]
)
def test_encodings(mark: bytes, encoding: str) -> None:
    content = mark + "# Größe\r\ntransformers\r\n".encode(encoding)
    assert render(content) == mark + "# Größe\r\ntransformers==4.36.2\r\n".encode(encoding)


def test_stated_encoding() -> None:
    content = "# -*- coding: latin-1 -*-\n# Größe\ntransformers\n".encode("latin-1")
    assert render(content) == "# -*- coding: latin-1 -*-\n# Größe\ntransformers==4.36.2\n".encode("latin-1")


@pytest.mark.parametrize(
    ("content", "line", "cause"),
    [
        (b"flask\ntorch 2.1.2\n", 2, "torch 2.1.2"),
        (b"\n\ntorch=2.1.2\n", 3, "torch=2.1.2"),
        (b"a\ntorch>=two\n", 2, "torch>=two"),
        (b"a\n\xff\xfe\n", 2, "0xff"),
        (b"a\0b\n", 1, "zero byte"),
        (b"# coding: klingon\n", 1, "klingon"),
        (b"<html>\n", 1, "begins with no name"),
    ],
)
def test_errors_name_file_and_line(content: bytes, line: int, cause: str) -> None:
    with pytest.raises(RequirementsError) as caught:
        parse(content, "r.txt")
    assert f"`r.txt` line {line} " in caught.value.what
    assert cause in caught.value.cause
    assert caught.value.exit_code == 2


def test_includes() -> None:
    document = parse(b"-r a.txt\n-cb.txt\n--requirement=c.txt\n--constraint d.txt\n", "r.txt")
    assert list(document.includes()) == [("a.txt", False), ("b.txt", True), ("c.txt", False), ("d.txt", True)]


NAMES = st.sampled_from(["torch", "Torch", "numpy", "NumPy[extra]", "flask", "torch-geometric", "huggingface.hub", "a"])
SPECIFIERS = st.sampled_from(["", "==2.1.2", ">=1,<3", " ~= 1.2", "==2.1.*", "===1.26.4", " (>=1)", "==2.1.2+cu121"])
TAILS = st.sampled_from(
    ["", " # why", "  #", ' ; python_version > "3.8"', ';sys_platform=="win32"', " --hash=sha256:00"]
)
OTHERS = st.sampled_from(
    ["", "   ", "# comment \\", "-r x.txt", "--index-url https://u:p@h/s", "./local", "git+https://h/r@v1#egg=a", "\\"]
)
ENDINGS = st.sampled_from(["\n", "\r\n", "\r", "\\\n", " \\\r\n", "\x0c", "\u2028", "\x85"])
LINES = st.one_of(st.tuples(NAMES, SPECIFIERS, TAILS).map("".join), OTHERS)
FILES = st.builds(
    lambda lines, last: "".join(a + b for a, b in lines) + last,
    st.lists(st.tuples(LINES, ENDINGS), max_size=8),
    st.one_of(st.just(""), LINES),
)


def parsed_or_none(content: bytes) -> object:
    try:
        return parse(content, "r.txt")
    except RequirementsError:
        return None


@pytest.mark.property
@given(FILES)
def test_the_lines_are_the_file(text: str) -> None:
    if parsed_or_none(text.encode()):
        document = parse(text.encode(), "r.txt")
        assert "".join(line.raw for line in document.lines) == text


@pytest.mark.property
@given(FILES)
def test_rendering_twice_is_rendering_once(text: str) -> None:
    if parsed_or_none(text.encode()):
        once = render(text.encode())
        assert render(once) == once


@pytest.mark.property
@example("torch \\\r\n# comment \\\\\nflask")
@given(FILES)
def test_other_lines_keep_every_byte(text: str) -> None:
    if parsed_or_none(text.encode()):
        before, after = parse(text.encode(), "r.txt"), parse(render(text.encode()), "r.txt")
        assert [line.raw for line in before.lines if line.name not in WANTED] == [
            line.raw for line in after.lines if line.name not in WANTED
        ]
        assert [line.name for line in before.lines] == [line.name for line in after.lines]


@pytest.mark.property
@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(content: bytes) -> None:
    document = parsed_or_none(content)
    if document is not None:
        assert render_pins(parse(content, "r.txt"), {}).content == content


def test_kinds() -> None:
    kinds = [line.kind for line in parse(b"# c\n-r x\nflask\n./p\nhttps://h/a.whl\n${A}/b\n", "r.txt").lines]
    opaque = LineKind.OPAQUE
    assert kinds == [LineKind.EMPTY, LineKind.OPTION, LineKind.REQUIREMENT, opaque, opaque, opaque]
