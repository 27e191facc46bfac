"""A new script from an old one: what is read, what is written, and that no value breaks out of its place."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from script.samples import INCIDENT_WISH, NEW, OLD

from remediate.profile.schema import ScriptWish
from remediate.rendering import python_literal
from remediate.script.reading.layout import read_layout
from remediate.script.render.recipe import Recipe, RecipeError, read_recipe
from remediate.script.render.template import DEFAULT_PROMPT, render_inference
from remediate.script.rules.base import Wanted

HEAD = "import torch\nfrom transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, pipeline\n"
LOAD = 'tok = AutoTokenizer.from_pretrained("org/m")\nmodel = AutoModelForCausalLM.from_pretrained("org/m")\n'
ASK = 'inputs = tok("hi", return_tensors="pt")\n'
WANTED = Wanted(INCIDENT_WISH, NEW)


def recipe(text: str, model: str | None = None) -> Recipe:
    file, module = read_layout("a.py", text.encode())
    assert module is not None, file.problem
    return read_recipe(file, module, model)


def namespace(source: bytes) -> dict[str, Any]:
    """The constants that a rendered script defines."""
    found = {}
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            found[statement.targets[0].id] = ast.literal_eval(statement.value)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOAD + ASK + "model.generate(**inputs)", Recipe("org/m", prompts=("hi",))),
        (
            LOAD + ASK + "model.generate(**inputs, max_new_tokens=5, do_sample=False, temperature=-1.5)",
            Recipe("org/m", prompts=("hi",), arguments={"max_new_tokens": 5, "do_sample": False, "temperature": -1.5}),
        ),
        (
            'M = "org/m"\nmodel = AutoModelForCausalLM.from_pretrained(M, revision="abc", trust_remote_code=True)\n'
            'tok = AutoTokenizer.from_pretrained("org/tok")\n' + ASK + "model.generate(**inputs)",
            Recipe("org/m", "abc", "org/tok", True, prompts=("hi",)),
        ),
        (
            LOAD + "def query(prompt):\n    x = tok(prompt, return_tensors='pt')\n    return model.generate(**x)\n"
            "query('one')\nprint(query(prompt='two'))\n",
            Recipe("org/m", prompts=("one", "two")),
        ),
        (
            LOAD + "for p in ['a', 'b']:\n    x = tok(p, return_tensors='pt')\n    model.generate(**x)\n",
            Recipe("org/m", prompts=("a", "b")),
        ),
        (
            LOAD + "messages = [{'role': 'system', 'content': 'be brief'}, {'role': 'user', 'content': 'hi'}]\n"
            "x = tok.apply_chat_template(messages, return_tensors='pt')\nmodel.generate(x, max_new_tokens=9)\n",
            Recipe("org/m", is_chat=True, system="be brief", prompts=("hi",), arguments={"max_new_tokens": 9}),
        ),
        (
            LOAD + ASK + "config = GenerationConfig(top_p=0.5, max_length=9, max_new_tokens=8)\n"
            "model.generate(**inputs, generation_config=config)",
            Recipe("org/m", prompts=("hi",), arguments={"top_p": 0.5, "max_new_tokens": 8}),
        ),
        (
            LOAD + ASK + "from threading import Thread\nkw = dict(inputs, top_k=3, streamer=None)\n"
            "Thread(target=model.generate, kwargs=kw).start()",
            Recipe("org/m", prompts=("hi",), arguments={"top_k": 3}),
        ),
        (
            'pipe = pipeline("text-generation", model="org/m")\npipe("hi", max_new_tokens=3, return_full_text=False)\n',
            Recipe(
                "org/m",
                prompts=("hi",),
                arguments={"max_new_tokens": 3},
                left_out=("line 4: return_full_text=False",),
            ),
        ),
        (
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--model-name', default='org/m')\n"
            "args = p.parse_args()\nmodel = AutoModelForCausalLM.from_pretrained(args.model_name)\n"
            "tok = AutoTokenizer.from_pretrained(args.model_name)\n" + ASK + "model.generate(**inputs)",
            Recipe("org/m", prompts=("hi",)),
        ),
        (
            "import os\nmodel = AutoModelForCausalLM.from_pretrained(os.getenv('M', 'org/m'))\n"
            "tok = AutoTokenizer.from_pretrained('org/m')\n" + ASK + "model.generate(**inputs)",
            Recipe("org/m", prompts=("hi",)),
        ),
        (
            LOAD + "x = tok(f'### {input()}', return_tensors='pt')\nmodel.generate(**x, max_new_tokens=n(), stop=1)",
            Recipe(
                "org/m",
                left_out=(
                    "line 5: the prompt, `f'### {input()}'`",
                    "line 6: max_new_tokens=n()",
                    "line 6: stop=1",
                ),
            ),
        ),
    ],
)
def test_what_a_script_does_is_read(text: str, expected: Recipe) -> None:
    assert recipe(HEAD + text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1", "it loads no model"),
        ("import sys\nm = AutoModelForCausalLM.from_pretrained(sys.argv[1])", "does not tell what sys.argv[1] is"),
        ("from transformers import AutoModelForSeq2SeqLM as A\nm = A.from_pretrained('m')", "not known to be a causal"),
    ],
)
def test_no_recipe_is_said(text: str, why: str) -> None:
    with pytest.raises(RecipeError) as caught:
        recipe(HEAD + text)
    assert why in str(caught.value)


def test_a_named_model_takes_the_place_of_the_scripts() -> None:
    text = HEAD + "import sys\nm = AutoModelForCausalLM.from_pretrained(sys.argv[1], revision='x')"
    assert recipe(text, "org/other") == Recipe("org/other")


def test_versions_and_wishes_decide_on_dtype_and_its_keyword() -> None:
    made = Recipe("m", prompts=("hi",))
    old, new = (render_inference(made, Wanted(INCIDENT_WISH, versions), "p") for versions in (OLD, NEW))
    assert b"torch_dtype=dtype" in old
    assert b"\n        dtype=dtype" in new
    assert b"dtype = torch.bfloat16 if device.type" in new
    older_gpu = {**NEW, "gpu:compute_capability": "7.5"}
    assert b"torch.float16 if" in render_inference(made, Wanted(INCIDENT_WISH, older_gpu), "p")
    assert b'dtype = "auto"' in render_inference(made, Wanted(ScriptWish(), {}), "p")


def test_the_allocator_is_set_before_torch_is_imported() -> None:
    wish = msgspec.structs.replace(INCIDENT_WISH, allocator="expandable_segments:True")
    text = render_inference(Recipe("m"), Wanted(wish, NEW), "p").decode()
    assert text.index('os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF"') < text.index("import torch")
    assert "environ" not in render_inference(Recipe("m"), WANTED, "p").decode()


def test_what_is_not_known_has_a_sensible_default() -> None:
    found = namespace(render_inference(Recipe("m"), WANTED, "p"))
    assert found == {"MODEL": "m", "REVISION": None, "PROMPTS": [DEFAULT_PROMPT], "GENERATION": {"max_new_tokens": 256}}


TEXT = st.text(max_size=30) | st.sampled_from(
    ['"""', "'\"", "\\", "{{ 7 * 7 }}", "{% raw %}", "\n# coding: utf-7\n", "\u202e", "\ud800", "#}", "\r\nimport os"]
)
LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(LITERALS)
@pytest.mark.property
def test_a_literal_gives_the_same_value_again(value: Any) -> None:
    text = python_literal(value)
    assert ast.literal_eval(text) == value
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), b"x", {1, 2}, 1j])
def test_what_has_no_literal_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        python_literal(value)


