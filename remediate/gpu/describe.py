"""GPU facts in label and value, for `remediate facts`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from remediate.gpu.commands import Setting, show_value
from remediate.gpu.facts import Device, GpuFacts, Sample
from remediate.gpu.host import BARE_HOST
from remediate.gpu.reasons import describe as describe_reasons
from remediate.model import Reading, Unknown
from remediate.units import format_watts


def describe(facts: GpuFacts) -> Sequence[tuple[str, str]]:
    """The driver, then some lines a device; every reading that failed says why."""
    rows = [("driver", str(facts.driver_version))]
    if not isinstance(facts.driver_version, Unknown):
        rows.append(("CUDA of the driver", str(facts.cuda_driver_version)))
    if isinstance(facts.platform, str) and facts.platform != BARE_HOST:
        rows.append(("place", facts.platform))
    for device in facts.devices:
        rows += ((f"GPU {device.index} {label}", value) for label, value in _rows(device))
    return tuple(rows)


def _rows(device: Device) -> Iterator[tuple[str, str]]:
    if device.lost is not None:
        yield "state", str(device.lost)
        return
    power, clocks, highest, heat = device.power, device.clocks, device.max_clocks, device.temperature
    yield "name", str(device.name)
    yield "UUID", str(device.uuid)
    yield "PCI bus id", str(device.pci_bus_id)
    yield "compute capability", str(device.compute_capability)
    yield "power limit", f"{_watts(power.limit_w)} ({_watts(power.min_w)} to {_watts(power.max_w)})"
    yield "enforced power limit", _watts(power.enforced_w)
    yield "power draw", _watts(power.draw_w)
    yield "SM clock", f"{_unit(clocks.sm_mhz, 'MHz')} of {_unit(highest.sm_mhz, 'MHz')}"
    yield "memory clock", f"{_unit(clocks.memory_mhz, 'MHz')} of {_unit(highest.memory_mhz, 'MHz')}"
    yield "applications clocks", _pair(device)
    yield "persistence mode", _flag(device.persistence_mode)
    yield "compute mode", str(device.compute_mode)
    yield "MIG mode", _flag(device.mig_current)
    yield "temperature", f"{_unit(heat.gpu_c, 'C')} (maximum operating {_unit(heat.max_operating_c, 'C')})"
    yield "memory temperature", f"{_unit(heat.memory_c, 'C')} (maximum operating {_unit(heat.memory_max_c, 'C')})"
    mask = device.events.active
    yield "clocks event reasons", str(mask) if isinstance(mask, Unknown) else describe_reasons(mask)
    if device.module_power is not None:
        yield "module power limit", _watts(device.module_power.limit_w)
    if device.sample is not None:
        yield from _sample_rows(device.sample)
    yield "memory used", f"{_unit(device.memory.used_mib, 'MiB')} of {_unit(device.memory.total_mib, 'MiB')}"
    processes = device.processes
    yield "processes", str(processes) if isinstance(processes, Unknown) else str(len(processes))


def _sample_rows(sample: Sample) -> Iterator[tuple[str, str]]:
    """Shares of time and spans, each where the device tells it."""
    shares = [
        f"{name} {share.polled:.0%} of the readings"
        + ("" if isinstance(share.counted, Unknown) else f", {share.counted:.0%} of the time by its counter")
        for name, share in sample.reasons.items()
    ]
    yield f"sample of {sample.seconds:.1f} s", f"{sample.readings} readings; {'; '.join(shares) or 'no reason was set'}"
    spans = (
        ("SM clock", sample.sm_mhz, "MHz"),
        ("power draw", sample.draw_w, "W"),
        ("temperature", sample.gpu_c, "C"),
        ("memory temperature", sample.memory_c, "C"),
        ("utilization", sample.utilization_percent, "%"),
    )
    for label, span, unit in spans:
        if span is not None:
            yield f"sampled {label}", f"{span.lowest:.0f} to {span.highest:.0f} {unit}, mean {span.mean:.0f}"


def _watts(reading: Reading[float]) -> str:
    return str(reading) if isinstance(reading, Unknown) else format_watts(reading)


def _unit(reading: Reading[int], unit: str) -> str:
    return str(reading) if isinstance(reading, Unknown) else f"{reading} {unit}"


def _flag(reading: Reading[bool]) -> str:
    return str(reading) if isinstance(reading, Unknown) else ("on" if reading else "off")


def _pair(device: Device) -> str:
    clocks = device.application_clocks
    for reading in (clocks.memory_mhz, clocks.graphics_mhz):
        if isinstance(reading, Unknown):
            return str(reading)
    return show_value(Setting.APPLICATION_CLOCKS, f"{clocks.memory_mhz},{clocks.graphics_mhz}")
