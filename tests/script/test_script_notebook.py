"""Notebooks: the cells read as one script, and edits that change the cells' strings and no other byte."""

from __future__ import annotations

import ast
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from script.notebooks import ASK, DEAD_COMPILE, IMPORTS, LOAD, code, markdown, notebook
from script.samples import INCIDENT_WISH, OLD

from remediate.script.notebook.difference import diff_notebooks
from remediate.script.notebook.magics import mask
from remediate.script.notebook.source import decode_notebook
from remediate.script.patch import patch
from remediate.script.reading.layout import read_layout
from remediate.script.rules.base import Wanted
from remediate.script.source import Edit, SourceError

CASES = Path(__file__).parents[1] / "cases"
WANTED = Wanted(INCIDENT_WISH, OLD)


def sources(raw: bytes) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(raw)["cells"]]


@pytest.mark.parametrize(
    ("source", "masked"),
    [
        ("x = 1", "x = 1"),
        ("!pip install 'a", "0              "),
        ("%matplotlib inline\ny = 2", "0                 \ny = 2"),
        ("files = !ls\nz = 1", "files = 0  \nz = 1"),
        ("%time out = f()", "0;    out = f()"),
        ("%%time\nf()", "      \nf()"),
        ("%%capture out --no-stderr\nf()", "                         \nf()"),
        ("model?", "0     "),
        ("?model", "0     "),
        ("!curl x \\\n  -o y\nz = 1", "0        \n      \nz = 1"),
        ("pip install 'x>2' \\\n  y\nz = 1", "0" + " " * 18 + "\n   \nz = 1"),
        ("pip = 3\npip (4)", "pip = 3\npip (4)"),
        ("x = (a\n  % b)", "x = (a\n  % b)"),
        ('t = """\n!not a command\n"""', 't = """\n!not a command\n"""'),
        ("q = 'is it?'  # really?", "q = 'is it?'  # really?"),
        ("if a:\n    !ls\nb = 1", "if a:\n    0  \nb = 1"),
    ],
)
def test_magics_are_masked_in_place(source: str, masked: str) -> None:
    assert mask(source) == masked
    ast.parse(masked)


@pytest.mark.parametrize("source", ["%%bash\nls '", "\n%%writefile a.py\nx = 1", "%%html\n<b>"])
def test_a_cell_in_another_language_is_no_python(source: str) -> None:
    assert mask(source) is None


@given(st.text(alphabet="ab =%!?\n\\'\"#([{}]);", max_size=60))
@pytest.mark.property
def test_masking_keeps_length_and_lines(source: str) -> None:
    masked = mask(source)
    if masked is not None:
        assert len(masked) == len(source)
        assert [i for i, c in enumerate(masked) if c == "\n"] == [i for i, c in enumerate(source) if c == "\n"]


@given(st.text(alphabet="ab =%!?\n'#()", max_size=40))
@pytest.mark.property
def test_what_is_python_already_is_not_masked(source: str) -> None:
    try:
        ast.parse(source)
    except SyntaxError:
        return
    assert mask(source) == source


def test_findings_name_the_cell() -> None:
    raw = notebook(markdown("# T"), code("!pip install transformers\n" + IMPORTS), code(LOAD), code(ASK))
    file, module = read_layout("a.ipynb", raw)
    assert module is not None
    (load,) = file.loads
    assert file.place(load.line) == "cell 3:2"
    line = raw.decode().splitlines()[file.file_line(load.line) - 1]
    assert "AutoModelForCausalLM.from_pretrained" in line


@pytest.mark.parametrize("as_list", [True, False])
@pytest.mark.parametrize("indent", [None, 1, 4])
def test_a_patch_changes_the_cells_lines_alone(as_list: bool, indent: int | None) -> None:
    cells = [code(text, as_list=as_list) for text in (IMPORTS, LOAD, DEAD_COMPILE, ASK)]
    content = json.loads(notebook(*cells, extra={"b": [1.50, 1e3], "a": "\u00e9"}))
    raw = json.dumps(content, indent=indent, ensure_ascii=False).encode()
    made = patch("a.ipynb", raw, WANTED)
    assert [code for code, _ in made.fixes] == ["SCR002", "SCR009"]
    expected = [dict(cell) for cell in content["cells"]]
    got = json.loads(made.content)
    assert sources(made.content) == [
        IMPORTS
        + "\n\nif torch.cuda.is_available():\n    torch.cuda.init()  # at start instead of with the first use\n\n",
        LOAD,
        "",
        ASK,
    ]
    for cell, before in zip(got["cells"], expected, strict=True):
        assert {**cell, "source": ""} == {**before, "source": ""}
        assert isinstance(cell["source"], list) is as_list
    assert outside(made.content) == outside(raw)
    assert patch("a.ipynb", made.content, WANTED).content == made.content


