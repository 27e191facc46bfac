"""Bad input ends as one clear error with the right exit code, and loses nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from remediate.demo import incident

GOOD = incident.SCRIPT


def remediate(folder: Path, *arguments: str, limit_bytes: int | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "remediate", *arguments]
    if limit_bytes is not None:
        code = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit_bytes}, {limit_bytes}))"
        code += "; import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); import remediate.cli; import sys"
        code += "; sys.argv = sys.argv[:1] + sys.argv[1:]; remediate.cli.main()"
        command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "REMEDIATE_STATE_DIR": str(folder.parent / "state")},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )


def assert_one_error(done: subprocess.CompletedProcess[str], code: int, *texts: str) -> None:
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stderr.count("error: ") == 1
    assert "Traceback" not in done.stderr
    assert re.search(r"^  (cause|hint): ", done.stderr, re.MULTILINE), done.stderr
    for text in texts:
        assert text in done.stderr


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    folder = tmp_path / "sandbox"
    folder.mkdir()
    (folder / "inference.py").write_text(GOOD)
    return folder


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "absent.py"),
        (b"\x7fELF\x02\x01\x00\x00\xff\xfe", "bad.py"),
        (b"def broken(:\n", "line 1"),
        ("# -*- coding: utf-8 -*-\nname = 'é'\n".encode("latin-1"), "bad.py"),
        (b"# -*- coding: no-such-codec -*-\n", "bad.py"),
        (b"x = " + b"(" * 5000 + b")" * 5000 + b"\n", "bad.py"),
    ],
)
def test_a_named_script_that_can_not_be_read(sandbox: Path, content: bytes | None, text: str) -> None:
    name = "absent.py" if content is None else "bad.py"
    if content is not None:
        (sandbox / name).write_bytes(content)
    done = remediate(sandbox, "plan", "--only", "script", "--profile", "base", "--script", name)
    assert_one_error(done, 2, text)


def test_a_folder_as_script(sandbox: Path) -> None:
    assert_one_error(remediate(sandbox, "plan", "--only", "script", "--script", "."), 2)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_script(sandbox: Path) -> None:
    (sandbox / "inference.py").chmod(0)
    assert_one_error(remediate(sandbox, "plan", "--only", "script", "--script", "inference.py"), 2, "ermission")


def test_a_broken_script_that_was_only_found_takes_nothing_down(sandbox: Path) -> None:
    (sandbox / "broken.py").write_text("from transformers import AutoModel\nAutoModel.from_pretrained('x'\n")
    done = remediate(sandbox, "plan", "--only", "script", "--profile", "base")
    assert done.returncode == 0
    assert "SCR000" in done.stdout
    assert "SCR004" in done.stdout


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda path: None, "interpreter"),
        (lambda path: path.write_text("#!/bin/sh\nexit 3\n"), "interpreter"),
        (lambda path: path.write_text("#!/bin/sh\necho nonsense\n"), "interpreter"),
        (lambda path: path.write_bytes(b"\x00\x01\x02"), "interpreter"),
        (lambda path: path.mkdir(), "interpreter"),
    ],
)
def test_an_interpreter_that_does_not_start(sandbox: Path, make: object, text: str) -> None:
    path = sandbox / "python"
    make(path)  # type: ignore[operator]  # one of the functions above
    if path.is_file():
        path.chmod(0o755)
    done = remediate(sandbox, "plan", "--only", "packages", "--python", str(path))
    assert done.returncode == 2, done.stdout
    assert done.stderr.count("error: ") == 1
    assert str(path) in done.stderr


def test_facts_of_another_schema_version(sandbox: Path) -> None:
    (sandbox / "facts.json").write_text('{"schema_version": 99}')
    assert_one_error(remediate(sandbox, "plan", "--facts", "facts.json"), 2, "schema version 99")


def test_a_board_that_is_none(sandbox: Path) -> None:
    assert_one_error(remediate(sandbox, "plan", "--board", "no-such-board"), 2, "there is no board", "a100")
    (sandbox / "board.json").write_text("{}")
    assert_one_error(remediate(sandbox, "plan", "--board", "board.json"), 2, "can't be used")


def test_a_gpu_that_is_not_there(sandbox: Path) -> None:
    done = remediate(sandbox, "plan", "--board", "h200", "--only", "gpu", "--gpu", "7")
    assert done.returncode in (1, 2)
    assert done.stderr.count("error: ") == 1
    assert "Traceback" not in done.stderr


def test_a_full_disk_keeps_the_original(sandbox: Path) -> None:
    """A limit on the size of files stands for the full disk: the write fails half-way with the same kind of error."""
    script = sandbox / "inference.py"
    script.write_text(GOOD + "# " + "x" * 200_000 + "\n")
    before = script.read_bytes()
    saved = remediate(sandbox, "plan", "--only", "script", "--profile", "incident-a100", "-o", "../plan.json")
    assert saved.returncode == 0
    done = remediate(sandbox, "apply", "../plan.json", "--yes", limit_bytes=100_000)
    assert_one_error(done, 1, "could not be written")
    assert script.read_bytes() == before
    assert [path.name for path in sandbox.iterdir()] == ["inference.py"]
    assert remediate(sandbox, "apply", "../plan.json", "--yes").returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder(sandbox: Path) -> None:
    sandbox.chmod(0o555)
    try:
        done = remediate(sandbox, "apply", "--only", "script", "--profile", "incident-a100", "--yes")
        assert_one_error(done, 4, "no permission to write")
        assert (sandbox / "inference.py").read_text() == GOOD
    finally:
        sandbox.chmod(0o755)


def test_a_state_folder_that_can_not_be_made(sandbox: Path) -> None:
    (sandbox.parent / "state").write_text("a file is in the way")
    done = remediate(sandbox, "apply", "--only", "script", "--profile", "incident-a100", "--yes")
    assert_one_error(done, 1, "state folder")
    assert (sandbox / "inference.py").read_text() == GOOD


def test_a_machine_without_a_driver(sandbox: Path) -> None:
    """The other two subjects go on, and nothing is a traceback."""
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has a driver")
    done = remediate(sandbox, "plan", "--profile", "base")
    assert (done.returncode, done.stderr) == (0, "")
    assert "GPU001" in done.stdout
    assert "SCR004" in done.stdout
    gpu = remediate(sandbox, "verify", "--profile", "base", "--only", "gpu")
    assert gpu.returncode == 4
    facts = remediate(sandbox, "facts", "--only", "gpu")
    assert facts.returncode == 0
    assert "not found" in facts.stdout


def test_a_folder_that_is_not_there(sandbox: Path) -> None:
    assert_one_error(remediate(sandbox, "plan", "-C", "absent"), 2, "folder `absent`")
    assert_one_error(remediate(sandbox, "facts", "-C", "inference.py"), 2, "inference.py")


def test_a_folder_that_was_deleted_below_the_shell(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"cd {gone} && rmdir {gone} && exec {sys.executable} -m remediate plan"
    done = subprocess.run(["sh", "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert_one_error(done, 2, "folder `.`")
