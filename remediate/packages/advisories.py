"""Known traps that no metadata tells: combinations that install well and break later. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from remediate.model import Finding, Outcome
from remediate.packages.environment import marker_environment
from remediate.packages.facts import PackagesFacts, ProblemKind
from remediate.packages.names import canonical, contains
from remediate.packages.pins import PlannedPin, driver_needed, needs_numpy_1, planned_torch_cuda

_SUBJECT = "packages"
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*\(?(?P<specifier>[^;)@]*)\)?\s*(?:;(?P<marker>.*))?\Z"
)


def find_advisories(
    facts: PackagesFacts, pins: Mapping[str, PlannedPin], announced: Mapping[str, str]
) -> Iterator[Finding]:
    """Findings on what is installed and on what the plan would make of it."""
    yield from _numpy_2(facts)
    yield from _accelerate(facts, pins, announced)
    yield from _driver(facts, pins, announced)
    yield from _metadata(facts, pins)
    yield from _pynvml(facts)
    yield from _conflicts(facts, pins)


def _numpy_2(facts: PackagesFacts) -> Iterator[Finding]:
    """Judges what is installed; the pins see to what will be."""
    torch, numpy = facts.version_of("torch"), facts.version_of("numpy")
    if torch is None or numpy is None or not needs_numpy_1(torch):
        return
    is_broken = contains(">=2.dev0", numpy)
    yield Finding(
        "PKG004",
        _SUBJECT,
        "numpy",
        Outcome.DIFFERS if is_broken else Outcome.SAME,
        f"torch {torch} with numpy {numpy}" + (" is broken, and `pip check` does not see it" if is_broken else ""),
        observed=numpy,
        wanted="numpy<2",
        reason="`pipeline()` and `.numpy()` raise, and `torch.tensor(np.ones(2))` silently gives float32",
    )


def _accelerate(
    facts: PackagesFacts, pins: Mapping[str, PlannedPin], announced: Mapping[str, str]
) -> Iterator[Finding]:
    pin = pins.get("accelerate")
    needed = announced.get("script:needs_accelerate", "").lower() not in ("", "false", "no", "0")
    # Where the profile requires it, the pin's own finding says it.
    if not needed or facts.target is None or (pin is not None and pin.is_judged):
        return
    installed = facts.installed("accelerate") is not None
    yield Finding(
        "PKG005",
        _SUBJECT,
        "accelerate",
        Outcome.SAME if installed else Outcome.DIFFERS,
        "the script uses `device_map`" + (", accelerate is there" if installed else ", and accelerate is absent"),
        observed=facts.version_of("accelerate") or "absent",
        wanted="accelerate",
        reason="`from_pretrained` with a device map raises without it, and transformers does not install it",
    )


def _driver(facts: PackagesFacts, pins: Mapping[str, PlannedPin], announced: Mapping[str, str]) -> Iterator[Finding]:
    cuda = planned_torch_cuda(facts, pins)
    needed = driver_needed(cuda) if cuda else None
    if needed is None:
        return
    driver = announced.get("gpu:driver_version", "")
    wanted = f">={needed}"
    summary = f"a torch built for CUDA {cuda} needs driver {needed} or newer"
    if not driver:
        # On a machine without a GPU this is no fault of the packages; the GPU subject says what could not be read.
        yield Finding(
            "PKG006",
            _SUBJECT,
            "driver",
            Outcome.UNKNOWN,
            f"{summary}; the driver's version is not known",
            "",
            wanted,
            is_advice=True,
        )
        return
    fits = contains(wanted, driver)
    yield Finding(
        "PKG006",
        _SUBJECT,
        "driver",
        Outcome.SAME if fits else Outcome.DIFFERS,
        f"{summary}, and it is {driver}",
        observed=driver,
        wanted=wanted,
        reason="with an older driver torch finds no GPU",
    )


def _metadata(facts: PackagesFacts, pins: Mapping[str, PlannedPin]) -> Iterator[Finding]:
    for problem in facts.problems:
        is_governed = problem.name in pins and problem.kind is not ProblemKind.LEFTOVER
        yield Finding(
            "PKG007",
            _SUBJECT,
            problem.name.removeprefix("?"),
            Outcome.DIFFERS,
            f"{problem.kind} metadata: {problem.detail}",
            observed=problem.path,
            evidence=(problem.path,),
            reason="installers guess which version is there, and an upgrade may leave files of the other behind",
            is_advice=not is_governed,
        )


def _pynvml(facts: PackagesFacts) -> Iterator[Finding]:
    if facts.installed("pynvml") is None:
        return
    yield Finding(
        "PKG009",
        _SUBJECT,
        "pynvml",
        Outcome.DIFFERS,
        f"the deprecated distribution pynvml {facts.version_of('pynvml') or ''} is installed".rstrip(),
        observed=facts.version_of("pynvml") or "",
        wanted="nvidia-ml-py",
        reason="the module `pynvml` comes from nvidia-ml-py; the distribution `pynvml` warns in every program",
        is_advice=True,
    )


def _conflicts(facts: PackagesFacts, pins: Mapping[str, PlannedPin]) -> Iterator[Finding]:
    """Installed distributions, not governed, that will not accept what the plan installs."""
    moving = {name: pin for name, pin in pins.items() if pin.needs_install}
    for found in facts.distributions if moving else ():
        if found.name in moving:
            continue
        for line in found.requires:
            match = _REQUIREMENT.match(line.strip())
            pin = moving.get(canonical(match["name"])) if match else None
            if match is None or pin is None or not _rejects(match, pin, facts):
                continue
            yield Finding(
                "PKG011",
                _SUBJECT,
                found.name,
                Outcome.DIFFERS,
                f"{found.name} {facts.version_of(found.name) or ''} requires {match['name']}"
                f"{match['specifier'].strip()}, and {pin.planned} is planned",
                observed=line,
                wanted=f"{pin.name}=={pin.planned}",
                evidence=(found.metadata_path,),
                reason="pip may move it to another version or leave it broken",
                is_advice=True,
            )


def _rejects(match: re.Match[str], pin: PlannedPin, facts: PackagesFacts) -> bool:
    specifier = match["specifier"].strip()
    if not specifier or contains(specifier, pin.planned):
        return False
    # What it does not accept today either is no news.
    if pin.installed is not None and not contains(specifier, pin.installed):
        return False
    return _holds(match["marker"], facts)


def _holds(marker: str | None, facts: PackagesFacts) -> bool:
    environment = marker_environment(facts.target)
    if not marker or environment is None:
        return True
    from packaging.markers import InvalidMarker, Marker

    try:
        return Marker(marker).evaluate({**environment, "extra": ""})
    except InvalidMarker:
        return False
