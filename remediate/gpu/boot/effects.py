"""Performing and undoing the operations on the boot unit, each read back."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from remediate import files
from remediate.effects import file_error
from remediate.errors import ApplyError, EditedSinceError, NeedsRootError
from remediate.gpu.boot.operations import BootFile, BootOperation, UnitSwitch
from remediate.model import Performed, Reading, State, Unknown, UnknownKind
from remediate.subject import Context

TIMEOUT_S = 60.0
_ON = "enabled"
_OFF = ("disabled", "not-found", "")
"""`systemctl is-enabled` of systemd 252 prints nothing on stdout for a unit that does not exist; 253 and later print
`not-found`."""
_DENIED = ("access denied", "permission denied", "authentication required", "operation not permitted")


def state(operation: BootOperation, context: Context) -> State:
    """Where the file or the unit stands."""
    if isinstance(operation, BootFile):
        return files.state(operation.edit, context)
    present = _read(operation, context)
    if isinstance(present, Unknown):
        return State.UNKNOWN
    if present == _ON:
        return State.AFTER if operation.enable else State.BEFORE
    if present in _OFF:
        return State.BEFORE if operation.enable else State.AFTER
    return State.OTHER


def prepare(operation: BootOperation, context: Context) -> Any:
    """Keep the present file and note which of its folders are missing; a unit's switch needs nothing."""
    if isinstance(operation, UnitSwitch):
        return {}
    missing = [str(folder) for folder in Path(operation.edit.path).parents if not folder.exists()]
    return {**files.prepare(operation.edit, context), "folders": missing}


def perform(operation: BootOperation, prepared: Any, context: Context) -> Performed:
    """Do it and read it back.

    Raises:
        NeedsRootError, EditedSinceError, ApplyError: as `files.perform`; or systemctl refused or failed.
    """
    if isinstance(operation, UnitSwitch):
        return _switch(operation, operation.enable, operation.argv, context)
    path = Path(operation.edit.path)
    is_removal = operation.edit.content is None
    if not is_removal:
        _make_folder(path.parent)
    done = files.perform(operation.edit, prepared, context)
    if is_removal and operation.owns_folder:
        _remove_empty(path.parent)
    _reload(operation, context)
    return done


def undo(operation: BootOperation, prepared: Any, context: Context) -> Performed:
    """Bring back the file, or the unit's former switch; folders that were made go when they are empty.

    Raises:
        EditedSinceError: somebody changed it after the run; it is left alone.
        NeedsRootError, ApplyError: as for `perform`.
    """
    if isinstance(operation, UnitSwitch):
        if state(operation, context) is State.OTHER:
            raise EditedSinceError(
                f"unit {operation.unit} was masked or linked by somebody after the run",
                cause=f"`systemctl is-enabled` says `{_read(operation, context)}`; it is left as it is",
                hint="undo that first, or undo the rest of the run with `--only`",
            )
        return _switch(operation, not operation.enable, operation.undo_argv, context)
    if operation.edit.content is None:
        _make_folder(Path(operation.edit.path).parent)
    done = files.undo(operation.edit, prepared, context)
    for folder in prepared.get("folders", ()):
        _remove_empty(Path(folder))
    _reload(operation, context)
    return done


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise file_error(folder, error) from error


def _remove_empty(folder: Path) -> None:
    """Remove a folder with nothing in it; one with something in it is not only ours and stays."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def _switch(operation: UnitSwitch, enable: bool, argv: tuple[str, ...], context: Context) -> Performed:
    word = _ON if enable else "disabled"
    if _stands(_read(operation, context), enable):
        return Performed(f"{word} already", changed=False)
    output = _run(argv, f"unit {operation.unit} was not {word}", context)
    present = _read(operation, context)
    if not _stands(present, enable):
        raise ApplyError(
            f"unit {operation.unit} was not {word}",
            cause=f"systemctl reported success, and `{' '.join(operation.read_argv)}` says `{present or 'not found'}`",
            hint="see `systemctl status` and the journal of systemd",
        )
    return Performed(f"{word}, read back", output=output)


def _stands(present: Reading[str], enable: bool) -> bool:
    return present == _ON if enable else present in _OFF


def _read(operation: UnitSwitch, context: Context) -> Reading[str]:
    try:
        done = context.runner(operation.read_argv, timeout_s=TIMEOUT_S)
    except ApplyError as error:
        return Unknown(UnknownKind.FAILED, error.what)
    return done.stdout.strip()


def _reload(operation: BootFile, context: Context) -> None:
    if operation.reload:
        _run(operation.reload, "systemd did not read its units again", context)


def _run(argv: tuple[str, ...], what: str, context: Context) -> str:
    done = context.runner(argv, timeout_s=TIMEOUT_S)
    output = (done.stdout + done.stderr).strip()
    if done.returncode:
        denied = any(words in output.lower() for words in _DENIED)
        error = NeedsRootError if denied else ApplyError
        raise error(
            what,
            cause=f"`{' '.join(argv)}` exited with {done.returncode}: {output or 'no message'}",
            hint="run it as root" if denied else "see what systemd says, then run `remediate plan` again",
        )
    return output
