"""Several readings of the devices over a while: shares of time by cause, and spans of what goes with them.

One reading can't tell a brief cap from a lasting one, and the driver's counters run since it was loaded, so that only
their growth means anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from remediate.gpu.facts import Device, Events, ReasonShare, Sample, Span
from remediate.gpu.nvml import Nvml
from remediate.gpu.read_device import Moment, read_moment
from remediate.gpu.reasons import (
    HARDWARE_THERMAL,
    POWER_BRAKE,
    SOFTWARE_POWER_CAP,
    SOFTWARE_THERMAL,
    SYNC_BOOST,
    decode,
    name_of,
)
from remediate.model import Reading, Unknown, UnknownKind

LONGEST_S = 600.0
_INTERVAL_S = 0.5
_MOST_INTERVALS = 240
_COUNTERS = {
    SOFTWARE_POWER_CAP: "power_cap_us",
    SYNC_BOOST: "sync_boost_us",
    SOFTWARE_THERMAL: "software_thermal_us",
    HARDWARE_THERMAL: "hardware_thermal_us",
    POWER_BRAKE: "power_brake_us",
}


class Pace(Protocol):
    """Time as the sample sees it: the clock on the wall, or the one of a simulated board."""

    def now(self) -> float:
        """Seconds from some start."""
        ...

    def wait(self, seconds: float) -> None:
        """Come back so much later."""
        ...


class WallClock:
    """Real time."""

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)


def sample_devices(
    nvml: Nvml,
    devices: Mapping[int, tuple[Device, Any]],
    seconds: float,
    pace: Pace,
    note: Callable[[str], None],
) -> dict[int, Device]:
    """The devices with their samples, by index. All of them are read in turn, at each point of time.

    Args:
        devices: by index, the device as it was read and its handle.
        seconds: how long, at least two readings in any case.
        note: told the index that is asked next.
    """
    count = min(max(round(seconds / _INTERVAL_S), 1), _MOST_INTERVALS)
    moments: dict[int, list[Moment]] = {index: [] for index in devices}
    times: dict[int, list[float]] = {index: [] for index in devices}
    for round_ in range(count + 1):
        if round_:
            pace.wait(seconds / count)
        for index, (_, handle) in devices.items():
            note(str(index))
            times[index].append(pace.now())
            moments[index].append(read_moment(nvml, handle))
    return {index: _with_sample(device, moments[index], times[index]) for index, (device, _) in devices.items()}


def _with_sample(device: Device, moments: Sequence[Moment], times: Sequence[float]) -> Device:
    gone = next((moment.active for moment in moments if _is_lost(moment.active)), None)
    if gone is not None:
        # What was read before is history: the device went away while it was watched.
        return msgspec.structs.replace(device, clocks=msgspec.structs.replace(device.clocks, sm_mhz=gone))
    return msgspec.structs.replace(device, sample=summarise(moments, times[-1] - times[0]))


def summarise(moments: Sequence[Moment], seconds: float) -> Sample:
    """The readings as one record."""
    return Sample(
        seconds=round(seconds, 3),
        readings=len(moments),
        reasons=_reasons(moments, seconds),
        sm_mhz=_span(moment.sm_mhz for moment in moments),
        draw_w=_span(moment.draw_w for moment in moments),
        draw_to_limit=_span(_ratio(moment) for moment in moments),
        gpu_c=_span(moment.gpu_c for moment in moments),
        memory_c=_span(moment.memory_c for moment in moments),
        margin_c=_span(moment.margin_c for moment in moments),
        utilization_percent=_span(moment.utilization_percent for moment in moments),
    )


def _reasons(moments: Sequence[Moment], seconds: float) -> dict[str, ReasonShare]:
    masks = [moment.active for moment in moments if not isinstance(moment.active, Unknown)]
    seen = 0
    for mask in masks:
        seen |= mask
    shares = {}
    for reason in decode(seen | _counted_bits(moments)):
        is_set = [bool(mask & reason.bit) for mask in masks]
        shares[name_of(reason.bit)] = ReasonShare(
            polled=round(sum(is_set) / len(masks), 4) if masks else 0.0,
            longest_run=_longest_run(is_set),
            counted=_counted(moments, reason.bit, seconds),
        )
    return shares


def _counted_bits(moments: Sequence[Moment]) -> int:
    first, last = moments[0].events, moments[-1].events
    return sum(bit for bit, name in _COUNTERS.items() if (_growth(first, last, name) or 0) > 0)


def _counted(moments: Sequence[Moment], bit: int, seconds: float) -> Reading[float]:
    name = _COUNTERS.get(bit)
    if name is None:
        return Unknown(UnknownKind.NOT_SUPPORTED, "the driver has no counter for it")
    last = getattr(moments[-1].events, name)
    if isinstance(last, Unknown):
        return last
    growth = _growth(moments[0].events, moments[-1].events, name)
    if growth is None or growth < 0 or seconds <= 0:
        return Unknown(UnknownKind.FAILED, "the counter was reset in between")
    return round(min(growth / (seconds * 1_000_000), 1.0), 4)


def _growth(first: Events, last: Events, name: str) -> int | None:
    before, after = getattr(first, name), getattr(last, name)
    return None if isinstance(before, Unknown) or isinstance(after, Unknown) else after - before


def _longest_run(is_set: Sequence[bool]) -> int:
    longest = run = 0
    for value in is_set:
        run = run + 1 if value else 0
        longest = max(longest, run)
    return longest


def _ratio(moment: Moment) -> Reading[float]:
    draw, limit = moment.draw_w, moment.enforced_w
    if isinstance(draw, Unknown):
        return draw
    if isinstance(limit, Unknown):
        return limit
    return draw / limit if limit > 0 else Unknown(UnknownKind.FAILED, "a limit of 0 W is no limit")


def _span(readings: Any) -> Span | None:
    known = [float(reading) for reading in readings if not isinstance(reading, Unknown)]
    if not known:
        return None
    return Span(round(min(known), 4), round(sum(known) / len(known), 4), round(max(known), 4))


def _is_lost(reading: Reading[int]) -> bool:
    return isinstance(reading, Unknown) and reading.kind is UnknownKind.LOST
