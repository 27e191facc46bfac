"""What a plan of the packages costs on an environment of 300 distributions, as a ratio in one run.

Floor: a bare `importlib.metadata` walk over the same environment: name, version and requirements of each distribution.

    ./dev bench packages_cost [--rounds N] [--distributions N]

Two things are compared in turn, round by round, each in a process of its own:

- in process: reading the distributions, comparing and proposing, against the walk; imports not counted;
- whole commands: `remediate plan --only packages` against a Python that does the walk and nothing else.

Exits 1 where a promise is broken: at most 1.5 times the walk, for the commands as a whole.
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

MOST_TIMES_THE_WALK = 1.5
DESCRIPTION = "A line of the description as long as they are.\n" * 80
"""3.7 kB, so that a METADATA file has 4 kB, the median of the development environment's; the mean is 6.5 kB."""
WALK = """\
import importlib.metadata, sys, time
began = time.perf_counter()
found = [
    (distribution.metadata["Name"], distribution.version, distribution.requires)
    for distribution in importlib.metadata.distributions(path=[sys.argv[1]])
]
print(len(found), time.perf_counter() - began)
"""
JUDGE = """\
import sys, time
from pathlib import Path
from remediate.model import SCHEMA_VERSION, Facts, Host, Request
from remediate.packages.observe import observe_packages
from remediate.packages.subject import PackagesSubject
from remediate.planner import make_plan
from remediate.profile.load import load_profile
from remediate.registry import subjects
from remediate.packages import compare, propose
from remediate.packages.advisories import costs
subjects()
profile = load_profile("current")
facts, _ = observe_packages(Path(sys.argv[2]), sys.argv[2] + "/.venv", None)
from remediate.packages.inspect import read_distributions
began = time.perf_counter()
inventory = read_distributions([sys.argv[1]])
host, request = Host("Linux", "x86_64", "b", False), Request(sys.argv[2])
plan = make_plan(Facts(SCHEMA_VERSION, "0", "now", request, host, (), {"packages": facts}), profile)
print(len(inventory.distributions), time.perf_counter() - began)
"""


def lay_out(folder: Path, count: int) -> Path:
    """An environment of `count` distributions that agrees with profile `current`; its folder of modules."""
    profile = load_profile("current").profile
    pins = {name: pin for name, pin in profile.packages.items() if pin.required}
    standins = [
        Standin(name=name, version=pin.version, cuda=pin.cuda or None, local="cu130" if pin.cuda else "")
        for name, pin in pins.items()
    ]
    # About as real ones are: 53 distributions of the development environment have 4.7 requirements on average.
    for number in range(count - len(standins)):
        needs = tuple(f"filler-{other}>=1,<3" for other in range(number % 4))
        extras = tuple(f'filler-{other}>=1; extra == "more"' for other in range(number % 7))
        standins.append(Standin(f"filler-{number}", "1.0", (*needs, *extras)))
    wheels = folder / "wheels"
    built = build_wheels(standins, wheels)
    environment = folder / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--isolated"]
    subprocess.run([*pip, "--no-index", "--no-deps", "--quiet", *map(str, built)], check=True)
    site = next((environment / "lib").glob("python3*/site-packages"))
    for metadata in site.glob("*.dist-info/METADATA"):
        metadata.write_text(f"{metadata.read_text()}\n{DESCRIPTION}")
    (folder / "requirements.txt").write_text("".join(f"{name}=={pin.version}\n" for name, pin in pins.items()))
    return site


def inside(code: str, *arguments: str) -> float:
    """Seconds that the code says it took."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[1])


def whole(command: list[str], folder: Path) -> float:
    """Wall seconds of a command."""
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--distributions", type=int, default=300)
    options, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["REMEDIATE_STATE_DIR"] = str(folder / "state")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        site = str(lay_out(folder, options.distributions))
        plan = [sys.executable, "-m", "remediate", "plan", "--profile", "current", "--only", "packages"]
        walk = [sys.executable, "-c", WALK, site]
        measures = {
            "walk, in process": lambda: inside(WALK, site),
            "judge, in process": lambda: inside(JUDGE, site, str(folder)),
            "walk, command": lambda: whole(walk, folder),
            "plan, command": lambda: whole(plan, folder),
        }
        for measure in measures.values():  # Warms the caches, and shows that each of them runs.
            measure()
        times: dict[str, list[float]] = {name: [] for name in measures}
        for _ in range(options.rounds):
            for name, measure in measures.items():
                times[name].append(measure())
    return report(times)


def report(times: dict[str, list[float]]) -> int:
    """Print medians and ratios; 1 where the promise is broken."""
    for name, values in times.items():
        low, high = min(values) * 1000, max(values) * 1000
        print(f"{name:18} {statistics.median(values) * 1000:8.1f} ms median   {low:8.1f} min   {high:8.1f} max")
    inner = ratio(times["judge, in process"], times["walk, in process"])
    outer = ratio(times["plan, command"], times["walk, command"])
    print(f"in process: judge / walk  {inner:.2f}")
    print(f"commands:   plan / walk   {outer:.2f}   (promise: at most {MOST_TIMES_THE_WALK})")
    return 0 if outer <= MOST_TIMES_THE_WALK else 1


def ratio(these: list[float], those: list[float]) -> float:
    """Median of the ratios within a round."""
    return statistics.median(a / b for a, b in zip(these, those, strict=True))


if __name__ == "__main__":
    sys.exit(main())
