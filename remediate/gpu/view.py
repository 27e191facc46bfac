"""One look at a device's event reasons and what goes with them, whether it is one moment or a sample."""

from __future__ import annotations

from remediate.gpu.facts import Device, Sample, Span
from remediate.gpu.held import STEP_MHZ
from remediate.gpu.reasons import APPLICATION_CLOCKS, IDLE, REASONS, decode, describe
from remediate.model import Reading, Unknown
from remediate.units import format_watts

_HARMLESS = IDLE | APPLICATION_CLOCKS
_LASTING_RUN = 3
_HOT_WITHIN_C = 2


class View:
    """A device's reasons with shares of 0 to 1; for one moment each is 0 or 1.

    Attributes:
        device: what is looked at.
        mask: bits that were set at all, None where the mask can't be read.
        is_sampled: whether several readings stand behind it.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._sample = device.sample
        self._spans = device.sample or Sample(0.0, 0)
        self.is_sampled = device.sample is not None
        self.mask = _mask(device, device.sample)

    def has(self, bits: int) -> bool:
        """Whether any of the bits was set at all."""
        return bool((self.mask or 0) & bits)

    def polled(self, bits: int) -> float:
        """Share of the readings with the bit set; the highest where several are asked for."""
        if self._sample is None:
            return float(self.has(bits))
        shares = [self._sample.reasons.get(reason.name) for reason in decode(bits)]
        return max((share.polled for share in shares if share is not None), default=0.0)

    def share(self, bits: int) -> float:
        """Share of the time, by the readings or by the driver's counter, whichever says more."""
        if self._sample is None:
            return float(self.has(bits))
        known = [self._sample.reasons.get(reason.name) for reason in decode(bits)]
        counted = [share.counted for share in known if share is not None]
        return max([self.polled(bits), *(value for value in counted if not isinstance(value, Unknown))])

    def longest_run(self, bits: int) -> int:
        """Most readings in a row with one of the bits set."""
        if self._sample is None:
            return int(self.has(bits))
        shares = [self._sample.reasons.get(reason.name) for reason in decode(bits)]
        return max((share.longest_run for share in shares if share is not None), default=0)

    def lasts(self, bits: int) -> bool:
        """Set in several readings in a row, or in the only one there is."""
        return self.longest_run(bits) >= (min(_LASTING_RUN, self._readings) if self.is_sampled else 1)

    @property
    def _readings(self) -> int:
        return self._sample.readings if self._sample else 1

    @property
    def is_limited(self) -> bool:
        """Whether any reason but the harmless ones was set."""
        return bool((self.mask or 0) & ~_HARMLESS)

    @property
    def is_at_full_clock(self) -> bool:
        """The SM clock did not leave its maximum."""
        top, lowest = self.device.max_clocks.sm_mhz, self._lowest_sm_mhz
        return lowest is not None and not isinstance(top, Unknown) and lowest >= top

    @property
    def highest_sm_mhz(self) -> float | None:
        """Highest SM clock seen."""
        return _pick(self._spans.sm_mhz, "highest", self.device.clocks.sm_mhz)

    @property
    def _lowest_sm_mhz(self) -> float | None:
        return _pick(self._spans.sm_mhz, "lowest", self.device.clocks.sm_mhz)

    @property
    def utilization(self) -> float | None:
        """Mean in percent; None where it can't be read, which is not 0 (MIG)."""
        return _pick(self._spans.utilization_percent, "mean", self.device.utilization_percent)

    @property
    def margin_c(self) -> float | None:
        """Least margin to the next thermal limit, as the driver gives it, else to the maximum operating temperature.

        A cool core proves nothing where the memory has its own limit, so then there is none.
        """
        heat = self.device.temperature
        given = _pick(self._spans.margin_c, "lowest", heat.margin_c)
        if given is not None:
            return given
        core = _pick(self._spans.gpu_c, "highest", heat.gpu_c)
        if core is None or isinstance(heat.max_operating_c, Unknown) or not isinstance(heat.memory_c, Unknown):
            return None
        return heat.max_operating_c - core

    @property
    def is_memory_hot(self) -> bool:
        """The memory is at its maximum operating temperature and the core is not."""
        heat = self.device.temperature
        memory = _pick(self._spans.memory_c, "highest", heat.memory_c)
        if memory is None or isinstance(heat.memory_max_c, Unknown) or memory < heat.memory_max_c - _HOT_WITHIN_C:
            return False
        core = _pick(self._spans.gpu_c, "highest", heat.gpu_c)
        return core is None or isinstance(heat.max_operating_c, Unknown) or core < heat.max_operating_c - _HOT_WITHIN_C

    @property
    def draw_to_limit(self) -> float | None:
        """Highest draw over the enforced limit."""
        if self._sample is not None and self._sample.draw_to_limit is not None:
            return self._sample.draw_to_limit.highest
        draw, limit = self.device.power.draw_w, self._limit_w
        return None if isinstance(draw, Unknown) or limit is None else draw / limit

    @property
    def _limit_w(self) -> float | None:
        for limit in (self.device.power.enforced_w, self.device.power.limit_w):
            if not isinstance(limit, Unknown) and limit > 0:
                return limit
        return None

    @property
    def is_bounded_by_setting(self) -> bool:
        """An applications clock or a lock of this program explains a clock that is no higher."""
        device, clock, bounds = self.device, self.highest_sm_mhz, list[int]()
        chosen = device.application_clocks.graphics_mhz
        if not isinstance(chosen, Unknown) and chosen != device.default_application_clocks.graphics_mhz:
            bounds.append(chosen)
        if isinstance(device.locked_gpu_clocks, str):
            bounds.append(int(device.locked_gpu_clocks.split(",")[1]))
        return clock is not None and any(clock >= bound - STEP_MHZ for bound in bounds)

    @property
    def reasons(self) -> str:
        """Names of the reasons, with shares of time where they were sampled."""
        if self._sample is None:
            return describe(self.mask or 0)
        known = self._sample.reasons
        parts = [
            f"{reason.name} {self.share(reason.bit):.0%}" for reason in decode(self.mask or 0) if reason.name in known
        ]
        return f"{', '.join(parts) or 'none'} of {self._sample.seconds:.0f} s"

    @property
    def draw(self) -> tuple[str, ...]:
        """Draw and limit in words; empty where either is missing."""
        limit, drawn = self._limit_w, _pick(self._spans.draw_w, "mean", self.device.power.draw_w)
        return () if limit is None or drawn is None else (f"draws {format_watts(drawn)} of {format_watts(limit)}",)

    @property
    def temperatures(self) -> tuple[str, ...]:
        """Temperatures with the thresholds that the device gives, absolute or as margins."""
        heat, spans = self.device.temperature, self._spans
        parts = (
            ("GPU", _pick(spans.gpu_c, "highest", heat.gpu_c)),
            ("GPU maximum operating", _pick(None, "", heat.max_operating_c)),
            ("GPU slowdown", _pick(None, "", heat.slowdown_c)),
            ("memory", _pick(spans.memory_c, "highest", heat.memory_c)),
            ("memory maximum operating", _pick(None, "", heat.memory_max_c)),
            ("margin", _pick(spans.margin_c, "lowest", heat.margin_c)),
        )
        known = [f"{name} {value:.0f} C" for name, value in parts if value is not None]
        return (", ".join(known),) if known else ()

    @property
    def clock(self) -> tuple[str, ...]:
        """The SM clock and its maximum."""
        top, now = self.device.max_clocks.sm_mhz, self.device.clocks.sm_mhz
        span = self._sample.sm_mhz if self._sample else None
        if isinstance(top, Unknown) or (span is None and isinstance(now, Unknown)):
            return ()
        shown = f"{span.lowest:.0f} to {span.highest:.0f}" if span else f"{now}"
        return (f"SM clock {shown} of at most {top} MHz",)


def _mask(device: Device, sample: Sample | None) -> int | None:
    active = device.events.active
    if sample is None:
        return None if isinstance(active, Unknown) else active
    bits = {reason.name: reason.bit for reason in REASONS}
    mask = 0
    for name in sample.reasons:
        mask |= bits[name] if name in bits else int(name.removeprefix("bit "), 16)
    return mask


def _pick(span: Span | None, which: str, reading: Reading[int] | Reading[float]) -> float | None:
    """A value of the sample, else the one reading; None where there is neither."""
    if span is not None:
        value: float = getattr(span, which)
        return value
    return None if isinstance(reading, Unknown) else float(reading)
