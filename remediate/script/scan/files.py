"""From what was named (files, folders, patterns) to the files that are looked at."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from remediate.errors import UsageError
from remediate.script.discover import SUFFIXES
from remediate.script.scan.gitignore import Ignores, ignores_above

_PASSED_OVER = frozenset(("node_modules", "__pycache__", "site-packages"))


class Found(msgspec.Struct):
    """What a search came to.

    Attributes:
        files: absolute paths, sorted, each once.
        named: those of them that were named themselves.
        unreadable: folders that could not be listed, with the reason.
    """

    files: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()
    unreadable: tuple[tuple[str, str], ...] = ()


def find_files(named: Iterable[str], folder: Path) -> Found:
    """The scripts and notebooks that were named, or that stand below the folders that were named.

    A file that is named itself is taken whatever its name and git say. Folders are walked without following links;
    what git ignores, hidden folders, environments and installed packages are passed over, unless named themselves.

    Args:
        named: files, folders and patterns (`**` for any depth), relative to `folder`; none stands for `folder`.

    Raises:
        UsageError: there is no such file, and no file matches it as a pattern.
    """
    files: set[str] = set()
    own_names: set[str] = set()
    unreadable: list[tuple[str, str]] = []
    for name in tuple(named) or (".",):
        path = Path(os.path.normpath(folder / name))
        if path.is_dir():
            own = ignores_above(path)
            files.update(_walk(str(path), Ignores().below(str(path)) if own is None else own, unreadable))
        elif path.exists() or path.is_symlink():
            own_names.add(str(path))
        else:
            files.update(_matching(str(path), name, unreadable))
    return Found(tuple(sorted(files | own_names)), frozenset(own_names), tuple(sorted(set(unreadable))))


def _matching(pattern: str, name: str, unreadable: list[tuple[str, str]]) -> Iterator[str]:
    """The files of a pattern, as if its fixed part had been walked; folders that match are walked."""
    is_pattern = glob.has_magic(name)
    found = sorted(glob.glob(pattern, recursive=True)) if is_pattern else []  # noqa: PTH207 (Path's takes no absolute one)
    if not found:
        why = "no file matches it" if is_pattern else "no such file or folder"
        raise UsageError(f"there is nothing to scan at `{name}`", cause=why, hint="check the path")
    fixed = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts))
    known: dict[Path, Ignores | None] = {fixed: ignores_above(fixed)}
    for path in map(Path, found):
        here = _ignores_in(path.parent, known)
        is_folder = path.is_dir()
        if here is None or here.exclude(str(path), is_folder=is_folder):
            continue
        if is_folder and not path.is_symlink() and not _is_passed_over(path):
            yield from _walk(str(path), here.below(str(path)), unreadable)
        elif not is_folder and path.name.endswith(SUFFIXES):
            yield str(path)


def _ignores_in(folder: Path, known: dict[Path, Ignores | None]) -> Ignores | None:
    """The patterns that hold in a folder below a known one; None where it would not be walked."""
    if folder not in known:
        above = _ignores_in(folder.parent, known)
        is_left_out = above is None or _is_passed_over(folder) or above.exclude(str(folder), is_folder=True)
        known[folder] = None if above is None or is_left_out else above.below(str(folder))
    return known[folder]


def _walk(folder: str, ignores: Ignores, unreadable: list[tuple[str, str]]) -> Iterator[str]:
    """The files below a folder; `ignores` are those that hold in it."""
    waiting = [(folder, ignores)]
    while waiting:
        place, here = waiting.pop()
        try:
            with os.scandir(place) as entries:
                found = list(entries)
        except OSError as error:
            unreadable.append((place, error.strerror or str(error)))
            continue
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                if not _is_passed_over(Path(entry.path)) and not here.exclude(entry.path, is_folder=True):
                    waiting.append((entry.path, here.below(entry.path)))
            elif _is_script(entry) and not here.exclude(entry.path, is_folder=False):
                yield entry.path


def _is_script(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(SUFFIXES) and entry.is_file(follow_symlinks=False)


def _is_passed_over(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _PASSED_OVER:
        return True
    return (folder / "pyvenv.cfg").exists() or (folder / "conda-meta").exists()
