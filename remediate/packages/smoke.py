"""The smoke test: a tiny model with random weights in the target environment, in a process of its own.

What it runs is data, `templates/smoke_test.py`, and the target's interpreter runs it: this program imports neither
torch nor transformers.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable

import msgspec

from remediate.effects import Completed, Runner
from remediate.errors import ApplyError
from remediate.model import Finding, Outcome
from remediate.packages.install import Smoke
from remediate.resources import data_folder
from remediate.subject import Context

TIMEOUT_S = 600.0
"""Importing torch and transformers takes 2 to 5 s, on a cold disk half a minute; a compile step as much again."""
_MARKER = "remediate-smoke:"
_MAX_LINES = 3
_DIVERTING = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP")


class Step(msgspec.Struct, frozen=True):
    """One step's result.

    Attributes:
        outcome: `passed`, `failed` or `skipped`.
        detail: the value, the error's text, or why it was skipped.
    """

    name: str
    outcome: str
    detail: str
    seconds: float


def run_smoke(python: str, smoke: Smoke, runner: Runner, timeout_s: float = TIMEOUT_S) -> tuple[Step, ...]:
    """The steps in order, as far as they came. A crash is a failed step of its own.

    Raises:
        ApplyError: the interpreter could not be started, or did not end in time.
    """
    script = data_folder("templates") / "smoke_test.py"
    options = msgspec.json.encode(smoke).decode()
    environment = {name: value for name, value in os.environ.items() if name not in _DIVERTING}
    environment |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    with tempfile.TemporaryDirectory(prefix="remediate-smoke-") as folder:
        done = runner((python, str(script), options), timeout_s=timeout_s, env=environment, cwd=folder)
    return _read_steps(done)


def judge_smoke(steps: Iterable[Step]) -> tuple[Finding, ...]:
    """A finding for each step."""
    outcomes = {"passed": Outcome.SAME, "failed": Outcome.DIFFERS, "skipped": Outcome.UNKNOWN}
    return tuple(
        Finding(
            "PKG030",
            "packages",
            step.name,
            outcomes.get(step.outcome, Outcome.UNKNOWN),
            f"{step.name} {step.outcome}: {step.detail}",
            observed=step.detail,
            evidence=(f"{step.seconds:.1f} s",),
            is_advice=step.outcome == "skipped",
        )
        for step in steps
    )


def require_smoke(python: str, smoke: Smoke, context: Context) -> str:
    """Run it, and give its steps as lines for the journal.

    Raises:
        ApplyError: a step failed, or it did not end in time.
    """
    if context.progress:
        context.progress("trying the environment out with a tiny model")
    steps = run_smoke(python, smoke, context.runner)
    lines = [f"smoke test, {step.name} {step.outcome}: {step.detail}" for step in steps]
    if any(step.outcome == "failed" for step in steps):
        raise ApplyError(
            "the environment is as planned and does not pass the smoke test",
            cause="\n         ".join(line for line, step in zip(lines, steps, strict=True) if step.outcome == "failed"),
            hint="`remediate rollback` brings the former set back; `remediate verify --smoke` tries again",
        )
    return "".join(f"{line}\n" for line in lines)


def _read_steps(done: Completed) -> tuple[Step, ...]:
    steps = [
        msgspec.json.decode(line.removeprefix(_MARKER), type=Step)
        for line in done.stdout.splitlines()
        if line.startswith(_MARKER)
    ]
    if done.returncode != 0 or not steps:
        how = f"killed by signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        last = " | ".join(line.strip() for line in done.stderr.splitlines()[-_MAX_LINES:] if line.strip())
        steps.append(Step("process", "failed", f"it ended early ({how}): {last or 'it printed nothing'}", 0.0))
    return tuple(steps)
