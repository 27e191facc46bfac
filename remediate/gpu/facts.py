"""What is known of the GPUs, as records. Every reading may be `Unknown` with the reason why.

Units: W, MHz, degrees C, MiB, microseconds. NVML gives mW, bytes and nanoseconds; `read_device` converts.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from remediate.gpu.boot.facts import BootFacts
from remediate.gpu.clocktable import ClockTable
from remediate.model import Reading, Unknown, UnknownKind

Version = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,6}\.[0-9]{1,6}$")]
"""`8.0`. Checked where a document is read, for it need not come from a driver."""
Watts = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Lock = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,6},[0-9]{1,6}$")]
"""`MIN,MAX` in MHz."""

NOT_READ = Unknown(UnknownKind.NOT_READ, "not read")
NO_LOCK_KNOWN = Unknown(UnknownKind.NOT_READ, "no driver call tells it, and no earlier run set it")
"""Locked clocks have setters and no getter (nvml.h, CUDA 13.3); only the ledger of this program's runs knows."""


class Power(msgspec.Struct, frozen=True):
    """Power in W, of the GPU or of the whole module of a Grace board."""

    draw_w: Reading[Watts] = NOT_READ
    """NVML `GetPowerUsage`, `--query-gpu=power.draw`: 1 s average on Ampere and later but GA100, where it is the
    present value."""
    limit_w: Reading[Watts] = NOT_READ
    """The limit that software asked for: `GetPowerManagementLimit`, `power.limit`."""
    enforced_w: Reading[Watts] = NOT_READ
    """The lowest of all limiters: `GetEnforcedPowerLimit`, `enforced.power.limit`."""
    default_w: Reading[Watts] = NOT_READ
    min_w: Reading[Watts] = NOT_READ
    max_w: Reading[Watts] = NOT_READ


class Clocks(msgspec.Struct, frozen=True):
    """One clock for each domain, in MHz (`GetClockInfo`, `GetMaxClockInfo`)."""

    graphics_mhz: Reading[int] = NOT_READ
    sm_mhz: Reading[int] = NOT_READ
    memory_mhz: Reading[int] = NOT_READ
    video_mhz: Reading[int] = NOT_READ


class ApplicationClocks(msgspec.Struct, frozen=True):
    """A pair of applications clocks in MHz. Deprecated with CUDA 13; drivers from 590 on no longer answer."""

    memory_mhz: Reading[int] = NOT_READ
    graphics_mhz: Reading[int] = NOT_READ


class Temperature(msgspec.Struct, frozen=True):
    """Temperatures in degrees C, thresholds absolute and as margins.

    Margins (T.Limit) count down to 0; a threshold of -2 lies 2 degrees beyond the limit. They follow the hottest
    sensor, so they are not maximum operating minus core temperature.
    """

    gpu_c: Reading[int] = NOT_READ
    memory_c: Reading[int] = NOT_READ
    margin_c: Reading[int] = NOT_READ
    shutdown_c: Reading[int] = NOT_READ
    slowdown_c: Reading[int] = NOT_READ
    max_operating_c: Reading[int] = NOT_READ
    memory_max_c: Reading[int] = NOT_READ
    shutdown_margin_c: Reading[int] = NOT_READ
    slowdown_margin_c: Reading[int] = NOT_READ
    max_operating_margin_c: Reading[int] = NOT_READ
    memory_max_margin_c: Reading[int] = NOT_READ


class Events(msgspec.Struct, frozen=True):
    """Why the clocks are as they are: masks now, counters in microseconds since the driver was loaded.

    Only differences of counters mean anything, and even those count idle times on some boards.
    """

    active: Reading[int] = NOT_READ
    """Bit mask; `remediate.gpu.reasons` names the bits."""
    supported: Reading[int] = NOT_READ
    power_cap_us: Reading[int] = NOT_READ
    sync_boost_us: Reading[int] = NOT_READ
    software_thermal_us: Reading[int] = NOT_READ
    hardware_thermal_us: Reading[int] = NOT_READ
    power_brake_us: Reading[int] = NOT_READ
    thermal_us: Reading[int] = NOT_READ
    """Both thermal kinds together (`GetViolationStatus`), for drivers that don't tell them apart."""


class Memory(msgspec.Struct, frozen=True):
    """Framebuffer memory in MiB. `used_mib` leaves the driver's own `reserved_mib` out where that is known."""

    total_mib: Reading[int] = NOT_READ
    used_mib: Reading[int] = NOT_READ
    reserved_mib: Reading[int] = NOT_READ


class Process(msgspec.Struct, frozen=True):
    """A process with a context on the GPU. In a container NVML's ids may belong to the host."""

    pid: int
    kind: str
    """`compute` or `graphics`."""
    memory_mib: Reading[int] = NOT_READ
    name: Reading[str] = NOT_READ
    user: Reading[str] = NOT_READ


