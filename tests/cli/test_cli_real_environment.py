"""The life cycle on a real environment: distributions of the package index beside stand-ins for torch and transformers.

Needs the package index for three small wheels; skipped where it can't be reached.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from remediate.demo.wheels import Standin, build_wheels

pytestmark = pytest.mark.slow
REAL = ("idna==3.6", "idna==3.7", "filelock==3.12.4", "typing-extensions==4.12.2")
PROFILE = """\
schema_version = 1
name = "real"
python = ">=3.9"
[packages.torch]
version = "2.1.2"
cuda = "12.1"
[packages.transformers]
version = "4.36.2"
[packages.idna]
version = "3.6"
reason = "an older real distribution"
[packages.filelock]
version = "3.12.4"
accept = ">=3.12"
"""


@pytest.fixture(scope="module")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for requirement in REAL:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--only-binary=:all:",
                "-d",
                folder,
                requirement,
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode != 0:
            pytest.skip(f"the package index can't be reached: {done.stderr.strip().splitlines()[-1:]}")
    build_wheels(
        [
            Standin("torch", "2.2.0", ("filelock", "typing-extensions>=4.8.0"), cuda="12.1", local="cu121"),
            Standin("torch", "2.1.2", ("filelock", "typing-extensions"), cuda="12.1", local="cu121"),
            Standin("transformers", "4.38.0", ("filelock",), scripts=("transformers-cli",)),
            Standin("transformers", "4.36.2", ("filelock",), scripts=("transformers-cli",)),
        ],
        folder,
    )
    return folder


@pytest.fixture(params=["with pip", "without pip"])
def sandbox(request: pytest.FixtureRequest, wheelhouse: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "sandbox"
    folder.mkdir()
    options = [] if request.param == "with pip" else ["--without-pip"]
    made = subprocess.run([sys.executable, "-m", "venv", *options, folder / ".venv"], check=False)
    if made.returncode != 0:
        pytest.skip("this Python has no ensurepip")
    target = str(folder / ".venv" / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", target, "install", "--quiet", "--no-index"]
    former = ["torch==2.2.0", "transformers==4.38.0", "idna==3.7", "filelock==3.12.4", "typing-extensions==4.12.2"]
    subprocess.run([*pip, "--find-links", wheelhouse, *former], check=True)
    (folder / "requirements.txt").write_text("torch==2.2.0\ntransformers>=4\nidna  # urls\n")
    (folder / "real.toml").write_text(PROFILE)
    (folder / "remediate.toml").write_text(
        f'profile = "real.toml"\nfind_links = {json.dumps(str(wheelhouse))}\nno_index = true\n'
    )
    return folder


def remediate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "remediate", *arguments, "--state-dir", str(folder.parent / "state")],
        cwd=folder,
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )


def installed(folder: Path) -> dict[str, str]:
    """What pip itself says is installed."""
    target = str(folder / ".venv" / "bin" / "python")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", target, "list", "--format=json"], capture_output=True, check=True
    )
    return {item["name"]: item["version"] for item in json.loads(done.stdout)}


def files(folder: Path) -> dict[str, bytes]:
    site = next((folder / ".venv").glob("lib/python*/site-packages"))
    return {
        str(path.relative_to(site)): path.read_bytes()
        for path in sorted(site.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_plan_apply_verify_again_and_back(sandbox: Path) -> None:
    before, before_files = installed(sandbox), files(sandbox)
    only = ("--only", "packages")
    planned = json.loads(remediate(sandbox, "plan", "--json", *only).stdout)["plan"]
    install = next(change for change in planned["changes"] if change["id"] == "packages:install")
    assert {item["target"]: item["after"] for item in install["items"]} == {
        "idna": "3.6",
        "torch": "2.1.2",
        "transformers": "4.36.2",
    }
    applied = remediate(sandbox, "apply", "--yes", *only)
    assert applied.returncode == 0, applied.stdout + applied.stderr
    now = installed(sandbox)
    assert (now["torch"], now["transformers"], now["idna"]) == ("2.1.2", "4.36.2", "3.6")
    assert now["filelock"] == before["filelock"]
    assert (sandbox / "requirements.txt").read_text().splitlines()[2] == "idna==3.6  # urls"

    assert remediate(sandbox, "verify", *only).returncode == 0
    again = remediate(sandbox, "apply", "--yes", *only)
    assert (again.returncode, "Nothing to do" in again.stdout) == (0, True)
    history = json.loads(remediate(sandbox, "history", "--json").stdout)["runs"]
    assert len(history) == 1

    undone = remediate(sandbox, "rollback", "--yes")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert installed(sandbox) == before
    assert files(sandbox) == before_files
    assert (sandbox / "requirements.txt").read_text() == "torch==2.2.0\ntransformers>=4\nidna  # urls\n"


def test_a_missing_wheel_leaves_everything_as_it_was(sandbox: Path) -> None:
    before = files(sandbox)
    (sandbox / "real.toml").write_text(PROFILE.replace('"4.36.2"', '"4.36.9"'))
    done = remediate(sandbox, "apply", "--yes", "--only", "packages")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "4.36.9" in done.stderr
    assert files(sandbox) == before
    assert remediate(sandbox, "rollback", "--yes").returncode == 0
    assert (sandbox / "requirements.txt").read_text().startswith("torch==2.2.0\n")
