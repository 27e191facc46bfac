"""Each rule on samples that it must change, must leave, and must say something about."""

from __future__ import annotations

import pytest
from script.samples import (
    GOOD,
    HEAD,
    INCIDENT_WISH,
    LEAVE_WISH,
    NEW,
    OLD,
    outcomes,
    patched,
    run_patch,
    script,
    verdicts,
    wanted,
)

from remediate.model import Outcome
from remediate.script.rules import RULES, UNREADABLE
from remediate.script.rules.base import Wanted

DIFFERS, SAME, UNKNOWN = (Outcome.DIFFERS, False), (Outcome.SAME, False), (Outcome.UNKNOWN, True)
ADVICE = (Outcome.DIFFERS, True)

TOK = 'tokenizer = AutoTokenizer.from_pretrained("m")\n'
RUN = """
def query(prompt):
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    return model.generate(**inputs)
"""
PLACED = 'model = AutoModelForCausalLM.from_pretrained("m", device_map="cuda", torch_dtype=torch.bfloat16)\n'


def test_a_good_script_is_left_alone() -> None:
    assert patched(GOOD) == GOOD
    assert all(verdict[0] is Outcome.SAME for rule in RULES for verdict in outcomes(GOOD, rule.code))


def test_every_rule_has_a_page_with_its_own_code() -> None:
    codes = [rule.code for rule in (UNREADABLE, *RULES)]
    assert codes == [f"SCR{number:03}" for number in range(17)]
    for rule in RULES:
        page = rule.explanation
        assert all((page.title, page.what, page.why, page.fix))


# --- SCR001: reload


def test_a_load_with_constant_arguments_moves_out_of_a_plain_function() -> None:
    before = HEAD + script("""
        MODEL = "m"

        # Answers one prompt.
        @torch.inference_mode()
        def query(prompt):
            tokenizer = AutoTokenizer.from_pretrained(MODEL)  # fast
            model = AutoModelForCausalLM.from_pretrained(
                MODEL,
                device_map="cuda",
                torch_dtype=torch.bfloat16,
            )
            inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
            return model.generate(**inputs)
    """)
    after = HEAD + script("""
        MODEL = "m"

        tokenizer = AutoTokenizer.from_pretrained(MODEL)  # fast
        model = AutoModelForCausalLM.from_pretrained(
            MODEL,
            device_map="cuda",
            torch_dtype=torch.bfloat16,
        )


        # Answers one prompt.
        @torch.inference_mode()
        def query(prompt):
            inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
            return model.generate(**inputs)
    """)
    assert outcomes(before, "SCR001") == [DIFFERS]
    assert patched(before) == after
    assert outcomes(after, "SCR001") == [SAME]


HELD_RELOADS = {
    "the name comes with the request": (
        "def query(prompt, name):\n    LOAD(name)\n    model.generate()\n",
        "not constant",
    ),
    "a name that is assigned twice": (
        'NAME = "a"\nNAME = "b"\ndef query(prompt):\n    LOAD(NAME)\n    model.generate()\n',
        "not constant",
    ),
    "the model is bound again": (
        'def query(prompt):\n    LOAD("m")\n    model = model.eval()\n    model.generate()\n',
        "bound in more than one place",
    ),
    "a global": ('def query(prompt):\n    global model\n    LOAD("m")\n    model.generate()\n', "global names"),
    "a loop": ('for p in [1]:\n    LOAD("m")\n    model.generate()\n', "plain function"),
    "a method": ('class A:\n    def query(self, p):\n        LOAD("m")\n        model.generate()\n', "module level"),
    "an async function": ('async def query(prompt):\n    LOAD("m")\n    model.generate()\n', "plain function"),
    "a condition": ('def query(p):\n    if p:\n        LOAD("m")\n    model.generate()\n', "plain assignment"),
    "celery": ('from celery import Celery\ndef query(p):\n    LOAD("m")\n    model.generate()\n', "several processes"),
    "two statements on the line": ('def query(p):\n    LOAD("m"); x = 1\n    model.generate()\n', "other statements"),
    "a generator": ('def query(p):\n    LOAD("m")\n    yield model.generate()\n', "generator"),
}


