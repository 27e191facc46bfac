"""`remediate render inference` as a person runs it."""

from __future__ import annotations

import ast
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from remediate.cli import main

BEFORE = Path(__file__).parents[1] / "cases" / "incident" / "before.py"


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "sandbox"
    path.mkdir()
    shutil.copy(BEFORE, path / "infer.py")
    monkeypatch.chdir(path)
    return path


@pytest.fixture
def run(sandbox: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    def run_render(*arguments: str) -> Ended:
        command = [
            "remediate",
            "render",
            "inference",
            "--profile",
            "incident-a100",
            "--board",
            "a100-sxm4-40gb-incident",
        ]
        monkeypatch.setattr(sys, "argv", [*command, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsysbinary.readouterr()
        return Ended(int(ended.value.code or 0), out.decode(), err.decode())

    return run_render


def test_it_takes_the_folders_script(run: Run) -> None:
    done = run()
    assert done.code == 0
    assert 'MODEL = "meta-llama/7B"' in done.out
    assert '"max_new_tokens": 50,' in done.out
    assert "torch.bfloat16" in done.out
    assert "for profile incident-a100, torch 2.1.2, transformers 4.36.2." in done.out
    ast.parse(done.out)


def test_it_writes_a_file_and_replaces_none(run: Run, sandbox: Path) -> None:
    done = run("-o", "new.py")
    assert (done.code, done.out, done.err) == (0, "", "written to new.py\n")
    written = (sandbox / "new.py").read_bytes()
    assert b"def query(prompt: str) -> str:" in written
    again = run("-o", "infer.py")
    assert again.code == 2
    assert "`infer.py` is there already" in again.err
    assert (sandbox / "infer.py").read_bytes() == BEFORE.read_bytes()
    assert run("-o", "infer.py", "--script", "infer.py", "--force").code == 0
    assert (sandbox / "infer.py").read_bytes() == written


def test_a_model_is_enough(run: Run, sandbox: Path) -> None:
    (sandbox / "infer.py").unlink()
    assert 'MODEL = "org/name"' in run("--model", "org/name").out
    without = run()
    assert without.code == 2
    assert "--model NAME" in without.err


def test_several_scripts_have_to_be_told_apart(run: Run, sandbox: Path) -> None:
    shutil.copy(BEFORE, sandbox / "other.py")
    done = run()
    assert done.code == 2
    assert "infer.py, other.py" in done.err
    assert run("--script", "other.py").code == 0


def test_a_script_that_gives_no_model_is_said(run: Run, sandbox: Path) -> None:
    (sandbox / "odd.py").write_text("import sys\n" + BEFORE.read_text().replace('"meta-llama/7B"', "sys.argv[1]"))
    done = run("--script", "odd.py")
    assert done.code == 2
    assert "does not tell what sys.argv[1] is" in done.err
    assert run("--script", "odd.py", "--model", "org/name").code == 0
