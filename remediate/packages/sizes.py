"""How large the files of a lock are, from the package index's JSON pages (PEP 691, PEP 700) or a folder of wheels.

Best effort: where an index has no such pages the size is not known, and nothing fails.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from remediate.packages.lockfile import LockEntry

_ACCEPT = "application/vnd.pypi.simple.v1+json"
_TIMEOUT_S = 20.0
_WORKERS = 8
_MAX_PAGE_BYTES = 50_000_000
_OLDEST_GLIBC, _NEWEST_GLIBC = 5, 44


def add_sizes(
    entries: Iterable[LockEntry], indexes: Iterable[str], python: str, platform: str
) -> tuple[LockEntry, ...]:
    """The entries with the size of the wheel that the target would take, where an index tells it.

    Args:
        indexes: URLs of simple indexes.
        python: as `3.11`.
        platform: as `linux_x86_64`.
    """
    entries = tuple(entries)
    places = tuple(url for url in indexes if url.startswith(("https://", "http://")) and "@" not in url)
    order = {tag: rank for rank, tag in enumerate(_tags(python, platform))}
    with ThreadPoolExecutor(_WORKERS) as pool:
        sizes = tuple(pool.map(lambda entry: _size(entry, places, order), entries))
    return tuple(msgspec.structs.replace(entry, size=size) for entry, size in zip(entries, sizes, strict=True))


def folder_sizes(folders: Iterable[str]) -> dict[tuple[str, str], int]:
    """Bytes of the wheels that lie in local folders, by canonical name and version."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    found: dict[tuple[str, str], int] = {}
    for folder in folders:
        for path in Path(folder).glob("*.whl") if "://" not in folder else ():
            try:
                name, version, _, _ = parse_wheel_filename(path.name)
            except InvalidWheelFilename:
                continue
            found[str(name), version.public] = path.stat().st_size
    return found


def _size(entry: LockEntry, indexes: tuple[str, ...], order: Mapping[str, int]) -> int | None:
    for index in indexes:
        best = min(_candidates(entry, _files(index, entry.name), order), default=None)
        if best is not None:
            return best[1]
    return None


def _candidates(
    entry: LockEntry, files: Iterable[Mapping[str, Any]], order: Mapping[str, int]
) -> Iterator[tuple[int, int]]:
    """Rank and bytes of every file of the entry that the target can take; a source archive comes last."""
    for file in files:
        digest = f"sha256:{file.get('hashes', {}).get('sha256')}"
        if digest not in entry.hashes or not isinstance(file.get("size"), int):
            continue
        name = str(file["filename"])
        ranks = [order[tag] for tag in _wheel_tags(name) if tag in order]
        if ranks or not name.endswith(".whl"):
            yield min(ranks, default=len(order)), file["size"]


def _files(index: str, name: str) -> list[Any]:
    request = urllib.request.Request(f"{index.rstrip('/')}/{name}/", headers={"Accept": _ACCEPT})  # noqa: S310  # Checked: http or https.
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            files = msgspec.json.decode(answer.read(_MAX_PAGE_BYTES)).get("files")
    except (urllib.error.URLError, OSError, http.client.HTTPException, msgspec.DecodeError, ValueError, AttributeError):
        return []
    return files if isinstance(files, list) else []


def _wheel_tags(filename: str) -> Iterator[str]:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        _, _, _, tags = parse_wheel_filename(filename)
    except (InvalidWheelFilename, ValueError):
        return
    yield from map(str, tags)


def _tags(python: str, platform: str) -> Iterator[str]:
    """Tags of the target, best first. `packaging` knows only those of the running interpreter's C library."""
    from packaging.tags import compatible_tags, cpython_tags

    system, _, machine = platform.partition("_")
    platforms = [platform]
    if system == "linux":
        new = [f"manylinux_2_{minor}_{machine}" for minor in range(_NEWEST_GLIBC, _OLDEST_GLIBC - 1, -1)]
        platforms = [*new, *(f"manylinux{year}_{machine}" for year in ("2014", "2010", "1")), platform]
    major, minor = map(int, python.split(".")[:2])
    yield from map(str, cpython_tags((major, minor), platforms=platforms))
    yield from map(str, compatible_tags((major, minor), f"cp{major}{minor}", platforms))