@pytest.mark.parametrize("name", HELD_RELOADS)
def test_other_reloads_are_reported_and_kept(name: str) -> None:
    body, because = HELD_RELOADS[name]
    text = HEAD + body.replace("LOAD(", "model = AutoModelForCausalLM.from_pretrained(")
    assert DIFFERS in outcomes(text, "SCR001")
    made = run_patch(text, wanted(device=None, dtype=None))
    assert made.content.decode() == text
    assert because in next(held.because for code, held in made.held if code == "SCR001")


def test_a_load_that_nothing_calls_can_not_be_told() -> None:
    text = (
        HEAD + "def load():\n    return AutoModelForCausalLM.from_pretrained('m')\n\ndef g(model): model.generate()\n"
    )
    assert outcomes(text, "SCR001") == [UNKNOWN]


MOVABLE = '    model = AutoModelForCausalLM.from_pretrained("m").to("cuda").eval()\n    return model.generate(p)\n'


def test_a_chain_with_constant_arguments_moves_as_a_whole() -> None:
    text = HEAD + f'def query(p):\n    """Answer."""\n    limit = 3\n{MOVABLE}'
    after = patched(text, wanted(device=None, dtype=None))
    line, rest = MOVABLE.strip().split("\n    ")
    assert after == HEAD + f'{line}\n\n\ndef query(p):\n    """Answer."""\n    limit = 3\n    {rest}\n'


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (HEAD + f"def query(p):\n    login(TOKEN)\n{MOVABLE}", "`login(TOKEN)` runs before"),
        (HEAD + f"def query(p):\n    with lock:\n        x = 1\n{MOVABLE}", "`with lock: x = 1` runs before"),
        (f"def query(p):\n    from transformers import AutoModelForCausalLM\n{MOVABLE}", "is not known before"),
        (f"from transformers import *\ndef query(p):\n{MOVABLE}", "is not known before"),
        (HEAD + f"def query(p):\n{MOVABLE}".replace('"cuda"', "p.device"), "not constant"),
    ],
)
def test_a_load_that_may_need_what_is_around_it_stays(text: str, because: str) -> None:
    made = run_patch(text, wanted(device=None, dtype=None))
    assert made.content.decode() == text
    assert because in made.held[0][1].because


def test_a_benchmark_is_judged_and_never_edited() -> None:
    for text in (HEAD + TOK + UNPLACED + RUN + "def bench(): ...\n", HEAD + TOK + UNPLACED + RUN + "import timeit\n"):
        made = run_patch(text)
        assert made.content.decode() == text
        assert "benchmark" in made.held[0][1].because


def test_a_script_that_names_mps_gets_no_bfloat16() -> None:
    text = HEAD + TOK + 'model = AutoModelForCausalLM.from_pretrained("m", device_map="cuda")\n' + RUN
    text += 'if torch.backends.mps.is_available():\n    device = "mps"\n'
    assert patched(text) == text
    assert "torch_dtype=torch.float16" in patched(text, wanted(dtype="float16"))


# --- SCR002: compile

DEAD = {
    "rebinding": (PLACED + "model = torch.compile(model)  # fast\nx = 1\n", PLACED + "x = 1\n"),
    "attribute": (
        "class S:\n    def __init__(self):\n"
        f"        self.{PLACED}        self.model = torch.compile(self.model, mode='max-autotune')\n"
        "    def q(self, i): self.model.generate(i)\nS()\n",
        f"class S:\n    def __init__(self):\n        self.{PLACED}    def q(self, i): self.model.generate(i)\nS()\n",
    ),
    "around the load": (
        PLACED.replace("AutoModel", "torch.compile(AutoModel").replace("\n", ", fullgraph=True)\n"),
        PLACED,
    ),
    "another name": (
        PLACED + "fast = torch.compile(model)\nfast.generate()\n",
        PLACED + "fast = model\nfast.generate()\n",
    ),
    "guarded": (
        PLACED
        + "if hasattr(torch, 'compile') and torch.__version__ >= '2':\n    model = torch.compile(model)\nx = 1\n",
        PLACED + "x = 1\n",
    ),
    "guarded with another branch": (
        PLACED + "if FAST:\n    model = torch.compile(model)\nelse:\n    x = 1\n",
        PLACED + "if FAST:\n    pass\nelse:\n    x = 1\n",
    ),
    "comment of its own": (
        PLACED + "\n# Compile once.\nmodel = torch.compile(model)\n\nx = 1\n",
        PLACED + "\nx = 1\n",
    ),
    "comment about more": (
        PLACED + "\n# Get ready.\nmodel = torch.compile(model)\nx = 1\n",
        PLACED + "\n# Get ready.\nx = 1\n",
    ),
    "no last newline": (
        TOK + PLACED + "model.generate()\nmodel = torch.compile(model)",
        TOK + PLACED + "model.generate()\n",
    ),
}


