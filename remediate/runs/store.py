"""Where runs are kept: one folder a run with its plan, its journal and its backups; the lock; the ledger."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remediate.effects import read_bytes, write_file
from remediate.errors import ApplyError, JournalError, LockHeldError, UsageError
from remediate.model import Reading, Unknown
from remediate.subject import Ledger

_RUN_DIGITS = 6
JOURNAL_NAME = "journal.jsonl"


def default_root() -> Path:
    """`$REMEDIATE_STATE_DIR`, else `$XDG_STATE_HOME/remediate`, else `~/.local/state/remediate`.

    XDG Base Directory Specification 0.8: state that persists between restarts and is no configuration.
    """
    explicit = os.environ.get("REMEDIATE_STATE_DIR")
    if explicit:
        return Path(explicit).absolute()
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser().absolute() / "remediate"


class LedgerEntry(msgspec.Struct, frozen=True):
    """A value that a run set and that no getter tells."""

    value: str
    run: str


class LedgerFile(msgspec.Struct, frozen=True):
    """The ledger on disk. It holds for one boot; a reboot resets the GPU."""

    boot_id: str
    entries: dict[str, LedgerEntry]


class Store:
    """The state folder. Reading it creates nothing."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or default_root()

    def run_folders(self) -> tuple[Path, ...]:
        """Folders of all runs, oldest first."""
        runs = self.root / "runs"
        return tuple(sorted(path for path in runs.iterdir() if path.is_dir())) if runs.is_dir() else ()

    def may_be_unsettled(self) -> bool:
        """Whether the last run asks to be confirmed, by a look at its first line; whether it was, its journal tells.

        For commands that run often: it reads one line and needs no module beside this one.
        """
        for folder in reversed(self.run_folders()):
            with contextlib.suppress(OSError), (folder / JOURNAL_NAME).open("rb") as stream:
                return b'"confirm_within_s":' in stream.readline()
        return False

    def run_folder(self, run_id: str) -> Path:
        """The folder of one run; a number without leading zeros will do.

        Raises:
            UsageError: there is no such run.
        """
        for folder in self.run_folders():
            if folder.name in (run_id, run_id.zfill(_RUN_DIGITS)):
                return folder
        raise UsageError(f"there is no run `{run_id}`", hint="`remediate history` lists them")

    def create_run(self) -> Path:
        """A new, empty run folder, numbered after the last one. Only its owner can read it, for it holds backups."""
        folders = self.run_folders()
        number = int(folders[-1].name) + 1 if folders else 1
        folder = self.root / "runs" / f"{number:0{_RUN_DIGITS}d}"
        self._make(folder)
        return folder

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock for the time of a run. The kernel frees it when the process dies, however it dies.

        Raises:
            LockHeldError: another process holds it; its pid is named.
            JournalError: the state folder can't be written.
        """
        self._make(self.root)
        path = self.root / "lock"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _state_error(path, error) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = os.pread(descriptor, 64, 0).decode("ascii", "replace").strip() or "unknown"
                raise LockHeldError(
                    "another run is going on",
                    cause=f"process {holder} holds `{path}`",
                    hint="wait until it ends; the lock goes with the process",
                ) from error
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
            yield
        finally:
            os.close(descriptor)

    def ledger(self, boot_id: Reading[str]) -> Ledger:
        """What earlier runs set since this boot; empty where the boot can't be told."""
        kept = self._read_ledger()
        if kept is None or isinstance(boot_id, Unknown) or kept.boot_id != boot_id:
            return Ledger(place=str(self.root))
        return Ledger({key: entry.value for key, entry in kept.entries.items()}, str(self.root))

    def remember(self, boot_id: Reading[str], run: str, values: dict[str, str | None]) -> None:
        """Put values into the ledger; None deletes. Nothing is written for an unknown boot or no values."""
        if isinstance(boot_id, Unknown) or not values:
            return
        kept = self._read_ledger()
        entries = dict(kept.entries) if kept is not None and kept.boot_id == boot_id else {}
        for key, value in values.items():
            entries.pop(key, None)
            if value is not None:
                entries[key] = LedgerEntry(value, run)
        self._make(self.root)
        write_file(self.root / "ledger.json", msgspec.json.encode(LedgerFile(boot_id, entries)), mode=0o600)

    def _read_ledger(self) -> LedgerFile | None:
        path = self.root / "ledger.json"
        try:
            content = read_bytes(path)
            return None if content is None else msgspec.json.decode(content, type=LedgerFile)
        except OSError as error:
            raise _state_error(path, error) from error
        except msgspec.DecodeError as error:
            raise JournalError(
                f"the ledger `{path}` is damaged", cause=str(error), hint="delete it; locked clocks are then unknown"
            ) from error

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _state_error(folder, error) from error


def _state_error(path: Path, error: OSError) -> ApplyError:
    return JournalError(
        f"the state folder can't be used: `{path}`",
        cause=str(error.strerror or error),
        hint="name a writable one with --state-dir or REMEDIATE_STATE_DIR; nothing was changed",
    )
