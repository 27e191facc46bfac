"""The append-only journal of one run: an intent on disk before each effect, its outcome after it."""

from __future__ import annotations

import enum
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from remediate.documents import decode_plan, encode_plan, read_document
from remediate.effects import read_bytes, sync_folder, write_file
from remediate.errors import JournalError
from remediate.model import Change, Plan, Reading, Unknown
from remediate.runs.store import JOURNAL_NAME

PLAN_NAME = "plan.json"


class EntryKind(enum.StrEnum):
    """What an entry says. The undo and confirmation kinds follow the others in the same file."""

    BEGIN = "begin"
    INTENT = "intent"
    DONE = "done"
    FAILED = "failed"
    END = "end"
    UNDO_BEGIN = "undo begin"
    UNDO_INTENT = "undo intent"
    UNDONE = "undone"
    UNDO_FAILED = "undo failed"
    UNDO_END = "undo end"
    AWAIT = "await confirmation"
    CONFIRMED = "confirmed"
    EXPIRED = "not confirmed"


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the journal.

    Attributes:
        change: the change's id.
        selected: of `begin`: the ids that the run is for.
        boot_id: of `begin`: the boot that the run belongs to; empty where that can't be told.
        confirm_within_s: of `begin`: the run is undone unless it is confirmed within so many seconds after its end.
        deadline: of `await confirmation`: until when, UTC, ISO 8601.
    """

    at: str
    kind: EntryKind
    change: str = ""
    detail: str = ""
    output: str = ""
    prepared: Any = None
    selected: tuple[str, ...] = ()
    boot_id: str = ""
    confirm_within_s: float | None = None
    deadline: str = ""


class Confirmation(enum.StrEnum):
    """Whether somebody said that the run may stay; beside `RunStatus`, for it says nothing about the changes."""

    NOT_ASKED = ""
    AWAITED = "awaiting confirmation"
    CONFIRMED = "confirmed"
    EXPIRED = "not confirmed in time"


class RunStatus(enum.StrEnum):
    """How a run stands, told from its journal alone."""

    APPLIED = "applied"
    FAILED = "failed"
    """It ended at a change that could not be made; what was done before stays."""
    INTERRUPTED = "interrupted"
    """The process died before the end; the change in progress may be done, undone or done by half."""
    ROLLED_BACK = "rolled back"
    PARTLY_ROLLED_BACK = "partly rolled back"
    """A rollback ended and left changes standing: by request, for lack of rights, or after a failure."""
    ROLLBACK_INTERRUPTED = "rollback interrupted"
    """The process died while it was undoing a change."""


class ChangeStatus(enum.StrEnum):
    """How one change of a run stands."""

    NOT_STARTED = "not started"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    UNDONE = "undone"


class Run(msgspec.Struct):
    """A run as its folder tells it.

    Attributes:
        folder: the run's folder; its name is the run's id.
        plan: the plan that was applied.
        entries: the journal so far.
    """

    folder: Path
    plan: Plan
    entries: list[Entry] = []

    @property
    def id(self) -> str:
        """The run's number, as `000012`."""
        return self.folder.name

    @property
    def began_at(self) -> str:
        """UTC, ISO 8601."""
        return self.entries[0].at if self.entries else ""

    @property
    def changes(self) -> tuple[Change, ...]:
        """The plan's changes that this run is for, in order."""
        selected = set(self.entries[0].selected) if self.entries else set()
        return tuple(change for change in self.plan.changes if change.id in selected)

    @property
    def confirm_within_s(self) -> float | None:
        """Seconds after its end within which the run wants to be confirmed; None where it was not asked for."""
        return self.entries[0].confirm_within_s if self.entries else None

    def has_rebooted(self, boot_id: Reading[str]) -> bool:
        """Whether the machine was restarted since the run began; False where that can't be told."""
        began = self.entries[0].boot_id if self.entries else ""
        return bool(began) and not isinstance(boot_id, Unknown) and began != boot_id

    @property
    def confirmation(self) -> Confirmation:
        """Whether the run may stay."""
        if self.confirm_within_s is None:
            return Confirmation.NOT_ASKED
        kinds = {entry.kind for entry in self.entries}
        if EntryKind.CONFIRMED in kinds:
            return Confirmation.CONFIRMED
        return Confirmation.EXPIRED if EntryKind.EXPIRED in kinds else Confirmation.AWAITED

    @property
    def is_unsettled(self) -> bool:
        """Whether the run still waits for a confirmation, or was not confirmed and still stands."""
        is_open = self.confirmation in (Confirmation.AWAITED, Confirmation.EXPIRED)
        return is_open and self.status is not RunStatus.ROLLED_BACK

    @property
    def deadline(self) -> str:
        """Until when a confirmation is awaited, UTC, ISO 8601; empty as long as the run goes on."""
        return next((entry.deadline for entry in reversed(self.entries) if entry.kind is EntryKind.AWAIT), "")

    @property
    def status(self) -> RunStatus:
        """How the run stands; a run in another process that still goes on looks interrupted (see the lock)."""
        last = {entry.kind: entry for entry in self.entries}
        if EntryKind.UNDO_END in last:
            return RunStatus.ROLLED_BACK
        if EntryKind.UNDO_BEGIN in last:
            in_progress = self.entries[-1].kind is EntryKind.UNDO_INTENT
            return RunStatus.ROLLBACK_INTERRUPTED if in_progress else RunStatus.PARTLY_ROLLED_BACK
        if EntryKind.END not in last:
            return RunStatus.INTERRUPTED
        return RunStatus.FAILED if EntryKind.FAILED in last else RunStatus.APPLIED

    def change_status(self, change_id: str) -> ChangeStatus:
        """How one change stands."""
        by_kind = {
            EntryKind.INTENT: ChangeStatus.STARTED,
            EntryKind.DONE: ChangeStatus.DONE,
            EntryKind.FAILED: ChangeStatus.FAILED,
            EntryKind.UNDONE: ChangeStatus.UNDONE,
        }
        status = ChangeStatus.NOT_STARTED
        for entry in self.entries:
            if entry.change == change_id:
                status = by_kind.get(entry.kind, status)
        return status

    def prepared(self, change_id: str) -> Any:
        """What undoing the change needs: the last values saved with its intent or outcome."""
        saved = None
        for entry in self.entries:
            if entry.change == change_id and entry.prepared is not None:
                saved = entry.prepared
        return saved

    def reload(self) -> None:
        """Read the journal again, for other processes may have written to it.

        Raises:
            JournalError: as `load_run`.
        """
        self.entries = load_entries(self.folder)

    def append(self, kind: EntryKind, change_id: str = "", **values: Any) -> None:
        """Write one entry and make it durable before returning.

        Raises:
            JournalError: it could not be written; the effect that it announces must not happen.
        """
        entry = Entry(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), kind, change_id, **values)
        path = self.folder / JOURNAL_NAME
        try:
            _append_line(path, msgspec.json.encode(entry) + b"\n")
        except OSError as error:
            raise JournalError(
                f"the journal `{path}` can't be written",
                cause=str(error.strerror or error),
                hint="free some space or correct the permissions, then run the command again",
            ) from error
        self.entries.append(entry)


