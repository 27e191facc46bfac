"""Locks: their format, how they are made from a local index, and what an install makes of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packages.local_index import Index, serve
from packages.packages_target import STANDINS, Target, lay_lock, profile, whole

from remediate.demo.wheels import Standin, build_wheels
from remediate.errors import ApplyError, UsageError
from remediate.model import State
from remediate.packages.install import Install
from remediate.packages.lockfile import LockEntry, find_lock, lock_name, read_lock, render_lock, stale_locks
from remediate.packages.locking import LockRequest, make_lock, own_platform, own_python
from remediate.packages.wheelhouse import collect
from remediate.profile.load import ResolvedProfile, load_profile
from remediate.profile.schema import Pin
from remediate.resources import data_folder
from remediate.subject import Settings


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("UV_NO_CACHE", "1")


@pytest.fixture
def index() -> Iterator[Index]:
    made = Index()
    made.add(STANDINS)
    with serve(made) as served:
        yield served


@pytest.fixture(scope="session")
def uv(tmp_path_factory: pytest.TempPathFactory) -> str:
    """uv, from PATH or the package index."""
    found = shutil.which("uv")
    if found:
        return found
    folder = tmp_path_factory.mktemp("uv")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), "--only-binary=:all:", "uv"]
    done = subprocess.run(command, check=False, capture_output=True, timeout=120)
    if done.returncode != 0:
        pytest.skip("uv is not installed, and the package index can't be reached")
    return str(folder / "bin" / "uv")


def lock(index: Index, folder: Path, *, uses_uv: bool = False) -> Path:
    return make_lock(LockRequest(profile(index), own_python(), own_platform(), folder, uses_uv)).path


ENTRIES = (
    LockEntry("a", "1.0", ("sha256:00", "sha256:ff"), "sys_platform == 'linux'", ("because of that",), 123),
    LockEntry("b", "2.0+cu121", ("sha256:aa",), "", ("via a",)),
)


def test_a_lock_reads_back() -> None:
    content = render_lock(ENTRIES, ["head"])
    assert tuple(read_lock(content, "p").entries.values()) == ENTRIES
    assert content.startswith(b"# head\n\na==1.0 ; sys_platform == 'linux' \\\n    --hash=sha256:00")


def test_what_does_not_fit_is_named() -> None:
    found = read_lock(render_lock(ENTRIES, []), "p")
    assert found.misfits({"a": "1.0.0", "b": "2.0"}) == ()
    assert found.misfits({"a": "1.1", "c": "1"}) == ("a", "c")


def test_the_first_lock_for_the_target_is_found(tmp_path: Path) -> None:
    (tmp_path / lock_name("parent", "3.11.7", "linux", "x86_64")).write_text("")
    stems = [str(tmp_path / "child"), str(tmp_path / "parent")]
    assert find_lock(stems, "3.11.2", "linux", "x86_64") == tmp_path / "parent-py311-linux_x86_64.txt"
    assert find_lock(stems, "3.12.0", "linux", "x86_64") is None


def test_the_shipped_locks_hold_the_pins_of_their_profiles() -> None:
    found = sorted((data_folder("profiles") / "locks").glob("*.txt"))
    assert {path.name for path in found} >= {
        "current-py312-linux_x86_64.txt",
        "incident-a100-py311-linux_x86_64.txt",
    }
    for name in ("current", "incident-a100"):
        resolved = load_profile(name)
        pins = {name: pin.version for name, pin in resolved.profile.packages.items()}
        assert list(stale_locks(resolved.lock_stems[0], pins)) == []
    for path in found:
        entries = read_lock(path.read_bytes(), path.name).entries.values()
        assert all(entry.hashes and entry.notes and entry.size for entry in entries), path.name


def test_a_stale_lock_is_named(tmp_path: Path) -> None:
    path = tmp_path / "p-py311-linux_x86_64.txt"
    path.write_bytes(render_lock(ENTRIES, []))
    assert list(stale_locks(str(tmp_path / "p"), {"a": "1.0", "b": "3.0"})) == [(path, ("b",))]


def test_another_platform_needs_uv(index: Index, tmp_path: Path) -> None:
    request = LockRequest(profile(index), own_python(), "linux_riscv64", tmp_path)
    with pytest.raises(UsageError, match="can't resolve for linux_riscv64") as caught:
        make_lock(request)
    assert "--uv" in caught.value.hint


@pytest.mark.slow
def test_lock_by_pip_tools(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_here = tmp_path / "only-here"
    build_wheels([Standin("filelock", "99.0")], only_here)
    monkeypatch.setenv("PIP_FIND_LINKS", str(only_here))
    path = lock(index, tmp_path / "locks")
    text = path.read_text()
    assert "99.0" not in text
    assert str(only_here) not in text
    entries = read_lock(path.read_bytes(), "p").entries
    assert {name: entry.version for name, entry in entries.items()} == {
        "filelock": "3.20.0",
        "numpy": "1.26.4",
        "sentencepiece": "0.2.3",
        "torch": "2.1.2",
        "triton": "2.1.0",
    }
    assert entries["torch"].notes == ("as the report says",)
    assert entries["triton"].notes == ("via torch",)
    wheel = index.files["torch"]["torch-2.1.2-py3-none-any.whl"]
    assert entries["torch"].size == len(wheel)
    assert not make_lock(LockRequest(profile(index), own_python(), own_platform(), tmp_path / "locks")).is_changed


@pytest.mark.slow
def test_uv_gives_the_same_bytes(index: Index, uv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(uv).parent), prepend=":")
    by_uv = lock(index, tmp_path / "uv", uses_uv=True)
    by_pip_tools = lock(index, tmp_path / "pip-tools")
    assert by_uv.read_bytes() == by_pip_tools.read_bytes()


@pytest.mark.slow
def test_pins_that_the_index_lacks(index: Index, tmp_path: Path) -> None:
    request = LockRequest(profile(index, torch=Pin(version="2.1.9")), own_python(), own_platform(), tmp_path)
    with pytest.raises(ApplyError, match="could not be resolved") as caught:
        make_lock(request)
    assert "2.1.9" in caught.value.cause
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_locked_install_and_back(
    installer: str, index: Index, uv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(uv).parent), prepend=":")
    lay_lock(index, tmp_path / "locks")
    host = Target(tmp_path, index, installer=installer)
    before = whole(host.venv)
    change = next(change for change in host.propose().changes if change.id == "packages:install")
    assert "5 distributions as `p-py" in change.reason
    assert "to download" in change.reason
    install = host.install()
    assert "--require-hashes" in install.argv
    assert "sentencepiece" not in install.locked
    host.perform(install)
    assert host.versions() == {
        "filelock": "3.20.0",
        "flask": "3.0.0",
        "numpy": "1.26.4",
        "torch": "2.1.2",
        "triton": "2.1.0",
    }
    assert host.subject.state(install, host.context) is State.AFTER
    assert host.propose().changes == ()
    host.subject.undo(install, host.prepared, host.context)
    assert whole(host.venv) == before


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_prune_removes_what_nothing_names_and_undo_brings_it_back(
    installer: str, index: Index, uv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(uv).parent), prepend=":")
    lay_lock(index, tmp_path / "locks")
    host = Target(tmp_path, index, installer=installer, prune=True)
    before = whole(host.venv)
    install = host.install()
    assert install.prune == ("flask",)
    assert "removed flask 3.0.0" in host.perform(install)
    assert "flask" not in host.versions()
    assert host.propose().changes == ()
    host.subject.undo(install, host.prepared, host.context)
    assert whole(host.venv) == before


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_locked_install_leaves_an_accepted_version(
    installer: str, index: Index, uv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(uv).parent), prepend=":")
    lay_lock(index, tmp_path / "locks")
    host = Target(tmp_path, index, installer=installer, before=("torch==2.2.0", "numpy==1.25.0"))
    install = host.install()
    assert install.constraints == ("numpy==1.25.0", "sentencepiece==0.2.3")
    assert "numpy" not in install.locked
    host.perform(install)
    assert host.versions()["numpy"] == "1.25.0"
    assert host.versions()["torch"] == "2.1.2"


@pytest.mark.slow
def test_prune_alone(index: Index, tmp_path: Path) -> None:
    lay_lock(index, tmp_path / "locks")
    host = Target(tmp_path, index, prune=True, before=("torch==2.1.2", "numpy==1.26.4", "flask"))
    before = whole(host.venv)
    change = next(change for change in host.propose().changes if change.id == "packages:install")
    assert (change.before, change.after, change.codes) == ("flask 3.0.0", "flask removed", ("PKG033",))
    install = host.install()
    assert host.perform(install) == "removed flask 3.0.0"
    assert host.propose().changes == ()
    host.subject.undo(install, host.prepared, host.context)
    assert whole(host.venv) == before


def test_prune_needs_a_lock(index: Index, tmp_path: Path) -> None:
    host = Target(tmp_path, index, prune=True)
    assert host.install().prune == ()
    assert [held.codes for held in host.propose().withheld] == [("PKG033",)]


def test_a_stale_lock_is_not_used(index: Index, tmp_path: Path) -> None:
    host = Target(tmp_path, index)
    host.locks.mkdir()
    name = lock_name("p", own_python(), *own_platform().split("_", 1))
    (host.locks / name).write_bytes(render_lock([LockEntry("torch", "2.1.1", ("sha256:00",))], []))
    change = next(change for change in host.propose().changes if change.id == "packages:install")
    assert "is stale, its numpy, torch is not the profile's" in change.reason
    assert isinstance(change.operation, Install)
    assert change.operation.locked == ""


def test_without_uv_nothing_is_installed(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    if Path(sys.executable).with_name("uv").exists():
        pytest.skip("uv is beside this interpreter")
    host = Target(tmp_path, index, installer="uv")
    assert [change.id for change in host.propose().changes] == []
    assert any("uv is asked for" in held.because for held in host.propose().withheld)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["lying", "broken"])
def test_a_bad_file_changes_nothing(fault: str, index: Index, tmp_path: Path) -> None:
    lay_lock(index, tmp_path / "locks")
    host = Target(tmp_path, index)
    before = whole(host.venv)
    getattr(index, fault).add("torch-2.1.2-py3-none-any.whl")
    with pytest.raises(ApplyError, match="could not change") as caught:
        host.perform(host.install())
    assert "nothing was changed" in caught.value.hint
    assert whole(host.venv) == before


@pytest.mark.slow
def test_a_yanked_pin_is_installed(index: Index, tmp_path: Path) -> None:
    index.yanked.add("torch-2.1.2-py3-none-any.whl")
    host = Target(tmp_path, index)
    host.perform(host.install())
    assert host.versions()["torch"] == "2.1.2"


@pytest.mark.slow
def test_an_index_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    made = Index()
    made.add(STANDINS)
    with serve(made):
        host = Target(tmp_path, made)
        install = host.install()
    before = whole(host.venv)
    with pytest.raises(ApplyError) as caught:
        host.perform(install)
    assert "nothing was changed" in caught.value.hint
    assert whole(host.venv) == before


@pytest.mark.slow
def test_wheelhouse_serves_a_host_without_network(index: Index, tmp_path: Path) -> None:
    path = lay_lock(index, tmp_path / "locks")
    resolved = ResolvedProfile(profile(index), {}, ("p",), "", (str(tmp_path / "locks" / "p"),))
    sources = ("--index-url", index.url)
    folder = tmp_path / "wheelhouse"
    made = collect(resolved, folder, python=own_python(), platform=own_platform(), sources=sources)
    assert made.files == (
        "filelock-3.20.0-py3-none-any.whl",
        "numpy-1.26.4-py3-none-any.whl",
        "sentencepiece-0.2.3-py3-none-any.whl",
        "torch-2.1.2-py3-none-any.whl",
        "triton-2.1.0-py3-none-any.whl",
    )
    assert made.size == sum((folder / name).stat().st_size for name in made.files)
    assert (folder / path.name).read_bytes() == path.read_bytes()
    host = Target(tmp_path, index)
    host.settings = Settings(find_links=(str(folder),), no_index=True)
    index.asked.clear()
    host.perform(host.install())
    assert index.asked == []
    assert host.versions()["torch"] == "2.1.2"


@pytest.mark.slow
def test_wheelhouse_for_another_python_needs_a_lock(index: Index, tmp_path: Path) -> None:
    resolved = ResolvedProfile(profile(index), {}, ("p",), "", (str(tmp_path / "locks" / "p"),))
    with pytest.raises(UsageError, match="no lock for it"):
        collect(resolved, tmp_path / "w", python="3.9", platform="linux_aarch64", sources=())
    entries = read_lock(lay_lock(index, tmp_path / "locks").read_bytes(), "p").entries.values()
    (tmp_path / "locks" / "p-py39-linux_aarch64.txt").write_bytes(render_lock(entries, []))
    sources = ("--index-url", index.url)
    made = collect(resolved, tmp_path / "w", python="3.9", platform="linux_aarch64", sources=sources)
    assert len(made.files) == 5


def test_a_full_disk_is_refused_before_anything_is_touched(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Target(tmp_path, index)
    host.settings = Settings(find_links=(str(tmp_path / "wheels"),))
    install = host.install()
    assert install.needed_bytes
    before = whole(host.venv)

    class Full:
        f_bavail = 0
        f_frsize = 4096

    monkeypatch.setattr("os.statvfs", lambda path: Full())
    with pytest.raises(ApplyError, match="has 0 kB free"):
        host.subject.prepare(install, host.context)
    assert whole(host.venv) == before
    assert list(host.context.run_folder.iterdir()) == []
