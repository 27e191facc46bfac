"""Replacing a file as one reversible operation; shared by the subjects that edit files."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import msgspec

from remediate.effects import file_error, read_bytes, remove_file, remove_leftover, sha256, write_file
from remediate.errors import ApplyError, EditedSinceError
from remediate.model import Performed, State
from remediate.subject import Context


class FileEdit(msgspec.Struct, frozen=True, tag="file"):
    """The exact bytes that a file will have, and the hashes that tell before from after.

    Attributes:
        path: absolute path.
        content: the bytes to be written; None removes the file.
        before_sha256: of the bytes the edit was made from; None when there was no file.
        after_sha256: of `content`; None when the file is removed.
        mode: permission bits for a file that is created; None leaves them to the umask.
    """

    path: str
    content: bytes | None
    before_sha256: str | None
    after_sha256: str | None
    mode: int | None = None


class Backup(msgspec.Struct, frozen=True):
    """What `prepare` saved.

    Attributes:
        name: file name below the run's folder; None when there was no file before.
        mode: its permission bits.
    """

    name: str | None
    mode: int | None = None


def plan_edit(path: Path, before: bytes | None, after: bytes | None, mode: int | None = None) -> FileEdit:
    """The operation that turns `before` into `after`; None stands for no file, so that it is created or removed."""
    return FileEdit(str(path), after, _hash(before), _hash(after), mode)


def _hash(content: bytes | None) -> str | None:
    return None if content is None else sha256(content)


def diff(path: Path, before: bytes | None, after: bytes | None, encoding: str = "utf-8") -> str:
    r"""Unified diff as text, three lines of context; empty when the bytes are equal.

    Undecodable bytes are shown as `\xNN`. A missing last newline is marked the way diff(1) does.
    """
    import difflib

    old = (before or b"").decode(encoding, "backslashreplace").splitlines(keepends=True)
    new = (after or b"").decode(encoding, "backslashreplace").splitlines(keepends=True)
    old_name = "/dev/null" if before is None else f"a/{path.name}"
    new_name = "/dev/null" if after is None else f"b/{path.name}"
    lines = difflib.unified_diff(old, new, old_name, new_name)
    return "".join(_terminated(line) for line in lines)


def _terminated(line: str) -> str:
    if line.endswith(("\n", "\r")):
        return line.rstrip("\r\n") + "\n"
    return line + "\n\\ No newline at end of file\n"


def state(edit: FileEdit, context: Context) -> State:
    """Compare the file's hash with the edit's. An unreadable file is `UNKNOWN`."""
    del context
    try:
        content = read_bytes(Path(edit.path))
    except OSError:
        return State.UNKNOWN
    present = _hash(content)
    if present == edit.after_sha256:
        return State.AFTER
    return State.BEFORE if present == edit.before_sha256 else State.OTHER


def prepare(edit: FileEdit, context: Context) -> dict[str, Any]:
    """Keep the present bytes below the run's folder, before anything is announced or written.

    Raises:
        ApplyError: the file can't be read, or the backup can't be written.
    """
    path = Path(edit.path)
    try:
        content = read_bytes(path)
        mode = None if content is None else stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise file_error(path, error) from error
    if content is None:
        return {"name": None}
    name = f"backup-{sha256(edit.path.encode())[:12]}-{path.name}"
    write_file(context.run_folder / name, content, mode=0o600)
    return {"name": name, "mode": mode}


def perform(edit: FileEdit, prepared: Any, context: Context) -> Performed:
    """Write the new bytes atomically, or remove the file; when it stands so already, say so and do nothing.

    Raises:
        EditedSinceError: the file is neither as planned nor done; it is left alone.
        ApplyError: it could not be written; the file is as it was.
    """
    del prepared
    remove_leftover(Path(edit.path), context.temporary_suffix)
    present = state(edit, context)
    if present is State.AFTER:
        return Performed("already so", changed=False)
    if present is not State.BEFORE:
        raise EditedSinceError(
            f"`{edit.path}` is not as it was when the plan was made",
            cause="it was edited in the meantime; it is left as it is",
            hint="run `remediate plan` again",
        )
    if edit.content is None:
        remove_file(Path(edit.path))
        return Performed("removed; it is kept in the run's folder")
    mode = edit.mode if edit.before_sha256 is None else None
    write_file(Path(edit.path), edit.content, mode=mode, temporary_suffix=context.temporary_suffix)
    if state(edit, context) is not State.AFTER:
        raise ApplyError(f"`{edit.path}` does not hold what was written to it", cause="it was changed at the same time")
    return Performed(f"wrote {len(edit.content)} bytes")


def undo(edit: FileEdit, prepared: Any, context: Context) -> Performed:
    """Bring back the saved bytes, or delete a file that was not there before.

    Raises:
        EditedSinceError: somebody edited the file after the run; it is left alone.
        ApplyError: the backup is gone or the file can't be written.
    """
    backup = msgspec.convert(prepared, Backup)
    remove_leftover(Path(edit.path), context.temporary_suffix)
    present = state(edit, context)
    if present is State.BEFORE:
        return Performed("already as it was", changed=False)
    saved = context.run_folder / backup.name if backup.name else None
    if present is not State.AFTER:
        raise EditedSinceError(
            f"`{edit.path}` was edited after the run",
            cause="undoing would overwrite that edit; the file is left as it is",
            hint=f"the former file is kept as `{saved}`" if saved else "the file did not exist before the run",
        )
    if saved is None:
        remove_file(Path(edit.path))
        return Performed("deleted, as it was not there before")
    content = read_bytes(saved)
    if content is None or sha256(content) != edit.before_sha256:
        raise ApplyError(f"the backup `{saved}` is missing or damaged", cause="the journal's folder was changed")
    mode = backup.mode if edit.content is None else None
    write_file(Path(edit.path), content, mode=mode, temporary_suffix=context.temporary_suffix)
    return Performed(f"restored {len(content)} bytes")
