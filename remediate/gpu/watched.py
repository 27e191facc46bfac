"""Asking a driver that may never answer: NVML is called in a child process, which a deadline can end.

A wedged GPU or driver keeps a call in the kernel for good, and no signal and no thread brings the caller back from
there. A fork costs some milliseconds, less than NVML's own initialisation; docs/decisions/0011-watched-driver.md has
the alternatives.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from remediate.errors import InternalError, ObserveError
from remediate.gpu.nvml import load_pynvml, unknown_for
from remediate.model import Unknown, UnknownKind

T = TypeVar("T")
Note = Callable[[str], None]
"""Called with what is looked at next, which starts the deadline afresh."""

DEADLINE_S = 30.0
"""For one step. Initialising a GPU without persistence mode takes 1 to 3 s, on old boxes more than 10 s."""
_TIMEOUT = 10
"""NVML_ERROR_TIMEOUT."""
_REAP_S = 1.0
_MOST_DESCRIPTORS = 65536
_TASKS = Path("/proc/self/task")


class Stuck(msgspec.Struct, frozen=True):
    """The child did not come back: what it was looking at, and why there is no answer."""

    at: str
    reason: Unknown


class _Message(msgspec.Struct, Generic[T], omit_defaults=True):
    """One line from the child. The last one has no note."""

    note: str | None = None
    result: T | None = None
    refusal: tuple[str, str, str] | None = None
    """Parts of an `ObserveError`."""
    defect: str | None = None


def watched(work: Callable[[Note], T], kind: Any, deadline_s: float | None = None) -> T | Stuck:
    """What `work` gives, done in a child process; `Stuck` where a step outlasts the deadline or the library crashes.

    A program with several threads can't fork safely; there the work is done in place and without a deadline.

    Args:
        work: is given the function to announce its steps with. Its result must be JSON-able.
        kind: type of the result, to read it back.
        deadline_s: seconds for one step; None takes `DEADLINE_S`.

    Raises:
        ObserveError: `work` raised it.
        InternalError: `work` raised anything else.
    """
    with suppress(ImportError):
        load_pynvml()  # Once here, and not again in every child.
    started = start(work, kind)
    return work(lambda _: None) if started is None else started.finish(deadline_s)


def start(work: Callable[[Note], T], kind: Any) -> Watch[T] | None:
    """Begin `work` in a child process, to be collected later; None where there is no need or no safe way to."""
    if not (_has_library() and _can_fork()):
        return None
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_the_child(work, writing)
    os.close(writing)
    return Watch(reading, _Child(pid), kind)


class Watch(Generic[T]):
    """Work that goes on in a child process. Implements `remediate.subject.Begun`."""

    def __init__(self, reading: int, child: _Child, kind: Any) -> None:
        self._reading: int | None = reading
        self._child = child
        self._kind = kind

    def finish(self, deadline_s: float | None = None) -> T | Stuck:
        """What it gave, as `watched` does; the deadline counts from here. To be called once."""
        if self._reading is None:
            raise InternalError("the answer was collected before")
        try:
            answer: T | Stuck = _follow(
                self._reading, self._child, self._kind, DEADLINE_S if deadline_s is None else deadline_s
            )
            return answer
        finally:
            self.close()

    def close(self) -> None:
        """End the child, where it still goes on."""
        if self._reading is not None:
            os.close(self._reading)
            self._reading = None
            self._child.end()


def _has_library() -> bool:
    """Whether there is a driver's library at all: without one nothing can hang, and a plan is spared the child."""
    import ctypes

    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def _can_fork() -> bool:
    """Whether this process has one thread: a fork of several may copy a lock that nobody will release."""
    try:
        return len(list(_TASKS.iterdir())) == 1
    except OSError:
        return False


def _be_the_child(work: Callable[[Note], Any], writing: int) -> NoReturn:
    """Never returns: whatever happens, this copy of the program ends here, and without its clean-up."""
    try:
        _let_go(writing)
        with os.fdopen(writing, "wb", buffering=0) as stream:
            _send(stream, _attempt(work, lambda text: _send(stream, _Message(note=text))))
    except BaseException:  # noqa: BLE001 - an interrupt or a closed pipe; the parent knows what it needs to
        os._exit(1)
    os._exit(0)


def _send(stream: Any, message: _Message[Any]) -> None:
    line = memoryview(msgspec.json.encode(message) + b"\n")
    while line:
        line = line[stream.write(line) :]


def _attempt(work: Callable[[Note], Any], note: Note) -> _Message[Any]:
    try:
        return _Message(result=work(note))
    except ObserveError as error:
        return _Message(refusal=(error.what, error.cause, error.hint))
    except Exception as error:  # noqa: BLE001 - a defect, which the parent raises
        return _Message(defect=f"{type(error).__name__}: {error}")


def _let_go(writing: int) -> None:
    """Close what the parent has open: a child that hangs must hold neither its locks nor its output."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.closerange(3, writing)
    os.closerange(writing + 1, _MOST_DESCRIPTORS)


def _follow(reading: int, child: _Child, kind: Any, deadline_s: float) -> Any:
    decoder = msgspec.json.Decoder(_Message[kind])
    at, held = "", b""
    while True:
        ready, _, _ = select.select([reading], [], [], deadline_s)
        if not ready:
            return Stuck(at, unknown_for(_TIMEOUT))
        block = os.read(reading, 1 << 16)
        if not block:
            return Stuck(at, Unknown(UnknownKind.FAILED, f"asking the driver ended the process ({child.ending()})"))
        *lines, held = (held + block).split(b"\n")
        for line in lines:
            message = decoder.decode(line)
            if message.note is None:
                return _result(message)
            at = message.note


def _result(message: _Message[Any]) -> Any:
    if message.refusal is not None:
        what, cause, hint = message.refusal
        raise ObserveError(what, cause=cause, hint=hint)
    if message.defect is not None:
        raise InternalError("the GPUs could not be read", cause=message.defect)
    return message.result


class _Child:
    """The child process; reaped once."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._status: int | None = None

    def ending(self) -> str:
        """How it ended: the name of a signal, or the exit code."""
        self._reap()
        if self._status is None:
            return "it closed its output"
        code = os.waitstatus_to_exitcode(self._status)
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def end(self) -> None:
        """Kill and reap it. One that hangs in the kernel is left to the system, for waiting would hang as well."""
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            self._reap()

    def _reap(self) -> None:
        until = time.monotonic() + _REAP_S
        while self._status is None and time.monotonic() < until:
            found, status = os.waitpid(self._pid, os.WNOHANG)
            if found:
                self._status = status
            else:
                time.sleep(0.001)
