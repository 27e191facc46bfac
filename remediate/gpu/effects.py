"""Performing and undoing one setting: run nvidia-smi, read its answer, then read the value back from the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from remediate.effects import Runner
from remediate.errors import ApplyError, EditedSinceError, NeedsRootError
from remediate.gpu.commands import LOCKS, POWER_LIMITS, Operation, Setting, command, setting_name, show_value
from remediate.gpu.modes import compute_mode_value
from remediate.gpu.nvml import Nvml, open_nvml
from remediate.gpu.observe import find_handle
from remediate.gpu.power import TOLERANCE_W
from remediate.gpu.read_device import (
    read_application_clocks,
    read_compute_mode,
    read_module_power,
    read_persistence_mode,
    read_power_limit,
)
from remediate.gpu.reply import Answer, Reply, read_reply
from remediate.gpu.watched import Stuck, watched
from remediate.model import Performed, Reading, State, Unknown, UnknownKind
from remediate.subject import Context
from remediate.units import format_number

TIMEOUT_S = 60.0
"""nvidia-smi initialises each GPU when persistence mode is off: 1 to 3 s per GPU, more than 10 s on old boxes."""
_LOOK_AGAIN = (
    "run `remediate plan` again: it reads afresh what the device supports and how it stands. With persistence mode off "
    "a setting is lost as soon as the last client leaves, and nvidia-smi may be that client"
)
_ANOTHER_GPU = ("Problem with GPU", "Unable to determine the device handle")
_UNREADABLE_LOCK = Unknown(UnknownKind.NOT_SUPPORTED, "no driver call reads locked clocks back")


def state(operation: Operation, context: Context) -> State:
    """Where the device stands, read afresh. Locked clocks can't be read, so theirs is unknown."""
    present = read_setting(operation, context)
    if isinstance(present, Unknown):
        return State.UNKNOWN
    if is_same_value(operation.setting, present, operation.after):
        return State.AFTER
    if is_same_value(operation.setting, present, operation.before) or context.has_rebooted:
        return State.BEFORE
    return State.OTHER


def prepare(operation: Operation, context: Context) -> dict[str, str]:
    """The value that undoing brings back: what is there now, or what the plan saw where it can't be read."""
    present = read_setting(operation, context)
    return {"before": operation.before if isinstance(present, Unknown) else present}


def perform(operation: Operation, context: Context) -> Performed:
    """Set the value and read it back; nothing is run where it is set already.

    Raises:
        NeedsRootError: nvidia-smi lacks the rights.
        ApplyError: nvidia-smi refused or failed, or the value read back is another one.
    """
    if state(operation, context) is State.AFTER:
        return Performed(f"{_show(operation, operation.after)} already", changed=False)
    return _set(operation, operation.after, operation.argv, context)


def undo(operation: Operation, prepared: Any, context: Context) -> Performed:
    """Bring back the value that was there before; nothing is run where it is there already.

    Raises:
        EditedSinceError: somebody set a third value after the run; it is left alone.
        NeedsRootError, ApplyError: as for `perform`.
    """
    before = prepared["before"] if isinstance(prepared, dict) and "before" in prepared else operation.before
    present = read_setting(operation, context)
    if not isinstance(present, Unknown):
        if is_same_value(operation.setting, present, before):
            return Performed(f"{_show(operation, before)} already", changed=False)
        if not is_same_value(operation.setting, present, operation.after):
            if context.has_rebooted:
                lost = f"lost with the restart; it is {_show(operation, present)} now, which is left"
                return Performed(lost, changed=False)
            raise EditedSinceError(
                f"{_name(operation)} was set to {_show(operation, present)} by somebody else after the run",
                cause=f"the run left it at {_show(operation, operation.after)}; it is left as it is",
                hint=f"to have the former value back, set {_show(operation, before)} yourself",
            )
    return _set(operation, before, command(operation.setting, operation.uuid, before), context)


def remember(operation: Operation, done: bool) -> dict[str, str | None]:
    """Ledger entries for locks, the only settings that the device does not tell."""
    if operation.setting not in LOCKS:
        return {}
    value = operation.after if done else operation.before
    return {f"{operation.uuid}/{operation.setting}": value or None}


def is_same_value(setting: Setting, one: str, other: str) -> bool:
    """Whether two values of a setting are the same; power limits within a tolerance of 1 W."""
    if setting in POWER_LIMITS:
        return abs(float(one) - float(other)) <= TOLERANCE_W
    return one == other


def read_setting(operation: Operation, context: Context) -> Reading[str]:
    """The setting's present value as text; `Unknown` for locks and where the device can't be read."""
    if operation.setting in LOCKS:
        return _UNREADABLE_LOCK
    if context.request.board is not None:
        return _read_through(operation, context)
    # A real driver is asked in a child process, for it may never answer.
    answer: Reading[str] | Stuck = watched(lambda _: _read_through(operation, context), str | Unknown)
    return answer.reason if isinstance(answer, Stuck) else answer


def _read_through(operation: Operation, context: Context) -> Reading[str]:
    with _nvml(context) as nvml:
        if isinstance(nvml, Unknown):
            return nvml
        handle = find_handle(nvml, operation.uuid)
        return handle if isinstance(handle, Unknown) else _read(nvml, handle, operation.setting)


