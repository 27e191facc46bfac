"""Patching as a whole: the incident, the gates, layout and bytes, other people's files, and running the result."""

from __future__ import annotations

import ast
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from script.samples import GOOD, HEAD, INCIDENT_WISH, OLD, facts_of, patched, run_patch, script, wanted

from remediate.model import Outcome
from remediate.script import patch as patching
from remediate.script.patch import apply_edits, patch
from remediate.script.reading.layout import read_layout
from remediate.script.rules import RULES
from remediate.script.rules.base import Fix, Rule, Wanted
from remediate.script.source import Edit, decode

INCIDENT = Path(__file__).parents[1] / "cases" / "incident"
WANT = Wanted(INCIDENT_WISH, OLD)

PATCHED_BEFORE = """\
# inference script (simplified)
import torch
from transformers import LlamaForCausalLM, LlamaTokenizer

if torch.cuda.is_available():
    torch.cuda.init()  # at start instead of with the first use

model = LlamaForCausalLM.from_pretrained("meta-llama/7B", device_map="cuda", torch_dtype=torch.bfloat16)
tokenizer = LlamaTokenizer.from_pretrained("meta-llama/7B")

def query(prompt):
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    output = model.generate(**inputs, max_new_tokens=50)
    return tokenizer.decode(output[0])
"""
PATCHED_AFTER = """\
# inference script (stable version)
import torch
from transformers import LlamaForCausalLM, LlamaTokenizer

# Force early CUDA init
torch.cuda.init()

model = LlamaForCausalLM.from_pretrained("meta-llama/7B", device_map="auto", torch_dtype=torch.bfloat16)
tokenizer = LlamaTokenizer.from_pretrained("meta-llama/7B")

def query(prompt):
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    output = model.generate(**inputs, max_new_tokens=50)
    return tokenizer.decode(output[0])
"""


@pytest.mark.parametrize(("name", "expected"), [("before.py", PATCHED_BEFORE), ("after.py", PATCHED_AFTER)])
def test_the_incidents_scripts(name: str, expected: str, tmp_path: Path) -> None:
    made = run_patch((INCIDENT / name).read_bytes(), WANT)
    assert made.content.decode() == expected
    assert made.held == ()
    target = tmp_path / name
    target.write_bytes(made.content)
    py_compile.compile(str(target), cfile=str(tmp_path / "out.pyc"), doraise=True)
    found = [verdict for rule in RULES for verdict in rule.check(facts_of(made.content), WANT)]
    assert all(verdict.outcome is Outcome.SAME or verdict.is_advice for verdict in found)


def test_fixes_name_lines_of_the_original_file() -> None:
    made = run_patch((INCIDENT / "after.py").read_bytes(), WANT)
    assert {code: fix.line for code, fix in made.fixes} == {"SCR002": 12, "SCR006": 8, "SCR009": 6}
    text = "import os\n" * 5 + GOOD.replace(", torch_dtype=torch.bfloat16", "").replace(
        '"pt").to("cuda")', '"pt").cpu()'
    )
    made = run_patch(text, wanted(allocator="expandable_segments:True"))
    (held,) = [held for code, held in made.held if code == "SCR003"]
    assert held.line == 5 + 9


# --- running the result


STUB_TORCH = """\
calls = []
bfloat16 = "bf16"
float16 = "f16"
class cuda:
    is_available = staticmethod(lambda: True)
    init = staticmethod(lambda: calls.append("init"))
    _lazy_init = staticmethod(lambda: calls.append("private init"))
def compile(model, **options):
    calls.append("compile")
    return model
"""
STUB_TRANSFORMERS = """\
import torch
class _Tensors(dict):
    device = "cpu"
    def to(self, device):
        self.device = device
        return self
class _Model:
    device = "cpu"
    @classmethod
    def from_pretrained(cls, name, device_map=None, torch_dtype="f32"):
        torch.calls.append(f"load {name} {device_map} {torch_dtype}")
        model = cls()
        model.device = device_map or "cpu"
        return model
    def to(self, device):
        torch.calls.append(f"to {device}")
        self.device = device
        return self
    def generate(self, device=None, **inputs):
        torch.calls.append("generate")
        return [[1]]
class _Tokenizer:
    @classmethod
    def from_pretrained(cls, name):
        return cls()
    def __call__(self, text, return_tensors=None):
        return _Tensors()
    def decode(self, ids):
        return "answer"
LlamaForCausalLM = AutoModelForCausalLM = _Model
LlamaTokenizer = AutoTokenizer = _Tokenizer
"""