@pytest.mark.parametrize("name", DEAD)
def test_a_compile_that_generate_never_uses_goes(name: str) -> None:
    before, after = DEAD[name]
    tail = "" if "generate" in before else "model.generate()\n"
    assert outcomes(HEAD + before + tail, "SCR002") == [DIFFERS]
    assert patched(HEAD + before + tail) == HEAD + after + tail


LIVE = {
    "forward": ("model.forward = torch.compile(model.forward)\n", SAME),
    "in place": ("model.compile()\n", SAME),
    "inner module": ("model.model = torch.compile(model.model)\n", UNKNOWN),
    "whole generate": ("model.generate = torch.compile(model.generate)\n", UNKNOWN),
    "called directly as well": ("model = torch.compile(model)\nmodel(x)\n", UNKNOWN),
    "handed to something": ("model = torch.compile(model)\nserve(model)\n", UNKNOWN),
    "forward called": ("model = torch.compile(model)\nmodel.forward(x)\n", UNKNOWN),
}


@pytest.mark.parametrize("name", LIVE)
def test_a_compile_that_may_be_used_stays(name: str) -> None:
    line, outcome = LIVE[name]
    text = HEAD + PLACED + line + "model.generate()\n"
    assert outcomes(text, "SCR002") == [outcome]
    assert patched(text) == text


def test_a_compile_with_an_effect_in_its_arguments_is_held() -> None:
    text = HEAD + PLACED + "model = torch.compile(model, mode=choose())\nmodel.generate()\n"
    made = run_patch(text)
    assert made.content.decode() == text
    assert [code for code, _ in made.held] == ["SCR002"]


# --- SCR003, SCR004, SCR005: placement


def test_a_model_without_a_place_goes_to_the_gpu_and_its_inputs_follow() -> None:
    load = 'model = AutoModelForCausalLM.from_pretrained("m", torch_dtype=torch.bfloat16)\n'
    text = HEAD + TOK + load + RUN.replace('.to("cuda")', "")
    assert outcomes(text, "SCR004") == [DIFFERS]
    assert outcomes(text, "SCR003") == [SAME]
    expected = text.replace("bfloat16)", 'bfloat16, device_map="cuda")').replace('"pt")', '"pt").to(model.device)')
    assert patched(text) == expected


def test_a_model_is_not_moved_where_moving_its_inputs_is_ignored() -> None:
    run = RUN.replace('.to("cuda")', "  # remediate: ignore[SCR003]")
    text = HEAD + TOK + UNPLACED + run
    made = run_patch(text)
    assert made.content.decode() == text
    assert [code for code, _ in made.held] == ["SCR004"]


def test_without_accelerate_the_model_is_moved_after_the_load() -> None:
    text = HEAD + TOK + 'model = AutoModelForCausalLM.from_pretrained("m", torch_dtype=torch.bfloat16)\n' + RUN
    want = wanted({"distribution:transformers": "4.36.2"})
    assert 'torch_dtype=torch.bfloat16).to("cuda")\n' in patched(text, want)
    text = text.replace('"m", ', '"m", low_cpu_mem_usage=False, ')
    assert 'torch_dtype=torch.bfloat16).to("cuda")\n' in patched(text)


def test_a_pipeline_gets_a_device() -> None:
    text = 'from transformers import pipeline\npipe = pipeline("text-generation", model="m")\npipe("x")\n'
    assert 'model="m", device="cuda", torch_dtype="bfloat16")' in patched(text)
    assert patched(text, wanted(NEW)) == text


def test_a_pipeline_around_a_model_follows_a_device_map() -> None:
    load = 'model = AutoModelForCausalLM.from_pretrained("m", torch_dtype=torch.bfloat16)\n'
    text = (
        HEAD.replace("AutoTok", "pipeline, AutoTok")
        + load
        + 'pipe = pipeline("text-generation", model=model)\npipe("x")\n'
    )
    assert 'device_map="cuda"' in patched(text)
    assert patched(text, wanted({})) == text, "without accelerate the pipeline would leave its inputs on the CPU"


