"""The part about GPUs of a `python -m torch.utils.collect_env` report, and of vLLM's of the same form.

Its "CUDA runtime version" is that of nvcc, not of torch or of the driver, and is not taken; the newest CUDA version of
the driver is not in it.
"""

from __future__ import annotations

import re
from typing import Any

from remediate.gpu.host import JETSON, WSL2
from remediate.gpu.reports import cells
from remediate.gpu.reports.join import MAX_GPUS
from remediate.gpu.reports.snapshot import INDEX, Snapshot
from remediate.model import Reading

KIND = "torch.utils.collect_env"
_MARK = re.compile(r"^[ \t]{0,8}(?:Collecting environment information|Is debug build {0,20}:)", re.MULTILINE)
_PLATFORM = re.compile(r"^[ \t]{0,8}Python platform {0,20}: {0,4}(\S{1,200})", re.MULTILINE)
_DRIVER = re.compile(r"^[ \t]{0,8}Nvidia driver version {0,20}: {0,4}(.{0,200})", re.MULTILINE)
_MODELS = re.compile(r"^[ \t]{0,8}GPU models and configuration {0,20}: {0,4}(.{0,300})", re.MULTILINE)
_GPU = re.compile(r"GPU (\d{1,3}): (\S.{0,200}?)(?: \(UUID: ([^)\s]{1,60})\))?", re.ASCII)
_MIG = re.compile(r"MIG .{0,200}Device.{0,200}", re.ASCII)


def find_collected(text: str, name: str) -> tuple[Snapshot, ...]:
    """The report of a text, if it has one that speaks of GPUs."""
    driver, models = _DRIVER.search(text), _MODELS.search(text)
    if not _MARK.search(text) or not (driver or models):
        return ()
    said: dict[str, Reading[Any]] = {}
    if driver:
        said["driver_version"] = cells.driver_version(driver[1])
    platform = _platform(text)
    if platform:
        said["platform"] = platform
    gpus = _gpus(text, models) if models else ()
    return (Snapshot(f"{name}: {KIND}", said, gpus),)


def _platform(text: str) -> str:
    """WSL2 and Jetson by the kernel's name; another kernel does not tell a container from a host."""
    kernel = _PLATFORM.search(text)
    name = kernel[1].lower() if kernel else ""
    return WSL2 if "microsoft" in name else JETSON if "tegra" in name else ""


def _gpus(text: str, models: re.Match[str]) -> tuple[dict[str, Reading[Any]], ...]:
    lines = [models[1], *text[models.end() :].split("\n")[1 : MAX_GPUS * 8]]
    found = []
    for line in map(str.strip, lines):
        gpu = _GPU.fullmatch(line)
        if gpu:
            found.append({INDEX: int(gpu[1]), "name": cells.text(gpu[2])} | _uuid(gpu[3]))
        elif line and not _MIG.fullmatch(line):
            break
    return tuple(found)


def _uuid(cell: str | None) -> dict[str, Reading[Any]]:
    return {} if cell is None else {"uuid": cells.uuid(cell)}
