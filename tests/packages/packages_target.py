"""A target environment with the incident's versions from a local index, for tests of locks, installers and Pythons."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from packages.local_index import Index, write_wheels
from packages.packages_sandbox import tree

from remediate.demo.wheels import Standin
from remediate.effects import sha256
from remediate.model import SCHEMA_VERSION, Facts, Host, InstallOptions, Request
from remediate.packages.install import Install
from remediate.packages.lockfile import LockEntry, lock_name, render_lock
from remediate.packages.locking import own_platform, own_python
from remediate.packages.observe import observe_packages
from remediate.packages.subject import PackagesSubject
from remediate.profile.schema import InstallSource, Pin, Profile
from remediate.subject import Context, Proposal, Settings, Situation

STANDINS = (
    Standin("torch", "2.2.0", ("filelock",), cuda="12.1", local="cu121"),
    Standin("torch", "2.1.2", ("filelock", "triton==2.1.0"), cuda="12.1", local="cu121"),
    Standin("torch", "2.5.0", ("filelock", "triton==2.1.0"), cuda="12.1", local="cu121"),
    Standin("triton", "2.1.0"),
    Standin("filelock", "3.12.4"),
    Standin("filelock", "3.20.0"),
    Standin("numpy", "2.4.6"),
    Standin("numpy", "1.26.4"),
    Standin("numpy", "1.25.0"),
    Standin("sentencepiece", "0.2.3"),
    Standin("flask", "3.0.0"),
)
BEFORE = ("torch==2.2.0", "numpy==2.4.6", "filelock==3.12.4", "flask")
PINS = {
    "torch": Pin(version="2.1.2", cuda="12.1", reason="as the report says"),
    "numpy": Pin(version="1.26.4", accept=">=1.23,<2", reason="torch is built against numpy 1"),
    "sentencepiece": Pin(version="0.2.3", required=False),
}


def profile(index: Index, **pins: Pin) -> Profile:
    source = InstallSource(index_url=index.url)
    return Profile(schema_version=1, name="p", python=">=3.8", packages={**PINS, **pins}, install=source)


def lay_lock(index: Index, folder: Path) -> Path:
    """What `lock` makes, without resolving: for tests of what is done with it."""
    wanted = {"filelock": "3.20.0", "numpy": "1.26.4", "sentencepiece": "0.2.3", "torch": "2.1.2", "triton": "2.1.0"}
    entries = []
    for name, version in wanted.items():
        content = index.files[name][f"{name}-{version}-py3-none-any.whl"]
        entries.append(LockEntry(name, version, (f"sha256:{sha256(content)}",), size=len(content)))
    folder.mkdir()
    path = folder / lock_name("p", own_python(), *own_platform().split("_", 1))
    path.write_bytes(render_lock(entries, []))
    return path


def whole(venv: Path) -> dict[str, bytes]:
    """All files, but for the lock file that uv leaves in an environment."""
    return {name: content for name, content in tree(venv).items() if name != ".lock"}


class Target:
    """A target with the incident's versions from the local index, and the profile's lock."""

    def __init__(
        self,
        tmp_path: Path,
        index: Index,
        *,
        make: tuple[str, ...] = (),
        installer: str = "",
        prune: bool = False,
        before: tuple[str, ...] = BEFORE,
    ) -> None:
        self.index = index
        self.folder = tmp_path / "sandbox"
        self.folder.mkdir()
        self.venv = self.folder / ".venv"
        subprocess.run([*(make or (sys.executable, "-m", "venv", "--without-pip")), str(self.venv)], check=True)
        wheels = write_wheels(index, tmp_path / "wheels")
        self._fill(wheels, before)
        self.locks = tmp_path / "locks"
        self.subject = PackagesSubject()
        self.request = Request(str(self.folder), python=str(self.venv), install=InstallOptions(installer, prune))
        (tmp_path / "run").mkdir()
        self.context = Context(tmp_path / "run", ".tmp", self.request)
        self.settings = Settings()
        self.pins: dict[str, Pin] = {}

    def _fill(self, wheels: Path, before: tuple[str, ...]) -> None:
        """By this Python's pip into the module folder, so that any target can be filled."""
        site = next((self.venv / "lib").glob("python3*/site-packages"))
        options = ("--quiet", "--no-index", "--find-links", str(wheels), "--no-compile", "--no-warn-conflicts")
        subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", str(site), *before], check=True)

    def propose(self) -> Proposal:
        installer = self.request.install.installer or "pip"
        section, choices = observe_packages(self.folder, str(self.venv), None, None, installer)
        host = Host("Linux", "x86_64", "boot", False)
        facts = Facts(SCHEMA_VERSION, "0", "now", self.request, host, choices, {"packages": section})
        situation = Situation(
            facts,
            profile(self.index, **self.pins),
            self.settings,
            {"gpu:driver_version": "535.1"},
            (str(self.locks / "p"),),
        )
        return self.subject.propose(situation, self.subject.compare(situation))

    def install(self) -> Install:
        operation = next(change for change in self.propose().changes if change.id == "packages:install").operation
        assert isinstance(operation, Install)
        return operation

    def perform(self, install: Install) -> str:
        self.prepared = self.subject.prepare(install, self.context)
        return self.subject.perform(install, self.prepared, self.context).detail

    def versions(self) -> dict[str, str]:
        section, _ = observe_packages(self.folder, str(self.venv), None)
        return {found.name: str(found.version) for found in section.distributions}
