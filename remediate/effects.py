"""The only place that writes files and starts processes; thin, and the same for every subject."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from remediate.errors import ApplyError, NeedsRootError

_KILLED_S = 5.0
"""A killed process is gone in less; one that stays hangs in the kernel."""


class Completed(msgspec.Struct, frozen=True):
    """A process that ended.

    Attributes:
        argv: the argument list that ran.
        returncode: exit status; negative for a signal, as in `subprocess`.
        stdout: decoded as UTF-8 with replacement characters.
        stderr: likewise. nvidia-smi prints its errors on stdout.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str


class Runner(Protocol):
    """Runs one argument list. The real one starts a process; a simulated board answers by itself."""

    def __call__(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> Completed:
        """Run and wait. Raises `ApplyError` where it can't be started or does not end in time."""
        ...


def run_process(
    argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> Completed:
    """Run `argv` without a shell and without standard input, and wait for it.

    Raises:
        ApplyError: the program does not exist, can't be started, or did not end within `timeout_s`.
    """
    try:
        code, stdout, stderr = _run(argv, timeout_s, env, cwd)
    except FileNotFoundError as error:
        raise ApplyError(
            f"`{argv[0]}` was not found", cause=str(error), hint="install it or put it on PATH, then try again"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ApplyError(
            f"`{argv[0]}` did not end within {timeout_s:g} s and was killed",
            cause="the command hangs, or the machine is very slow",
            hint="see what it was doing, then run `remediate plan` again",
        ) from error
    except OSError as error:
        raise ApplyError(f"`{argv[0]}` could not be started", cause=str(error)) from error
    return Completed(tuple(argv), code, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))


def _run(
    argv: Sequence[str], timeout_s: float, env: Mapping[str, str] | None, cwd: str | None
) -> tuple[int, bytes, bytes]:
    """As `subprocess.run`, which after a time-out waits for ever for a process that hangs in a driver."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(list(argv), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=env, cwd=cwd)
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except BaseException:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILLED_S)
        raise
    finally:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    return process.returncode, stdout, stderr


def start_detached(argv: Sequence[str], *, log: Path, timeout_s: float) -> int:
    """Start a process that outlives this one, its terminal and its session, once it has printed `ready`.

    The process must fork and let its first half end, so that nobody has to wait for it. Its standard error goes to
    `log`. Its standard input ends when this process ends or closes what is returned: that is how it knows.

    Returns:
        The file descriptor to keep open.

    Raises:
        ApplyError: it can't be started, or did not say that it is ready within `timeout_s`.
    """
    import select

    reading, writing = os.pipe()
    try:
        with log.open("ab") as errors:
            process = subprocess.Popen(
                list(argv), stdin=reading, stdout=subprocess.PIPE, stderr=errors, cwd="/", start_new_session=True
            )
        with process:
            stream = process.stdout
            is_ready = stream is not None and select.select([stream], [], [], timeout_s)[0] and stream.readline()
            if is_ready != b"ready\n":
                process.kill()
    except OSError as error:
        os.close(writing)
        raise ApplyError(f"`{argv[0]}` could not be started", cause=str(error)) from error
    finally:
        os.close(reading)
    if is_ready != b"ready\n":
        os.close(writing)
        raise ApplyError(f"a process could not be left running beside this one; see `{log}`", cause=" ".join(argv))
    return writing


def sha256(content: bytes) -> str:
    """Lower-case hexadecimal SHA-256 of `content`."""
    return hashlib.sha256(content).hexdigest()


def read_bytes(path: Path) -> bytes | None:
    """The file's bytes, or None when there is no such file. Other errors pass through as `OSError`."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def write_file(
    path: Path, content: bytes, *, mode: int | None = None, temporary_suffix: str = ".remediate-tmp"
) -> None:
    """Replace or create a file atomically: a temporary sibling, fsync, rename, fsync of the folder.

    A symbolic link is followed, so that the link stays and its target changes. An existing file keeps its mode, and
    its owner where this process may set it. On any exception the original stays and the temporary file goes.

    Args:
        mode: permission bits for the result; None keeps those of the existing file, or uses 0o666 less the umask.
        temporary_suffix: fixed per run, so that a killed run's leftovers can be found and removed.

    Raises:
        NeedsRootError: no permission to write there.
        ApplyError: no space left, read-only file system, or another failure of the operating system.
    """
    real = Path(os.path.realpath(path))
    temporary = real.with_name(real.name + temporary_suffix)
    try:
        _write_through(real, temporary, content, mode)
    except OSError as error:
        raise file_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _write_through(real: Path, temporary: Path, content: bytes, mode: int | None) -> None:
    former = _stat_or_none(real)
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        if former is not None:
            with contextlib.suppress(PermissionError):
                os.fchown(stream.fileno(), former.st_uid, former.st_gid)
        wanted = mode if mode is not None else (stat.S_IMODE(former.st_mode) if former else None)
        if wanted is not None:
            os.fchmod(stream.fileno(), wanted)
        os.fsync(stream.fileno())
    temporary.replace(real)
    sync_folder(real.parent)


def remove_leftover(path: Path, temporary_suffix: str) -> None:
    """Delete the temporary sibling that a killed run may have left beside `path`. Never fails."""
    real = Path(os.path.realpath(path))
    with contextlib.suppress(OSError):
        real.with_name(real.name + temporary_suffix).unlink()


def remove_file(path: Path) -> None:
    """Delete a file and make that durable. No error when it is already gone.

    Raises:
        NeedsRootError, ApplyError: as for `write_file`.
    """
    try:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise file_error(path, error) from error


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, where the file system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def file_error(path: Path, error: OSError) -> ApplyError:
    """The error to report when writing `path` failed, with its cause and what to do."""
    if isinstance(error, PermissionError):
        return NeedsRootError(
            f"no permission to write `{path}`",
            cause=str(error.strerror),
            hint="run it as the owner of that file or folder",
        )
    hints = {
        errno.ENOSPC: "free some space on that file system; nothing was lost, the file is as it was",
        errno.EDQUOT: "free some of your quota; nothing was lost, the file is as it was",
        errno.EROFS: "the file system is read-only; the file is as it was",
    }
    return ApplyError(
        f"`{path}` could not be written",
        cause=str(error.strerror or error),
        hint=hints.get(error.errno or 0, "the file is as it was"),
    )


def _stat_or_none(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None
