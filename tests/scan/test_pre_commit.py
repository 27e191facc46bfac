"""The hooks for pre-commit: a valid manifest, and entries that do what their names say with the files that they get."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
BEFORE = ROOT / "tests" / "cases" / "incident" / "before.py"
ENTRIES = dict(re.findall(r"- id: (\S+)\n(?:  .*\n)*?  entry: (.*)\n", MANIFEST.read_text()))


def test_the_manifest_is_valid() -> None:
    pytest.importorskip("pre_commit")
    command = [sys.executable, "-m", "pre_commit", "validate-manifest", str(MANIFEST)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("hook", "is_fixing", "code"), [("remediate-scan", False, 3), ("remediate-scan-fix", True, 0)])
def test_a_hook_says_or_mends_what_differs(hook: str, is_fixing: bool, code: int, tmp_path: Path) -> None:
    shutil.copy(BEFORE, tmp_path / "infer.py")
    (tmp_path / "plain.py").write_text("x = 1\n")
    program, *arguments = shlex.split(ENTRIES[hook])
    assert program == "remediate"
    command = [sys.executable, "-m", "remediate", *arguments]
    done = subprocess.run([*command, "infer.py", "plain.py"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == code, "pre-commit also fails where a hook changed a file"
    assert ((tmp_path / "infer.py").read_bytes() != BEFORE.read_bytes()) is is_fixing
    passed = subprocess.run([*command, "plain.py"], cwd=tmp_path, capture_output=True, check=False)
    assert passed.returncode == 0


@pytest.mark.slow
def test_pre_commit_runs_a_hook(tmp_path: Path) -> None:
    """With the program that is installed here in place of a new environment, which would need the package index."""
    pytest.importorskip("pre_commit")
    shutil.copy(BEFORE, tmp_path / "infer.py")
    local = MANIFEST.read_text().replace("language: python", "language: system")
    local = local.replace("entry: remediate", f"entry: {shlex.quote(sys.executable)} -m remediate")
    indented = "".join(f"      {line}\n" for line in local.splitlines())
    (tmp_path / ".pre-commit-config.yaml").write_text(f"repos:\n  - repo: local\n    hooks:\n{indented}")
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    for command in (["git", "init", "-q"], ["git", "add", "infer.py", ".pre-commit-config.yaml"]):
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    run = [sys.executable, "-m", "pre_commit", "run", "remediate-scan", "--all-files"]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "exit code: 3" in done.stdout
    assert "infer.py:7" in done.stdout