def _read(nvml: Nvml, handle: Any, setting: Setting) -> Reading[str]:
    readers: dict[Setting, Callable[[Nvml, Any], Reading[str]]] = {
        Setting.PERSISTENCE_MODE: _read_persistence_mode,
        Setting.COMPUTE_MODE: _read_compute_mode,
        Setting.POWER_LIMIT: _read_power_limit,
        Setting.MODULE_POWER_LIMIT: _read_module_limit,
        Setting.APPLICATION_CLOCKS: _read_application_clocks,
    }
    return readers[setting](nvml, handle)


def _read_persistence_mode(nvml: Nvml, handle: Any) -> Reading[str]:
    mode = read_persistence_mode(nvml, handle)
    return mode if isinstance(mode, Unknown) else str(int(mode))


def _read_compute_mode(nvml: Nvml, handle: Any) -> Reading[str]:
    mode = read_compute_mode(nvml, handle)
    return mode if isinstance(mode, Unknown) else compute_mode_value(mode)


def _read_power_limit(nvml: Nvml, handle: Any) -> Reading[str]:
    limit = read_power_limit(nvml, handle)
    return limit if isinstance(limit, Unknown) else format_number(limit)


def _read_module_limit(nvml: Nvml, handle: Any) -> Reading[str]:
    power = read_module_power(nvml, handle)
    if power is None:
        return Unknown(UnknownKind.NOT_SUPPORTED, "the board has no module scope")
    return power.limit_w if isinstance(power.limit_w, Unknown) else format_number(power.limit_w)


def _read_application_clocks(nvml: Nvml, handle: Any) -> Reading[str]:
    clocks = read_application_clocks(nvml, handle)
    if isinstance(clocks.memory_mhz, Unknown):
        return clocks.memory_mhz
    if isinstance(clocks.graphics_mhz, Unknown):
        return clocks.graphics_mhz
    return f"{clocks.memory_mhz},{clocks.graphics_mhz}"


def _set(operation: Operation, value: str, argv: tuple[str, ...], context: Context) -> Performed:
    done = _runner(context)(argv, timeout_s=TIMEOUT_S)
    reply = read_reply(operation.setting, value, done)
    if reply.answer is Answer.NO_PERMISSION:
        raise NeedsRootError(
            f"{_name(operation)} was not set to {_show(operation, value)}",
            cause=f"nvidia-smi: {reply.line}",
            hint="run it as root; in a container root also needs CAP_SYS_ADMIN, so run it on the host",
        )
    present = read_setting(operation, context)
    wanted = _show(operation, value)
    is_set = not isinstance(present, Unknown) and is_same_value(operation.setting, present, value)
    if reply.answer in (Answer.REFUSED, Answer.FAILED):
        how = "refused" if reply.answer is Answer.REFUSED else "failed"
        said = f"nvidia-smi {how} with exit code {done.returncode}: {reply.line}"
        if is_set:
            # An exit code proves as little when it is bad; what the device says counts.
            return Performed(f"{wanted}, read back, although {said}", output=done.stdout)
        raise _not_done(operation, value, said, _hint_for(operation, argv, reply))
    if operation.setting in LOCKS:
        if reply.answer is Answer.UNCLEAR:
            cause = f"nvidia-smi answered `{reply.line}`, and locked clocks can't be read back"
            raise _not_done(operation, value, cause)
        return Performed(f"{wanted}; nvidia-smi confirms it, and no driver call reads it back", output=done.stdout)
    if isinstance(present, Unknown):
        raise ApplyError(
            f"whether {_name(operation)} was set to {wanted} is not known",
            cause=f"it could not be read back: {present.reason}; nvidia-smi: `{reply.line}`",
            hint=_LOOK_AGAIN,
        )
    if not is_set:
        raise _not_done(
            operation, value, f"it reads {_show(operation, present)} afterwards; nvidia-smi answered `{reply.line}`"
        )
    return Performed(f"{wanted}, read back", output=done.stdout)


def _not_done(operation: Operation, value: str, cause: str, hint: str = _LOOK_AGAIN) -> ApplyError:
    return ApplyError(f"{_name(operation)} was not set to {_show(operation, value)}", cause=cause, hint=hint)


def _hint_for(operation: Operation, argv: tuple[str, ...], reply: Reply) -> str:
    """nvidia-smi looks for a UUID among all GPUs, and stops at one that it can't look at (535.261.03)."""
    if not reply.line.startswith(_ANOTHER_GPU):
        return _LOOK_AGAIN
    by_index = " ".join(str(operation.index) if part == operation.uuid else part for part in argv)
    return (
        "nvidia-smi finds a GPU by its UUID only while all GPUs can be looked at. Reset or remove that one; until then "
        f"name this one by its index, which `nvidia-smi -L` shows: `{by_index}`"
    )


def _name(operation: Operation) -> str:
    return f"{setting_name(operation.setting)} of GPU {operation.index} ({operation.uuid})"


def _show(operation: Operation, value: str) -> str:
    return show_value(operation.setting, value)


@contextmanager
def _nvml(context: Context) -> Iterator[Nvml | Unknown]:
    with open_nvml(_board_nvml(context)) as nvml:
        yield nvml


def _board_nvml(context: Context) -> Nvml | None:
    if context.request.board is None:
        return None
    from remediate.gpu.board import Board, SimulatedNvml

    return SimulatedNvml(Board.load(context.request.board).facts)


def _runner(context: Context) -> Runner:
    """The board's nvidia-smi where there is a board; it hands every other program on to the real runner."""
    if context.request.board is None:
        return context.runner
    from remediate.gpu.board import SimulatedSmi

    return SimulatedSmi(context.request.board, context.runner)
