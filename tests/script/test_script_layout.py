"""What is read out of a script: scopes, names, devices; and what is not taken for something else."""

from __future__ import annotations

import pytest
from script.samples import GOOD, HEAD, facts_of, script

from remediate.script.facts import Device, Scope

LOAD = 'model = AutoModelForCausalLM.from_pretrained("m")\n'

SCOPES = {
    "module level": (Scope.MODULE, LOAD),
    "main guard": (Scope.MAIN, f'if __name__ == "__main__":\n    {LOAD}'),
    "main called at the guard": (
        Scope.ONCE,
        f'def main():\n    {LOAD}    model.generate()\n\nif __name__ == "__main__":\n    main()\n',
    ),
    "main started by fire": (Scope.ONCE, f"import fire\ndef main():\n    {LOAD}\nfire.Fire(main)\n"),
    "loader called at module level": (
        Scope.ONCE,
        f"def load():\n    {LOAD}    return model\n\nmodel = load()\n",
    ),
    "route": (Scope.HANDLER, f'@app.post("/x")\ndef answer(prompt):\n    {LOAD}    return model.generate(prompt)\n'),
    "loader called by a route": (
        Scope.HANDLER,
        f'def load():\n    {LOAD}    return model\n\n@app.get("/x")\nasync def answer(p):\n    return load()\n',
    ),
    "serverless handler": (Scope.HANDLER, f"def handle(event, context):\n    {LOAD}"),
    "runpod handler": (Scope.HANDLER, f'def run_job(job):\n    {LOAD}\nserverless.start({{"handler": run_job}})\n'),
    "gradio function": (Scope.HANDLER, f"def answer(p):\n    {LOAD}\ngr.Interface(fn=answer, inputs='text')\n"),
    "task": (Scope.HANDLER, f"@app.task\ndef work(p):\n    {LOAD}"),
    "loop": (Scope.LOOP, f"for prompt in prompts:\n    {LOAD}    model.generate(prompt)\n"),
    "loader called in a loop": (Scope.LOOP, f"def load():\n    {LOAD}    return model\n\nwhile True:\n    load()\n"),
    "retry loop": (Scope.MODULE, f"for attempt in range(3):\n    {LOAD}    break\n"),
    "retry loop in try": (
        Scope.MODULE,
        f"while True:\n    try:\n        {LOAD}        break\n    except OSError:\n        pass\n",
    ),
    "constructor": (
        Scope.CONSTRUCTOR,
        "class Service:\n    def __init__(self):\n"
        '        self.model = AutoModelForCausalLM.from_pretrained("m")\n\nservice = Service()\n',
    ),
    "class made in a handler": (
        Scope.HANDLER,
        "class Service:\n    def __init__(self):\n"
        '        self.model = AutoModelForCausalLM.from_pretrained("m")\n\n@app.get("/")\ndef f():\n    Service()\n',
    ),
    "lazy global": (
        Scope.LAZY,
        f'model = None\n\n@app.get("/")\ndef f():\n    global model\n    if model is None:\n        {LOAD}',
    ),
    "lazy global, early return": (
        Scope.LAZY,
        f"model = None\n\ndef get():\n    global model\n    if model is not None:\n        return model\n    {LOAD}",
    ),
    "cached": (Scope.LAZY, f"@functools.lru_cache(maxsize=1)\ndef get():\n    {LOAD}    return model\n"),
    "cached UI resource": (Scope.LAZY, f"@st.cache_resource\ndef get():\n    {LOAD}    return model\n"),
    "start hook": (Scope.HOOK, f'@app.on_event("startup")\ndef start():\n    {LOAD}'),
    "each call": (Scope.PER_CALL, f"def query(prompt):\n    {LOAD}    return model.generate(prompt)\n"),
    "nobody calls": (Scope.UNKNOWN, f"def load():\n    {LOAD}    return model\n"),
    "recursion": (Scope.UNKNOWN, f"def load():\n    {LOAD}    return load()\n"),
}


@pytest.mark.parametrize("name", SCOPES)
def test_how_often_a_load_runs(name: str) -> None:
    scope, body = SCOPES[name]
    (load,) = facts_of(HEAD + body).loads
    assert load.scope is scope, load.because
    assert load.because


@pytest.mark.parametrize(
    "imports",
    [
        "from transformers import AutoModelForCausalLM as A",
        "from transformers.models.auto import AutoModelForCausalLM as A",
        "import transformers as t\nclass N: pass\n",
        "from transformers import *\n",
        "try:\n    from transformers import AutoModelForCausalLM as A\nexcept ImportError:\n    raise\n",
        "from peft import AutoPeftModelForCausalLM as A",
    ],
)
def test_names_are_resolved_through_imports(imports: str) -> None:
    name = "t.AutoModelForCausalLM" if " as t" in imports else "AutoModelForCausalLM" if "*" in imports else "A"
    (load,) = facts_of(f'{imports}\nmodel = {name}.from_pretrained("m")\nmodel.generate()\n').loads
    assert load.is_causal_lm
    assert load.target == "model"


