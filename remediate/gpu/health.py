"""Who else is on a device, and clocks that somebody else seems to have locked. Advice only."""

from __future__ import annotations

from remediate.gpu.busy import process_lines
from remediate.gpu.commands import Setting
from remediate.gpu.facts import Device
from remediate.gpu.held import held_at_idle, held_under_load
from remediate.gpu.judgement import FOREIGN_LOCK, PROCESSES, Judgement, commands_for
from remediate.model import Outcome, Unknown


def judge_processes(device: Device) -> tuple[Judgement, ...]:
    """Advice where processes have a context on the GPU."""
    processes = device.processes
    if isinstance(processes, Unknown) or not processes:
        return ()
    count = f"{len(processes)} processes use" if len(processes) > 1 else "1 process uses"
    summary = f"{count} the GPU; they notice when clocks or limits change"
    return (Judgement(PROCESSES, device, Outcome.DIFFERS, summary, evidence=process_lines(device), is_advice=True),)


def judge_foreign_lock(device: Device) -> tuple[Judgement, ...]:
    """Advice where a sample shows a clock that stands still and that no run of this program locked."""
    if isinstance(device.locked_gpu_clocks, str):
        return ()
    idle = held_at_idle(device)
    held = idle or held_under_load(device)
    if held is None:
        return ()
    how = "does not fall while the GPU is idle" if idle else "does not rise under load"
    undo = [" ".join(argv) for argv in commands_for(device, Setting.LOCKED_GPU_CLOCKS, "")]
    return (
        Judgement(
            FOREIGN_LOCK,
            device,
            Outcome.DIFFERS,
            f"the SM clock stays at {held.mhz} MHz and {how}: somebody else seems to have locked it",
            evidence=(*held.evidence, *(f"`{line}` takes a lock away; ask who set it first" for line in undo)),
            is_advice=True,
        ),
    )