@given(model=TEXT, revision=TEXT, tokenizer=TEXT, system=TEXT, prompts=st.lists(TEXT, max_size=3), note=TEXT, name=TEXT)
@pytest.mark.property
def test_no_value_breaks_out_of_its_place(
    model: str, revision: str, tokenizer: str, system: str, prompts: list[str], note: str, name: str
) -> None:
    made = Recipe(model, revision, tokenizer, True, True, system, tuple(prompts), {"top_k": 1}, (note,))
    plain = Recipe("m", revision and "r", tokenizer and "t", True, True, system and "s", ("p",), {"top_k": 1}, ("n",))
    wanted = Wanted(INCIDENT_WISH, {**NEW, "distribution:torch": name})
    text = render_inference(made, wanted, name)
    assert namespace(text)["MODEL"] == model
    assert namespace(text)["PROMPTS"] == (list(prompts) or [DEFAULT_PROMPT])
    assert namespace(text).get("SYSTEM", "") == system
    assert shape(text) == shape(render_inference(plain, WANTED, "p"))


def shape(source: bytes) -> str:
    """The tree without the values of the constants at the top."""
    tree = ast.parse(source)
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            statement.value = ast.Constant(0)
    return ast.dump(tree)


def torch_python() -> str:
    """An interpreter that has torch and transformers: `REMEDIATE_TORCH_PYTHON`, else this one."""
    candidate = os.environ.get("REMEDIATE_TORCH_PYTHON") or sys.executable
    check = "import importlib.util as u; raise SystemExit(not (u.find_spec('torch') and u.find_spec('transformers')))"
    if shutil.which(candidate) is None or subprocess.run([candidate, "-c", check], check=False).returncode:
        pytest.skip("no interpreter with torch and transformers; name one with REMEDIATE_TORCH_PYTHON")
    return candidate


