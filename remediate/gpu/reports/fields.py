"""Where each fact of a device stands in `nvidia-smi -q`, in `-q -x` and in a `--query-gpu` CSV, over the drivers.

Paths are in lower case, headings joined by `/`. The first place with a value counts, so that an older or newer name
can stand behind it. Sources: nvidia-smi(1) of driver 535.261.03 with its change log, `--help-query-gpu` of 580.159.04,
and public outputs of drivers 367 to 610.
"""

from __future__ import annotations

import msgspec

from remediate.gpu.reports import cells
from remediate.gpu.reports.cells import Reader

DEVICE_ID = "pci_device_id"
"""Not a fact; with the architecture it tells the compute capability where the report does not."""


class Field(msgspec.Struct, frozen=True):
    """One fact.

    Attributes:
        name: dotted place in `remediate.gpu.facts.Device`.
        read: from a cell to a reading.
        text: paths in `-q`.
        xml: paths in `-q -x`.
        csv: names of `--query-gpu`, present and former.
    """

    name: str
    read: Reader
    text: tuple[str, ...] = ()
    xml: tuple[str, ...] = ()
    csv: tuple[str, ...] = ()


def _identity() -> tuple[Field, ...]:
    return (
        Field("name", cells.text, ("product name",), ("product_name",), ("name", "gpu_name")),
        Field("uuid", cells.uuid, ("gpu uuid",), ("uuid",), ("uuid", "gpu_uuid")),
        Field("pci_bus_id", cells.pci_bus_id, ("pci/bus id",), ("pci/pci_bus_id",), ("pci.bus_id", "gpu_bus_id")),
        Field("architecture", cells.architecture, ("product architecture",), ("product_architecture",)),
        Field("compute_capability", cells.version, csv=("compute_cap",)),
        Field(DEVICE_ID, cells.text, ("pci/device id",), ("pci/pci_device_id",), ("pci.device_id",)),
    )


def _modes() -> tuple[Field, ...]:
    return (
        _mode("persistence_mode", "persistence mode", "persistence_mode", "persistence_mode"),
        Field("compute_mode", cells.compute_mode, ("compute mode",), ("compute_mode",), ("compute_mode",)),
        _mode("mig_current", "mig mode/current", "mig_mode/current_mig", "mig.mode.current"),
        _mode("mig_pending", "mig mode/pending", "mig_mode/pending_mig", "mig.mode.pending"),
        Field(
            "virtualization",
            cells.virtualization,
            ("gpu virtualization mode/virtualization mode", "gpu virtualization mode"),
            ("gpu_virtualization_mode/virtualization_mode",),
        ),
        _mode("ecc_current", "ecc mode/current", "ecc_mode/current_ecc", "ecc.mode.current"),
        _mode("ecc_pending", "ecc mode/pending", "ecc_mode/pending_ecc", "ecc.mode.pending"),
        Field(
            "performance_state",
            cells.performance_state,
            ("performance state",),
            ("performance_state", "power_readings/power_state"),
            ("pstate",),
        ),
    )


def _mode(name: str, text: str, xml: str, csv: str) -> Field:
    return Field(name, cells.flag, (text,), (xml,), (csv,))


def _power(record: str, block: str, prefixes: tuple[str, ...], former: str = "") -> tuple[Field, ...]:
    """Power of a GPU or of a module.

    "Current" is what is enforced, "Requested" what software asked for: `enforced.power.limit` and
    `gpu.power.current_limit` are one field. Before 535 the block was `Power Readings`, with `Power Limit` and `Enforced
    Power Limit`; 610 nests the limits once more. The average draw is what NVML's GetPowerUsage gives from Ampere on,
    GA100 excepted; on older boards only the present draw has a value.

    Args:
        record: place of the power record.
        block: heading in `-q`; the XML's is the same with underscores.
        prefixes: of the query fields.
        former: heading before 535, which knew no scopes.
    """
    nested = f"{block}/{block.removesuffix(' power readings')} ceiling power limit"

    def field(fact: str, words: tuple[str, ...], names: tuple[str, ...], old: str) -> Field:
        text = tuple(f"{heading}/{word}" for heading in (block, nested) for word in words)
        text += (f"{former}/{old}",) if former else ()
        xml = tuple(path.replace(" ", "_") for path in text)
        csv = tuple(f"{prefix}{name}" for name in names for prefix in prefixes)
        return Field(f"{record}.{fact}", cells.watts if fact == "draw_w" else cells.limit, text, xml, csv)

    draws = ("average power draw", "power draw", "instantaneous power draw", "instant power draw")
    return (
        field("draw_w", draws, ("power.draw", "power.draw.average", "power.draw.instant"), "power draw"),
        field("limit_w", ("requested power limit",), ("power.limit", "power.requested_limit"), "power limit"),
        field(
            "enforced_w",
            ("current power limit",),
            ("enforced.power.limit", "power.current_limit"),
            "enforced power limit",
        ),
        field("default_w", ("default power limit",), ("power.default_limit",), "default power limit"),
        field("min_w", ("min power limit",), ("power.min_limit",), "min power limit"),
        field("max_w", ("max power limit",), ("power.max_limit",), "max power limit"),
    )


