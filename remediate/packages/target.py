"""Find the target interpreter and read it from the outside: one short process, nothing of the target is imported.

The process is started by `start_probe` and collected by `finish_probe`, so that its 10 to 20 ms can pass while
something else is read.
"""

from __future__ import annotations

import ast
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from remediate.errors import TargetError
from remediate.model import Choice, Unknown, UnknownKind
from remediate.packages.facts import TargetFacts

if TYPE_CHECKING:
    import subprocess

PROBE_TIMEOUT_S = 20.0
_MARKER = "remediate-probe:"
_MAX_ANSWER = 1_000_000

# A Python literal in place of JSON: `import json` would cost the child 6 of its 15 ms. ASCII only, so that paths that
# are not UTF-8 come through as surrogates. Runs on Python 3.6 and newer. A normal start has the user site, an isolated
# one (-I) has not, so it is added where `site` would have it: not in a virtual environment, but for one with system
# site-packages (where `site.PREFIXES` holds the base).
_SCRIPT = r"""
import os, site, sys, sysconfig
virtual = sys.prefix != sys.base_prefix
path = [p for p in sys.path if os.path.isdir(p)]
user = getattr(site, "USER_SITE", None)
if not user or not os.path.isdir(user) or (virtual and sys.base_prefix not in site.PREFIXES):
    user = None
elif user not in path:
    first = next((i for i, p in enumerate(path) if p.endswith(("site-packages", "dist-packages"))), len(path))
    path.insert(first, user)
try:
    libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
except (AttributeError, OSError, ValueError):
    libc = ""
stdlib = sysconfig.get_path("stdlib")
print("remediate-probe:" + ascii({
    "version": "%d.%d.%d" % sys.version_info[:3],
    "implementation": sys.implementation.name,
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "search_path": path,
    "purelib": sysconfig.get_path("purelib"),
    "platlib": sysconfig.get_path("platlib"),
    "scripts": sysconfig.get_path("scripts"),
    "user_site": user,
    "system": sys.platform,
    "machine": os.uname().machine if hasattr(os, "uname") else "",
    "cache_tag": sys.implementation.cache_tag or "",
    "libc": libc,
    "externally_managed": not virtual and os.path.isfile(os.path.join(stdlib, "EXTERNALLY-MANAGED")),
}))
"""


class Candidate(msgspec.Struct, frozen=True):
    """An interpreter to look at.

    Attributes:
        python: absolute path of the interpreter.
        choice: how it was found, when nobody named it.
        is_guess: it is just the `python3` on PATH.
    """

    python: str
    choice: Choice | None
    is_guess: bool = False


