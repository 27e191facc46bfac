"""Import real outputs of nvidia-smi, pip and torch, and tell what each could not tell. Keeps nothing.

    python tools/reports_corpus.py FOLDER... [--quiet]

Every file below the folders is imported by itself and held against four promises:

1. it is recognised, or refused with one `DocumentError`; nothing else is raised;
2. what `nvidia-smi -q` says of a GPU, found again in the plainest way (`xml.etree` for XML; for text the line below its
   heading, by column), is what the facts say, number by number;
3. the facts document reads back as it was written;
4. a plan is made from it with every shipped profile, or refused with one error.

Prints a line for each file: kinds, driver, GPUs, readings, and the cells that are no value, by token. Exits 1 where a
promise is broken.
"""

from __future__ import annotations

import argparse
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from remediate.api import plan
from remediate.documents import decode_facts, encode
from remediate.errors import DocumentError, RemediateError
from remediate.gpu.facts import Device, GpuFacts
from remediate.importing import import_reports
from remediate.model import Facts, Unknown
from remediate.profile.load import shipped_names

# Fact, heading and key in text, path in XML; a key may have had several names.
CHECKS = (
    ("name", "", "Product Name", "product_name"),
    ("power.limit_w", "GPU Power Readings", "Requested Power Limit", "gpu_power_readings//requested_power_limit"),
    ("power.limit_w", "Power Readings", "Power Limit", "power_readings/power_limit"),
    ("power.enforced_w", "GPU Power Readings", "Current Power Limit", "gpu_power_readings//current_power_limit"),
    ("power.enforced_w", "Power Readings", "Enforced Power Limit", "power_readings/enforced_power_limit"),
    ("power.default_w", "GPU Power Readings", "Default Power Limit", "gpu_power_readings//default_power_limit"),
    ("power.default_w", "Power Readings", "Default Power Limit", "power_readings/default_power_limit"),
    ("power.min_w", "GPU Power Readings", "Min Power Limit", "gpu_power_readings/min_power_limit"),
    ("power.max_w", "GPU Power Readings", "Max Power Limit", "gpu_power_readings/max_power_limit"),
    ("power.min_w", "Power Readings", "Min Power Limit", "power_readings/min_power_limit"),
    ("power.max_w", "Power Readings", "Max Power Limit", "power_readings/max_power_limit"),
    ("clocks.sm_mhz", "Clocks", "SM", "clocks/sm_clock"),
    ("clocks.memory_mhz", "Clocks", "Memory", "clocks/mem_clock"),
    ("max_clocks.graphics_mhz", "Max Clocks", "Graphics", "max_clocks/graphics_clock"),
    ("max_clocks.memory_mhz", "Max Clocks", "Memory", "max_clocks/mem_clock"),
    ("application_clocks.graphics_mhz", "Applications Clocks", "Graphics", "applications_clocks/graphics_clock"),
    ("application_clocks.memory_mhz", "Applications Clocks", "Memory", "applications_clocks/mem_clock"),
    ("temperature.gpu_c", "Temperature", "GPU Current Temp", "temperature/gpu_temp"),
    ("temperature.slowdown_c", "Temperature", "GPU Slowdown Temp", "temperature/gpu_temp_slow_threshold"),
    ("temperature.margin_c", "Temperature", "GPU T.Limit Temp", "temperature/gpu_temp_tlimit"),
    ("temperature.memory_c", "Temperature", "Memory Current Temp", "temperature/memory_temp"),
    ("memory.total_mib", "FB Memory Usage", "Total", "fb_memory_usage/total"),
    ("memory.used_mib", "FB Memory Usage", "Used", "fb_memory_usage/used"),
    ("utilization_percent", "Utilization", "Gpu", "utilization/gpu_util"),
)  # fmt: skip
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def plainly(text: str) -> Iterator[dict[str, str]]:
    """Fact to cell for each GPU, read without the importer."""
    if "<nvidia_smi_log" in text:
        start = text.index("<nvidia_smi_log")
        root = ET.fromstring(text[start : text.index("</nvidia_smi_log>") + 17])
        for gpu in root.findall("gpu"):
            found: dict[str, str] = {}
            for fact, _, _, path in CHECKS:
                cell = gpu.findtext(f".//{path}" if "//" in path else path)
                if cell:
                    found.setdefault(fact, cell.strip())
            yield found
    elif len(text.split("NVSMI LOG")) == 2:
        for block in re.split(r"^GPU 0[0-9A-F]{3}.*$", text, flags=re.MULTILINE | re.IGNORECASE)[1:]:
            yield {fact: cell for fact, heading, key, _ in CHECKS if (cell := _below(block, heading, key)) is not None}


