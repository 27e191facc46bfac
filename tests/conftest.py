from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes import FolderSubject

from remediate import registry
from remediate.runs.store import Store
from remediate.subject import Subject


@pytest.fixture(autouse=True)
def _hermetic(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test sees the developer's environment, package index or earlier runs."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "NO_COLOR", "FORCE_COLOR", "REMEDIATE_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("REMEDIATE_SYSTEM_ROOT", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    monkeypatch.setenv("REMEDIATE_STATE_DIR", str(tmp_path_factory.mktemp("home") / "state"))


@pytest.fixture
def use_subjects(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Put other subjects in the registry's place for the time of a test."""

    def use(*subjects: Subject) -> None:
        monkeypatch.setattr(registry, "_load", lambda: subjects)
        registry.subjects.cache_clear()

    yield use
    monkeypatch.undo()
    registry.subjects.cache_clear()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sandbox folder with two files, of which `a` and `new` are not as wanted."""
    path = tmp_path / "sandbox"
    path.mkdir()
    (path / "a").write_bytes(b"old a\r\n")
    (path / "b").write_bytes(b"old b")
    return path


@pytest.fixture
def subject(use_subjects: Callable[..., None]) -> FolderSubject:
    fake = FolderSubject({"a": b"new a\n", "b": b"new b\n", "new": b"created\n"})
    use_subjects(fake)
    return fake
