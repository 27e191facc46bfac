"""What a `remediate plan` costs that finds nothing to do, as ratios in one run.

Floor: a bare interpreter that imports the same third-party modules and initialises NVML (or fails to).
Peer: `python -m torch.utils.collect_env`, with `--torch-python PATH` of an interpreter that has torch.

    ./dev bench [--torch-python PATH] [--rounds N]

The commands run in turn, round by round, so that a change of the machine's speed meets all of them alike. Whole
processes are timed, wall clock. Exits 1 where a promise is broken: at most 2 times the floor, at most 1/10 of the peer.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from remediate.demo.wheels import Standin, build_wheels
from remediate.profile.load import load_profile

SCRIPT = """\
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("m", revision="1", device_map="cuda", dtype=torch.bfloat16)
tokenizer = AutoTokenizer.from_pretrained("m", revision="1")


def query(prompt):
    inputs = tokenizer(prompt, return_tensors="pt").to(model.device)
    return tokenizer.decode(model.generate(**inputs, max_new_tokens=50)[0])
"""
# Modules that the plan's own imports tried and did not find are tried here as well.
FLOOR = """\
import importlib
for name in {modules}:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
import pynvml
try:
    pynvml.nvmlInit()
except pynvml.NVMLError:
    pass
"""
MOST_TIMES_THE_FLOOR = 2.0
MOST_PART_OF_THE_PEER = 0.1


def lay_out(folder: Path) -> None:
    """A sandbox that agrees with profile `current`."""
    profile = load_profile("current").profile
    pins = {name: pin for name, pin in profile.packages.items() if pin.required}
    standins = [
        Standin(name=name, version=pin.version, cuda=pin.cuda or None, local="cu130" if pin.cuda else "")
        for name, pin in pins.items()
    ]
    wheels = folder / "wheels"
    wheels.mkdir()
    built = build_wheels(standins, wheels)
    environment = folder / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--isolated"]
    subprocess.run([*pip, "--no-index", "--no-deps", "--quiet", *map(str, built)], check=True)
    (folder / "requirements.txt").write_text("".join(f"{name}=={pin.version}\n" for name, pin in pins.items()))
    (folder / "inference.py").write_text(SCRIPT)


def third_party(command: list[str], folder: Path) -> list[str]:
    """The modules that the plan imports and that are neither its own nor the standard library's."""
    done = subprocess.run(
        [command[0], "-X", "importtime", *command[1:]], cwd=folder, capture_output=True, text=True, check=True
    )
    names = [line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    own = {"remediate", "__main__", *sys.stdlib_module_names}
    return [name for name in names if name.isidentifier() or "." in name if name.split(".")[0] not in own]


def seconds(command: list[str], folder: Path) -> float:
    """Wall time of one run."""
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - began


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-python", help="interpreter that has torch, for the peer")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["REMEDIATE_STATE_DIR"] = str(folder / "state")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # An installed program is compiled once, not at each start.
        lay_out(folder)
        plan = [sys.executable, "-m", "remediate", "plan", "--profile", "current"]
        shown = subprocess.run(plan, cwd=folder, capture_output=True, text=True, check=True).stdout
        if "Changes, in this order" in shown:
            print(shown)
            print("the sandbox is not in agreement, so this measures something else")
            return 1
        modules = third_party(plan, folder)
        heavy = sorted({"libcst", "jinja2", "pip", "rich", "torch"} & {name.split(".")[0] for name in modules})
        print(f"third-party modules: {' '.join(modules)}")
        floor_code = FLOOR.format(modules=modules)
        commands = {"plan": plan, "floor": [sys.executable, "-c", floor_code], "bare": [sys.executable, "-c", "pass"]}
        if options.torch_python:
            commands["collect_env"] = [options.torch_python, "-m", "torch.utils.collect_env"]
        times: dict[str, list[float]] = {name: [] for name in commands}
        for command in commands.values():  # Warms the caches, and shows that each of them runs.
            subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
        for _ in range(options.rounds):
            for name, command in commands.items():
                times[name].append(seconds(command, folder))
    return report(times, heavy)


def report(times: dict[str, list[float]], heavy: list[str]) -> int:
    """Print medians and ratios; 1 where a promise is broken."""
    for name, values in times.items():
        print(
            f"{name:12} {statistics.median(values) * 1000:8.1f} ms median"
            f"   {min(values) * 1000:8.1f} min   {max(values) * 1000:8.1f} max"
        )
    floor = statistics.median(a / b for a, b in zip(times["plan"], times["floor"], strict=True))
    print(f"plan / floor        {floor:.2f}   (promise: at most {MOST_TIMES_THE_FLOOR})")
    kept = floor <= MOST_TIMES_THE_FLOOR
    if "collect_env" in times:
        peer = statistics.median(a / b for a, b in zip(times["plan"], times["collect_env"], strict=True))
        print(f"plan / collect_env  {peer:.3f}   (promise: at most {MOST_PART_OF_THE_PEER})")
        kept = kept and peer <= MOST_PART_OF_THE_PEER
    print(f"heavy imports: {', '.join(heavy) or 'none'}")
    return 0 if kept and not heavy else 1


if __name__ == "__main__":
    sys.exit(main())