def _below(block: str, heading: str, key: str) -> str | None:
    body = block
    if heading:
        part = re.search(rf"^    {re.escape(heading)} *$\n((?:^     .*$\n?)*)", block, re.MULTILINE)
        if part is None:
            return None
        body = part[1]
    line = re.search(rf"^ +{re.escape(key)}(?: Specification)? *: *(.*?) *$", body, re.MULTILINE | re.IGNORECASE)
    return None if line is None else line[1]


def disagreements(device: Device, cells: dict[str, str]) -> Iterator[str]:
    """Facts that are not what their cell says."""
    for fact, cell in cells.items():
        value: Any = device
        for part in fact.split("."):
            value = getattr(value, part)
        number = NUMBER.match(cell)
        told = cell if fact == "name" else (float(number[0]) if number else None)
        if isinstance(value, Unknown):
            if told is not None and fact != "name" and told != 0:
                yield f"{fact}: unknown ({value.reason}), but the report says {cell!r}"
        elif told is None or value != told:
            yield f"{fact}: {value}, but the report says {cell!r}"


def unknowns(value: Any) -> Iterator[str]:
    """Reasons of all unknown readings but those that no report speaks of."""
    if isinstance(value, Unknown):
        if "not in this report" not in value.reason:
            yield value.reason
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from unknowns(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from unknowns(item)


def readings(value: Any) -> int:
    """How many facts are known."""
    if isinstance(value, Unknown) or value is None:
        return 0
    return (
        sum(readings(getattr(value, name)) for name in value.__struct_fields__)
        if isinstance(value, msgspec.Struct)
        else 1
    )


def examine(path: Path, quiet: bool) -> list[str]:
    """Broken promises; prints the line."""
    try:
        facts = import_reports([str(path)]).facts
    except DocumentError as error:
        print(f"{path.name[:70]:70}  refused: {error.what.replace(path.name, '…')} ({error.cause})")
        return []
    broken = [] if decode_facts(encode(facts), path.name) == facts else ["the document does not read back"]
    gpu = facts.sections.get("gpu")
    kinds = facts.reports[0].removeprefix(f"{path.name}: ")
    if isinstance(gpu, GpuFacts):
        rows = list(plainly(path.read_text("utf-8", "replace").replace("\r\n", "\n")))
        pairs = zip(gpu.devices, rows, strict=False) if len(rows) == len(gpu.devices) else ()
        checked = 0
        for device, cells in pairs:
            checked += len(cells)
            broken += disagreements(device, cells)
        said = sum(map(readings, gpu.devices))
        tokens = Counter(unknowns(gpu))
        told = "" if quiet else "; ".join(f"{count} x {reason}" for reason, count in tokens.most_common())
        print(f"{path.name[:70]:70}  {kinds}  driver {gpu.driver_version}  {len(gpu.devices)} GPUs  {said} readings, "
              f"{checked} checked  {told}")  # fmt: skip
    else:
        print(f"{path.name[:70]:70}  {kinds}  {len(facts.sections['packages'].distributions)} distributions")
    return broken + plans(facts)


def plans(facts: Facts) -> list[str]:
    """What a plan raised that is no error for a person."""
    broken = []
    for profile in (None, *shipped_names()):
        try:
            plan(facts, profile)
        except RemediateError:
            continue
        except Exception as error:  # noqa: BLE001
            broken.append(f"plan with {profile}: {type(error).__name__}: {error}")
    return broken


def main() -> int:
    """Run over the folders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--quiet", action="store_true", help="leave out what could not be told")
    options = parser.parse_args()
    paths = [path for folder in options.folders for path in sorted(folder.rglob("*")) if path.is_file()]
    failed = 0
    for path in paths:
        try:
            broken = examine(path, options.quiet)
        except Exception as error:  # noqa: BLE001
            broken = [f"{type(error).__name__}: {error}"]
        failed += bool(broken)
        for line in broken:
            print(f"    BROKEN {line}")
    print(f"{len(paths)} files, {failed} with a broken promise")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
