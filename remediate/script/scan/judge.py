"""One file to its findings, its patch and what is held back. Never an exception: what goes wrong is a finding."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

import msgspec

from remediate.model import SCHEMA_VERSION, Change, Facts, Finding, Host, Outcome, Request, Withheld
from remediate.profile.schema import Profile
from remediate.script.discover import MAX_NOTEBOOK_BYTES, is_candidate, max_bytes
from remediate.script.facts import FileFacts, ScriptFacts
from remediate.subject import Settings, Situation

_SUBJECT = "script"
_UNREADABLE = "SCR000"


class Task(msgspec.Struct, frozen=True):
    """What files are held against.

    Attributes:
        folder: absolute; names are relative to it.
        profile: with the wishes about scripts.
        announced: planned versions, as `distribution:transformers` -> `5.17.0`.
        settings: with the codes that are ignored.
        host: for the facts' sake.
    """

    folder: str
    profile: Profile
    announced: Mapping[str, str]
    settings: Settings
    host: Host


class Spot(msgspec.Struct, frozen=True):
    """A finding with the line of the file; of a notebook that of its JSON, while the finding names the cell."""

    line: int
    finding: Finding


class Judged(msgspec.Struct, frozen=True):
    """What was found in one file.

    Attributes:
        path: absolute.
        name: relative to the task's folder, with `/`.
        is_script: it holds an inference script.
    """

    path: str
    name: str
    is_script: bool = False
    spots: tuple[Spot, ...] = ()
    changes: tuple[Change, ...] = ()
    withheld: tuple[Withheld, ...] = ()


def read_candidate(path: str, *, is_named: bool = True) -> bytes | None:
    """A file's bytes when they may hold an inference script; None when they can't.

    Args:
        path: absolute.
        is_named: the user named this very file. One that a search found may be too large to be a script.

    Raises:
        OSError: it can't be read, or is no regular file.
        ValueError: it is too large to be looked into.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        if not is_named and status.st_size > max_bytes(path):
            return None
        if status.st_size > MAX_NOTEBOOK_BYTES:
            raise ValueError(f"it is larger than {MAX_NOTEBOOK_BYTES // 1024 // 1024} MiB")
        raw = stream.readall()
    return raw if is_candidate(raw) else None


def judge(path: str, task: Task) -> Judged:
    """Read and judge one file."""
    name = name_of(path, task.folder)
    try:
        raw = read_candidate(path)
        return Judged(path, name) if raw is None else judge_bytes(path, raw, task)
    except (OSError, ValueError) as error:
        return unreadable(path, task.folder, getattr(error, "strerror", None) or str(error))


def judge_bytes(path: str, raw: bytes, task: Task) -> Judged:
    """Judge a file's bytes."""
    try:
        return _judge(path, raw, task)
    except Exception as error:  # noqa: BLE001 (one file must not end a scan of thousands; the finding says it)
        return unreadable(path, task.folder, f"a defect in remediate: {type(error).__name__}: {error}")


def _judge(path: str, raw: bytes, task: Task) -> Judged:
    from remediate.script.compare import compare
    from remediate.script.propose import propose
    from remediate.script.reading.layout import read_layout

    file, _ = read_layout(path, raw)
    section = ScriptFacts((msgspec.structs.replace(file, content=raw),))
    facts = Facts(SCHEMA_VERSION, "", "", Request(task.folder), task.host, (), {_SUBJECT: section})
    situation = Situation(facts, task.profile, task.settings, task.announced)
    findings = tuple(
        finding
        for finding in compare(situation)
        if finding.outcome is not Outcome.SAME and finding.code not in task.settings.ignore
    )
    proposal = propose(situation, findings) if file.is_inference else None
    return Judged(
        path=path,
        name=name_of(path, task.folder),
        is_script=file.is_inference,
        spots=tuple(Spot(_line(finding, file), finding) for finding in findings),
        changes=proposal.changes if proposal else (),
        withheld=proposal.withheld if proposal else (),
    )


def _line(finding: Finding, file: FileFacts) -> int:
    """The file's line that a finding's target names: `name:12` or `name:cell 3:2`."""
    cell, _, line = finding.target.rpartition(":")
    number = int(line) if line.isdecimal() else 1
    if not file.cells:
        return max(number, 1)
    lines = next((item.lines for item in file.cells if cell.endswith(f":cell {item.number}")), (1,))
    return lines[min(number, len(lines)) - 1] or 1


def unreadable(path: str, folder: str, why: str) -> Judged:
    """What is said about something that could not be read."""
    name = name_of(path, folder)
    summary = f"{name}:1: not judged: {why}"
    finding = Finding(_UNREADABLE, _SUBJECT, f"{name}:1", Outcome.UNKNOWN, summary)
    return Judged(path, name, spots=(Spot(1, finding),))


def name_of(path: str, folder: str) -> str:
    """A path as people and CI systems name it: relative to the folder where it is below it, as text."""
    relative = os.path.relpath(path, folder)
    shown = path if relative.startswith("..") else relative
    return os.fsencode(shown).decode("utf-8", "backslashreplace")