UNPLACED = 'model = AutoModelForCausalLM.from_pretrained("m", torch_dtype=torch.bfloat16)\n'
NOT_MOVED = {
    "two models": (UNPLACED + UNPLACED.replace("model =", "draft ="), "2 models", DIFFERS),
    "called directly": (UNPLACED + "model(x)\n", "called directly", DIFFERS),
    "inputs from elsewhere": (UNPLACED + "model.generate(read_batch())\n", "not all inputs", DIFFERS),
    "another kind of model": (
        "from transformers import T5ForConditionalGeneration as M\nmodel = M.from_pretrained('m')\nmodel.generate()\n",
        "not a causal",
        DIFFERS,
    ),
    "below a condition": (f"if WANTED:\n    {UNPLACED}", "condition", DIFFERS),
    "default device": (UNPLACED + 'torch.set_default_device("cuda")\n', "", UNKNOWN),
    "open keywords": (UNPLACED.replace('"m"', '"m", **options'), "", UNKNOWN),
    "launcher": ("import os\nrank = os.environ['LOCAL_RANK']\n" + UNPLACED, "", UNKNOWN),
    "moved by another name": (UNPLACED + "service.to('cuda')\n", "", UNKNOWN),
    "the CPU on purpose": (UNPLACED + 'model.to("cpu")\n', "", ADVICE),
    "moved to and fro": (
        UNPLACED + 'model.to("cuda")\nmodel.generate()\n\n\ndef unload():\n    model.to("cpu")\n',
        "",
        UNKNOWN,
    ),
}


@pytest.mark.parametrize("name", NOT_MOVED)
def test_a_model_is_not_moved_in_doubt(name: str) -> None:
    body, because, outcome = NOT_MOVED[name]
    text = HEAD + TOK + body + ("" if "generate" in body else RUN)
    assert outcome in outcomes(text, "SCR004")
    made = run_patch(text, wanted(dtype=None))
    assert made.content.decode() == text
    held = [held.because for code, held in made.held if code == "SCR004"]
    assert (because in held[0]) if because else not held


def test_inputs_left_on_the_cpu_follow_a_placed_model() -> None:
    text = HEAD + TOK + PLACED + RUN.replace('.to("cuda")', "")
    assert outcomes(text, "SCR003") == [DIFFERS]
    assert patched(text) == text.replace('"pt")', '"pt").to(model.device)')


def test_inputs_that_can_not_be_followed_are_held() -> None:
    text = HEAD + TOK + PLACED + "model.generate(tokenizer.encode('x', return_tensors='pt'))\n"
    made = run_patch(text)
    assert made.content.decode() == text
    assert [code for code, _ in made.held] == ["SCR003"]


@pytest.mark.parametrize(
    "move",
    ["model.to('cuda')\n", "model = model.cuda()  # again\n", "model = model.to(torch.device('cuda'))\n"],
)
def test_a_second_placement_goes(move: str) -> None:
    text = HEAD + TOK + PLACED + move + RUN
    assert outcomes(text, "SCR005") == [DIFFERS]
    assert patched(text) == HEAD + TOK + PLACED + RUN


def test_a_second_placement_in_the_same_expression_goes() -> None:
    text = HEAD + TOK + PLACED.replace("\n", ".to('cuda').eval()\n") + RUN
    assert patched(text) == HEAD + TOK + PLACED.replace("\n", ".eval()\n") + RUN


@pytest.mark.parametrize(
    ("move", "is_said"),
    [
        ("if BIG:\n    model.to('cuda')\n", False),
        ("model.to('cuda', torch.float16)\n", True),
        ("model.to('cpu')\n", True),
    ],
)
def test_a_second_placement_that_may_mean_something_stays(move: str, is_said: bool) -> None:
    text = HEAD + TOK + PLACED + move + "model.generate()\n"
    assert outcomes(text, "SCR005") == ([ADVICE] if is_said else [])
    assert patched(text) == text


# --- SCR006: dtype


@pytest.mark.parametrize(
    ("announced", "text"),
    [
        (OLD, "torch_dtype=torch.bfloat16"),
        ({}, "torch_dtype=torch.bfloat16"),
        ({"distribution:transformers": "4.55.4"}, "torch_dtype=torch.bfloat16"),
        ({"distribution:transformers": "4.56.0"}, "dtype=torch.bfloat16"),
        ({**OLD, "gpu:compute_capability": "7.5"}, "torch_dtype=torch.float16"),
        ({**OLD, "gpu:compute_capability": "8.0\n7.0"}, "torch_dtype=torch.float16"),
    ],
)
def test_the_dtype_is_stated_in_the_spelling_of_the_version(announced: dict[str, str], text: str) -> None:
    body = TOK + 'model = AutoModelForCausalLM.from_pretrained("m", device_map="cuda")\n' + RUN
    assert f'device_map="cuda", {text})' in patched(HEAD + body, wanted(announced))