def _clocks(record: str, block: str, csv: str, domains: tuple[str, ...]) -> tuple[Field, ...]:
    """Clocks of several domains below one heading. `mem` and `gr` are short for `memory` and `graphics`."""
    short = {"memory": "mem", "graphics": "gr"}
    return tuple(
        Field(
            f"{record}.{domain}_mhz",
            cells.whole("MHz"),
            (f"{block}/{domain}",),
            (f"{block.replace(' ', '_')}/{'mem' if domain == 'memory' else domain}_clock",),
            (f"{csv}.{domain}", f"{csv.replace('.current', '')}.{short.get(domain, domain)}"),
        )
        for domain in domains
    )


def _temperatures() -> tuple[Field, ...]:
    """Absolute thresholds on some boards, margins (T.Limit) on others; 610 adds words to the margins' names."""
    return (
        _temperature("gpu_c", "gpu current temp", "gpu_temp", "temperature.gpu"),
        _temperature("memory_c", "memory current temp", "memory_temp", "temperature.memory"),
        Field(
            "temperature.margin_c",
            cells.whole("C", signed=True),
            ("temperature/gpu t.limit temp", "temperature/gpu current t.limit temp"),
            ("temperature/gpu_temp_tlimit",),
            ("temperature.gpu.tlimit",),
        ),
        _temperature("shutdown_c", "gpu shutdown temp", "gpu_temp_max_threshold"),
        _temperature("slowdown_c", "gpu slowdown temp", "gpu_temp_slow_threshold"),
        _temperature("max_operating_c", "gpu max operating temp", "gpu_temp_max_gpu_threshold"),
        _temperature("memory_max_c", "memory max operating temp", "gpu_temp_max_mem_threshold"),
        _temperature("shutdown_margin_c", "gpu shutdown t.limit temp", "gpu_temp_max_tlimit_threshold"),
        _temperature("slowdown_margin_c", "gpu slowdown t.limit temp", "gpu_temp_slow_tlimit_threshold"),
        _temperature("max_operating_margin_c", "gpu max operating t.limit temp", "gpu_temp_max_gpu_tlimit_threshold"),
        _temperature("memory_max_margin_c", "memory max operating t.limit temp", "gpu_temp_max_mem_tlimit_threshold"),
    )


def _temperature(fact: str, text: str, xml: str, csv: str = "") -> Field:
    return Field(
        f"temperature.{fact}",
        cells.whole("C", signed=True),
        (f"temperature/{text}", f"temperature/{text} specification"),
        (f"temperature/{xml}",),
        (csv,) if csv else (),
    )


def _memory() -> tuple[Field, ...]:
    return tuple(
        Field(
            f"memory.{part}_mib",
            cells.whole("MiB"),
            (f"fb memory usage/{part}",),
            (f"fb_memory_usage/{part}",),
            (f"memory.{part}",),
        )
        for part in ("total", "used", "reserved")
    )


def _utilization() -> tuple[Field, ...]:
    percent = cells.whole("%")
    return (
        Field("utilization_percent", percent, ("utilization/gpu",), ("utilization/gpu_util",), ("utilization.gpu",)),
        Field(
            "memory_utilization_percent",
            percent,
            ("utilization/memory",),
            ("utilization/memory_util",),
            ("utilization.memory",),
        ),
    )


def _counters() -> tuple[Field, ...]:
    """In microseconds since the driver was loaded; printed by drivers from 580 on."""
    heading, mark, query = (
        "clocks event reasons counters",
        "clocks_event_reasons_counters",
        "clocks_event_reasons_counters",
    )
    names = (
        ("power_cap_us", "sw power capping", "sw_power_cap", "sw_power_cap"),
        ("sync_boost_us", "sync boost", "sync_boost", "sync_boost"),
        ("software_thermal_us", "sw thermal slowdown", "sw_therm_slowdown", "sw_thermal_slowdown"),
        ("hardware_thermal_us", "hw thermal slowdown", "hw_therm_slowdown", "hw_thermal_slowdown"),
        ("power_brake_us", "hw power braking", "hw_power_brake", "hw_power_brake_slowdown"),
    )
    return tuple(
        Field(
            f"events.{fact}", cells.whole("us"), (f"{heading}/{text}",), (f"{mark}/{mark}_{xml}",), (f"{query}.{csv}",)
        )
        for fact, text, xml, csv in names
    )


FIELDS = (
    *_identity(),
    *_modes(),
    *_power("power", "gpu power readings", ("", "gpu."), "power readings"),
    *_power("module_power", "module power readings", ("module.",)),
    *_clocks("clocks", "clocks", "clocks.current", ("graphics", "sm", "memory", "video")),
    *_clocks("max_clocks", "max clocks", "clocks.max", ("graphics", "sm", "memory", "video")),
    *_clocks("application_clocks", "applications clocks", "clocks.applications", ("memory", "graphics")),
    *_clocks(
        "default_application_clocks",
        "default applications clocks",
        "clocks.default_applications",
        ("memory", "graphics"),
    ),
    *_temperatures(),
    *_memory(),
    *_utilization(),
    *_counters(),
)
"""All but event reasons, processes and supported clocks, which are lists (`remediate.gpu.reports.lists`)."""
