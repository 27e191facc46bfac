"""What it costs to read all facts of one GPU, as ratios to the same NVML getters called bare, in one run.

    ./dev bench nvml_cost [--mock] [--rounds N]

On a real GPU, which is only read, the promise is on the whole of it: at most 3 times the bare calls, with the child
process that a real driver is asked in. Without a driver, or with `--mock`, the mock library of the tests answers in no
time at all, so that the promise there is on the reading itself, and the child is shown beside it. The three take turns,
round by round. Exits 1 where the promise is broken.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml

from remediate.gpu.observe import observe

MOST_TIMES_BARE = 3.0
FUNCTIONS_OF_ITS_OWN = ("nvmlInit", "nvmlShutdown", "nvmlDeviceGetHandleByIndex")


class Recorder:
    """The package `pynvml`, with a list of what is called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.handle: Any = None

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(pynvml, name)
        if not name.startswith(("nvmlDevice", "nvmlSystem", "nvmlInit", "nvmlShutdown")):
            return attribute

        def call(*arguments: Any) -> Any:
            self.calls.append((name, arguments))
            answer = attribute(*arguments)
            if name == "nvmlDeviceGetHandleByIndex" and arguments == (0,):
                self.handle = answer
            return answer

        return call


def use_mock(folder: Path) -> None:
    """Put the tests' mock library, with the facts of an H200, in the driver's place."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    import ctypes

    from gpu.support import shipped_facts
    from nvml.mock_board import write_board
    from nvml.mock_library import build

    pynvml.nvmlLib = ctypes.CDLL(str(build(folder)))
    os.environ["MOCK_NVML_BOARD"] = str(write_board(folder / "mock.board", shipped_facts("h200")))


def bare(recorded: Recorder) -> None:
    """The recorded calls, with nothing done about their answers."""
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    for name, arguments in recorded.calls:
        if name not in FUNCTIONS_OF_ITS_OWN:
            try:  # noqa: SIM105 - suppress() would cost as much as a call
                getattr(pynvml, name)(*(handle if value is recorded.handle else value for value in arguments))
            except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError):
                pass
    pynvml.nvmlShutdown()


def has_driver() -> bool:
    """Whether NVML can be opened and shows a GPU."""
    try:
        pynvml.nvmlInit()
        count: int = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return False
    return count > 0


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mock", action="store_true", help="the mock library even where there is a driver")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        is_mock = options.mock or not has_driver()
        if is_mock:
            use_mock(Path(temporary))
        recorded = Recorder()
        name = observe(["0"], nvml=recorded).devices[0].name
        print(f"{name}{' (mock library)' if is_mock else ''}, {len(recorded.calls)} calls of NVML")
        works: dict[str, Callable[[], object]] = {
            "bare": lambda: bare(recorded),
            "facts, in place": lambda: observe(["0"], nvml=pynvml),
            "facts": lambda: observe(["0"]),
        }
        for work in works.values():
            work()
        times: dict[str, list[float]] = {key: [] for key in works}
        for _ in range(options.rounds):
            for key, work in works.items():
                times[key].append(seconds(work))
    return report(times, "facts, in place" if is_mock else "facts")


def report(times: dict[str, list[float]], promised: str) -> int:
    """Print medians and ratios; 1 where the promise is broken."""
    kept = True
    for name, values in times.items():
        ratio = statistics.median(a / b for a, b in zip(values, times["bare"], strict=True))
        promise = f"   (promise: at most {MOST_TIMES_BARE:g})" if name == promised else ""
        print(f"{name:16} {statistics.median(values) * 1000:8.2f} ms median   {ratio:6.2f} times bare{promise}")
        kept = kept and not (promise and ratio > MOST_TIMES_BARE)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