def run(content: bytes, folder: Path) -> list[str]:
    """What a script asks of stand-ins for torch and transformers when it answers two prompts."""
    (folder / "torch.py").write_text(STUB_TORCH)
    (folder / "transformers.py").write_text(STUB_TRANSFORMERS)
    (folder / "infer.py").write_bytes(content)
    program = "import torch, infer; infer.query('a'); infer.query('b'); print('\\n'.join(torch.calls))"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(("name", "device"), [("before.py", "cuda"), ("after.py", "auto")])
def test_the_patched_incident_runs_and_loads_once(name: str, device: str, tmp_path: Path) -> None:
    raw = (INCIDENT / name).read_bytes()
    assert "compile" in run(raw, tmp_path)
    calls = run(run_patch(raw, WANT).content, tmp_path)
    assert calls == ["init", f"load meta-llama/7B {device} bf16", "generate", "generate"]


def test_a_hoisted_load_runs_and_loads_once(tmp_path: Path) -> None:
    text = HEAD + script("""
        def query(prompt):
            tokenizer = AutoTokenizer.from_pretrained("m")
            model = AutoModelForCausalLM.from_pretrained("m")
            inputs = tokenizer(prompt, return_tensors="pt")
            return tokenizer.decode(model.generate(**inputs)[0])
    """)
    assert run(text.encode(), tmp_path).count("load m None f32") == 2
    calls = run(run_patch(text, Wanted(INCIDENT_WISH, {"distribution:transformers": "4.36.2"})).content, tmp_path)
    assert calls == ["init", "load m None bf16", "to cuda", "generate", "generate"]


# --- gates


def test_an_edit_that_breaks_the_file_is_refused() -> None:
    source = decode(GOOD.encode())
    start = GOOD.index("def query")
    for edit in (
        Edit(start, start, "def broken(:\n"),
        Edit(start, start, "return 1\n"),
        Edit(start, start + len("def query"), "def other"),
        Edit(0, len("import torch\n"), ""),
        Edit(0, 0, "# -*- coding: latin-1 -*-\n"),
    ):
        with pytest.raises(ValueError, match=r"compile|remove|more than"):
            apply_edits(source, (edit,))
    assert apply_edits(source, (Edit(start, start, "x = 1\n"),)) == GOOD.replace("def q", "x = 1\ndef q").encode()


def rule_with(fix: Fix) -> Rule:
    return Rule(RULES[0].explanation, lambda file, want: (), lambda file, module, want: (fix,))


def test_a_refused_edit_is_reported_and_the_file_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patching, "RULES", (rule_with(Fix(2, (Edit(0, 0, "("),), "x", "y", "z")),))
    made = patch("p", GOOD.encode(), wanted())
    assert made.content == GOOD.encode()
    assert made.fixes == ()
    ((code, held),) = made.held
    assert (code, held.line) == ("SCR001", 2)
    assert "does not compile" in held.because


def test_rules_that_never_come_to_rest_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patching, "RULES", (rule_with(Fix(1, (Edit(0, 0, "# more\n"),), "x", "y", "z")),))
    made = patch("p", GOOD.encode(), wanted())
    assert made.content == GOOD.encode()
    assert made.fixes == ()
    assert "come to rest" in made.held[0][1].because