def test_transformers_5_takes_the_checkpoints_dtype() -> None:
    text = HEAD + TOK + 'model = AutoModelForCausalLM.from_pretrained("m", device_map="cuda")\n' + RUN
    assert outcomes(text, "SCR006", wanted(NEW)) == [SAME]
    assert patched(text, wanted(NEW)) == text


def test_without_a_torch_name_the_dtype_is_text_or_brings_the_import() -> None:
    text = "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
    text += TOK + 'model = AutoModelForCausalLM.from_pretrained("m", device_map="cuda")\n' + RUN
    newer = patched(text, wanted({"distribution:transformers": "4.46.3"}))
    assert 'device_map="cuda", torch_dtype="bfloat16")' in newer
    older = patched(text)
    assert older.startswith("import torch\nfrom transformers")
    assert "torch_dtype=torch.bfloat16" in older


def test_torch_under_another_name() -> None:
    text = "import torch as th\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n"
    text += TOK + 'model = AutoModelForCausalLM.from_pretrained("m", device_map="cuda")\n' + RUN
    assert "torch_dtype=th.bfloat16" in patched(text)


@pytest.mark.parametrize(
    ("arguments", "suffix", "outcome"),
    [
        ("", ".half()", SAME),
        ("", ".to(torch.float16)", SAME),
        (", torch_dtype=torch.float32", "", ADVICE),
        (", dtype=choose()", "", SAME),
        (", torch_dtype='auto'", "", SAME),
        (", load_in_4bit=True", "", SAME),
        (", quantization_config=config", "", SAME),
        (", **options", "", UNKNOWN),
    ],
)
def test_a_dtype_in_any_form_is_kept(arguments: str, suffix: str, outcome: tuple[Outcome, bool]) -> None:
    load = f'model = AutoModelForCausalLM.from_pretrained("m", device_map="cuda"{arguments}){suffix}\n'
    text = HEAD + TOK + load + RUN
    assert outcomes(text, "SCR006") == [outcome]
    assert patched(text) == text


def test_a_quantised_checkpoint_and_a_models_own_keyword_get_no_dtype() -> None:
    for arguments in ('"TheBloke/Llama-2-7B-GPTQ"', '"Qwen/Qwen-7B", bf16=True, trust_remote_code=True'):
        text = HEAD + TOK + f"model = AutoModelForCausalLM.from_pretrained({arguments}, device_map='auto')\n" + RUN
        assert patched(text) == text


# --- SCR008: allocator

ALLOCATOR = "expandable_segments:True"
SETTING = f'os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "{ALLOCATOR}")\n'


def test_the_allocator_is_set_above_the_first_foreign_import() -> None:
    text = f'#!/usr/bin/env python\n"""Doc."""\nfrom __future__ import annotations\n\nimport sys\n{GOOD}'
    want = wanted(allocator=ALLOCATOR)
    assert outcomes(text, "SCR008", want) == [DIFFERS]
    assert patched(text, want) == text.replace("import torch\n", f"import os\n\n{SETTING}\nimport torch\n", 1)
    text = text.replace("import sys\n", "import os\n")
    assert patched(text, want) == text.replace("import torch\n", f"{SETTING}\nimport torch\n", 1)


def test_an_allocator_setting_of_the_scripts_own_stays() -> None:
    want = wanted(allocator=ALLOCATOR)
    early = f"import os\n{SETTING}{GOOD}"
    other = early.replace(ALLOCATOR, "max_split_size_mb:128")
    late = GOOD + f"import os\n{SETTING}"
    assert outcomes(early, "SCR008", want) == [SAME]
    assert outcomes(other, "SCR008", want) == [ADVICE]
    assert outcomes(late, "SCR008", want) == [DIFFERS]
    for text in (early, other):
        assert patched(text, want) == text
    assert patched(late, want) == f"import os\n\n{SETTING}\n{GOOD}import os\n", "its own line moves, with its value"
    assert outcomes(late, "SCR008") == [DIFFERS], "a setting that does nothing is reported without a wish too"