def start_run(
    folder: Path,
    plan: Plan,
    selected: tuple[str, ...],
    boot_id: Reading[str],
    confirm_within_s: float | None = None,
) -> Run:
    """Put the plan into a new run folder and begin its journal."""
    write_file(folder / PLAN_NAME, encode_plan(plan), mode=0o600)
    run = Run(folder, plan)
    boot = "" if isinstance(boot_id, Unknown) else boot_id
    run.append(EntryKind.BEGIN, selected=selected, boot_id=boot, confirm_within_s=confirm_within_s)
    return run


def load_run(folder: Path) -> Run | None:
    """Read a run back. None where the process died before the journal began, so that nothing was done.

    A last line without its newline is the trace of a process that died while writing it; what it announces has not
    happened, and it is left out.

    Raises:
        JournalError: a line in the middle is damaged.
        DocumentError: the plan is damaged.
    """
    entries = load_entries(folder)
    if not entries:
        return None
    plan_path = folder / PLAN_NAME
    return Run(folder, decode_plan(read_document(plan_path), str(plan_path)), entries)


def load_entries(folder: Path) -> list[Entry]:
    """The journal's entries without its plan; empty where the process died before the journal began.

    Raises:
        JournalError: as `load_run`.
    """
    path = folder / JOURNAL_NAME
    try:
        content = read_bytes(path)
    except OSError as error:
        raise JournalError(f"the journal `{path}` can't be read", cause=str(error.strerror)) from error
    lines = (content or b"").split(b"\n")[:-1]
    try:
        return [msgspec.json.decode(line, type=Entry) for line in lines]
    except msgspec.DecodeError as error:
        raise JournalError(f"the journal `{path}` is damaged", cause=str(error)) from error


def _append_line(path: Path, line: bytes) -> None:
    is_new = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        end = _end_of_last_line(descriptor)
        try:
            written = 0
            while written < len(line):
                written += os.pwrite(descriptor, line[written:], end + written)
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, end)
            raise
    finally:
        os.close(descriptor)
    if is_new:
        sync_folder(path.parent)


def _end_of_last_line(descriptor: int) -> int:
    """Where the next line goes; a torn last line of a process that died is cut off."""
    size = os.fstat(descriptor).st_size
    content = os.pread(descriptor, size, 0)
    end = content.rfind(b"\n") + 1
    if end != size:
        os.ftruncate(descriptor, end)
    return end
