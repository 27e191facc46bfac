"""The wheel holds what the program needs (profiles, templates, boards, type mark), and a checkout finds it too."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from remediate.resources import data_folder

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed wheel and nothing of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "remediate", *arguments],
        cwd=installed.parent,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.slow
def test_the_installed_wheel_finds_its_data(installed: Path) -> None:
    where = subprocess.run(
        [sys.executable, "-c", "import remediate.resources as r; print(r.data_folder('profiles'), r.__file__)"],
        cwd=installed.parent,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.count(str(installed)) == 2
    listed = run(installed, "profiles", "list")
    assert listed.returncode == 0
    assert run(installed, "advisories", "--profile", "incident-a100", "--state-dir", "none").returncode == 3
    assert {"current", "h200", "incident-a100"} <= {line.split()[0] for line in listed.stdout.splitlines()}
    planned = run(
        installed,
        "plan",
        "--only",
        "gpu",
        "--board",
        "a100-sxm4-40gb-incident",
        "-p",
        "incident-a100",
        "--out-dir",
        "out",
    )
    assert planned.returncode == 0, planned.stderr
    assert (installed.parent / "out" / "gpu-commands.sh").is_file()


@pytest.mark.slow
def test_the_wheel_holds_no_more_than_the_program(installed: Path) -> None:
    tops = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert tops == {"remediate"}
    assert (installed / "remediate" / "py.typed").is_file()
    for folder in ("profiles", "templates"):
        shipped = {path.name for path in (installed / "remediate" / "_data" / folder).iterdir()}
        assert shipped == {path.name for path in (ROOT / folder).iterdir() if path.name != "__pycache__"}


def test_a_checkout_finds_its_data() -> None:
    for name in ("profiles", "templates"):
        assert data_folder(name).is_dir()
