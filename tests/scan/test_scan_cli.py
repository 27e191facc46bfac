"""`remediate scan` as a person and a CI run it."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from script.notebooks import ASK, DEAD_COMPILE, IMPORTS, LOAD, code, notebook

from remediate.cli import main
from remediate.cli.scan_report import Counter

INCIDENT = Path(__file__).parents[1] / "cases" / "incident"
GOOD = (INCIDENT / "after.py").read_bytes()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    (folder / "sub").mkdir(parents=True)
    shutil.copy(INCIDENT / "before.py", folder / "sub" / "infer.py")
    (folder / "n.ipynb").write_bytes(notebook(code(IMPORTS), code(LOAD), code(DEAD_COMPILE), code(ASK)))
    (folder / "plain.py").write_text("x = 1\n")
    monkeypatch.chdir(folder)
    return folder


class Ended(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


Run = Callable[..., Ended]


@pytest.fixture
def run(tree: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    def run_scan(*arguments: str, command: str = "scan") -> Ended:
        monkeypatch.setattr(sys, "argv", ["remediate", command, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsysbinary.readouterr()
        return Ended(int(ended.value.code or 0), out.decode(), err.decode())

    return run_scan


def test_text_names_each_place_and_sums_up(tree: Path, run: Run) -> None:
    done = run()
    assert done.exit_code == 0
    assert "  ~ n.ipynb:cell 3:1: compiles a model" in done.stdout
    assert "  ~ sub/infer.py:7: compiles a model" in done.stdout
    assert "2 inference scripts in 3 files: " in done.stdout
    assert "2 files can be patched" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        ((), 3),
        (("plain.py",), 0),
        (("--select", "SCR013"), 0),  # advice, and the broken file's SCR000 is not selected
        (("sub", "--ignore", "scr002,SCR003,SCR004", "--ignore", "SCR006"), 0),
        (("--select", "SCR002"), 3),
        (("broken.py",), 4),
        (("broken.py", "sub"), 3),
    ],
)
def test_check_ends_with_the_documented_code(tree: Path, run: Run, arguments: tuple[str, ...], exit_code: int) -> None:
    (tree / "broken.py").write_text("from transformers import pipeline\npipeline(\n")
    assert run("--check", *arguments).exit_code == (exit_code if arguments else 3)
    assert run(*arguments).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("gone",), "nothing to scan at `gone`"),
        (("--select", "SCR999"), "no script code `SCR999`"),
        (("--ignore", "GPU001"), "no script code `GPU001`"),
        (("--profile", "gone"), "gone"),
        (("-C", "gone"), "gone"),
    ],
)
def test_a_wrong_request_is_said(tree: Path, run: Run, arguments: tuple[str, ...], what: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert what in done.stderr
    assert done.stdout == ""


def test_json_is_one_document(tree: Path, run: Run) -> None:
    document = msgspec.json.decode(run("--json").stdout)
    assert document["kind"] == "remediate-scan"
    assert (document["files"], document["scripts"]) == (3, 2)
    first, second = document["judged"]
    assert (first["name"], second["name"]) == ("n.ipynb", "sub/infer.py")
    assert {"line", "finding"} == set(first["findings"][0])
    assert second["diff"].startswith("--- a/")
    assert document["differences"] == sum(
        item["finding"]["outcome"] == "differs" and not item["finding"]["is_advice"]
        for entry in document["judged"]
        for item in entry["findings"]
    )


def test_the_answer_is_the_same_each_time(tree: Path, run: Run) -> None:
    for form in ("text", "json", "sarif", "github"):
        assert run("--format", form, "--jobs", "2").stdout == run("--format", form, "--jobs", "1").stdout


def test_the_diff_can_be_applied(tree: Path, run: Run) -> None:
    done = run("--diff", "sub")
    patch = shutil.which("patch")
    assert done.stdout.startswith("--- a/sub/infer.py\n+++ b/sub/infer.py\n")
    assert done.stderr == "1 file would be patched.\n"
    if patch is not None:
        subprocess.run([patch, "-p1", "--silent"], input=done.stdout.encode(), check=True)
        by_hand = (tree / "sub" / "infer.py").read_bytes()
        shutil.copy(INCIDENT / "before.py", tree / "sub" / "infer.py")
        run("--fix", "sub")
        assert (tree / "sub" / "infer.py").read_bytes() == by_hand


def test_fix_is_a_run_that_rollback_undoes(tree: Path, run: Run) -> None:
    before = {path: path.read_bytes() for path in (tree / "n.ipynb", tree / "sub" / "infer.py")}
    done = run("--fix")
    assert done.exit_code == 0
    assert "2 files patched in run 000001" in done.stdout
    assert all(path.read_bytes() != content for path, content in before.items())
    assert "SCR002" not in done.stdout, "what is left is looked at afresh"
    again = run("--fix")
    assert "patched" not in again.stdout
    undone = run("--yes", command="rollback")
    assert undone.exit_code == 0, undone.stderr
    assert {path: path.read_bytes() for path in before} == before


def test_fix_with_a_document_keeps_standard_output_clean(tree: Path, run: Run) -> None:
    done = run("--fix", "--json")
    document = msgspec.json.decode(done.stdout)
    assert all(not entry["diff"] for entry in document["judged"])
    assert "patched in run" in done.stderr


def test_the_folders_configuration_counts(tree: Path, run: Run) -> None:
    (tree / "remediate.toml").write_text('profile = "incident-a100"\n[ignore]\nSCR002 = "on purpose"\n')
    done = run()
    assert "profile       incident-a100" in done.stdout
    assert "SCR002" not in done.stdout
    assert "SCR009" in done.stdout, "the profile wants CUDA initialised"


def test_versions_come_from_the_profile(tree: Path, run: Run) -> None:
    old, new = (run("--diff", "--profile", name, "sub").stdout for name in ("incident-a100", "current"))
    assert "torch_dtype=torch.bfloat16" in old
    assert "torch_dtype" not in new


@pytest.mark.slow
def test_ctrl_c_ends_it_cleanly(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"{number}.py").write_bytes(GOOD + b"\n\n# x\n" * 500)
    environment = {**os.environ, "NO_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "remediate", "scan", "--jobs", "2"],
        cwd=tmp_path,
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (130, b"")
    assert b"Traceback" not in errors


def test_plan_and_apply_take_notebooks_too(tree: Path, run: Run) -> None:
    before = (tree / "n.ipynb").read_bytes()
    wanted = ("--only", "script", "--profile", "base")
    assert "n.ipynb:cell 3:1" in run(*wanted, command="plan").stdout, "found in the folder"
    assert run(*wanted, "--script", "n.ipynb", "--yes", command="apply").exit_code == 0
    assert DEAD_COMPILE.encode() not in (tree / "n.ipynb").read_bytes()
    assert run("--yes", command="rollback").exit_code == 0
    assert (tree / "n.ipynb").read_bytes() == before


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([10.0, 10.01, 20.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    for stream, shown in (
        (Terminal(), "\r\x1b[K1 of 3 files judged\r\x1b[K3 of 3 files judged\r\x1b[K"),
        (io.StringIO(), ""),
    ):
        now = iter([10.0, 10.01, 20.0])
        counter = Counter(stream)
        for done in (1, 2, 3):
            counter(done, 3, "judged")
        counter.clear()
        assert stream.getvalue() == shown
