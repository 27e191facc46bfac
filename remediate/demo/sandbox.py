"""Laying out the incident's sandbox: script, requirements, environment, wheels, board."""

from __future__ import annotations

import sys
from pathlib import Path

from remediate.demo import incident
from remediate.demo.wheels import build_wheels, incident_packages
from remediate.effects import run_process, write_file
from remediate.errors import ApplyError, UsageError

_TIMEOUT_S = 300.0


def lay_out(folder: Path) -> None:
    """Make the sandbox in an empty or absent folder.

    The environment is real: made by `venv`, its distributions installed by pip from stand-in wheels with the real
    metadata of the incident's versions.

    Raises:
        UsageError: the folder holds something already.
        ApplyError: it can't be written, or pip fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise UsageError(f"`{folder}` is not empty", hint="name a new folder, or leave --folder out")
    for name, text in (
        (incident.SCRIPT_NAME, incident.SCRIPT),
        (incident.REQUIREMENTS_NAME, incident.REQUIREMENTS),
        (incident.CONFIG_NAME, incident.CONFIG),
        (incident.PROFILE_NAME, incident.PROFILE),
    ):
        write_file(folder / name, text.encode())
    write_file(folder / incident.BOARD_NAME, _shipped_board())
    _make_environment(folder)


def _shipped_board() -> bytes:
    from remediate.gpu.board import board_content

    return board_content(incident.SHIPPED_BOARD)


def _make_environment(folder: Path) -> None:
    packages = incident_packages()
    wheelhouse = folder / incident.WHEELHOUSE_NAME
    wheelhouse.mkdir()
    build_wheels((*packages.before, *packages.after), wheelhouse)
    environment = folder / incident.ENVIRONMENT_NAME
    _run([sys.executable, "-m", "venv", "--without-pip", str(environment)], "the target environment was not made")
    pins = [f"{standin.name}=={standin.version}" for standin in packages.before]
    options = ["--isolated", "--no-index", "--find-links", str(wheelhouse), "--no-deps", "--quiet"]
    target = str(environment / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", target]
    _run([*pip, "install", *options, *pins], "the incident's distributions were not installed")


def _run(argv: list[str], what: str) -> None:
    done = run_process(argv, timeout_s=_TIMEOUT_S)
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it said nothing"]
        raise ApplyError(what, cause=last[0])
