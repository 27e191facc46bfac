"""Patched scripts are run: each layout gives the same tokens before and after, on a tiny model with random weights.

Needs an interpreter with torch, transformers and accelerate: this one, or the one that `REMEDIATE_TORCH_PYTHON` names.
GPUs are stood in for by the CPU, see `on_cpu.py`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from script.samples import LEAVE_WISH, script

from remediate.script.patch import patch
from remediate.script.rules.base import Wanted

pytestmark = [pytest.mark.slow, pytest.mark.torch]

RUNNER = Path(__file__).parent / "on_cpu.py"
VERSIONS = {
    "distribution:torch": "2.11.0",
    "distribution:transformers": "4.56.0",
    "distribution:accelerate": "1.15.0",
    "gpu:compute_capability": "8.0",
}
WISH = msgspec.structs.replace(
    LEAVE_WISH, cuda_init="public", guard="inference_mode", cache_clear="none", allocator="expandable_segments:True"
)
HEAD = "import torch\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n"
LOAD = 'AutoModelForCausalLM.from_pretrained("MODEL")'
TOKENIZER = 'tokenizer = AutoTokenizer.from_pretrained("MODEL")\n'
SHOW = "    print(model.generate(**inputs, max_new_tokens=8, do_sample=False).tolist())\n"

LAYOUTS = {
    "module level, nothing placed": f"""
        {TOKENIZER}
        model = {LOAD}
        inputs = tokenizer("w1 w2 w3", return_tensors="pt")
        print(model.generate(**inputs, max_new_tokens=8, do_sample=False).tolist())
        """,
    "placed twice": f"""
        {TOKENIZER}
        model = AutoModelForCausalLM.from_pretrained("MODEL", device_map="auto")
        model = model.to("cuda")
        inputs = tokenizer("w1 w2 w3", return_tensors="pt").to("cuda")
        print(model.generate(**inputs, max_new_tokens=8, do_sample=False).tolist())
        """,
    "main, dead compile, no_grad": f"""
        def main():
            tokenizer = AutoTokenizer.from_pretrained("MODEL")
            model = {LOAD}.to("cuda").eval()
            if torch.__version__ >= "2":
                model = torch.compile(model)
            for prompt in ("w1 w2", "w3 w4 w5"):
                inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
                with torch.no_grad():
                    output = model.generate(**inputs, max_new_tokens=8, do_sample=False)
                print(output.tolist())

        if __name__ == "__main__":
            main()
        """,
    "reload in the function that generates": f"""
        def answer(prompt):
            tokenizer = AutoTokenizer.from_pretrained("MODEL")
            model = {LOAD}
            inputs = tokenizer(prompt, return_tensors="pt")
            return model.generate(**inputs, max_new_tokens=8, do_sample=False).tolist()

        for prompt in ("w1", "w2 w3"):
            print(answer(prompt))
        """,
    "reload through a loading function": """
        def load(path):
            tokenizer = AutoTokenizer.from_pretrained(path)
            model = AutoModelForCausalLM.from_pretrained(path, device_map="cuda")
            return tokenizer, model

        def handle(event, context):
            tokenizer, model = load("MODEL")
            inputs = tokenizer(event, return_tensors="pt").to("cuda")
            return model.generate(**inputs, max_new_tokens=8, do_sample=False).tolist()

        print(handle("w1 w2", None), handle("w3", None))
        """,
    "class": """
        class Chat:
            def __init__(self):
                self.tokenizer = AutoTokenizer.from_pretrained("MODEL")
                self.model = AutoModelForCausalLM.from_pretrained("MODEL", device_map="cuda")

            @torch.no_grad()
            def answer(self, prompt):
                inputs = self.tokenizer(prompt, return_tensors="pt")
                return self.model.generate(**inputs, max_new_tokens=8, do_sample=False).tolist()

        print(Chat().answer("w5 w6"))
        """,
    "lazy": f"""
        model = None
        {TOKENIZER}
        def get():
            global model
            if model is None:
                model = AutoModelForCausalLM.from_pretrained("MODEL", device_map="cuda")
            return model

        for prompt in ("w1", "w2"):
            inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
            print(get().generate(**inputs, max_new_tokens=8, do_sample=False).tolist())
        """,
    "chat loop with cache clearing": f"""
        import gc
        {TOKENIZER}
        model = AutoModelForCausalLM.from_pretrained("MODEL", device_map="cuda")
        prompts = ["w1", "w2 w3"]
        while prompts:
            inputs = tokenizer(prompts.pop(), return_tensors="pt").to("cuda")
            output = model.generate(**inputs, max_new_tokens=8, do_sample=False)
            gc.collect()
            torch.cuda.empty_cache()
            print(output.tolist())
        """,
    "thread and streamer": f"""
        from threading import Thread
        from transformers import TextIteratorStreamer
        {TOKENIZER}
        model = AutoModelForCausalLM.from_pretrained("MODEL", device_map="cuda")
        streamer = TextIteratorStreamer(tokenizer)
        inputs = tokenizer("w1 w2", return_tensors="pt").to("cuda")
        arguments = dict(inputs, streamer=streamer, max_new_tokens=8, do_sample=False)
        thread = Thread(target=model.generate, kwargs=arguments)
        thread.start()
        print("".join(streamer))
        thread.join()
        """,
    "pipeline": """
        from transformers import pipeline
        pipe = pipeline("text-generation", model="MODEL")
        print(pipe("w1 w2", max_new_tokens=8, do_sample=False))
        """,
    "forward pass": f"""
        {TOKENIZER}
        model = {LOAD}.to("cuda")
        ids = tokenizer("w1 w2 w3", return_tensors="pt").input_ids.to("cuda")
        with torch.no_grad():
            for _ in range(6):
                ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], dim=1)
        print(ids.tolist())
        """,
    "late allocator, private initialisation": f"""
        import os
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        if torch.cuda.is_available():
            torch.cuda._lazy_init()
        {TOKENIZER}
        model = {LOAD}.half().to("cuda")
        inputs = tokenizer("w1 w2 w3", return_tensors="pt").to("cuda")
        print(os.environ["PYTORCH_CUDA_ALLOC_CONF"])
        print(model.generate(**inputs, max_new_tokens=8, do_sample=False).tolist())
        """,
    "generate compiled": f"""
        {TOKENIZER}
        model = AutoModelForCausalLM.from_pretrained("MODEL", device_map="cuda")
        model.generate = torch.compile(model.generate, backend="eager")
        inputs = tokenizer("w1 w2 w3", return_tensors="pt").to("cuda")
        print(model.generate(**inputs, max_new_tokens=8, do_sample=False).tolist())
        """,
}


@pytest.fixture(scope="module")
def python() -> str:
    """An interpreter with torch and transformers."""
    named = os.environ.get("REMEDIATE_TORCH_PYTHON", "")
    if named:
        return named
    if all(importlib.util.find_spec(name) for name in ("torch", "transformers", "accelerate")):
        return sys.executable
    pytest.skip("torch, transformers and accelerate are not here; name an interpreter in REMEDIATE_TORCH_PYTHON")


@pytest.fixture(scope="module")
def model(python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model and its tokenizer."""
    folder = tmp_path_factory.mktemp("model")
    subprocess.run([python, str(RUNNER), "make", str(folder)], check=True, capture_output=True)
    return folder


