"""Properties of patching, over generated scripts and over files that are no inference scripts."""

from __future__ import annotations

import ast
import sysconfig
from difflib import SequenceMatcher
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from script.samples import INCIDENT_WISH, OLD, facts_of, run_patch

from remediate.script.patch import Patch, patch
from remediate.script.reading.layout import MAX_PLACES
from remediate.script.rules.base import Wanted

pytestmark = pytest.mark.property

WISH = msgspec.structs.replace(
    INCIDENT_WISH, guard="inference_mode", cache_clear="none", allocator="expandable_segments:True"
)
TORCH = {**OLD, "distribution:torch": "2.1.2"}
WANTED = {unsafe: Wanted(WISH, TORCH, unsafe) for unsafe in (False, True)}

HEADS = (
    "import torch\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n",
    "import gc, os\nimport torch as t\nfrom transformers import AutoModelForCausalLM as M, AutoTokenizer\n",
    "from transformers import *\nimport torch, os\n",
    '"""Dokumentation."""\nfrom __future__ import annotations\nimport transformers\nimport torch\n',
    "try:\n    import torch\nexcept ImportError:\n    torch = None\nfrom transformers import AutoModelForCausalLM\n",
)
LOADS = (
    'model = AutoModelForCausalLM.from_pretrained("m")',
    'model = M.from_pretrained("m", device_map="auto",  # spread\n    use_cache=True,\n).eval()',
    'model = transformers.AutoModelForCausalLM.from_pretrained(NAME).to("cuda")',
    'model = AutoModelForCausalLM.from_pretrained("m", load_in_4bit=True)',
    'model = AutoModelForCausalLM.from_pretrained("m", torch_dtype="auto", device_map="cuda").cuda()',
    "model = torch.load(PATH)",
    'tokenizer, model = load("m")',
)
STEPS = (
    "model = torch.compile(model)",
    "model.generate = torch.compile(model.generate)",
    "model.forward = torch.compile(model.forward)",
    'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "x:1"',
    'os.environ["PYTORCH_ALLOC_CONF"] = "x:1"',
    "torch.cuda.empty_cache()  # free",
    "gc.collect()",
    "if torch.cuda.is_available():\n    torch.cuda.empty_cache()",
    "with torch.no_grad():\n    output = model.generate(**inputs)",
    "with torch.no_grad(): output = model(inputs)",
    "output += 1",
    "torch.cuda._lazy_init()",
    "Thread(target=model.generate).start()",
    'inputs = tokenizer("表 é", return_tensors="pt")',
    "output = model.generate(**inputs)",
    'model.to("cuda")',
    "x = 1; y = 2",
)
FRAMES = ("", "def answer(prompt):", "for prompt in PROMPTS:", "while True:", "async def answer(prompt):", "class A:")


@st.composite
def scripts(draw: st.DrawFn) -> str:
    """A script that may load, run and set up a model, in one of some frames, indented by spaces or tabs."""
    body = [draw(st.sampled_from(LOADS)), *draw(st.lists(st.sampled_from(STEPS), max_size=6))]
    frame = draw(st.sampled_from(FRAMES))
    indent = "" if not frame else draw(st.sampled_from(["    ", "\t", "  "]))
    if frame == "class A:":
        frame += f"\n{indent}def __init__(self):"
        indent *= 2
    lines = [line for step in body for line in step.split("\n")]
    loader = 'def load(path):\n    return None, AutoModelForCausalLM.from_pretrained(path)\n\n\nNAME = "m"\n'
    text = draw(st.sampled_from(HEADS)) + loader + "\n".join([frame, *(indent + line for line in lines), ""])
    return text if draw(st.booleans()) else text.rstrip("\n")


def is_python(text: str) -> bool:
    try:
        compile(text, "script", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(scripts(), st.booleans())
def test_patching_comes_to_rest_and_touches_planned_lines_only(text: str, is_unsafe: bool) -> None:
    want = WANTED[is_unsafe]
    made = run_patch(text, want)  # asserts that a second run changes nothing
    after = made.content.decode()
    if not is_python(text):
        assert after == text
        return
    assert is_python(after)
    touched = {line for _, fix in made.fixes for line in range(fix.line, max(fix.line, fix.end_line) + 1)}
    before = text.splitlines(keepends=True)
    for tag, start, end, _, _ in SequenceMatcher(
        a=before, b=after.splitlines(keepends=True), autojunk=False
    ).get_opcodes():
        if tag in ("replace", "delete") and not made.fixes:
            pytest.fail("changed without a fix")
        for number in range(start, end) if tag in ("replace", "delete") else ():
            near = any(abs(number + 1 - line) <= 3 for line in touched)
            assert near or not before[number].strip() or "\n" not in before[number], (number + 1, touched)


@settings(max_examples=60, deadline=None)
@given(scripts(), st.sampled_from(["\r\n", "\r", "mixed"]), st.sampled_from(["utf-8", "utf-8-sig", "shift_jis"]))
def test_line_ends_and_encodings_survive(text: str, newline: str, encoding: str) -> None:
    text = text.replace("é", "ア")
    if encoding == "shift_jis":
        text = "# -*- coding: shift_jis -*-\n" + text
    lines = text.split("\n")
    ends = [("\r\n" if number % 2 else "\n") if newline == "mixed" else newline for number in range(len(lines))]
    raw = "".join(line + end for line, end in zip(lines, ends, strict=True)).encode(encoding)
    made = run_patch(raw, WANTED[True])
    assert made.content.startswith(b"\xef\xbb\xbf") == (encoding == "utf-8-sig")
    assert made.content.decode(encoding).count("ア") == text.count("ア")
    if newline == "\r\n":
        assert made.content.count(b"\n") == made.content.count(b"\r\n")
    if newline == "\r":
        assert b"\n" not in made.content
    same = run_patch(text.encode("utf-8" if encoding == "utf-8-sig" else encoding), WANTED[True])
    assert [code for code, _ in same.fixes] == [code for code, _ in made.fixes]


LIBRARY = sorted(Path(ast.__file__).parent.glob("**/*.py"))
INSTALLED = sorted(Path(sysconfig.get_path("purelib")).glob("*/**/*.py"))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(LIBRARY + INSTALLED))
def test_files_of_others_come_back_to_the_byte(path: Path) -> None:
    raw = path.read_bytes()
    made = patch(str(path), raw, WANTED[True])
    assert made.content == raw
    assert not made.fixes


HUGE = {
    "a million characters": "x = 1\n" * 170_000,
    "one long line": "x = '" + "a" * 1_000_000 + "'\n",
    "parentheses": "x = " + "(" * 20_000 + ")" * 20_000,
    "a sum": "x = " + "+".join(["1"] * 60_000),
    "attributes": "x = y" + ".a" * 60_000,
    "calls": "x = y" + ".to()" * 30_000,
    "blocks": "".join(" " * depth + "if x:\n" for depth in range(200)) + " " * 200 + "pass\n",
    "places": "import torch\n" + "with torch.no_grad(): model.generate()\n" * 5000,
    "clearings": "import gc\n" + "gc.collect()\n" * 15_000,
}


@pytest.mark.parametrize("name", HUGE)
def test_what_nobody_wrote_is_refused_with_a_reason_and_soon(name: str) -> None:
    raw = HUGE[name].encode()
    file = facts_of(raw)
    assert file.problem
    assert patch("/sandbox/infer.py", raw, WANTED[True]) == Patch(raw)


def test_many_places_are_said_to_be_too_many() -> None:
    assert str(MAX_PLACES) in facts_of(HUGE["clearings"]).problem