@pytest.mark.parametrize(
    "text",
    [
        'from ipex_llm.transformers import AutoModelForCausalLM\nm = AutoModelForCausalLM.from_pretrained("m")\n',
        'from ctransformers import AutoModelForCausalLM\nm = AutoModelForCausalLM.from_pretrained("m")\n',
        'from optimum.intel import OVModelForCausalLM\nm = OVModelForCausalLM.from_pretrained("m")\n',
        'from vllm import LLM\nm = LLM("m")\nm.generate("x")\n',
        "from transformers import AutoModelForCausalLM\nclass AutoModelForCausalLM: ...\n"
        'm = AutoModelForCausalLM.from_pretrained("m")\n',
        "try:\n    from optimum.onnx import AutoModelForCausalLM\nexcept ImportError:\n"
        '    from transformers import AutoModelForCausalLM\nm = AutoModelForCausalLM.from_pretrained("m")\n',
        'from transformers import AutoConfig, AutoTokenizer\nAutoConfig.from_pretrained("m")\n'
        'AutoTokenizer.from_pretrained("m")\n',
        'from peft import PeftConfig\nPeftConfig.from_pretrained("m")\n',
        "def pipeline(x): ...\npipeline('text-generation')\n",
        "def load(AutoModelForCausalLM):\n    return AutoModelForCausalLM.from_pretrained('m')\n",
        '"""from transformers import AutoModelForCausalLM; AutoModelForCausalLM.from_pretrained("m")"""\n',
    ],
)
def test_the_same_name_for_another_thing_is_no_load(text: str) -> None:
    assert facts_of(text).loads == ()


DEVICES = {
    '"cuda"': Device.CUDA,
    '"cuda:1"': Device.CUDA,
    "0": Device.CUDA,
    'torch.device("cuda", 1)': Device.CUDA,
    'f"cuda:{rank}"': Device.CUDA,
    '"cuda" if torch.cuda.is_available() else "cpu"': Device.CUDA,
    "DEVICE": Device.CUDA,
    "BRANCHED": Device.CUDA,
    '"cpu"': Device.CPU,
    '"mps"': Device.OTHER,
    "args.device": Device.UNKNOWN,
    "pick()": Device.UNKNOWN,
    "LOOP_A": Device.UNKNOWN,
}


@pytest.mark.parametrize("expression", DEVICES)
def test_devices(expression: str) -> None:
    text = HEAD + script(f"""
        DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if torch.cuda.is_available():
            BRANCHED = "cuda"
        else:
            BRANCHED = "cpu"
        LOOP_A = LOOP_B
        LOOP_B = LOOP_A
        model = AutoModelForCausalLM.from_pretrained("m").to({expression})
        model.generate()
    """)
    ((placement,),) = (load.placements for load in facts_of(text).loads)
    assert placement.device is DEVICES[expression]


def test_a_script_as_it_should_be() -> None:
    file = facts_of(GOOD)
    (load,) = file.loads
    (site,) = file.inputs
    assert (load.line, load.scope, load.dtype_how, load.placements[0].device) == (
        5,
        Scope.MODULE,
        "torch_dtype",
        Device.CUDA,
    )
    assert (site.model, site.device) == ("model", Device.CUDA)
    assert (file.torch_name, file.torch_line, file.newline, file.encoding) == ("torch", 1, "LF", "utf-8")
    assert file.is_inference


def test_inputs_are_followed_through_names_and_parts() -> None:
    text = HEAD + script("""
        tok = AutoTokenizer.from_pretrained("m")
        model = AutoModelForCausalLM.from_pretrained("m", device_map="cuda")
        batch = tok("x", return_tensors="pt")
        batch = {k: v.to("cuda") for k, v in batch.items()}
        model.generate(**batch)

        def second(p):
            inputs = tok(p, return_tensors="pt")
            ids = inputs["input_ids"].to(model.device)
            return model.generate(input_ids=ids)

        def third(messages):
            return model.generate(tok.apply_chat_template(messages, return_tensors="pt").cuda())
    """)
    assert [site.device for site in facts_of(text).inputs] == [Device.CUDA, Device.MODEL, Device.CUDA]


def test_a_trainer_is_no_inference() -> None:
    text = HEAD + LOAD + "model.generate()\nloss = model(x).loss\nloss.backward()\n"
    file = facts_of(text)
    assert not file.is_inference
    assert file.training[0].what == "backward()"


def test_processes_are_seen() -> None:
    for line in (
        "import multiprocessing as mp",
        "from celery import Celery",
        "import torch.distributed as dist",
        "from concurrent.futures import ProcessPoolExecutor\nProcessPoolExecutor()",
        "import uvicorn\nuvicorn.run('a:b', workers=4)",
        "import os\nos.fork()",
        "import spaces",
    ):
        assert facts_of(f"{line}\n").multiprocess, line
    assert not facts_of("import uvicorn\nuvicorn.run('a:b', workers=1)\nimport threading\n").multiprocess


@pytest.mark.parametrize(
    ("raw", "problem", "line"),
    [
        (b"x = (\n", "does not parse", 1),
        (b"print 'x'\n", "does not parse", 1),
        (b"def f():\nreturn 1\n", "does not parse", 2),
        (b"\x00\x01", "NUL", 1),
        (b"x = " + b"(" * 5000 + b")" * 5000, "", 0),
        (b"x = " + b"-" * 100_000 + b"1", "", 0),
        (b"x = " + b"a+" * 60_000 + b"a", "", 0),
        (b"x = " + b"[" * 90 + b"]" * 90, None, 0),
        (b"x = 1\n" * 400_000, "larger than", 0),
    ],
)
def test_hostile_input_is_a_problem_and_no_crash(raw: bytes, problem: str | None, line: int) -> None:
    file = facts_of(raw)
    assert (file.problem == "") == (problem is None)
    assert (problem or "") in file.problem
    if line:
        assert file.problem_line == line


def test_ignoring_comments_are_read_and_texts_are_not() -> None:
    text = '"""# remediate: ignore[SCR001]"""\nx = 1  # remediate: ignore[SCR003, SCR004]\ny = 2  # remediate: ignore\n'
    assert [(item.line, item.codes) for item in facts_of(text).ignores] == [(2, ("SCR003", "SCR004")), (3, ())]
