"""The known-good state as values with units: what a profile file may say. Knows no machine.

The file format is TOML; docs/profiles.md is its reference. Every table here forbids unknown keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

PROFILE_SCHEMA_VERSION = 1


class Match(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which hosts the profile fits. All conditions that are given must hold; an empty one holds always."""

    gpu: tuple[str, ...] = ()
    """Globs on NVML's product name, any of them, case counts: `NVIDIA A100*`."""
    driver: str = ""
    """PEP 440 specifier on the driver version: `>=580`."""
    compute_capability: str = ""
    """PEP 440 specifier on the compute capability: `>=7.5`."""
    without_gpu: bool = False
    """Also chosen where no GPU can be read."""
    on_request: bool = False
    """Never chosen by itself, only by name."""


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A distribution's known-good version, and why."""

    version: str
    """Exact PEP 440 version that is installed and written when a change is needed, without a local part."""
    accept: str = ""
    """PEP 440 specifier of versions that are left alone; empty means only `version`."""
    cuda: str = ""
    """CUDA version of the build as torch's `version.py` gives it (`12.1`); only for torch. Empty: not judged."""
    required: bool = True
    """False: judged only where it is installed."""
    reason: str = ""


class GpuWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Intent for every matched GPU; the planner maps it to what the board and driver can do."""

    power_limit: Literal["default", "max"] | None = None
    power_limit_w: float | None = None
    """W. At most one of the three power wishes may be given."""
    power_limit_fraction: float | None = None
    """Fraction of the board's maximum limit, above 0 and at most 1."""
    module_power_limit: Literal["default", "max"] | None = None
    """Limit of the whole module (GPU, CPU, memory) of a Grace board; not judged on boards without that scope."""
    module_power_limit_w: float | None = None
    sm_clock: Literal["max", "default"] | None = None
    sm_clock_mhz: int | None = None
    """MHz, a ceiling; the nearest supported clock at or below is used. At most one of the three."""
    sm_clock_fraction: float | None = None
    """Ceiling as a fraction of the highest supported clock, above 0 and at most 1."""
    sm_clock_min_mhz: int | None = None
    """MHz, a floor: the clock does not fall below it when idle. With `sm_clock_mhz` of the same value it is fixed."""
    memory_clock: Literal["max", "default"] | None = None
    memory_clock_mhz: int | None = None
    persistence_mode: bool | None = None
    survive_reboot: bool | None = None
    """True: a systemd unit sets the GPUs again after each boot. False: it is removed. Of the host, so only here."""
    compute_mode: Literal["default", "exclusive_process", "prohibited"] | None = None
    """How many processes may use the GPU."""
    why: Mapping[str, str] = {}
    """Reason for a wish, by its key: `power_limit`, `clocks`, `persistence_mode`, `compute_mode`."""


class GpuFor(GpuWish, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Wishes for some of the host's GPUs, laid over `[gpu]` key by key.

    Every condition that is given must hold, by any of its values; one is required.
    """

    uuid: tuple[str, ...] = ()
    """Full UUIDs, as `GPU-5f1c…`."""
    pci: tuple[str, ...] = ()
    """PCI addresses in hexadecimal, as `0000:07:00.0`; the domain may be left out where it is 0."""
    name: tuple[str, ...] = ()
    """Globs on NVML's product name, case counts: `NVIDIA L4`."""
    leave_alone: bool = False
    """Nothing is wished of these GPUs, whatever `[gpu]` says."""


EXCLUSIVE_GPU_WISHES = (
    ("power_limit", "power_limit_w", "power_limit_fraction"),
    ("module_power_limit", "module_power_limit_w"),
    ("sm_clock", "sm_clock_mhz", "sm_clock_fraction"),
    ("memory_clock", "memory_clock_mhz"),
)
"""Keys of `GpuWish` of which at most one may be given; one of a nearer table replaces its rivals."""


class ScriptWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How an inference script should be laid out. What is not given is not judged."""

    load: Literal["once"] | None = None
    device: Literal["cuda"] | None = None
    """The model and its inputs belong on the GPU."""
    dtype: Literal["bfloat16", "float16", "auto"] | None = None
    compile: Literal["none", "effective"] | None = None
    """`none`: a compile that generate never uses is taken out. `effective`: it may stay where generate uses it."""
    cuda_init: Literal["public", "leave"] | None = None
    """`public`: `torch.cuda.init()` at start of a single-process script. `leave`: only a private call is replaced."""
    allocator: str | None = None
    """Value for `PYTORCH_CUDA_ALLOC_CONF`, as `expandable_segments:True`."""
    guard: Literal["inference_mode"] | None = None
    """The model runs under `inference_mode` rather than `no_grad`."""
    cache_clear: Literal["none"] | None = None
    """`empty_cache` and `gc.collect` are taken out of the request path."""
    ignore: Mapping[str, str] = {}
    """Codes of the script rules that are not judged, each with the reason."""
    why: Mapping[str, str] = {}


class Correction(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Something that a report recommended and that the profile replaces."""

    about: str
    """Dotted path of the profile value that stands in its place: `gpu.sm_clock`."""
    said: str
    used: str
    because: str
    source: str = ""


class InstallSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the pinned distributions come from, beside what pip is configured to use."""

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A resolved profile: after `extends`, complete and checked."""

    schema_version: int
    name: str
    title: str = ""
    description: str = ""
    extends: str | None = None
    match: Match = Match()
    python: str = ""
    """PEP 440 specifier of the target interpreter's version for which the pins have wheels."""
    packages: Mapping[str, Pin] = {}
    """Canonical distribution name (PEP 503) to pin."""
    install: InstallSource = InstallSource()
    gpu: GpuWish = GpuWish()
    gpu_for: tuple[GpuFor, ...] = ()
    """Wishes for particular GPUs; a later table goes before an earlier one."""
    script: ScriptWish = ScriptWish()
    corrections: tuple[Correction, ...] = ()
    costs: tuple[str, ...] = ()
    """What it costs to be on this profile (missing features), shown by `plan` and `profiles show` beside what is known
    of the pins."""
    successor: str | None = None
    """Shipped profile that leaves these costs behind; `plan` says how many of them."""