def test_a_generated_file_with_hundreds_of_places_is_left_at_once() -> None:
    text = GOOD + "model = torch.compile(model)\n" * 500
    made = run_patch(text)
    assert made.content.decode() == text
    assert "more than anybody" in made.held[0][1].because


def test_an_ignoring_comment_keeps_its_line() -> None:
    before = (
        (INCIDENT / "before.py")
        .read_text()
        .replace("torch.compile(model)", "torch.compile(model)  # remediate: ignore[SCR002]")
    )
    assert "torch.compile(model)  # remediate: ignore[SCR002]" in patched(before, WANT)
    everything = before.replace("[SCR002]", "")
    assert "torch.compile(model)  # remediate: ignore" in patched(everything, WANT)
    other = before.replace("SCR002", "SCR001")
    assert "torch.compile" not in patched(other, WANT)


def test_skipped_codes_are_not_fixed() -> None:
    made = patch("p", (INCIDENT / "before.py").read_bytes(), WANT, frozenset(("SCR002", "SCR006")))
    assert {code for code, _ in made.fixes} == {"SCR004", "SCR009"}


# --- layout of the call

CALLS = {
    '"m")': '"m", device_map="cuda", torch_dtype=torch.bfloat16)',
    '"m",)': '"m", device_map="cuda", torch_dtype=torch.bfloat16,)',
    '("m"))': '("m"), device_map="cuda", torch_dtype=torch.bfloat16)',
    '"m", # (id)\n)': '"m", device_map="cuda", torch_dtype=torch.bfloat16, # (id)\n)',
    '\n    "m"\n)': '\n    "m",\n    device_map="cuda",\n    torch_dtype=torch.bfloat16\n)',
    '\n    "m",\n)': '\n    "m",\n    device_map="cuda",\n    torch_dtype=torch.bfloat16,\n)',
    '\n    "m",  # the id, (mine)\n    # revision="x",\n)': '\n    "m",  # the id, (mine)\n    device_map="cuda",\n'
    '    torch_dtype=torch.bfloat16,\n    # revision="x",\n)',
    '\n\t"m"  # id\n\t, )': '\n\t"m", device_map="cuda", torch_dtype=torch.bfloat16  # id\n\t, )',
    'pretrained_model_name_or_path = (\n  "m"\n ) )': "pretrained_model_name_or_path = (\n"
    '  "m"\n ), device_map="cuda", torch_dtype=torch.bfloat16 )',
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("call", CALLS)
def test_keywords_are_added_in_the_layout_of_the_call(call: str, newline: str) -> None:
    def whole(arguments: str) -> str:
        text = f"model = AutoModelForCausalLM.from_pretrained({arguments}\nmodel.generate(**TOK)\n"
        text = text.replace("TOK", "tokenizer('x', return_tensors='pt').to('cuda')")
        return (HEAD + "tokenizer = AutoTokenizer.from_pretrained('m')\n" + text).replace("\n", newline)

    made = run_patch(whole(call))
    assert made.content.decode() == whole(CALLS[call])


def test_tabs_and_a_missing_last_newline_stay() -> None:
    text = "import torch\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\nif 1:\n\tx = 1\n"
    text += 'tokenizer = AutoTokenizer.from_pretrained("m")\nmodel = AutoModelForCausalLM.from_pretrained("m")\n'
    text += "model.generate(**tokenizer('x').to('cuda'))"
    result = patched(text, WANT)
    assert "if torch.cuda.is_available():\n\ttorch.cuda.init()" in result
    assert result.endswith("to('cuda'))")


# --- bytes

ENCODINGS = ("utf-8", "utf-8-sig", "shift_jis", "latin-1", "euc-jp", "cp1252")


@pytest.mark.property
@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(ENCODINGS),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.text(alphabet="é表能ü #x'", max_size=12),
    st.booleans(),
)
def test_patching_keeps_every_other_byte(encoding: str, newline: str, words: str, ends: bool) -> None:
    codec = "utf-8" if encoding == "utf-8-sig" else encoding
    words = words.encode(codec, "ignore").decode(codec).replace("'", "")
    head = "" if encoding == "utf-8-sig" else f"# -*- coding: {encoding} -*-\n"
    body = (INCIDENT / "before.py").read_text().replace("# inference", f"# {words} inference")
    body = body.replace("(prompt, return", f"(prompt + '{words}', return")
    text = (head + body).replace("\n", newline)
    raw = (text if ends else text.rstrip("\r\n")).encode(encoding)
    made = run_patch(raw, WANT)
    assert {code for code, _ in made.fixes} == {"SCR002", "SCR004", "SCR006", "SCR009"}
    expected = PATCHED_BEFORE.replace("# inference", f"# {words} inference")
    expected = (head + expected.replace("(prompt, return", f"(prompt + '{words}', return")).replace("\n", newline)
    assert made.content == (expected if ends else expected.rstrip("\r\n")).encode(encoding)


