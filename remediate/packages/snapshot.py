"""Setting aside an environment's files by hard link, and bringing them back to the byte.

See docs/decisions/0004-restoring-the-former-set.md. A hard link costs 10 microseconds and no space. It keeps the
former bytes, for installers replace files and never write into them: pip unlinks before it writes
(`pip/_internal/operations/install/wheel.py`), uv makes new ones. Where links can't be made, files are copied.

Files are named by the index of their root and the path below it. `before.json` lists all of them; `after.json` is
written once the install is done and lists what it added. From then on the set-aside tree holds only what was replaced.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from remediate.effects import file_error, read_bytes, write_file
from remediate.errors import ApplyError

_BEFORE = "before.json"
_AFTER = "after.json"
_TREE = "tree"
_TEMPORARY = ".remediate-restoring"


class Listing(msgspec.Struct, frozen=True):
    """Files (links among them) and folders of one root, as paths below it."""

    files: frozenset[str]
    folders: frozenset[str]


class Before(msgspec.Struct, frozen=True):
    """What was there. `roots` are absolute folders; the last one is the environment's root, of which only recorded
    files outside of the other roots are listed.
    """

    roots: tuple[str, ...]
    listings: tuple[Listing, ...]


class After(msgspec.Struct, frozen=True):
    """Files that the install added, a set for each root."""

    added: tuple[frozenset[str], ...]


class Snapshot(msgspec.Struct, frozen=True):
    """A set-aside environment.

    Attributes:
        folder: where the lists and the tree are.
        before: what was there.
    """

    folder: Path
    before: Before

    @property
    def is_settled(self) -> bool:
        """Whether the install that it was made for was done to its end."""
        return (self.folder / _AFTER).exists()

    def is_intact(self, recorded: Iterable[str] = ()) -> bool:
        """Whether everything is as it was set aside: nothing replaced, nothing missing, nothing added."""
        return next(self._replaced(), None) is None and not any(self._added(recorded))

    def settle(self, recorded: Iterable[str]) -> None:
        """The install is done: note what it added, and let go of what it did not touch.

        Args:
            recorded: absolute paths of files that the distributions record, for those outside of the listed folders.

        Raises:
            ApplyError: the note can't be written.
        """
        added = tuple(map(frozenset, self._added(recorded)))
        write_file(self.folder / _AFTER, msgspec.json.encode(After(added)), mode=0o600)
        replaced = set(self._replaced())
        for index, path in self._files():
            if (index, path) not in replaced:
                with contextlib.suppress(OSError):
                    self._saved(index, path).unlink()

    def restore(self, recorded: Iterable[str]) -> int:
        """Bring back what is missing or replaced, remove what was added, and count both.

        Can be killed at any point and run again. After `settle`, only what the install itself added is removed.

        Raises:
            ApplyError: a file can't be restored or removed.
        """
        # Everything is listed before anything is changed: restored metadata no longer records what is to be removed.
        added = self._read_after() or tuple(map(frozenset, self._added(recorded)))
        count = 0
        for index, path in list(self._replaced()):
            count += self._restore_file(index, path)
        for index, paths in enumerate(added):
            count += sum(self._remove_file(index, path) for path in paths)
            self._remove_empty_folders(index, paths)
        return count

    def discard(self) -> None:
        """Delete the snapshot. Never fails: what stays costs nothing but space."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.folder.parent.rmdir()

    def _files(self) -> Iterator[tuple[int, str]]:
        for index, listing in enumerate(self.before.listings):
            for path in listing.files:
                yield index, path

    def _saved(self, index: int, path: str) -> Path:
        return self.folder / _TREE / str(index) / path

    def _present(self, index: int, path: str) -> Path:
        return Path(self.before.roots[index], path)

    def _replaced(self) -> Iterator[tuple[int, str]]:
        """Files that were set aside and are missing or others now. What was let go is as it was."""
        for index, path in self._files():
            saved = _lstat(self._saved(index, path))
            if saved is not None and not _is_same(saved, _lstat(self._present(index, path))):
                yield index, path

    def _added(self, recorded: Iterable[str]) -> Iterator[set[str]]:
        listings = list_roots(self.before.roots, recorded)
        for now, before in zip(listings, self.before.listings, strict=True):
            yield set(now.files - before.files)

    def _read_after(self) -> tuple[frozenset[str], ...] | None:
        content = read_bytes(self.folder / _AFTER)
        return None if content is None else msgspec.json.decode(content, type=After).added

    def _restore_file(self, index: int, path: str) -> bool:
        target = self._present(index, path)
        temporary = target.with_name(target.name + _TEMPORARY)
        try:
            _make_parents(target.parent, Path(self.before.roots[index]))
            temporary.unlink(missing_ok=True)
            _link_or_copy(self._saved(index, path), temporary)
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            temporary.replace(target)
        except OSError as error:
            raise file_error(target, error) from error
        return True

    def _remove_file(self, index: int, path: str) -> bool:
        target = self._present(index, path)
        try:
            target.unlink(missing_ok=True)
            if target.suffix == ".py":
                # Compiled from it after the install, and so on no list.
                for compiled in target.parent.glob(f"__pycache__/{target.stem}.*.pyc"):
                    if str(compiled.relative_to(self.before.roots[index])) not in self.before.listings[index].files:
                        compiled.unlink(missing_ok=True)
        except OSError as error:
            raise file_error(target, error) from error
        return True

    def _remove_empty_folders(self, index: int, paths: Iterable[str]) -> None:
        known = self.before.listings[index].folders
        emptied = {str(parent) for path in paths for parent in Path(path).parents}
        emptied |= {str(Path(folder, "__pycache__")) for folder in emptied}
        for folder in sorted(emptied - known - {"."}, key=len, reverse=True):
            with contextlib.suppress(OSError):
                self._present(index, folder).rmdir()


