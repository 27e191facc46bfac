"""Stand-in wheels: the metadata of real distributions with next to no content, for `remediate demo` and the tests.

A stand-in has the name, version and requirements of the real wheel and a module that says its version; torch gets a
`version.py` as the real one has. They are built deterministically (PEP 427; fixed times) and are a few hundred bytes.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

_TIME = (2024, 1, 1, 0, 0, 0)
_DATA = Path(__file__).with_name("incident_packages.json")
_WHEEL = "Wheel-Version: 1.0\nGenerator: remediate\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_SEPARATORS = re.compile(r"[-_.]+")


class Standin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One wheel to build.

    Attributes:
        name: as the real metadata writes it.
        requires: `Requires-Dist` lines.
        requires_python: `Requires-Python`.
        modules: top-level packages; the normalised name when empty.
        scripts: command names, each of which prints name and version.
        cuda: for torch: the CUDA version of its `version.py`; None for a build without CUDA.
        local: for torch: the local part of `__version__`, which the metadata lacks (`cu121`).
        files: further files, path in the wheel to text.
    """

    name: str
    version: str
    requires: tuple[str, ...] = ()
    requires_python: str = ">=3.8"
    modules: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    cuda: str | None = None
    local: str = ""
    files: Mapping[str, str] = {}


class IncidentPackages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The distributions of the incident.

    Attributes:
        source: where the metadata was read.
        before: what a plain install of the report's first requirements file gives.
        after: further wheels that bringing it to the report's pins needs.
    """

    source: str
    before: tuple[Standin, ...]
    after: tuple[Standin, ...]


def incident_packages() -> IncidentPackages:
    """The incident's distributions, with the requirements of the real wheels."""
    return msgspec.json.decode(_DATA.read_bytes(), type=IncidentPackages)


def build_wheels(standins: Iterable[Standin], folder: Path) -> tuple[Path, ...]:
    """Write a wheel for each stand-in into `folder`, which is created, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for standin in standins:
        path = folder / wheel_name(standin)
        path.write_bytes(build_wheel(standin))
        paths.append(path)
    return tuple(paths)


def wheel_name(standin: Standin) -> str:
    """File name, for any Python 3 and platform."""
    return f"{_stem(standin)}-py3-none-any.whl"


def build_wheel(standin: Standin) -> bytes:
    """The bytes of a wheel; equal for equal stand-ins."""
    metadata_folder = f"{_stem(standin)}.dist-info"
    contents = {
        **_modules(standin),
        **standin.files,
        f"{metadata_folder}/METADATA": _metadata(standin),
        f"{metadata_folder}/WHEEL": _WHEEL,
    }
    if standin.scripts:
        module = _module_names(standin)[0]
        entries = "".join(f"{script} = {module}:main\n" for script in standin.scripts)
        contents[f"{metadata_folder}/entry_points.txt"] = f"[console_scripts]\n{entries}"
    rows = [f"{path},{_digest(text)},{len(text.encode())}" for path, text in contents.items()]
    contents[f"{metadata_folder}/RECORD"] = "\n".join([*rows, f"{metadata_folder}/RECORD,,"]) + "\n"
    return _zip(contents)


def _stem(standin: Standin) -> str:
    return f"{_normalized(standin.name)}-{standin.version}"


def _normalized(name: str) -> str:
    return _SEPARATORS.sub("_", name).lower()


def _module_names(standin: Standin) -> tuple[str, ...]:
    return standin.modules or (_normalized(standin.name),)


def _modules(standin: Standin) -> dict[str, str]:
    greeting = f'def main():\n    print("{standin.name} {standin.version}")\n'
    version = f"{standin.version}+{standin.local}" if standin.local else standin.version
    files = {
        f"{name.replace('.', '/')}/__init__.py": f'__version__ = "{version}"\n\n\n{greeting}'
        for name in _module_names(standin)
    }
    if standin.name == "torch":
        files["torch/version.py"] = (
            "from typing import Optional\n\n"
            "__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']\n"
            f"__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = {standin.cuda!r}\n"
            "git_version = 'stand-in'\nhip: Optional[str] = None\n"
        )
    return files


def _metadata(standin: Standin) -> str:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {standin.name}",
        f"Version: {standin.version}",
        "Summary: Stand-in with the metadata of the real distribution, without its content",
        f"Requires-Python: {standin.requires_python}",
        *(f"Requires-Dist: {line}" for line in standin.requires),
    ]
    return "\n".join(lines) + "\n"


def _digest(text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"


def _zip(contents: Mapping[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in contents.items():
            entry = zipfile.ZipInfo(path, _TIME)
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    return stream.getvalue()