class ReasonShare(msgspec.Struct, frozen=True):
    """How much of a sample one cause took. `polled` and `counted` are shares of 0 to 1."""

    polled: float
    """Readings in which the event reason's bit was set, of all readings."""
    longest_run: int = 0
    """Most readings in a row with the bit set."""
    counted: Reading[float] = NOT_READ
    """Growth of the driver's counter over the time that passed."""


class Span(msgspec.Struct, frozen=True):
    """Lowest, mean and highest value of a reading over a sample."""

    lowest: float
    mean: float
    highest: float


class Sample(msgspec.Struct, frozen=True):
    """Several readings of one device over a while: shares of time by cause, and spans of what goes with them.

    A span is None where the device does not tell that reading.
    """

    seconds: float
    readings: int
    reasons: dict[str, ReasonShare] = {}
    """By the event reason's name (`remediate.gpu.reasons`), for those that were set or counted at all."""
    sm_mhz: Span | None = None
    draw_w: Span | None = None
    draw_to_limit: Span | None = None
    """Draw over the enforced limit of the same moment."""
    gpu_c: Span | None = None
    memory_c: Span | None = None
    margin_c: Span | None = None
    utilization_percent: Span | None = None


class Device(msgspec.Struct, frozen=True):
    """One GPU. `lost` is set when not even its handle could be had; nothing else is known then."""

    index: int
    """Order of enumeration; may change between boots, so that nothing is addressed by it."""
    lost: Unknown | None = None
    uuid: Reading[str] = NOT_READ
    name: Reading[str] = NOT_READ
    pci_bus_id: Reading[str] = NOT_READ
    """`domain:bus:device.function` in hexadecimal, domain with 8 digits."""
    architecture: Reading[str] = NOT_READ
    compute_capability: Reading[Version] = NOT_READ
    power: Power = Power()
    clocks: Clocks = Clocks()
    max_clocks: Clocks = Clocks()
    application_clocks: ApplicationClocks = ApplicationClocks()
    default_application_clocks: ApplicationClocks = ApplicationClocks()
    supported_clocks: Reading[tuple[ClockTable, ...]] = NOT_READ
    """By memory clock, highest first."""
    locked_gpu_clocks: Reading[Lock] = NO_LOCK_KNOWN
    """`MIN,MAX` in MHz as an earlier run of this program set it."""
    locked_memory_clocks: Reading[Lock] = NO_LOCK_KNOWN
    persistence_mode: Reading[bool] = NOT_READ
    compute_mode: Reading[str] = NOT_READ
    mig_current: Reading[bool] = NOT_READ
    mig_pending: Reading[bool] = NOT_READ
    virtualization: Reading[str] = NOT_READ
    ecc_current: Reading[bool] = NOT_READ
    ecc_pending: Reading[bool] = NOT_READ
    performance_state: Reading[int] = NOT_READ
    """0 (highest) to 15."""
    temperature: Temperature = Temperature()
    events: Events = Events()
    utilization_percent: Reading[int] = NOT_READ
    memory_utilization_percent: Reading[int] = NOT_READ
    memory: Memory = Memory()
    processes: Reading[tuple[Process, ...]] = NOT_READ
    module_power: Power | None = None
    """Power of the whole module of a Grace board; None on boards without that scope."""
    sample: Sample | None = None
    """Only where `--sample SECONDS` asked for one."""

    @property
    def label(self) -> str:
        """`GPU 0 (GPU-5f1c2d3e…)`, for people."""
        return f"GPU {self.index}" if isinstance(self.uuid, Unknown) else f"GPU {self.index} ({self.uuid[:12]}…)"


class GpuFacts(msgspec.Struct, frozen=True):
    """The driver and its devices. Without a usable driver `driver_version` says why and `devices` is empty."""

    driver_version: Reading[str] = NOT_READ
    nvml_version: Reading[str] = NOT_READ
    cuda_driver_version: Reading[Version] = NOT_READ
    """Newest CUDA version that the driver supports, as `13.0`."""
    device_count: Reading[int] = NOT_READ
    """GPUs that the driver sees, selected or not."""
    devices: tuple[Device, ...] = ()
    smi: Reading[str] = NOT_READ
    """Path of nvidia-smi."""
    persistence_daemon: Reading[bool] = NOT_READ
    """Whether nvidia-persistenced runs; `nvidia-smi -pm 1` then goes through it."""
    has_cap_sys_admin: Reading[bool] = NOT_READ
    """NVML setters need it inside of containers, where being root is not enough (nvidia-docker#495). For a user who
    is not root: whether root could have it here."""
    platform: Reading[str] = NOT_READ
    """`container`, `wsl2`, `jetson`, or `host` for none of these."""
    boot: BootFacts = BootFacts()
    """The unit that sets the GPUs again after a boot."""

    def device(self, uuid: str) -> Device | None:
        """The device with that UUID."""
        return next((device for device in self.devices if device.uuid == uuid), None)