class Probe(msgspec.Struct, frozen=True):
    """A started look at an interpreter; `process` is None where it could not be started, for the reason `failure`."""

    candidate: Candidate
    process: subprocess.Popen[bytes] | None
    failure: str = ""

    def close(self) -> None:
        """Kill it where nobody has collected it."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            self.process.communicate()


def find_interpreter(folder: Path, python: str | None) -> Candidate | None:
    """The interpreter to look at: the one asked for, else what a person would mean in `folder`.

    Looked for, in this order: `.venv` and `venv` in the folder, the active virtual environment (`VIRTUAL_ENV`), the
    active conda environment (`CONDA_PREFIX`), `python3` on PATH. None when there is none of these.

    Raises:
        TargetError: `python` was given and is neither an environment's folder nor a program.
    """
    if python is not None:
        return Candidate(_named_interpreter(folder, python), None)
    places = [
        (folder / ".venv", "the folder has a `.venv`"),
        (folder / "venv", "the folder has a `venv`"),
        (_environment_folder("VIRTUAL_ENV"), "it is the active virtual environment (`VIRTUAL_ENV`)"),
        (_environment_folder("CONDA_PREFIX"), "it is the active conda environment (`CONDA_PREFIX`)"),
    ]
    for place, because in places:
        found = _interpreter_in(place) if place is not None else None
        if found is not None:
            return Candidate(found, Choice("target interpreter", found, because))
    found = shutil.which("python3")
    if found is None:
        return None
    found = _absolute(found)
    because = "it is the `python3` on PATH, and the folder has no environment of its own"
    return Candidate(found, Choice("target interpreter", found, because), is_guess=True)


def start_probe(candidate: Candidate) -> Probe:
    """Start the interpreter, isolated (`-I`), to ask it about itself. Collect it with `finish_probe`."""
    import subprocess

    try:
        process = subprocess.Popen(
            [candidate.python, "-I", "-c", _SCRIPT],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        return Probe(candidate, None, error.strerror or str(error))
    return Probe(candidate, process)


def finish_probe(probe: Probe, timeout_s: float = PROBE_TIMEOUT_S) -> TargetFacts | Unknown:
    """Collect the answer. The interpreter that was named explicitly has to give one.

    Raises:
        TargetError: it was named explicitly and does not start, is not Python 3, or hangs.
    """
    answer = probe.failure or _collect(probe, timeout_s)
    if isinstance(answer, str):
        python = probe.candidate.python
        if probe.candidate.choice is None:
            raise TargetError(
                f"the target interpreter `{python}` can't be used",
                cause=answer,
                hint="name a Python 3 interpreter or the folder of its environment with `--python`",
            )
        return Unknown(UnknownKind.FAILED, f"`{python}`: {answer}")
    return _to_facts(probe.candidate, answer)


def _environment_folder(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


def _interpreter_in(folder: Path) -> str | None:
    for name in ("bin/python", "bin/python3", "Scripts/python.exe"):
        candidate = folder / name
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return _absolute(candidate)
    return None


def _absolute(path: Path | str) -> str:
    """Without `..`, links not resolved: a virtual environment is found from the link that started it."""
    return os.path.normpath(Path(path).absolute())


def _named_interpreter(folder: Path, python: str) -> str:
    path = folder / Path(python).expanduser()
    if path.is_dir():
        found = _interpreter_in(path)
        if found is None:
            raise TargetError(
                f"`{python}` is a folder without an interpreter",
                cause=f"there is no `bin/python` that can be run in `{path}`",
                hint="create it with `python3 -m venv`, or name an interpreter with `--python`",
            )
        return found
    if not path.exists() and os.sep not in python:
        found = shutil.which(python)
        if found is not None:
            return _absolute(found)
    if not path.is_file():
        raise TargetError(
            f"there is no interpreter `{python}`",
            cause=f"`{path}` does not exist, or is no file",
            hint="name an interpreter or the folder of its environment with `--python`",
        )
    return _absolute(path)


def _collect(probe: Probe, timeout_s: float) -> dict[str, Any] | str:
    import subprocess

    process = probe.process
    if process is None:
        return "it was not started"
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"it did not answer within {timeout_s:g} s"
    if process.returncode != 0:
        last = stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no message"]
        return f"it ended with exit code {process.returncode}: {last[0]}"
    return _parse_answer(stdout) or "it does not answer as Python 3 does"


def _parse_answer(stdout: bytes) -> dict[str, Any] | None:
    """The literal behind the marker. Whatever a `.pth` file printed before it is passed over."""
    _, found, text = stdout.decode("ascii", "replace").rpartition(_MARKER)
    if not found or len(text) > _MAX_ANSWER:
        return None
    try:
        answer = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _to_facts(candidate: Candidate, answer: dict[str, Any]) -> TargetFacts:
    libc = str(answer["libc"])
    folders = {str(answer[key]) for key in ("purelib", "platlib", "scripts")}
    return TargetFacts(
        python=candidate.python,
        version=str(answer["version"]),
        implementation=str(answer["implementation"]),
        prefix=str(answer["prefix"]),
        base_prefix=str(answer["base_prefix"]),
        search_path=tuple(map(str, answer["search_path"])),
        purelib=str(answer["purelib"]),
        platlib=str(answer["platlib"]),
        scripts=str(answer["scripts"]),
        user_site=answer["user_site"],
        system=str(answer["system"]),
        machine=str(answer["machine"]),
        cache_tag=str(answer["cache_tag"]),
        libc=libc or Unknown(UnknownKind.NOT_SUPPORTED, "the C library is not glibc, or does not say"),
        externally_managed=bool(answer["externally_managed"]),
        is_writable=all(map(_is_writable, folders)),
        is_guess=candidate.is_guess,
        free_bytes=_free_bytes(str(answer["purelib"])),
    )


def _free_bytes(folder: str) -> int | None:
    try:
        system = os.statvfs(_nearest(folder))
    except OSError:
        return None
    return system.f_bavail * system.f_frsize


def _is_writable(folder: str) -> bool:
    """Whether entries can be made in the folder, or in the nearest parent that exists."""
    return os.access(_nearest(folder), os.W_OK | os.X_OK)


def _nearest(folder: str) -> Path:
    path = Path(folder)
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def tool_python() -> str:
    """The interpreter that runs this program."""
    return sys.executable