def outside(raw: bytes) -> bytes:
    """The document's bytes without the values of `source`."""
    text = raw.decode()
    decoder = json.JSONDecoder()
    pieces, at = [], 0
    while (found := text.find('"source":', at)) >= 0:
        begin = found + len('"source":')
        while text[begin] in " \n":
            begin += 1
        pieces.append(text[at:begin])
        _, at = decoder.raw_decode(text, begin)
    return "".join([*pieces, text[at:]]).encode()


def test_the_last_line_of_a_list_leaves_no_empty_string() -> None:
    raw = notebook(code(IMPORTS), code(f"{LOAD}\n{DEAD_COMPILE}"), code(ASK))
    made = patch("a.ipynb", raw, WANTED, frozenset(("SCR009",)))
    assert sources(made.content)[1] == LOAD
    assert "" not in json.loads(made.content)["cells"][1]["source"]


def test_escapes_stay_escapes() -> None:
    raw = notebook(code(IMPORTS + "  # é"), code(LOAD), code(DEAD_COMPILE), code(ASK))
    escaped = json.dumps(json.loads(raw), ensure_ascii=True, indent=2).encode()
    made = patch("a.ipynb", escaped, WANTED)
    assert made.fixes
    assert made.content.isascii()
    assert b"# \\u00e9" in made.content


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"{", "it is not JSON"),
        (b"[]", "no `nbformat`"),
        (b'{"nbformat": 3, "worksheets": []}', "nbformat 3 are not supported"),
        (b'{"nbformat": 4}', "no list of cells"),
        (b'{"nbformat": 4, "cells": [], "cells": []}', "a key stands twice"),
        (b"\xff", "not utf-8"),
        (b"[" * 100_000, "nested too deeply"),
        (notebook(code("x = 1"), code("y = (")), "line 1 of cell 2 does not parse"),
        (notebook(code("'''"), code("'''")), "line 1 of cell 1 does not parse"),
        (b'{"nbformat": 4, "cells": 1}', "no list"),
        (b'{"nbformat":4,"cells":[{"cell_type":"code","source":"x=\'\\ud800\'"}]}', "does not parse"),
    ],
)
def test_a_broken_notebook_is_a_problem(raw: bytes, problem: str) -> None:
    file, module = read_layout("a.ipynb", raw)
    assert module is None
    assert problem in file.problem


@pytest.mark.parametrize(
    "cells",
    [[None, 1, {}], [{"cell_type": "code"}], [{"cell_type": "code", "source": None}], [{"cell_type": ["code"]}]],
)
def test_odd_cells_hold_no_code(cells: list[Any]) -> None:
    raw = json.dumps({"nbformat": 4, "cells": cells, "metadata": []}).encode()
    assert decode_notebook(raw).text == ""


def test_another_language_is_left_alone() -> None:
    raw = notebook(code("x <- 1"), metadata={"kernelspec": {"language": "R"}})
    file, module = read_layout("a.ipynb", raw)
    assert (file.problem, file.loads) == ("", ())
    assert module is not None


def test_the_difference_shows_code_and_its_cell() -> None:
    before = notebook(code("a = 1\nb = 2"), code("c = 3"))
    after = notebook(code("a = 1\nb = 2"), code("c = 4"))
    assert diff_notebooks("n.ipynb", before, after) == (
        "--- a/n.ipynb cell 2\n+++ b/n.ipynb cell 2\n@@ -1 +1 @@\n-c = 3\n+c = 4\n"
    )


LINE = st.sampled_from(["a = 1", "b = 'é\\u2028'", "", "if a:\n    c = 2", "# x", "!ls", "%time d = 4"])