def test_a_hostile_allocator_value_never_reaches_the_script() -> None:
    want = wanted(allocator='x"); import evil; ("')
    made = run_patch(GOOD, want)
    assert made.content.decode() == GOOD
    assert [code for code, _ in made.held] == ["SCR008"]


# --- SCR009: CUDA initialisation

PUBLIC = Wanted(INCIDENT_WISH, OLD)


def test_a_private_call_becomes_the_public_one() -> None:
    text = GOOD.replace("\n\ntok", "\n\ntorch.cuda._lazy_init()  # early\ntok", 1)
    assert outcomes(text, "SCR009") == [DIFFERS]
    assert patched(text) == text.replace("_lazy_init", "init")
    assert outcomes(text.replace("_lazy_init", "init"), "SCR009") == [SAME]


def test_a_private_function_imported_by_name_is_held() -> None:
    text = "from torch.cuda import _lazy_init\n" + GOOD + "_lazy_init()\n"
    assert patched(text) == text


def test_an_early_call_is_added_behind_the_imports() -> None:
    expected = GOOD.replace(
        "AutoTokenizer\n",
        "AutoTokenizer\n\nif torch.cuda.is_available():\n"
        "    torch.cuda.init()  # at start instead of with the first use\n",
        1,
    )
    assert patched(GOOD, PUBLIC) == expected
    tight = GOOD.replace("AutoTokenizer\n\n", "AutoTokenizer\n", 1)
    assert patched(tight, PUBLIC) == expected, "a blank line is added where there was none"


@pytest.mark.parametrize(
    "line",
    [
        "import multiprocessing\n",
        "from celery import Celery\n",
        "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\n",
        "import os\nrank = os.environ['LOCAL_RANK']\n",
        "import spaces\n",
    ],
)
def test_no_early_call_where_it_would_break_something(line: str) -> None:
    text = line + GOOD
    assert patched(text, PUBLIC) == text
    assert outcomes(text, "SCR009", PUBLIC) == [SAME]


def test_no_early_call_for_a_model_that_is_not_for_the_gpu_for_certain() -> None:
    text = GOOD.replace('device_map="cuda"', 'device_map="cpu"').replace('.to("cuda")', "")
    assert patched(text, PUBLIC) == text


# --- advice


def test_advice_is_said_once_and_never_edits() -> None:
    text = HEAD + script("""
        import gc
        torch.backends.cudnn.benchmark = True
        tokenizer = AutoTokenizer.from_pretrained("org/m")
        model = AutoModelForCausalLM.from_pretrained("org/m", device_map="cuda", torch_dtype=torch.bfloat16)

        @app.post("/q")
        def query(prompt):
            inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
            torch.cuda.empty_cache()
            model(**inputs)
            try:
                return model.generate(**inputs)
            except RuntimeError:
                gc.collect()
    """)
    assert outcomes(text, "SCR007") == [ADVICE]
    assert verdicts(text, "SCR007")[0].line == 12
    for code in ("SCR010", "SCR011", "SCR013", "SCR014"):
        assert outcomes(text, code) == [ADVICE], code
    assert patched(text) == text
    calm = text.replace('from_pretrained("org/m",', 'from_pretrained("org/m", revision="abc",').replace(
        "= True", "= False"
    )
    calm = calm.replace("model(**inputs)", "pass").replace(
        "@app", 'model.generate(**tokenizer("x").to("cuda"))\n\n@app'
    )
    for code in ("SCR010", "SCR011", "SCR013", "SCR014"):
        assert outcomes(calm, code) == [], code


def test_a_lazy_load_is_advice() -> None:
    text = HEAD + script("""
        model = None

        @app.get("/")
        def query(p):
            global model
            if model is None:
                model = AutoModelForCausalLM.from_pretrained("m", device_map="cuda", torch_dtype=torch.bfloat16)
            return model.generate(p)
    """)
    assert outcomes(text, "SCR012") == [ADVICE]
    assert outcomes(text, "SCR001") == [SAME]


def test_wishes_that_are_not_given_are_not_judged() -> None:
    text = HEAD + TOK + UNPLACED + "model = torch.compile(model)\ntorch.cuda._lazy_init()\n" + RUN
    none = wanted(load=None, device=None, dtype=None, compile=None, cuda_init=None)
    assert [rule.code for rule in RULES if outcomes(text, rule.code, none)] == []
    assert patched(text, none) == text
    assert Wanted(LEAVE_WISH, OLD) == wanted()