TINY = """
import json, sys, torch
from tokenizers import Tokenizer, models, pre_tokenizers, decoders
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
torch.manual_seed(0)
vocabulary = {"<s>": 0, "</s>": 1, **{c: n + 2 for n, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}}
inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
inner.decoder = decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>")
tokenizer.chat_template = "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}\\n{% endfor %}assistant:"
tokenizer.save_pretrained("tiny")
config = LlamaConfig(
    vocab_size=len(vocabulary), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=512, bos_token_id=0, eos_token_id=1,
)
model = LlamaForCausalLM(config).eval()
model.save_pretrained("tiny")
answers = []
for prompt in ("hello there", "second"):
    if sys.argv[1] == "chat":
        messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": prompt}]
        prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = torch.tensor([tokenizer.encode(prompt, add_special_tokens=False)])
    mask = torch.ones_like(ids)
    output = model.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=12, pad_token_id=1)
    answers.append(tokenizer.decode(output[0, ids.shape[1]:], skip_special_tokens=True))
print(json.dumps(answers))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["plain", "chat"])
def test_the_script_gives_the_tokens_of_plain_generate(how: str, tmp_path: Path) -> None:
    python = torch_python()
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}

    def run(*arguments: str) -> str:
        command = [python, *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    expected = json.loads(run("-c", TINY, how).splitlines()[-1])
    made = Recipe(
        "tiny",
        is_chat=how == "chat",
        system="be brief" if how == "chat" else "",
        prompts=("hello there", "second"),
        arguments={"max_new_tokens": 12, "do_sample": False},
    )
    versions = {"distribution:transformers": run("-c", "import transformers; print(transformers.__version__)").strip()}
    (tmp_path / "inference.py").write_bytes(render_inference(made, Wanted(INCIDENT_WISH, versions), "p"))
    answers = json.loads(
        run("-c", "import inference, json; print(json.dumps([inference.query(p) for p in inference.PROMPTS]))")
    )
    assert answers == expected
    assert all(answers), "an empty answer would compare nothing"
    assert run("inference.py", "second") == expected[1] + "\n"
    assert run("inference.py") == "".join(f"{answer}\n" for answer in expected)
