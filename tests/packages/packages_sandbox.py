"""Real environments without pip, filled with stand-in wheels, and pip runs that see a local folder only."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from remediate.model import SCHEMA_VERSION, Facts, Host, Request
from remediate.packages.install import Install
from remediate.packages.observe import observe_packages
from remediate.packages.subject import PackagesSubject
from remediate.profile.schema import Pin, Profile
from remediate.subject import Context, Proposal, Settings, Situation


def make_venv(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


def pip(venv: Path, wheelhouse: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python")]
    done = subprocess.run(
        [*command, *arguments, "--no-index", "--find-links", str(wheelhouse), "--disable-pip-version-check"]
        if arguments[0] == "install"
        else [*command, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def site(venv: Path) -> Path:
    return next((venv / "lib").glob("python3*/site-packages"))


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below the folder with its bytes, but for what Python compiles by itself."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if not path.is_symlink() else str(path.readlink()).encode()
        for path in sorted(folder.rglob("*"))
        if (path.is_file() or path.is_symlink()) and "__pycache__" not in path.parts
    }


def copy_distributions(source: Path, target: Path) -> None:
    shutil.copytree(site(source), site(target), dirs_exist_ok=True)
    for script in (source / "bin").iterdir():
        if not script.is_symlink() and not (target / "bin" / script.name).exists():
            shutil.copy2(script, target / "bin" / script.name)


class Sandbox:
    """A folder with an environment and requirements, and the steps of the program on it."""

    def __init__(self, folder: Path, venv: Path, wheelhouse: Path, profile: Profile) -> None:
        self.folder = folder
        self.venv = venv
        self.wheelhouse = wheelhouse
        self.profile = profile
        self.subject = PackagesSubject()
        self.announced = {"gpu:driver_version": "535.104.05"}
        run = folder.parent / "run"
        run.mkdir()
        self.context = Context(run, ".tmp", Request(str(folder)))

    @property
    def settings(self) -> Settings:
        return Settings(find_links=(str(self.wheelhouse),), no_index=True)

    def facts(self) -> Facts:
        section, choices = observe_packages(self.folder, str(self.venv), None)
        request = Request(str(self.folder), python=str(self.venv))
        host = Host("Linux", "x86_64", "boot", False)
        return Facts(SCHEMA_VERSION, "0", "now", request, host, choices, {"packages": section})

    def situation(self) -> Situation:
        return Situation(self.facts(), self.profile, self.settings, self.announced)

    def propose(self) -> Proposal:
        situation = self.situation()
        return self.subject.propose(situation, self.subject.compare(situation))

    def install(self) -> Install:
        operation = next(change for change in self.propose().changes if change.id == "packages:install").operation
        assert isinstance(operation, Install)
        return operation


def incident_profile() -> Profile:
    """The incident's pins, without the rest of the shipped profile."""
    pins = {
        "torch": Pin(version="2.1.2", cuda="12.1", reason="as the report says"),
        "transformers": Pin(version="4.36.2"),
        "numpy": Pin(version="1.26.4", accept=">=1.23,<2", reason="torch is built against numpy 1"),
        "accelerate": Pin(version="1.15.0", accept=">=0.25"),
        "tokenizers": Pin(version="0.15.2", accept=">=0.14,<0.19"),
        "sentencepiece": Pin(version="0.2.3"),
    }
    return Profile(schema_version=1, name="incident", python=">=3.8", packages=pins)
