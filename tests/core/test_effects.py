from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from remediate import effects
from remediate.effects import run_process, write_file
from remediate.errors import ApplyError, NeedsRootError


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_link_stays_a_link_and_the_mode_stays(tmp_path: Path) -> None:
    real = tmp_path / "real.txt"
    real.write_bytes(b"old")
    real.chmod(0o604)
    link = tmp_path / "link.txt"
    link.symlink_to("real.txt")
    write_file(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o604
    assert listing(tmp_path) == ["link.txt", "real.txt"]


@pytest.mark.parametrize(
    ("number", "hint"), [(errno.ENOSPC, "free some space"), (errno.EROFS, "read-only"), (errno.EIO, "as it was")]
)
def test_a_failed_write_keeps_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, hint: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ApplyError, match="could not be written") as caught:
        write_file(path, b"new")
    assert hint in caught.value.hint
    assert path.read_bytes() == b"old"
    assert listing(tmp_path) == ["file"]


def test_a_really_full_disk(tmp_path: Path) -> None:
    """/dev/full answers every write with ENOSPC; as the temporary file it is a disk that fills up."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    real_open = os.open

    def open_full(name: str | os.PathLike[str], flags: int, mode: int = 0o777) -> int:
        return real_open("/dev/full", os.O_WRONLY) if str(name).endswith("-tmp") else real_open(name, flags, mode)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", open_full)
        with pytest.raises(ApplyError) as caught:
            write_file(path, b"new")
    assert "No space left" in caught.value.cause
    assert path.read_bytes() == b"old"


def test_no_permission_is_its_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NeedsRootError, match="no permission"):
        write_file(tmp_path / "file", b"new")


def test_a_missing_folder_is_an_error_with_its_cause(tmp_path: Path) -> None:
    with pytest.raises(ApplyError) as caught:
        write_file(tmp_path / "absent" / "file", b"new")
    assert "No such file" in caught.value.cause


def test_a_command_is_no_shell() -> None:
    done = run_process([sys.executable, "-c", "import sys; print(sys.argv[1])", "$(echo x); `id`"], timeout_s=20)
    assert done.stdout == "$(echo x); `id`\n"
    assert done.returncode == 0


def test_a_command_that_hangs_is_killed() -> None:
    with pytest.raises(ApplyError, match="did not end within"):
        run_process([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.2)


def test_a_command_that_can_not_be_killed_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that hangs in a driver; here killing it does nothing."""
    abandoned: list[subprocess.Popen[bytes]] = []

    def fail_to_kill(process: subprocess.Popen[bytes]) -> None:
        abandoned.append(process)

    real_kill = subprocess.Popen.kill
    monkeypatch.setattr(subprocess.Popen, "kill", fail_to_kill)
    monkeypatch.setattr(effects, "_KILLED_S", 0.1)
    with pytest.raises(ApplyError, match="did not end within"):
        run_process([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.2)
    (process,) = abandoned
    assert process.returncode is None
    real_kill(process)
    process.wait()


def test_a_missing_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ApplyError, match="`no-such-program` was not found"):
        run_process(["no-such-program"], timeout_s=1)
