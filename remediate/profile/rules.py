"""What a resolved profile must satisfy beyond the types of its values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from remediate.profile.check import Problem
from remediate.profile.schema import EXCLUSIVE_GPU_WISHES, PROFILE_SCHEMA_VERSION

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*\Z")
_CANONICAL = re.compile(r"[-_.]+")
_PCI = re.compile(r"(?:[0-9a-fA-F]{1,8}:)?[0-9a-fA-F]{1,2}:[0-9a-fA-F]{1,2}(?:\.[0-7])?\Z")
_SCRIPT_RULE = re.compile(r"SCR\d{3}\Z")
_TOO_LARGE = 1_000_000
_GPU_CONDITIONS = ("uuid", "pci", "name")


def check_rules(document: Mapping[str, Any]) -> list[Problem]:
    """Problems of a type-correct document, resolved or not; missing keys are the business of the resolver."""
    return [
        *_check_head(document),
        *_check_specifiers(document),
        *_check_pins(document.get("packages", {})),
        *_check_gpu("gpu", document.get("gpu", {})),
        *_check_gpu_tables(document.get("gpu_for", [])),
        *_check_ignored_rules(document.get("script", {}).get("ignore", {})),
        *_check_corrections(document.get("corrections", [])),
    ]


def _check_head(document: Mapping[str, Any]) -> Iterator[Problem]:
    version = document.get("schema_version")
    if version is None:
        yield Problem("schema_version", f"missing; this program reads version {PROFILE_SCHEMA_VERSION}")
    elif version != PROFILE_SCHEMA_VERSION:
        yield Problem("schema_version", f"is {version}; this program reads version {PROFILE_SCHEMA_VERSION}")
    name = document.get("name")
    if name is None:
        yield Problem("name", "missing")
    elif not _NAME.match(name):
        yield Problem("name", f"`{name}` must be of lower-case letters, digits, `.`, `_` and `-`")


def _check_specifiers(document: Mapping[str, Any]) -> Iterator[Problem]:
    match = document.get("match", {})
    places = {
        "python": document.get("python", ""),
        "match.driver": match.get("driver", ""),
        "match.compute_capability": match.get("compute_capability", ""),
    }
    for path, text in places.items():
        yield from _check_specifier(path, text)


def _check_specifier(path: str, text: str) -> Iterator[Problem]:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        yield Problem(path, f"`{text}` is not a version specifier such as `>=2.1,<3`")


def _check_pins(packages: Mapping[str, Any]) -> Iterator[Problem]:
    for name, pin in packages.items():
        canonical = _CANONICAL.sub("-", name).lower()
        if name != canonical:
            yield Problem(f"packages.{name}", f"write the canonical name `{canonical}`")
        yield from _check_pin(f"packages.{name}", pin)


def _check_pin(path: str, pin: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _check_specifier(f"{path}.accept", pin.get("accept", ""))
    if "version" not in pin:
        return
    try:
        version = Version(pin["version"])
    except InvalidVersion:
        yield Problem(f"{path}.version", f"`{pin['version']}` is not a version such as `2.1.2`")
        return
    if version.local:
        yield Problem(
            f"{path}.version",
            f"`{version}` has a local part; write `{version.public}` and name the build with `cuda`",
        )
    accept = pin.get("accept", "")
    if (
        accept
        and not any(_check_specifier("", accept))
        and not SpecifierSet(accept).contains(version, prereleases=True)
    ):
        yield Problem(f"{path}.accept", f"`{accept}` does not accept the pin's own version `{version}`")


def _check_gpu(path: str, gpu: Mapping[str, Any]) -> Iterator[Problem]:
    for group in EXCLUSIVE_GPU_WISHES:
        given = [key for key in group if key in gpu]
        for key in given[1:]:
            yield Problem(f"{path}.{key}", f"can't stand beside `{path}.{given[0]}`; give one of them")
    for key in ("power_limit_fraction", "sm_clock_fraction"):
        if key in gpu and not 0 < gpu[key] <= 1:
            yield Problem(f"{path}.{key}", f"is {gpu[key]}; it must be above 0 and at most 1")
    for key in ("power_limit_w", "module_power_limit_w", "sm_clock_mhz", "sm_clock_min_mhz", "memory_clock_mhz"):
        if key in gpu and not 0 < gpu[key] < _TOO_LARGE:
            yield Problem(f"{path}.{key}", f"is {gpu[key]}; it must be above 0 and below {_TOO_LARGE}")
    floor, ceiling = gpu.get("sm_clock_min_mhz"), gpu.get("sm_clock_mhz")
    if floor is not None and ceiling is not None and floor > ceiling:
        yield Problem(f"{path}.sm_clock_min_mhz", f"is {floor}, above `{path}.sm_clock_mhz`, which is {ceiling}")


def _check_gpu_tables(tables: list[Mapping[str, Any]]) -> Iterator[Problem]:
    for index, table in enumerate(tables):
        path = f"gpu_for.{index}"
        yield from _check_gpu(path, table)
        if not any(table.get(key) for key in _GPU_CONDITIONS):
            yield Problem(path, f"names no GPU; give at least one of {', '.join(_GPU_CONDITIONS)}")
        if "survive_reboot" in table:
            yield Problem(f"{path}.survive_reboot", "is of the host and not of one GPU; write it in `[gpu]`")
        for number, address in enumerate(table.get("pci", [])):
            if not _PCI.match(address):
                yield Problem(f"{path}.pci.{number}", f"`{address}` is not a PCI address such as `0000:07:00.0`")


def _check_ignored_rules(ignored: Mapping[str, Any]) -> Iterator[Problem]:
    for code, reason in ignored.items():
        if not _SCRIPT_RULE.match(code):
            yield Problem(f"script.ignore.{code}", "is no script rule's code, such as `SCR013`")
        if not str(reason).strip():
            yield Problem(f"script.ignore.{code}", "say why the rule is not wanted here")


def _check_corrections(corrections: list[Mapping[str, Any]]) -> Iterator[Problem]:
    for index, correction in enumerate(corrections):
        for key in ("about", "said", "used", "because"):
            if key not in correction:
                yield Problem(f"corrections.{index}.{key}", "missing; a correction says what stood there and why not")
