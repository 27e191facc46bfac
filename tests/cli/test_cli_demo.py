"""The walk through the incident, as a newcomer runs it, and the commands by hand in its sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from remediate.demo import incident
from remediate.demo.sandbox import lay_out
from remediate.demo.walk import snapshot

Command = Callable[..., subprocess.CompletedProcess[str]]


def remediate(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "remediate", *arguments],
        cwd=folder,
        env={**os.environ, "REMEDIATE_STATE_DIR": str(folder / ".state"), **environment},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "sandbox"
    lay_out(folder)
    return folder


@pytest.mark.slow
def test_the_walk_keeps_its_promises(tmp_path: Path) -> None:
    done = remediate(tmp_path, "demo", "--folder", str(tmp_path / "walk"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    for expected in (
        "software thermal slowdown",
        "Changes, in this order (6)",
        "In agreement with profile `incident-demo`.",
        "Nothing to do.",
        "byte for byte",
    ):
        assert expected in done.stdout
    assert not (tmp_path / ".state").exists()


@pytest.mark.slow
def test_a_temporary_sandbox_is_gone_afterwards(tmp_path: Path) -> None:
    done = remediate(tmp_path, "demo", TMPDIR=str(tmp_path))
    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_life_cycle_by_hand(laid_out: Path) -> None:
    before = snapshot(laid_out)
    assert remediate(laid_out, "plan", "--check").returncode == 3
    saved = remediate(laid_out, "plan", "-o", "plan.json")
    assert saved.returncode == 0
    applied = remediate(laid_out, "apply", "plan.json", "--yes", "--allow-disruption")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert remediate(laid_out, "verify").returncode == 0
    plan = json.loads(remediate(laid_out, "plan", "--json").stdout)["plan"]
    assert plan["changes"] == []

    compiled = subprocess.run([sys.executable, "-m", "py_compile", incident.SCRIPT_NAME], cwd=laid_out, check=False)
    assert compiled.returncode == 0
    again = remediate(laid_out, "apply", "plan.json", "--yes")
    assert (again.returncode, "Nothing to do" in again.stdout) == (0, True)
    history = json.loads(remediate(laid_out, "history", "--json").stdout)["runs"]
    assert [run["status"] for run in history] == ["applied"]

    undone = remediate(laid_out, "rollback", "--yes")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert snapshot(laid_out) == before
    assert remediate(laid_out, "plan", "--check").returncode == 3


def test_the_plan_for_the_reports_own_files(laid_out: Path) -> None:
    done = remediate(laid_out, "plan", "--json")
    plan = json.loads(done.stdout)["plan"]
    changes = {change["id"].rsplit(":", 1)[-1]: change for change in plan["changes"]}
    install = changes["install"]
    items = {item["target"]: item["after"] for item in install["items"]}
    assert (items["torch"], items["transformers"], items["numpy"]) == ("2.1.2", "4.36.2", "1.26.4")
    assert {"accelerate", "sentencepiece", "protobuf"} <= set(items)
    commands = [change["command"][-2:] for change in plan["changes"] if change["command"][:1] == ["nvidia-smi"]]
    assert commands == [["-pm", "1"], ["-pl", "250"], ["-ac", "1215,1410"]]
    (script,) = [change for change in plan["changes"] if change["subject"] == "script"]
    added = [line for line in script["diff"].splitlines() if line.startswith("+")]
    text = "\n".join(added)
    assert 'device_map="cuda"' in text
    assert "torch_dtype=torch.bfloat16" in text
    assert "torch.cuda.init()" in text
    assert "torch.compile" not in text
    assert "-model = torch.compile(model)  # eager fallback after a few hours" in script["diff"]


def test_facts_recorded_there_give_the_same_plan_elsewhere(laid_out: Path, tmp_path: Path) -> None:
    recorded = tmp_path / "facts.json"
    assert remediate(laid_out, "facts", "-o", str(recorded)).returncode == 0
    elsewhere = json.loads(
        remediate(tmp_path, "plan", "--facts", str(recorded), "--json", "-p", "incident-a100").stdout
    )["plan"]
    there = json.loads(remediate(laid_out, "plan", "--json", "-p", "incident-a100").stdout)["plan"]
    assert elsewhere["changes"] == there["changes"]
    assert elsewhere["findings"] == there["findings"]
    assert elsewhere["changes"]


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    done = remediate(tmp_path, "demo", "--folder", str(tmp_path))
    assert done.returncode == 2
    assert "is not empty" in done.stderr
    assert (tmp_path / "mine").read_text() == "precious"