def test_mixed_line_endings_stay_mixed() -> None:
    raw = (INCIDENT / "before.py").read_bytes().replace(b"\n", b"\r\n").replace(b"\r\ntokenizer", b"\ntokenizer")
    made = run_patch(raw, WANT)
    assert made.content.replace(b"\r\n", b"\n").decode() == PATCHED_BEFORE
    assert b"torch.bfloat16)\ntokenizer" in made.content
    assert b"is_available():\r\n    torch.cuda.init()" in made.content


@pytest.mark.property
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_mixture_of_parts_comes_to_rest_and_compiles(data: st.DataObject) -> None:
    arguments = data.draw(
        st.lists(
            st.sampled_from(
                ['device_map="auto"', "torch_dtype=torch.float16", "load_in_4bit=True", "**kw", "use_cache=True"]
            ),
            max_size=3,
            unique=True,
        )
    )
    load = f"AutoModelForCausalLM.from_pretrained({', '.join(['NAME', *arguments])})"
    load += data.draw(st.sampled_from(["", ".eval()", ".to('cuda')", ".half().cuda()", ".to(device).eval()"]))
    lines = data.draw(
        st.lists(
            st.sampled_from(
                [
                    "model = torch.compile(model)",
                    "model.to('cuda')",
                    "model = model.to(device)",
                    "model.eval()",
                    "torch.cuda._lazy_init()",
                    "if x: model = torch.compile(model, dynamic=True)",
                    "model = torch.compile(model); y = 1",
                    "model(inputs)",
                ]
            ),
            max_size=4,
        )
    )
    scope = data.draw(
        st.sampled_from(["", "def query(prompt, x=1):", "for x in [1]:", "class A:\n  def __init__(self, x):"])
    )
    indent = "" if not scope else "    "
    body = [f"model = {load}", *lines, "inputs = tokenizer('x', return_tensors='pt')", "model.generate(**inputs)"]
    text = HEAD + "x = 1\ndevice = 'cuda'\nkw = {}\nNAME = 'm'\ntokenizer = AutoTokenizer.from_pretrained(NAME)\n"
    text += "\n".join([*([scope] if scope else []), *(indent + line for line in body), ""])
    compile(text, "before", "exec")
    made = run_patch(text, Wanted(INCIDENT_WISH, OLD))
    compile(made.content.decode(), "after", "exec")
    file, _ = read_layout("p", made.content)
    assert len(file.loads) == 1


def test_files_that_are_nobodys_business_come_back_as_they_were() -> None:
    """The standard library holds no inference script: nothing is found in it, and nothing takes long."""
    library = Path(ast.__file__).parent
    paths = [*sorted(library.glob("*.py"))[::6], *sorted(library.glob("asyncio/*.py"))[::6]]
    assert len(paths) > 30
    for path in paths:
        raw = path.read_bytes()
        made = patch(str(path), raw, Wanted(INCIDENT_WISH, OLD))
        assert made == patching.Patch(raw), path