@st.composite
def notebooks_with_edit(draw: st.DrawFn) -> tuple[bytes, Edit]:
    """A notebook, and whole lines of its script that go, come, or are replaced."""
    cells = []
    for lines in draw(st.lists(st.lists(LINE, max_size=5), min_size=1, max_size=4)):
        text = "\n".join(lines) + draw(st.sampled_from(["", "\n"]))
        cells.append(code(text, as_list=draw(st.booleans())))
    raw = notebook(*cells)
    if draw(st.booleans()):
        raw = json.dumps(
            json.loads(raw), ensure_ascii=draw(st.booleans()), indent=draw(st.none() | st.just(2))
        ).encode()
    source = decode_notebook(raw)
    first = draw(st.integers(1, len(source.line_starts)))
    last = draw(st.integers(first, min(first + 2, len(source.line_starts) + 1)))
    text = draw(st.sampled_from(["", "new = 'ü\"'\n", "p = 1\nq = 2\n", "\nr = 1\n\n"]))
    return raw, Edit(source.line_start(first), source.line_start(last), text)


@settings(max_examples=300)
@given(notebooks_with_edit())
@example((notebook(code("a = 1"), code("")), Edit(0, 6, "\nr = 1\n\n")))
@pytest.mark.property
def test_an_edit_does_what_it_says_or_is_refused(case: tuple[bytes, Edit]) -> None:
    raw, edit = case
    source = decode_notebook(raw)
    try:
        changed = source.splice([edit])
    except SourceError:
        return
    assert outside(changed) == outside(raw)
    try:
        after = decode_notebook(changed).text
    except SourceError:
        return  # The lines that are left are no Python.
    expected = source.text[: edit.start] + edit.text + source.text[edit.end :]
    # An edit that would take a separator with it is caught by the patch's gate; nothing else may come out differently.
    if "pass\n" not in source.text[edit.start : edit.end]:
        assert after == expected


def statements(text: str) -> list[str]:
    """The texts of the top-level statements, each with what stands above it."""
    lines = text.splitlines(keepends=True)
    ends = [statement.end_lineno or 0 for statement in ast.parse(text).body]
    return ["".join(lines[begin:end]) for begin, end in itertools.pairwise([0, *ends])]


SCRIPTS = [
    "\n".join((IMPORTS, LOAD, DEAD_COMPILE, ASK)),
    "\n".join((IMPORTS, LOAD.replace(', device_map="cuda"', ""), ASK)),
    (CASES / "incident" / "before.py").read_text(),
    "\n".join((IMPORTS, "torch.cuda._lazy_init()", LOAD.replace(", torch_dtype=torch.bfloat16", ""), ASK)),
]


@st.composite
def split_scripts(draw: st.DrawFn) -> bytes:
    """A script cut into cells between its statements, in any of the layouts that a notebook may have."""
    parts = statements(draw(st.sampled_from(SCRIPTS)))
    cells, cell = [], ""
    for part in parts:
        cell += part
        if draw(st.booleans()):
            cells.append(cell if draw(st.booleans()) else cell.removesuffix("\n"))
            cells += draw(st.sampled_from([[], [""], ["!nvidia-smi"], ["# nothing\n"], ["%%bash\nls '"]]))
            cell = ""
    cells.append(cell)
    raw = notebook(*(code(text, as_list=draw(st.booleans())) for text in cells))
    layout: dict[str, Any] = {"indent": draw(st.sampled_from([None, 1, 4])), "ensure_ascii": draw(st.booleans())}
    return json.dumps(json.loads(raw), **layout).encode() + draw(st.sampled_from([b"", b"\n", b"\r\n"]))


@given(split_scripts())
@settings(max_examples=60, deadline=None)
@pytest.mark.property
def test_a_notebook_is_patched_as_its_code_would_be(raw: bytes) -> None:
    made = patch("a.ipynb", raw, WANTED)
    assert outside(made.content) == outside(raw)
    assert patch("a.ipynb", made.content, WANTED).content == made.content
    plain = patch("a.py", decode_notebook(raw).text.encode(), WANTED)
    assert [code for code, _ in made.fixes] == [code for code, _ in plain.fixes]
    assert decode_notebook(made.content).text == plain.content.decode()


@given(st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
@pytest.mark.property
def test_any_bytes_give_facts(raw: bytes) -> None:
    file, _ = read_layout("a.ipynb", raw)
    assert file.size == len(raw)
