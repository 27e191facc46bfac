"""Locks, wheelhouses and the smoke test from the command line, on stand-in wheels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from remediate.demo.wheels import Standin, build_wheels
from remediate.packages.locking import own_platform, own_python

PROFILE = """\
schema_version = 1
name = "ours"
[packages.torch]
version = "2.5.0"
reason = "ours"
[packages.idna]
version = "3.6"
[install]
find_links = ["{wheels}"]
"""
STANDINS = (
    Standin("torch", "2.2.0", ("filelock",)),
    Standin("torch", "2.5.0", ("filelock",)),
    Standin("idna", "3.6"),
    Standin("filelock", "3.12.4"),
)


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    """An environment with another torch, a profile, and the wheels in a folder beside it."""
    folder = tmp_path / "sandbox"
    folder.mkdir()
    wheels = tmp_path / "wheels"
    build_wheels(STANDINS, wheels)
    (folder / "ours.toml").write_text(PROFILE.format(wheels=wheels))
    (folder / "remediate.toml").write_text(f'profile = "ours.toml"\nfind_links = "{wheels}"\nno_index = true\n')
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / ".venv")], check=True)
    target = ("--python", str(folder / ".venv" / "bin" / "python"))
    options = ("--quiet", "--isolated", "--no-index", "--find-links", str(wheels), "--disable-pip-version-check")
    subprocess.run([sys.executable, "-m", "pip", *target, "install", *options, "torch==2.2.0"], check=True)
    return folder


def remediate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "UV_"))}
    return subprocess.run(
        [sys.executable, "-m", "remediate", *arguments],
        cwd=folder,
        env={**environment, "PIP_CONFIG_FILE": os.devnull, "XDG_STATE_HOME": str(folder.parent / "state")},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=200,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("profiles", "lock", "base"), "profile `base` pins nothing"),
        (("profile", "lock", "base"), "profile `base` pins nothing"),
        (("profiles", "lock", "current", "--python", "3"), "`3` is no Python version"),
        (("profiles", "lock", "current", "--platform", "vax"), "can't resolve for vax"),
        (("plan", "--installer", "conda"), "there is no installer `conda`"),
        (("verify", "--smoke", "--facts", "f.json"), "`--smoke` runs on this host"),
        (("apply", "plan.json", "--smoke"), "a saved plan is applied as it is"),
        (("wheelhouse", "-p", "base", "-o", "w"), "profile `base` pins nothing"),
        (("wheelhouse", "-p", "base", "-o", "w", "--python", "three"), "`three` is no Python version"),
    ],
)
def test_usage_errors(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = remediate(tmp_path, *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert said in done.stderr


def put_lock(sandbox: Path) -> None:
    """A lock of the wheels, as `profiles lock` makes it from an index."""
    from remediate.effects import sha256
    from remediate.packages.lockfile import LockEntry, lock_name, render_lock

    wheels = {path.name: path.read_bytes() for path in (sandbox.parent / "wheels").iterdir()}
    wanted = (("filelock", "3.12.4"), ("idna", "3.6"), ("torch", "2.5.0"))
    contents = [(name, version, wheels[f"{name}-{version}-py3-none-any.whl"]) for name, version in wanted]
    entries = [
        LockEntry(name, version, (f"sha256:{sha256(content)}",), size=len(content))
        for name, version, content in contents
    ]
    name = lock_name("ours", own_python(), *own_platform().split("_", 1))
    (sandbox / "locks").mkdir()
    (sandbox / "locks" / name).write_bytes(render_lock(entries, []))


@pytest.mark.slow
def test_collect_then_apply_from_the_folder_alone(sandbox: Path) -> None:
    put_lock(sandbox)
    made = remediate(sandbox, "wheelhouse", "-p", "ours.toml", "-o", "house")
    assert made.returncode == 0, made.stderr
    assert "3 files" in made.stdout
    for path in (sandbox.parent / "wheels").iterdir():
        path.unlink()
    (sandbox / "remediate.toml").write_text('profile = "ours.toml"\nfind_links = "house"\nno_index = true\n')
    planned = json.loads(remediate(sandbox, "plan", "--only", "packages", "--json").stdout)["plan"]
    install = next(change for change in planned["changes"] if change["id"] == "packages:install")
    assert "--require-hashes" in install["command"]
    assert "3 distributions as `ours-py" in install["reason"]
    assert "kB to download" in install["reason"]
    done = remediate(sandbox, "apply", "--yes", "--only", "packages")
    assert done.returncode == 0, done.stdout + done.stderr
    again = remediate(sandbox, "apply", "--yes", "--only", "packages")
    assert "Nothing to do" in again.stdout
    assert remediate(sandbox, "rollback", "--yes").returncode == 0


@pytest.mark.slow
def test_a_failed_smoke_test_fails_the_change_and_is_undone(sandbox: Path) -> None:
    site = next((sandbox / ".venv").glob("lib/python*/site-packages"))
    before = (site / "torch" / "version.py").read_text()
    done = remediate(sandbox, "apply", "--yes", "--smoke", "--only", "packages")
    assert done.returncode == 1
    assert "does not pass the smoke test" in done.stderr
    assert "Traceback" not in done.stderr
    undone = remediate(sandbox, "rollback", "--yes")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert (site / "torch" / "version.py").read_text() == before


@pytest.mark.slow
def test_verify_smoke_tells_each_step(sandbox: Path) -> None:
    done = remediate(sandbox, "verify", "--smoke", "--only", "packages", "--json")
    assert done.returncode == 3, done.stderr
    findings = json.loads(done.stdout)["findings"]
    steps = {item["target"]: item["outcome"] for item in findings if item["code"] == "PKG030"}
    assert steps["numpy round trip"] == "differs"
    assert steps["import transformers"] == "differs"
