"""Reading scripts from disk: the ones that were named, or the ones in the folder that load a model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remediate.errors import ScriptError
from remediate.model import Choice, Request
from remediate.script.discover import MAX_SCRIPT_BYTES, SUFFIXES, is_candidate, is_skipped_folder, max_bytes
from remediate.script.facts import FileFacts, ScriptFacts
from remediate.subject import Observed

_SECRET = re.compile(
    rb"\b(hf_|sk-|gh[oprsu]_|AKIA)[A-Za-z0-9_-]{16,}"
    rb"|(?i:\b\w*(api_?key|secret|passwo?r?d|_token|auth_?token|\btoken)\w*)\s*[=:]\s*[\"'][^\"'\s]{8,}[\"']"
)
"""Tokens of well-known services by their form, and texts that are given to names that say what they are."""

MAX_FILES_SEARCHED = 2000
"""A folder with more Python files than this is no sandbox; the search stops and says so."""


def observe(request: Request) -> Observed:
    """Facts about the request's scripts, and what was chosen by itself.

    Raises:
        ScriptError: a script that was named does not exist, can't be read, or is not Python text.
    """
    if request.scripts:
        files = tuple(_read_named(Path(path)) for path in dict.fromkeys(request.scripts))
        return Observed(ScriptFacts(tuple(sorted(files, key=lambda file: file.path))))
    return _search(Path(request.folder))


def read_bytes(path: str) -> bytes | None:
    """A script's present bytes; None where there is none or it can't be read."""
    try:
        return Path(path).read_bytes()
    except OSError:
        return None


def _read_named(path: Path) -> FileFacts:
    from remediate.script.reading.layout import read_layout

    try:
        if not path.is_file() and path.exists():
            raise OSError("it is not a regular file")
        raw = path.read_bytes()
    except OSError as error:
        hint = "check the path" if isinstance(error, FileNotFoundError) else "check that it is a readable file"
        raise ScriptError(f"script `{path}` can't be read", cause=str(error.strerror or error), hint=hint) from error
    file, _ = read_layout(str(path), raw)
    if file.problem:
        where = f", line {file.problem_line}" if file.problem_line else ""
        raise ScriptError(
            f"script `{path}`{where} can't be understood as Python",
            cause=file.problem,
            hint="name a Python file, or repair that line; a script for a newer Python needs `remediate` there",
        )
    return _with_content(file, raw)


def _with_content(file: FileFacts, raw: bytes) -> FileFacts:
    """A saved facts document gives no key or password away, nor carries what no patch is made of."""
    if file.problem or len(raw) > MAX_SCRIPT_BYTES or _SECRET.search(raw):
        return file
    return msgspec.structs.replace(file, content=raw)


def _search(folder: Path) -> Observed:
    from remediate.script.reading.layout import read_layout

    files = []
    count = 0
    for count, path in enumerate(_python_files(folder), start=1):
        if count > MAX_FILES_SEARCHED:
            break
        raw = _read_candidate(path)
        if raw is None:
            continue
        file, _ = read_layout(str(path), raw)
        if file.problem or file.loads:
            files.append(_with_content(file, raw))
    names = ", ".join(os.path.relpath(file.path, folder) for file in files) or "none"
    looked = "1 Python file" if count == 1 else f"{min(count, MAX_FILES_SEARCHED)} Python files"
    because = f"these load a model, of {looked} in the folder and one level below"
    if count > MAX_FILES_SEARCHED:
        because += ", and stopped there"
    return Observed(ScriptFacts(tuple(files)), (Choice("scripts", names, because),))


def _read_candidate(path: Path) -> bytes | None:
    try:
        if path.stat().st_size > max_bytes(path.name):
            return None
        raw = path.read_bytes()
    except OSError:
        return None
    return raw if is_candidate(raw) else None


def _python_files(folder: Path) -> Iterator[Path]:
    """The scripts and notebooks of a folder and of its own folders, sorted; unreadable folders are passed over."""
    folders = [folder]
    for level in range(2):
        below: list[Path] = []
        for place in folders:
            try:
                with os.scandir(place) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                if entry.is_file() and entry.name.endswith(SUFFIXES) and not entry.name.startswith("."):
                    yield Path(entry.path)
                elif level == 0 and entry.is_dir(follow_symlinks=False) and not is_skipped_folder(Path(entry.path)):
                    below.append(Path(entry.path))
        folders = below
