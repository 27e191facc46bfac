"""Find and read the requirements files of a folder, with what they include."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from remediate.effects import sha256
from remediate.model import Choice, Reading, Unknown, UnknownKind
from remediate.packages.facts import FileKind, RequirementsFileFacts
from remediate.packages.metadata import has_credentials
from remediate.packages.requirements import RequirementsError, parse
from remediate.packages.statements import compile_sources, find_compile_command, kind_of

MAX_FILE_BYTES = 4 * 1024 * 1024
OTHER_SOURCES = (
    "pyproject.toml",
    "pylock.toml",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "Pipfile",
    "Pipfile.lock",
    "environment.yml",
    "environment.yaml",
    "conda-lock.yml",
    "pixi.toml",
    "setup.py",
    "setup.cfg",
)
"""Files that state dependencies too. Those that are not read here are named to the user, with the command that carries
the pins over."""
_ALSO_READ = ("pyproject.toml", "environment.yml", "environment.yaml")


class Sources(msgspec.Struct, frozen=True):
    """Where a folder states its dependencies.

    Attributes:
        files: the chosen requirements file and its includes, in the order in which pip reads them.
        other: names of other files in the folder that state dependencies.
        choices: how the requirements file was found, when nobody named it.
    """

    files: tuple[RequirementsFileFacts, ...] = ()
    other: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()


def read_sources(folder: Path, requirements: str | None) -> Sources:
    """The file asked for, else the one that a person would mean, what it includes, and the other files that are edited.

    Looked for: `requirements.txt` (or the file that it is compiled from), else the only `requirements*.txt`, else
    `requirements.in`, `pyproject.toml` and `environment.yml` where they state dependencies. A file that was asked for
    and does not exist will be created.

    Raises:
        RequirementsError: a file that was asked for, or one that it includes, can't be read or parsed. In a file that
            was found this is `Unknown` in its facts.
    """
    other = tuple(name for name in OTHER_SOURCES if (folder / name).is_file())
    choices: tuple[Choice, ...] = ()
    if requirements is not None:
        path = _absolute(folder / Path(requirements).expanduser())
        files = list(_read_all(path, folder, is_named=True))
    else:
        found, choice = _choose(folder)
        choices = (choice,) if choice else ()
        files = list(_read_all(found, folder, is_named=False)) if found else []
    files = _with_sources_of_compiled(files, folder)
    read = {file.path for file in files}
    files += (file for name in other if name in _ALSO_READ for file in _read_also(folder / name, folder, read))
    edited = {Path(file.path).name for file in files if Path(file.path).parent == folder}
    if files and not choices and requirements is None:
        choices = (Choice("requirements file", files[0].path, "no requirements file, and it states dependencies"),)
    return Sources(tuple(files), tuple(name for name in other if name not in edited), choices)


def _with_sources_of_compiled(files: list[RequirementsFileFacts], folder: Path) -> list[RequirementsFileFacts]:
    """What the chosen file is compiled from comes first, and is edited in its place."""
    if not files or not files[0].compile_command:
        return files
    known = {file.path for file in files}
    sources = compile_sources(files[0].compile_command, Path(files[0].path).parent)
    found = [file for path in sources if str(path) not in known for file in _read_all(path, folder, is_named=False)]
    if not found:
        return [replace(files[0], compile_command=""), *files[1:]]
    return [*found, *files]


def _read_also(path: Path, folder: Path, read: set[str]) -> Iterator[RequirementsFileFacts]:
    """A file of another form, unless it is read already or states no dependencies."""
    if str(path) not in read:
        for file in _read_all(path, folder, is_named=False):
            if isinstance(file.content, bytes) and _states(file, file.content):
                yield file


def _states(file: RequirementsFileFacts, content: bytes) -> bool:
    if file.kind is FileKind.PYPROJECT:
        from remediate.packages.pyproject import check_pyproject

        # Most of them configure tools only; the search spares them the parser.
        return (b"[project" in content or b"dependency-groups" in content) and check_pyproject(content, file.path)
    from remediate.packages.conda import check_conda

    return check_conda(content, file.path)


def content_of(file: RequirementsFileFacts) -> Reading[bytes | None]:
    """The file's bytes: from the facts, or from disk where the facts leave them out for the credentials in them.

    `Unknown` when it was not readable or is not as it was when the facts were made.
    """
    if not isinstance(file.content, Unknown) or file.content.kind is not UnknownKind.NOT_READ:
        return file.content
    try:
        content = Path(file.path).read_bytes()
    except OSError as error:
        return Unknown(UnknownKind.FAILED, f"`{file.path}`: {error.strerror}")
    if sha256(content) != file.sha256:
        return Unknown(UnknownKind.FAILED, f"`{file.path}` changed after the facts were read")
    return content


def _choose(folder: Path) -> tuple[Path | None, Choice | None]:
    usual = folder / "requirements.txt"
    if usual.is_file():
        return usual, Choice("requirements file", str(usual), "it is the folder's `requirements.txt`")
    found = sorted(path for path in folder.glob("requirements*.txt") if path.is_file())
    if len(found) == 1:
        return found[0], Choice("requirements file", str(found[0]), "it is the folder's only `requirements*.txt`")
    if found:
        names = ", ".join(path.name for path in found)
        return None, Choice("requirements file", "none", f"there are several: {names}; name one with `--requirements`")
    source = folder / "requirements.in"
    if source.is_file():
        return source, Choice("requirements file", str(source), "it is the folder's `requirements.in`")
    return None, None


def _read_all(path: Path, folder: Path, *, is_named: bool) -> Iterator[RequirementsFileFacts]:
    """The file and its includes, each once, those of a file right after it."""
    pending = [(path, False)]
    seen: set[str] = set()
    while pending:
        current, is_constraints = pending.pop(0)
        real = os.path.realpath(current)
        if real in seen:
            continue
        seen.add(real)
        is_asked_for = is_named and current == path
        is_inside = is_asked_for or Path(real).is_relative_to(os.path.realpath(folder))
        bare = RequirementsFileFacts(str(current), None, "", is_constraints, is_inside)
        facts, includes = _read(replace(bare, kind=kind_of(current)), is_named=is_named, may_be_absent=is_asked_for)
        yield facts
        # A remote include is no file of ours to edit; pip fetches it itself.
        pending = [
            (_absolute(current.parent / value), is_constraints or by_constraint)
            for value, by_constraint in includes
            if "://" not in value and "${" not in value
        ] + pending


def _read(
    bare: RequirementsFileFacts, *, is_named: bool, may_be_absent: bool
) -> tuple[RequirementsFileFacts, tuple[tuple[str, bool], ...]]:
    """The facts, and the value of each include with whether it is a constraints file."""
    try:
        content = _read_file(Path(bare.path), may_be_absent)
        includes = _check(bare, content or b"")
    except RequirementsError as error:
        if is_named:
            raise
        cause = f": {error.cause}" if error.cause else ""
        return replace(bare, content=Unknown(UnknownKind.FAILED, f"{error.what}{cause}")), ()
    stored: Reading[bytes | None] = content
    if content is not None and has_credentials(content.replace(b"\0", b"").decode("utf-8", "replace")):
        stored = Unknown(UnknownKind.NOT_READ, "it holds credentials, which are left out of the facts")
    command = find_compile_command(content or b"") if bare.kind is FileKind.REQUIREMENTS else ""
    digest = "" if content is None else sha256(content)
    return replace(bare, content=stored, sha256=digest, compile_command=command), includes


def _check(file: RequirementsFileFacts, content: bytes) -> tuple[tuple[str, bool], ...]:
    """Includes of a requirements file; raises where the file can't be parsed."""
    if file.kind is FileKind.REQUIREMENTS:
        return tuple(parse(content, file.path).includes())
    _states(file, content)
    return ()


def _read_file(path: Path, may_be_absent: bool) -> bytes | None:
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        if may_be_absent and path.parent.is_dir():
            return None
        raise RequirementsError(
            f"requirements file `{path}` does not exist", cause="it is named on the command line or included with `-r`"
        ) from error
    except OSError as error:
        raise RequirementsError(
            f"requirements file `{path}` can't be read", cause=error.strerror or str(error), hint="check the path"
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise RequirementsError(f"requirements file `{path}` is larger than 4 MiB", cause="pip's files are far smaller")
    return content


def _absolute(path: Path) -> Path:
    """Without `..`, links not resolved: the path as the user knows it."""
    return Path(os.path.normpath(path.absolute()))
