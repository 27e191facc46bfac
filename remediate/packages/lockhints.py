"""Lock files of other tools: recognised, not edited, and answered with the commands that carry the pins over. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from remediate.model import Withheld
from remediate.packages.facts import FileKind, PackagesFacts
from remediate.packages.pins import PlannedPin

_LOCK_AGAIN: Mapping[str, tuple[str, ...]] = {
    "uv.lock": ("uv", "lock"),
    "poetry.lock": ("poetry", "lock"),
    "pdm.lock": ("pdm", "lock"),
    "conda-lock.yml": ("conda-lock", "lock"),
}
"""Where the file that it is made from is edited, locking again is enough."""
_ADD: Mapping[str, tuple[str, ...]] = {
    "uv.lock": ("uv", "add"),
    "poetry.lock": ("poetry", "add"),
    "pdm.lock": ("pdm", "add"),
    "Pipfile": ("pipenv", "install"),
    "pixi.toml": ("pixi", "add", "--pypi"),
    "pylock.toml": ("pip", "lock", "-r", "requirements.txt"),
    "conda-lock.yml": ("conda-lock", "lock"),
}
_TAKES_NO_PINS = ("pylock.toml", "conda-lock.yml")


def withhold_locks(facts: PackagesFacts, pins: Mapping[str, PlannedPin]) -> tuple[Withheld, ...]:
    """One for each such file, for a plan that moves something that they may hold."""
    judged = [f"{pin.name}=={pin.planned}" for pin in pins.values() if pin.is_judged]
    if not judged:
        return ()
    is_edited = any(file.kind is FileKind.PYPROJECT for file in facts.requirements)
    return tuple(
        Withheld(
            ("PKG012",),
            "packages",
            name,
            f"carry the pins over to {name}",
            "only the tool that wrote it can write it",
            "run the command below once the plan is applied",
            (shlex.join(_command(name, judged, is_edited=is_edited)),),
        )
        for name in facts.other_sources
        if name in _ADD
    )


def _command(name: str, pins: list[str], *, is_edited: bool) -> tuple[str, ...]:
    if is_edited and name in _LOCK_AGAIN:
        return _LOCK_AGAIN[name]
    return _ADD[name] if name in _TAKES_NO_PINS else (*_ADD[name], *pins)
