"""The walk through the incident: load, plan, apply, verify, load again, apply again, rollback."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from remediate import api
from remediate.demo import incident
from remediate.demo.sandbox import lay_out
from remediate.demo.sight import Sight
from remediate.errors import ExitCode
from remediate.gpu.board import Board
from remediate.gpu.facts import Device
from remediate.gpu.reasons import describe
from remediate.model import Unknown
from remediate.runs.execute import ApplyResult
from remediate.runs.rollback import find_run, rollback_run
from remediate.runs.store import Store

if TYPE_CHECKING:
    from remediate.model import Plan

MINUTES = 45
STEP_MINUTES = 5
UTILIZATION = 0.45
"""The share of time that the report's nvidia-smi samples give (45 and 44 %)."""
TOKENS = 50
REST_S = 2 * 3600.0
"""Idle time after a load, until the board is cold again."""


def run_demo(sight: Sight, folder: Path | None = None) -> int:
    """Walk through the incident and say what is seen. Exit code 0 when every step came out as promised, else 1.

    Args:
        sight: prints.
        folder: where to lay the sandbox out and leave it; None uses a temporary folder that goes at the end.
    """
    if folder is not None:
        lay_out(folder)
        return _walk(sight, folder.resolve(), keep=True)
    with tempfile.TemporaryDirectory(prefix="remediate-demo-") as temporary:
        sandbox = Path(temporary) / "sandbox"
        lay_out(sandbox)
        return _walk(sight, sandbox.resolve(), keep=False)


def _walk(sight: Sight, sandbox: Path, *, keep: bool) -> int:
    state = sandbox / ".state"
    sight.step("The sandbox", f"laid out in {sandbox}")
    sight.say(
        "The files are the incident report's own, before the repair. "
        f"{incident.ENVIRONMENT_NAME} is a real environment whose distributions have the incident's versions and "
        "metadata and no content; the GPU is a simulated A100 40GB with poor airflow. Nothing outside this folder is "
        "touched."
    )
    before = snapshot(sandbox)
    sight.step("The incident", f"{MINUTES} minutes of inference at {UTILIZATION:.0%} utilization")
    _load(sight, sandbox)
    sight.say(
        "The memory reaches its maximum operating temperature, and the clock is cut. That is how it can look at 70 C, "
        "which by itself throttles no A100. The clock explains this much of the report's 800 ms and no more; the plan "
        "looks at the rest."
    )
    plan = _plan(sight, sandbox, state)
    result = _apply(sight, plan, state)
    agrees = _verify(sight, sandbox, state)
    sight.step("The same load again", "on the repaired sandbox")
    _load(sight, sandbox)
    sight.say("The power limit costs some clock all the time, and saves the memory from overheating.")
    again = _apply_again(sight, sandbox, state)
    restored = _rollback(sight, sandbox, state, before)
    return _conclude(sight, sandbox, keep=keep, outcomes=(result.failure is None, agrees, again, restored))


def snapshot(sandbox: Path) -> Mapping[str, bytes]:
    """Content of every file that the repair may change: script, requirements, and the environment's metadata."""
    names = (incident.SCRIPT_NAME, incident.REQUIREMENTS_NAME)
    files = [sandbox / name for name in names]
    files += sorted((sandbox / incident.ENVIRONMENT_NAME).glob("lib/python*/site-packages/*.dist-info/*"))
    return {str(path.relative_to(sandbox)): path.read_bytes() for path in files}


def _load(sight: Sight, sandbox: Path) -> None:
    board = Board.load(sandbox / incident.BOARD_NAME)
    rows = []
    for minute in range(0, MINUTES + 1, STEP_MINUTES):
        if minute:
            board.advance(STEP_MINUTES * 60, UTILIZATION)
        device = board.facts.devices[0]
        rows.append(
            (
                f"{minute} min",
                f"{device.temperature.gpu_c} C",
                f"{device.temperature.memory_c} C",
                f"{device.clocks.sm_mhz} MHz",
                f"{device.power.draw_w:.0f} W",
                f"{board.latency_ms(TOKENS):.0f} ms" if minute else "-",
                _reasons(device),
            )
        )
    board.advance(REST_S, 0.0)
    board.save()
    sight.table(("time", "GPU", "memory", "SM clock", "power", f"{TOKENS} tokens", "reasons"), rows)


def _reasons(device: Device) -> str:
    mask = device.events.active
    return str(mask) if isinstance(mask, Unknown) else describe(mask)


def _plan(sight: Sight, sandbox: Path, state: Path) -> Plan:
    sight.step("Plan", "what differs from the known-good profile, and what would close the gap")
    sight.command("remediate plan")
    plan = api.plan(api.observe(sandbox, state_dir=state))
    sight.plan(plan)
    return plan


def _apply(sight: Sight, plan: Plan, state: Path) -> ApplyResult:
    sight.step("Apply", "each step is journalled, and each value read back")
    sight.command("remediate apply --yes --allow-disruption")
    sight.say("The load still has its process on the GPU. It notices, so `--yes` alone would be refused.")
    result = api.apply(plan, state_dir=state, events=sight.events("setting"), allow_disruption=True)
    if result.failure is not None:
        sight.failure(result.failure)
    return result


def _verify(sight: Sight, sandbox: Path, state: Path) -> bool:
    sight.step("Verify", "the comparison again, on fresh facts")
    sight.command("remediate verify")
    plan = api.plan(api.observe(sandbox, state_dir=state))
    sight.findings(plan)
    return not plan.differences


def _apply_again(sight: Sight, sandbox: Path, state: Path) -> bool:
    sight.step("Apply again", "a second apply finds nothing to do and runs no command")
    sight.command("remediate apply --yes")
    plan = api.plan(api.observe(sandbox, state_dir=state))
    result = api.apply(plan, state_dir=state)
    is_idle = not plan.changes and not result.run_id
    sight.say("Nothing to do." if is_idle else f"{len(plan.changes)} changes were left, which should not be.")
    return is_idle


def _rollback(sight: Sight, sandbox: Path, state: Path, before: Mapping[str, bytes]) -> bool:
    sight.step("Rollback", "everything as it was before, not as some default has it")
    sight.command("remediate rollback --yes")
    store = Store(state)
    result = rollback_run(find_run(store, folder=sandbox), store=store, events=sight.events("restoring"))
    if result.failure is not None:
        sight.failure(result.failure)
        return False
    after = snapshot(sandbox)
    differing = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if differing:
        sight.say(f"Not as before: {', '.join(differing)}")
    else:
        sight.say(f"All {len(before)} files are as before, byte for byte.")
    return not differing and not result.left


def _conclude(sight: Sight, sandbox: Path, *, keep: bool, outcomes: tuple[bool, ...]) -> int:
    if not all(outcomes):
        sight.step("Not as promised", "one of the steps above did not come out right; please report it")
        return ExitCode.FAILED
    sight.step("Done", "planned, repaired, verified and undone")
    if keep:
        sight.say(f"The sandbox stays in {sandbox}; try it yourself:")
        sight.command(f"cd {sandbox} && remediate plan")
    else:
        sight.say("The sandbox is gone. `remediate demo --folder DIR` keeps it, to try the commands by hand.")
    return ExitCode.OK
