"""Writes a device's facts as `nvidia-smi -q` does, as text and as XML, of several drivers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias
from xml.sax.saxutils import escape

from remediate.gpu.facts import Clocks, Device, GpuFacts, Process
from remediate.model import Reading, Unknown, UnknownKind

Tree: TypeAlias = "list[tuple[str, str, str | Tree]]"
"""Text key, XML tag, and a value or what stands below."""
TOKENS = {
    UnknownKind.NOT_SUPPORTED: "N/A",
    UnknownKind.NO_PERMISSION: "Insufficient Permissions",
    UnknownKind.DEPRECATED: "Requested functionality has been deprecated",
    UnknownKind.LOST: "GPU is lost",
    UnknownKind.FAILED: "Unknown Error",
}
REASONS = (
    ("Idle", "gpu_idle", 0x1),
    ("Applications Clocks Setting", "applications_clocks_setting", 0x2),
    ("SW Power Cap", "sw_power_cap", 0x4),
    ("HW Slowdown", "hw_slowdown", 0x8),
    ("Sync Boost", "sync_boost", 0x10),
    ("SW Thermal Slowdown", "sw_thermal_slowdown", 0x20),
    ("Display Clock Setting", "display_clocks_setting", 0x100),
)
SUB_REASONS = (
    ("HW Thermal Slowdown", "hw_thermal_slowdown", 0x40),
    ("HW Power Brake Slowdown", "hw_power_brake_slowdown", 0x80),
)
VIRTUALIZATION = {"none": "None", "pass-through": "Pass-Through", "vgpu guest": "VGPU", "vgpu host": "Host VGPU"}


def cell(reading: Reading[Any], unit: str = "", words: Mapping[Any, str] | None = None) -> str:
    """A value as nvidia-smi prints it."""
    if isinstance(reading, Unknown):
        return TOKENS[reading.kind]
    if words is not None:
        return words[reading]
    number = f"{reading:.2f}" if unit == "W" else str(reading)
    return f"{number} {unit}".strip()


def flag(reading: Reading[bool]) -> str:
    return cell(reading, words={True: "Enabled", False: "Disabled"})


def device_tree(device: Device, driver: int) -> Tree:
    """What `-q` prints of a device, for a driver branch."""
    return [
        ("Product Name", "product_name", cell(device.name)),
        ("Product Architecture", "product_architecture", cell(device.architecture)),
        ("Persistence Mode", "persistence_mode", flag(device.persistence_mode)),
        (
            "MIG Mode",
            "mig_mode",
            [
                ("Current", "current_mig", flag(device.mig_current)),
                ("Pending", "pending_mig", flag(device.mig_pending)),
            ],
        ),
        ("GPU UUID", "uuid", cell(device.uuid)),
        (
            "GPU Virtualization Mode",
            "gpu_virtualization_mode",
            [("Virtualization Mode", "virtualization_mode", cell(device.virtualization, words=VIRTUALIZATION))],
        ),
        (
            "Performance State",
            "performance_state",
            "P" + cell(device.performance_state)
            if not isinstance(device.performance_state, Unknown)
            else cell(device.performance_state),
        ),
        reasons(device, driver),
        (
            "FB Memory Usage",
            "fb_memory_usage",
            [
                ("Total", "total", cell(device.memory.total_mib, "MiB")),
                ("Reserved", "reserved", cell(device.memory.reserved_mib, "MiB")),
                ("Used", "used", cell(device.memory.used_mib, "MiB")),
            ],
        ),
        ("BAR1 Memory Usage", "bar1_memory_usage", [("Total", "total", "256 MiB"), ("Used", "used", "3 MiB")]),
        (
            "Compute Mode",
            "compute_mode",
            cell(
                device.compute_mode,
                words={
                    "default": "Default",
                    "exclusive process": "Exclusive_Process",
                    "prohibited": "Prohibited",
                    "exclusive thread": "Exclusive_Thread",
                },
            ),
        ),
        (
            "Utilization",
            "utilization",
            [
                ("GPU", "gpu_util", cell(device.utilization_percent, "%")),
                ("Memory", "memory_util", cell(device.memory_utilization_percent, "%")),
            ],
        ),
        (
            "ECC Mode",
            "ecc_mode",
            [
                ("Current", "current_ecc", flag(device.ecc_current)),
                ("Pending", "pending_ecc", flag(device.ecc_pending)),
            ],
        ),
        temperatures(device, driver),
        *power(device, driver),
        clocks("Clocks", "clocks", device.clocks),
        (
            "Applications Clocks",
            "applications_clocks",
            [
                ("Graphics", "graphics_clock", cell(device.application_clocks.graphics_mhz, "MHz")),
                ("Memory", "mem_clock", cell(device.application_clocks.memory_mhz, "MHz")),
            ],
        ),
        (
            "Default Applications Clocks",
            "default_applications_clocks",
            [
                ("Graphics", "graphics_clock", cell(device.default_application_clocks.graphics_mhz, "MHz")),
                ("Memory", "mem_clock", cell(device.default_application_clocks.memory_mhz, "MHz")),
            ],
        ),
        clocks("Max Clocks", "max_clocks", device.max_clocks),
        ("Max Customer Boost Clocks", "max_customer_boost_clocks", [("Graphics", "graphics_clock", "9999 MHz")]),
        processes(device),
    ]


def reasons(device: Device, driver: int) -> tuple[str, str, str | Tree]:
    words = (
        ("Clocks Event Reasons", "clocks_event_reason")
        if driver >= 535
        else ("Clocks Throttle Reasons", "clocks_throttle_reason")
    )
    mask = device.events.active
    if isinstance(mask, Unknown):
        return words[0], f"{words[1]}s", cell(mask)
    tree: Tree = []
    for name, tag, bit in REASONS:
        tree.append((name, f"{words[1]}_{tag}", "Active" if mask & bit else "Not Active"))
        if name == "HW Slowdown":
            tree += [
                (f"\t{sub}", f"{words[1]}_{sub_tag}", "Active" if mask & b else "Not Active")
                for sub, sub_tag, b in SUB_REASONS
            ]
    return words[0], f"{words[1]}s", tree


def temperatures(device: Device, driver: int) -> tuple[str, str, str | Tree]:
    heat = device.temperature
    tree: Tree = [("GPU Current Temp", "gpu_temp", cell(heat.gpu_c, "C"))]
    tree.append(
        (
            "GPU Current T.Limit Temp" if driver >= 610 else "GPU T.Limit Temp",
            "gpu_temp_tlimit",
            cell(heat.margin_c, "C"),
        )
    )
    rows = (
        ("GPU Shutdown", "gpu_temp_max", heat.shutdown_c, heat.shutdown_margin_c),
        ("GPU Slowdown", "gpu_temp_slow", heat.slowdown_c, heat.slowdown_margin_c),
        ("GPU Max Operating", "gpu_temp_max_gpu", heat.max_operating_c, heat.max_operating_margin_c),
        ("Memory Max Operating", "gpu_temp_max_mem", heat.memory_max_c, heat.memory_max_margin_c),
    )
    end = " Specification" if driver >= 610 else ""
    for name, tag, absolute, margin in rows:
        # A board shows one of the two.
        if isinstance(margin, Unknown):
            tree.append((f"{name} Temp", f"{tag}_threshold", cell(absolute, "C")))
        else:
            tree.append((f"{name} T.Limit Temp{end}", f"{tag}_tlimit_threshold", cell(margin, "C")))
    return "Temperature", "temperature", [*tree, ("Memory Current Temp", "memory_temp", cell(heat.memory_c, "C"))]


def power(device: Device, driver: int) -> Tree:
    power = device.power
    draw, limit, enforced = cell(power.draw_w, "W"), cell(power.limit_w, "W"), cell(power.enforced_w, "W")
    default, low, high = cell(power.default_w, "W"), cell(power.min_w, "W"), cell(power.max_w, "W")
    ends: Tree = [("Min Power Limit", "min_power_limit", low), ("Max Power Limit", "max_power_limit", high)]
    if driver < 535:
        old: Tree = [
            ("Power Draw", "power_draw", draw),
            ("Power Limit", "power_limit", limit),
            ("Default Power Limit", "default_power_limit", default),
            ("Enforced Power Limit", "enforced_power_limit", enforced),
            *ends,
        ]
        return [("Power Readings", "power_readings", old)]
    limits: Tree = [
        ("Current Power Limit", "current_power_limit", enforced),
        ("Requested Power Limit", "requested_power_limit", limit),
        ("Default Power Limit", "default_power_limit", default),
    ]
    nested: Tree = [("GPU Ceiling Power Limit", "gpu_ceiling_power_limit", limits)] if driver >= 610 else limits
    module: Tree = [(name, tag, "N/A") for name, tag, _ in (*limits, *ends)]
    return [
        (
            "GPU Power Readings",
            "gpu_power_readings",
            [
                ("Average Power Draw", "average_power_draw", draw),
                ("Instantaneous Power Draw", "instant_power_draw", draw),
                *nested,
                *ends,
            ],
        ),
        (
            "GPU Memory Power Readings ",
            "gpu_memory_power_readings",
            [("Average Power Draw", "average_power_draw", "99.99 W")],
        ),
        ("Module Power Readings", "module_power_readings", module),
    ]


def clocks(name: str, tag: str, record: Clocks) -> tuple[str, str, str | Tree]:
    return (
        name,
        tag,
        [
            ("Graphics", "graphics_clock", cell(record.graphics_mhz, "MHz")),
            ("SM", "sm_clock", cell(record.sm_mhz, "MHz")),
            ("Memory", "mem_clock", cell(record.memory_mhz, "MHz")),
            ("Video", "video_clock", cell(record.video_mhz, "MHz")),
        ],
    )


def processes(device: Device) -> tuple[str, str, str | Tree]:
    if isinstance(device.processes, Unknown):
        return "Processes", "processes", cell(device.processes)
    tree: Tree = [("\x00", "process_info", process(entry)) for entry in device.processes]
    return "Processes", "processes", tree or "None"


def process(entry: Process) -> Tree:
    return [
        ("GPU instance ID", "gpu_instance_id", "N/A"),
        ("Process ID", "pid", str(entry.pid)),
        ("\tType", "type", {"compute": "C", "graphics": "G"}[entry.kind]),
        ("\tName", "process_name", cell(entry.name)),
        ("\tUsed GPU Memory", "used_memory", cell(entry.memory_mib, "MiB")),
    ]


def as_text(facts: GpuFacts, driver: int) -> str:
    """`nvidia-smi -q`."""
    note = " [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]" if driver >= 610 else ""
    lines = ["", "==============NVSMI LOG==============", ""]
    lines += [f"Driver Version                            : {facts.driver_version}{note}"]
    lines += [f"CUDA Version                              : {facts.cuda_driver_version}{note}", ""]
    lines += [f"Attached GPUs                             : {len(facts.devices)}"]
    for device in facts.devices:
        lines += [f"GPU {device.pci_bus_id}", *text_lines(device_tree(device, driver), 4), ""]
    return "\n".join(lines) + "\n"


def text_lines(tree: Tree, indent: int) -> list[str]:
    """Tabs in front of a key stand for one more level, and NUL for a level that the text does not have."""
    lines = []
    for key, _, value in tree:
        depth = indent + 4 * (len(key) - len(key.lstrip("\t")))
        name = key.lstrip("\t")
        if isinstance(value, str):
            lines.append(f"{' ' * depth}{name}".ljust(55) + f": {value}")
        elif name == "\x00":
            lines += text_lines(value, depth)
        else:
            lines += [f"{' ' * depth}{name}", *text_lines(value, depth + 4)]
    return lines


def as_xml(facts: GpuFacts, driver: int) -> str:
    """`nvidia-smi -q -x`."""
    dtd = 11 if driver < 530 else 12 if driver < 560 else 13
    body = [
        '<?xml version="1.0" ?>',
        f'<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v{dtd}.dtd">',
        "<nvidia_smi_log>",
        f"\t<driver_version>{facts.driver_version}</driver_version>",
        f"\t<cuda_version>{facts.cuda_driver_version}</cuda_version>",
        f"\t<attached_gpus>{len(facts.devices)}</attached_gpus>",
    ]
    for device in facts.devices:
        body += [f'\t<gpu id="{device.pci_bus_id}">', *xml_lines(device_tree(device, driver), 2)]
        if not isinstance(device.supported_clocks, Unknown):
            body += ["\t\t<supported_clocks>", *supported(device), "\t\t</supported_clocks>"]
        body += ["\t</gpu>", ""]
    return "\n".join([*body, "</nvidia_smi_log>"]) + "\n"


def supported(device: Device) -> list[str]:
    lines = []
    for table in () if isinstance(device.supported_clocks, Unknown) else device.supported_clocks:
        lines += ["\t\t\t<supported_mem_clock>", f"\t\t\t\t<value>{table.memory_mhz} MHz</value>"]
        lines += [f"\t\t\t\t<supported_graphics_clock>{c} MHz</supported_graphics_clock>" for c in table.graphics_mhz]
        lines.append("\t\t\t</supported_mem_clock>")
    return lines


def xml_lines(tree: Tree, indent: int) -> list[str]:
    lines = []
    lead = "\t" * indent
    for _, tag, value in tree:
        if isinstance(value, str):
            lines.append(f"{lead}<{tag}>{escape(value)}</{tag}>")
        else:
            lines += [f"{lead}<{tag}>", *xml_lines(value, indent + 1), f"{lead}</{tag}>"]
    return lines
