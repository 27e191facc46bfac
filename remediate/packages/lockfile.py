"""A profile's lock: every distribution that its pins need, by hash. Reading, writing, fitting; pure.

The file is pip's requirements format, so that `pip install --require-hashes -r FILE` takes it as it is. It stands in
`locks/` beside the profile and is named `PROFILE-py311-linux_x86_64.txt`. Its layout is this program's own, so that
pip-tools and uv, which find the same set, give the same file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from remediate.packages.names import is_same_version
from remediate.packages.requirements import LineKind, parse

FOLDER = "locks"
_HASH = re.compile(r"--hash=(sha(?:256|384|512):[0-9a-f]+)")
_SIZE = re.compile(r"^\s*# (\d+) bytes$")
_WIDTH = 110


class LockEntry(msgspec.Struct, frozen=True):
    """One distribution.

    Attributes:
        version: exact; with a local part where a custom index has it.
        hashes: `sha256:…` of every file that the index has of that version, sorted.
        marker: environment marker, or empty.
        notes: why it is there, one line each.
        size: bytes of the file for the lock's Python and platform; None where the index does not say.
    """

    name: str
    version: str
    hashes: tuple[str, ...]
    marker: str = ""
    notes: tuple[str, ...] = ()
    size: int | None = None


class Lock(msgspec.Struct, frozen=True):
    """A lock file.

    Attributes:
        place: its path, for messages.
        entries: by canonical name.
    """

    place: str
    entries: Mapping[str, LockEntry]

    def misfits(self, pins: Mapping[str, str]) -> tuple[str, ...]:
        """Names of pins (name to version) that the lock lacks or has in another version, sorted."""
        return tuple(
            name
            for name, version in sorted(pins.items())
            if name not in self.entries or not is_same_version(self.entries[name].version, version)
        )

    def select(self, left_out: Collection[str]) -> Iterator[LockEntry]:
        """The entries but for those names, in order."""
        return (entry for name, entry in self.entries.items() if name not in left_out)


def lock_name(profile: str, python: str, system: str, machine: str) -> str:
    """File name for a profile, a Python version (`3.11` or `3.11.7`) and a platform (`linux`, `x86_64`)."""
    major, minor = python.split(".")[:2]
    return f"{profile}-py{major}{minor}-{system}_{machine}.txt"


def read_lock(content: bytes, place: str) -> Lock:
    """Parse a lock, of this program or any other file with exact versions and hashes.

    Raises:
        RequirementsError: it is no requirements file.
    """
    entries: dict[str, LockEntry] = {}
    last = ""
    for line in parse(content, place).lines:
        if line.kind is LineKind.REQUIREMENT and line.specifier.startswith("=="):
            last = line.name
            hashes = tuple(sorted(_HASH.findall(line.options)))
            entries[last] = LockEntry(last, line.specifier.lstrip("= "), hashes, line.marker)
        elif last:
            entries[last] = _with_note(entries[last], line.comment)
    return Lock(place, dict(sorted(entries.items())))


def render_entries(entries: Iterable[LockEntry], *, with_notes: bool = True) -> str:
    """The entries as requirements with hashes."""
    return "".join(_render_entry(entry, with_notes=with_notes) for entry in entries)


def render_lock(entries: Iterable[LockEntry], head: Iterable[str]) -> bytes:
    """A whole lock file. `head` becomes its first comment lines."""
    lines = "".join(f"# {line}\n" for line in head)
    return f"{lines}\n{render_entries(entries)}".encode()


def find_lock(stems: Iterable[str], python: str, system: str, machine: str) -> Path | None:
    """The first lock that exists for one of the stems (folder and profile name) and the target.

    Args:
        stems: as `/profiles/locks/incident-a100`.
    """
    for stem in stems:
        path = Path(stem).with_name(lock_name(Path(stem).name, python, system, machine))
        if path.is_file():
            return path
    return None


def stale_locks(stem: str, pins: Mapping[str, str]) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Every lock of one stem that does not hold the pins, with the names that are missing or others.

    Raises:
        RequirementsError: one is no requirements file.
    """
    place = Path(stem)
    for path in sorted(place.parent.glob(f"{place.name}-py*.txt")):
        misfits = read_lock(path.read_bytes(), str(path)).misfits(pins)
        if misfits:
            yield path, misfits


def _with_note(entry: LockEntry, comment: str) -> LockEntry:
    size = _SIZE.match(comment)
    if size:
        return msgspec.structs.replace(entry, size=int(size[1]))
    note = comment.strip().removeprefix("#").strip()
    return msgspec.structs.replace(entry, notes=(*entry.notes, note)) if note else entry


def _render_entry(entry: LockEntry, *, with_notes: bool) -> str:
    import textwrap

    marker = f" ; {entry.marker}" if entry.marker else ""
    text = f"{entry.name}=={entry.version}{marker}"
    text += "".join(f" \\\n    --hash={digest}" for digest in entry.hashes) + "\n"
    if not with_notes:
        return text
    notes = [line for note in entry.notes for line in textwrap.wrap(note, _WIDTH)]
    notes += [f"{entry.size} bytes"] if entry.size is not None else []
    return text + "".join(f"    # {note}\n" for note in notes)
