"""What a scan costs, as ratios within one run.

1. A tree of 5,000 Python files without an inference script (this Python's library and installed packages): the whole
   command, start included, against one process that reads and `ast.parse`s each file. The promise: at most 3 times.
2. Scripts, judged and patched one after the other in one process, against LibCST parsing them and resolving positions,
   scopes and parents. The promise: at most 3 times. Needs libcst, which the program itself does not; skipped without.

Run: python benchmarks/scan_cost.py
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from remediate.observation import observe_host
from remediate.profile.load import load_profile
from remediate.script.scan.judge import Task, judge_bytes, read_candidate
from remediate.subject import Settings

MOST_TIMES_PARSING = 3.0
MOST_TIMES_LIBCST = 3.0
INCIDENT = Path(__file__).parents[1] / "tests" / "cases" / "incident" / "before.py"
SERVICE = '''\
"""Serves a model: {number}."""
import argparse
import logging
import os

import torch
from fastapi import FastAPI
from pydantic import BaseModel
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

logger = logging.getLogger(__name__)
app = FastAPI()
MODEL = "org/model-{number}"


class Prompt(BaseModel):
    text: str
    max_new_tokens: int = 128
    temperature: float = 0.7


class Service:
    """Keeps the model."""

    def __init__(self, name: str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.model = AutoModelForCausalLM.from_pretrained(name)
        self.model.eval()
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.config = GenerationConfig(do_sample=True, top_p=0.9, repetition_penalty=1.1)

    def answer(self, prompt: Prompt) -> str:
        inputs = self.tokenizer(prompt.text, return_tensors="pt", truncation=True, max_length=2048)
        with torch.no_grad():
            output = self.model.generate(
                **inputs,
                generation_config=self.config,
                max_new_tokens=prompt.max_new_tokens,
                temperature=prompt.temperature,
            )
        new = output[0][inputs["input_ids"].shape[1] :]
        torch.cuda.empty_cache()
        return self.tokenizer.decode(new, skip_special_tokens=True)


service = None


@app.on_event("startup")
def start() -> None:
    global service
    service = Service(os.environ.get("MODEL", MODEL))


@app.post("/generate")
def generate(prompt: Prompt) -> dict[str, str]:
    logger.info("prompt of %d characters", len(prompt.text))
    return {{"text": service.answer(prompt)}}


if __name__ == "__main__":
    import uvicorn

    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    uvicorn.run(app, host=arguments.host, port=arguments.port)
'''
PARSE = """\
import ast, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
for path in Path(sys.argv[1]).rglob("*.py"):
    try:
        ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        pass
"""


def main() -> int:
    """Measure and print; 1 where a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        kept = measure_tree(Path(temporary), options.files, options.rounds)
    return 0 if measure_scripts(options.rounds) and kept else 1


def measure_tree(folder: Path, count: int, rounds: int) -> bool:
    """The first promise."""
    copied = sum(1 for _ in zip(range(count), copy_files(folder), strict=False))
    scan = [sys.executable, "-m", "remediate", "scan"]
    parse = [sys.executable, "-c", PARSE, str(folder)]
    alone = [*scan, "--jobs", "1"]
    times: dict[str, list[float]] = {"scan": [], "scan --jobs 1": [], "ast.parse": []}
    for _ in range(rounds):
        for name, command in zip(times, (scan, alone, parse), strict=True):
            times[name].append(seconds(lambda command=command: run(command, folder)))  # type: ignore[misc]
    show(times, f"{copied} files without an inference script")
    ratio = middle_ratio(times["scan --jobs 1"], times["ast.parse"])
    print(f"scan --jobs 1 / ast.parse  {ratio:.3f}   (promise: at most {MOST_TIMES_PARSING})")
    return ratio <= MOST_TIMES_PARSING


def copy_files(folder: Path) -> Iterator[Path]:
    """Python files of this interpreter that can't be scripts, copied one by one."""
    number = 0
    for name in ("stdlib", "purelib"):
        for path in sorted(Path(sysconfig.get_path(name)).rglob("*.py")):
            if "transformers" in path.parts or read_candidate(str(path)) is not None:
                continue
            target = folder / f"{number // 100:03}" / f"{number:05}.py"
            target.parent.mkdir(exist_ok=True)
            shutil.copy(path, target)
            number += 1
            yield target


def measure_scripts(rounds: int) -> bool:
    """The second promise."""
    texts = [INCIDENT.read_text(), *(SERVICE.format(number=number) for number in range(20))]
    profile = load_profile("incident-a100").profile
    pins = {f"distribution:{name}": pin.version for name, pin in profile.packages.items()}
    task = Task("/", profile, pins, Settings(), observe_host())
    times: dict[str, list[float]] = {"judge and patch": []}
    changes = 0

    def judge_texts() -> None:
        nonlocal changes
        changes = sum(len(judge_bytes(f"/{n}.py", text.encode(), task).changes) for n, text in enumerate(texts))

    parse = libcst_parser(texts)
    if parse is not None:
        times["LibCST"] = []
        parse()
    judge_texts()
    for _ in range(rounds):
        times["judge and patch"].append(seconds(judge_texts))
        if parse is not None:
            times["LibCST"].append(seconds(parse))
    show(times, f"{len(texts)} scripts, {sum(text.count(chr(10)) for text in texts)} lines, {changes} patched")
    if parse is None:
        print("libcst is not installed: no ratio for scripts")
        return True
    ratio = middle_ratio(times["judge and patch"], times["LibCST"])
    print(f"judge and patch / LibCST  {ratio:.3f}   (promise: at most {MOST_TIMES_LIBCST})")
    return ratio <= MOST_TIMES_LIBCST


def libcst_parser(texts: list[str]) -> Callable[[], None] | None:
    """What parses the texts with LibCST and its metadata providers; None where it is not installed."""
    try:
        import libcst
        from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider, ScopeProvider
    except ImportError:
        return None

    def parse() -> None:
        for text in texts:
            wrapper = MetadataWrapper(libcst.parse_module(text))
            wrapper.resolve_many([PositionProvider, ScopeProvider, ParentNodeProvider])

    return parse


def run(command: list[str], folder: Path) -> None:
    """Run a command in the folder; a scan must find nothing to do there."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)


def seconds(action: Callable[[], None]) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def middle_ratio(ours: list[float], theirs: list[float]) -> float:
    """Median of the ratios of each round."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def show(times: dict[str, list[float]], what: str) -> None:
    """Medians."""
    print(what)
    for name, values in times.items():
        print(
            f"  {name:16} {statistics.median(values):8.3f} s median   {min(values):8.3f} min   {max(values):8.3f} max"
        )


if __name__ == "__main__":
    sys.exit(main())