def text_of(name: str, model: Path) -> str:
    text = HEAD + "\n".join(line[8:] if line.startswith(" " * 8) else line for line in LAYOUTS[name].splitlines())
    return script(text.replace("MODEL", str(model))) + "\n"


def test_patched_scripts_give_the_same_tokens(python: str, model: Path, tmp_path: Path) -> None:
    paths = []
    codes: dict[str, list[str]] = {}
    for number, name in enumerate(LAYOUTS):
        before = text_of(name, model).encode()
        made = patch("/sandbox/infer.py", before, Wanted(WISH, VERSIONS, is_unsafe=True))
        codes[name] = [code for code, _ in made.fixes]
        for kind, content in (("before", before), ("after", made.content)):
            path = tmp_path / f"{number}-{kind}.py"
            path.write_bytes(content)
            paths.append(str(path))
    assert all(codes.values()), codes
    done = subprocess.run([python, str(RUNNER), "run", *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"path"')]
    assert len(results) == len(paths)
    for name, before, after in zip(LAYOUTS, results[::2], results[1::2], strict=True):
        assert not before["error"], (name, before["error"])
        assert not after["error"], (name, codes[name], after["error"])
        assert before["out"].strip(), name
        assert before["out"] == after["out"], (name, codes[name])
    made_by = {code for found in codes.values() for code in found}
    assert made_by >= {f"SCR{number:03}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16)}, sorted(made_by)
