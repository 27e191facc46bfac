"""On a real GPU, read only: the facts agree with `nvidia-smi -q`, line by line, for the fields that they share."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="needs a real NVIDIA GPU"),
]
# Path in `nvidia-smi -q` (the indentation as a path) to the path in a device's facts, and the unit that is stripped.
SHARED = {
    "Product Name": ("name", ""),
    "GPU UUID": ("uuid", ""),
    "Persistence Mode": ("persistence_mode", ""),
    "MIG Mode/Current": ("mig_current", ""),
    "MIG Mode/Pending": ("mig_pending", ""),
    "PCI/Bus Id": ("pci_bus_id", ""),
    "Compute Mode": ("compute_mode", ""),
    "ECC Mode/Current": ("ecc_current", ""),
    "ECC Mode/Pending": ("ecc_pending", ""),
    "FB Memory Usage/Total": ("memory.total_mib", "MiB"),
    "FB Memory Usage/Reserved": ("memory.reserved_mib", "MiB"),
    "Temperature/GPU Shutdown T.Limit Temp": ("temperature.shutdown_margin_c", "C"),
    "Temperature/GPU Slowdown T.Limit Temp": ("temperature.slowdown_margin_c", "C"),
    "Temperature/GPU Max Operating T.Limit Temp": ("temperature.max_operating_margin_c", "C"),
    "Temperature/Memory Max Operating T.Limit Temp": ("temperature.memory_max_margin_c", "C"),
    "GPU Power Readings/Current Power Limit": ("power.enforced_w", "W"),
    "GPU Power Readings/Requested Power Limit": ("power.limit_w", "W"),
    "GPU Power Readings/Default Power Limit": ("power.default_w", "W"),
    "GPU Power Readings/Min Power Limit": ("power.min_w", "W"),
    "GPU Power Readings/Max Power Limit": ("power.max_w", "W"),
    "Applications Clocks/Graphics": ("application_clocks.graphics_mhz", "MHz"),
    "Applications Clocks/Memory": ("application_clocks.memory_mhz", "MHz"),
    "Default Applications Clocks/Graphics": ("default_application_clocks.graphics_mhz", "MHz"),
    "Default Applications Clocks/Memory": ("default_application_clocks.memory_mhz", "MHz"),
    "Max Clocks/Graphics": ("max_clocks.graphics_mhz", "MHz"),
    "Max Clocks/SM": ("max_clocks.sm_mhz", "MHz"),
    "Max Clocks/Memory": ("max_clocks.memory_mhz", "MHz"),
    "Max Clocks/Video": ("max_clocks.video_mhz", "MHz"),
    "Clocks/Memory": ("clocks.memory_mhz", "MHz"),
}
# These move between two looks; they agree within a step that is far below a unit mix-up.
MOVING = {
    "Temperature/GPU Current Temp": ("temperature.gpu_c", "C", 5),
    "Temperature/GPU T.Limit Temp": ("temperature.margin_c", "C", 5),
    "Temperature/Memory Current Temp": ("temperature.memory_c", "C", 5),
    "GPU Power Readings/Average Power Draw": ("power.draw_w", "W", 60),
}


def smi() -> str:
    return subprocess.run(["nvidia-smi", "-q"], capture_output=True, text=True, check=True).stdout


def facts() -> Mapping[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "remediate", "facts", "--only", "gpu", "--json"], capture_output=True, check=True
    )
    section: Mapping[str, Any] = json.loads(done.stdout)["sections"]["gpu"]
    return section


def parse(text: str) -> dict[str, str]:
    """Indented `-q` output as `path/of/headings/key` to value, for the first GPU."""
    found: dict[str, str] = {}
    stack: list[tuple[int, str]] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        key, colon, value = line.partition(" :")
        while stack and stack[-1][0] >= indent:
            stack.pop()
        path = "/".join([name for _, name in stack if not name.startswith("GPU 0000")] + [key.strip()])
        if colon:
            found.setdefault(path, value.strip())
        else:
            stack.append((indent, line.strip()))
    return found


def look_up(device: Mapping[str, Any], path: str) -> Any:
    value: Any = device
    for part in path.split("."):
        value = value[part]
    return value


def same(shown: str, value: Any, unit: str) -> bool:
    shown = shown.removesuffix(unit).strip() if unit else shown
    if isinstance(value, dict):
        return shown in ("N/A", "Requested functionality has been deprecated", "[N/A]")
    if isinstance(value, bool):
        return shown in (("Enabled",) if value else ("Disabled", "None"))
    if isinstance(value, int | float):
        return float(shown) == float(value)
    return shown.casefold() == str(value).casefold()


def test_the_facts_agree_with_nvidia_smi() -> None:
    shown, section = parse(smi()), facts()
    device = section["devices"][0]
    assert shown["Driver Version"].split()[0] == section["driver_version"]
    assert shown["CUDA Version"] == section["cuda_driver_version"]
    compared = [path for path in SHARED if path in shown]
    differing = [
        f"{path}: nvidia-smi {shown[path]}, facts {look_up(device, SHARED[path][0])}"
        for path in compared
        if not same(shown[path], look_up(device, SHARED[path][0]), SHARED[path][1])
    ]
    print(f"compared {len(compared)} of {len(SHARED)} fields")
    assert differing == []
    assert len(compared) >= 20


def test_what_moves_agrees_within_a_step() -> None:
    shown, section = parse(smi()), facts()
    device = section["devices"][0]
    for path, (place, unit, step) in MOVING.items():
        value = look_up(device, place)
        if path in shown and isinstance(value, int | float):
            assert abs(float(shown[path].removesuffix(unit)) - value) <= step, path


def test_every_supported_clock_pair_is_read() -> None:
    done = subprocess.run(
        ["nvidia-smi", "-i", "0", "--query-supported-clocks=mem,gr", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
    )
    pairs = {tuple(map(int, line.split(","))) for line in done.stdout.splitlines()}
    tables = facts()["devices"][0]["supported_clocks"]
    read = {(table["memory_mhz"], clock) for table in tables for clock in expand(table["graphics"])}
    assert read == pairs


def expand(text: str) -> list[int]:
    """`345..1980/15, 2000` as a list; see `remediate.gpu.clocktable`."""
    clocks: list[int] = []
    for part in text.replace(",", " ").split():
        span, _, step = part.partition("/")
        low, _, high = span.partition("..")
        clocks += list(range(int(low), int(high or low) + 1, int(step or 1)))
    return clocks


def test_a_plan_reads_everything_and_sets_nothing(tmp_path: Path) -> None:
    before = parse(smi())
    done = subprocess.run(
        [sys.executable, "-m", "remediate", "plan", "--only", "gpu", "--json", "--profile", "current"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    findings = json.loads(done.stdout)["plan"]["findings"]
    assert {finding["code"] for finding in findings} >= {"GPU003", "GPU004", "GPU005"}
    assert [finding for finding in findings if finding["outcome"] == "could not tell"] == []
    after = parse(smi())
    settings = [path for path in before if "Power Limit" in path or "Applications" in path or "Mode" in path]
    assert {path: before[path] for path in settings} == {path: after[path] for path in settings}


# Places that may move within a minute, and by how much; None for what says nothing from one moment to the next.
DRIFT: Mapping[str, float | None] = {
    "power.draw_w": 100,
    "temperature.gpu_c": 6,
    "temperature.memory_c": 6,
    "temperature.margin_c": 6,
    "clocks.graphics_mhz": None,
    "clocks.sm_mhz": None,
    "clocks.video_mhz": None,
    "events.active": None,
    "performance_state": None,
    "utilization_percent": None,
    "memory_utilization_percent": None,
    "memory.used_mib": 64,
    "processes": None,
    "sample": None,
    "index": 0,
}


def places(value: Any, place: str = "") -> dict[str, Any]:
    """Dotted place to reading; an unknown one as its kind, and what a report does not say left out."""
    if isinstance(value, dict) and "unknown" in value:
        return {} if value["reason"] == "not in this report" else {place: value["unknown"]}
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for name, inner in value.items():
            found |= places(inner, f"{place}.{name}".lstrip("."))
        return found
    return {place: value}


def imported(folder: Path, *options: str) -> Mapping[str, Any]:
    report = folder / "report"
    report.write_bytes(subprocess.run(["nvidia-smi", *options], capture_output=True, check=True).stdout)
    done = subprocess.run(
        [sys.executable, "-m", "remediate", "facts", "import", str(report), "--json"], capture_output=True, check=True
    )
    section: Mapping[str, Any] = json.loads(done.stdout)["sections"]["gpu"]
    return section


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    shared = sorted(one.keys() & other.keys())
    found = []
    for place in shared:
        here, there, drift = one[place], other[place], DRIFT.get(place, 0)
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (here, there))
        if drift is None or here == there:
            continue
        # nvidia-smi prints two decimals.
        if not numbers or abs(here - there) > drift + 0.01:
            found.append(f"{place}: {here} and {there}")
    print(f"compared {len(shared)} places")
    return found


@pytest.mark.parametrize("options", [("-q",), ("-q", "-x"), ("-q", "-d", "SUPPORTED_CLOCKS,CLOCK,POWER,TEMPERATURE")])
def test_nvml_and_the_reports_of_nvidia_smi_agree(tmp_path: Path, options: tuple[str, ...]) -> None:
    section, report = facts(), imported(tmp_path, *options)
    for name in ("driver_version", "cuda_driver_version", "device_count"):
        assert report[name] == section[name], name
    for real, told in zip(section["devices"], report["devices"], strict=True):
        said = places(told)
        assert differences(places(real), said) == []
        assert len(said) >= (20 if "-d" in options else 45)


def test_text_and_xml_of_one_minute_agree(tmp_path: Path) -> None:
    text, xml = imported(tmp_path, "-q"), imported(tmp_path, "-q", "-x")
    for one, other in zip(text["devices"], xml["devices"], strict=True):
        assert differences(places(one), places(other)) == []


def test_a_query_of_every_field_agrees(tmp_path: Path) -> None:
    fields = (
        "index,uuid,name,pci.bus_id,compute_cap,power.draw,power.limit,enforced.power.limit,power.default_limit,"
        "power.min_limit,power.max_limit,clocks.max.sm,clocks.max.memory,clocks.applications.graphics,"
        "clocks.applications.memory,memory.total,memory.reserved,temperature.gpu,temperature.memory,mig.mode.current,"
        "ecc.mode.current,persistence_mode,compute_mode,clocks_throttle_reasons.supported,driver_version,count"
    )
    section = facts()
    for layout in ("csv", "csv,nounits"):
        report = imported(tmp_path, f"--query-gpu={fields}", f"--format={layout}")
        assert report["driver_version"] == section["driver_version"]
        for real, told in zip(section["devices"], report["devices"], strict=True):
            said = places(told)
            assert differences(places(real), said) == []
            assert len(said) >= 20