def set_aside(roots: tuple[str, ...], recorded: Iterable[str], folder: Path) -> Snapshot:
    """Link every file of `roots` below `folder`.

    Args:
        roots: absolute folders; the last is the environment's root, of which only `recorded` files are taken.
        recorded: absolute paths that the distributions record.
        folder: on the file system of the environment, else files are copied. What it held is deleted.

    Raises:
        ApplyError: no space, no permission; nothing else was touched.
    """
    listings = list_roots(roots, recorded)
    try:
        shutil.rmtree(folder, ignore_errors=True)
        for index, (root, listing) in enumerate(zip(roots, listings, strict=True)):
            base = folder / _TREE / str(index)
            base.mkdir(parents=True, mode=0o700)
            for below in sorted({Path(path).parent for path in listing.files}):
                (base / below).mkdir(parents=True, exist_ok=True)
            for path in listing.files:
                _link_or_copy(Path(root, path), base / path)
    except OSError as error:
        raise ApplyError(
            f"the environment's files could not be set aside below `{folder}`",
            cause=str(error),
            hint="free some space or correct the permissions; nothing was changed",
        ) from error
    before = Before(roots, listings)
    write_file(folder / _BEFORE, msgspec.json.encode(before), mode=0o600)
    return Snapshot(folder, before)


def load_snapshot(folder: Path) -> Snapshot | None:
    """The snapshot in that folder; None when it is gone or damaged."""
    try:
        content = read_bytes(folder / _BEFORE)
        return None if content is None else Snapshot(folder, msgspec.json.decode(content, type=Before))
    except (OSError, msgspec.DecodeError):
        return None


def list_roots(roots: tuple[str, ...], recorded: Iterable[str]) -> tuple[Listing, ...]:
    """Everything below each root but the last; of the last, the recorded files that lie in no other root."""
    *complete, prefix = roots
    listings = [_list_folder(root) for root in complete]
    others = set()
    for path in recorded:
        inside = any(_is_below(path, root) for root in complete)
        if not inside and _is_below(path, prefix) and os.path.lexists(path):
            others.add(os.path.relpath(path, prefix))
    folders = frozenset(str(parent) for path in others for parent in Path(path).parents)
    return (*listings, Listing(frozenset(others), folders))


def _list_folder(root: str) -> Listing:
    files: set[str] = set()
    folders: set[str] = set()
    pending = [""]
    while pending:
        below = pending.pop()
        folders.add(below or ".")
        try:
            with os.scandir(f"{root}/{below}") as entries:
                for entry in entries:
                    path = f"{below}/{entry.name}" if below else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(path)
                    else:
                        files.add(path)
        except FileNotFoundError:
            continue
    return Listing(frozenset(files), frozenset(folders))


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        # A compiled file that Python replaced in between: not worth stopping for.
        if source.suffix != ".pyc":
            raise
    except OSError:
        # Another file system, one without hard links, or too many links to one file.
        shutil.copy2(source, target, follow_symlinks=False)


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_same(saved: os.stat_result, present: os.stat_result | None) -> bool:
    if present is None:
        return False
    if os.path.samestat(saved, present):
        return True
    is_file = stat.S_ISREG(saved.st_mode) and stat.S_ISREG(present.st_mode)
    return is_file and (saved.st_size, saved.st_mtime_ns) == (present.st_size, present.st_mtime_ns)


def _make_parents(folder: Path, root: Path) -> None:
    """Create the folder; where a file or link took the place of one of its parents, that goes."""
    for parent in reversed([folder, *folder.parents]):
        if parent.is_relative_to(root) and parent != root and (parent.is_symlink() or parent.is_file()):
            parent.unlink()
    folder.mkdir(parents=True, exist_ok=True)


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip(os.sep) + os.sep)
