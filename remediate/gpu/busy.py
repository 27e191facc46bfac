"""Who is on a GPU and notices when its clocks or limits change. Pure."""

from __future__ import annotations

from remediate.gpu.commands import Operation, Setting
from remediate.gpu.facts import Device, GpuFacts, Process
from remediate.model import Reading, Unknown


def who_notices(operation: Operation, facts: GpuFacts) -> tuple[str, ...]:
    """One line for each process that notices the operation; empty where nobody does.

    Persistence mode changes nothing for a process that runs. A list that can't be read counts as somebody being there.
    """
    device = facts.device(operation.uuid)
    if device is None or operation.setting is Setting.PERSISTENCE_MODE:
        return ()
    return tuple(f"GPU {device.index}: {line}" for line in process_lines(device))


def process_lines(device: Device) -> tuple[str, ...]:
    """The device's processes as `4242 python (alice), compute, 12288 MiB`, or why they are not known."""
    processes = device.processes
    if isinstance(processes, Unknown):
        return (f"its processes could not be read: {processes.reason}",)
    return tuple(_line(process) for process in processes)


def _line(process: Process) -> str:
    memory = process.memory_mib
    size = "memory unknown" if isinstance(memory, Unknown) else f"{memory} MiB"
    return f"{process.pid} {_shown(process.name)} ({_shown(process.user)}), {process.kind}, {size}"


def _shown(reading: Reading[str]) -> str:
    return "?" if isinstance(reading, Unknown) else reading
