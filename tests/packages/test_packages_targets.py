"""The life cycle on targets of every kind that is here: Pythons, environments of uv, full and read-only disks."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packages.local_index import Index
from packages.packages_target import STANDINS, Target, whole

from remediate.effects import Completed, file_error
from remediate.errors import ApplyError
from remediate.model import State
from remediate.packages.pipoutput import explain_failure
from remediate.profile.schema import Pin
from remediate.subject import Settings

pytestmark = pytest.mark.slow
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
AFTER = {"filelock": "3.12.4", "flask": "3.0.0", "numpy": "1.26.4", "torch": "2.1.2", "triton": "2.1.0"}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")


@pytest.fixture
def index() -> Index:
    made = Index()
    made.add(STANDINS)
    return made


def find_python(version: str) -> str:
    """A Python of that version, from PATH or from pyenv."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in filter(None, (shutil.which(f"python{version}"), *map(str, kept))):
        script = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([candidate, "-c", script], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return candidate
    pytest.skip(f"no Python {version} here")


def go_there_and_back(host: Target, tmp_path: Path) -> None:
    host.settings = Settings(find_links=(str(tmp_path / "wheels"),), no_index=True)
    before = whole(host.venv)
    install = host.install()
    host.perform(install)
    found = {name: version for name, version in host.versions().items() if name not in ("pip", "setuptools")}
    assert found == {**AFTER, "torch": host.pins["torch"].version if host.pins else "2.1.2"}
    assert host.subject.state(install, host.context) is State.AFTER
    assert host.propose().changes == ()
    host.subject.undo(install, host.prepared, host.context)
    assert whole(host.venv) == before
    assert host.subject.state(install, host.context) is State.BEFORE


@pytest.mark.parametrize("version", VERSIONS)
def test_target_python(version: str, index: Index, tmp_path: Path) -> None:
    # New versions of pip serve no 3.9: there the environment's own has to do it.
    without_pip = () if version == "3.9" else ("--without-pip",)
    host = Target(tmp_path, index, make=(find_python(version), "-m", "venv", *without_pip))
    if version in ("3.12", "3.13"):
        # Of 2.1.2 there are no wheels for them, and nothing would be installed.
        host.pins = {"torch": Pin(version="2.5.0", cuda="12.1")}
    go_there_and_back(host, tmp_path)


def test_target_with_its_own_pip(index: Index, tmp_path: Path) -> None:
    go_there_and_back(Target(tmp_path, index, make=(sys.executable, "-m", "venv")), tmp_path)


def test_a_pip_that_does_not_serve_the_target_says_what_does() -> None:
    said = Completed(("pip",), 1, "", "This version of pip does not support python 3.9 (requires >=3.10).\n")
    assert "ensurepip" in explain_failure(said, "/venv", is_whole=True).hint


def test_target_made_by_uv(index: Index, tmp_path: Path) -> None:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    host = Target(tmp_path, index, make=(uv, "venv", "--quiet", "--python", sys.executable))
    go_there_and_back(host, tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("a file system can only be mounted by root")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_fills_up_on_the_way(index: Index, small_disk: Path) -> None:
    host = Target(small_disk, index)
    host.settings = Settings(find_links=(str(small_disk / "wheels"),), no_index=True)
    install = host.install()
    before = whole(host.venv)
    host.prepared = host.subject.prepare(install, host.context)
    ballast = small_disk / "ballast"
    with contextlib.suppress(OSError):
        ballast.write_bytes(b"\0" * 8_000_000)
    with pytest.raises(ApplyError) as caught:
        host.subject.perform(install, host.prepared, host.context)
    assert "space" in f"{caught.value.what} {caught.value.cause} {caught.value.hint}"
    ballast.unlink()
    host.subject.undo(install, host.prepared, host.context)
    assert whole(host.venv) == before


def test_a_read_only_environment_is_left_alone(index: Index, small_disk: Path) -> None:
    host = Target(small_disk, index)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        proposal = host.propose()
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert [change.id for change in proposal.changes] == []
    assert any("may not write" in held.because for held in proposal.withheld)


def test_the_error_of_a_read_only_file_system_says_so() -> None:
    assert "read-only" in file_error(Path("/x"), OSError(30, "Read-only file system")).hint
