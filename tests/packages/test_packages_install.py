"""Real pip runs on real environments: apply, verify, apply again, undo."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from packages.packages_sandbox import Sandbox, copy_distributions, incident_profile, make_venv, pip, site, tree

from remediate.demo.wheels import Standin, build_wheels, incident_packages, wheel_name
from remediate.effects import Completed, run_process
from remediate.errors import ApplyError, EditedSinceError
from remediate.model import Outcome, State
from remediate.packages.install import Install
from remediate.packages.piprun import working_in
from remediate.packages.snapshot import load_snapshot

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _no_pip_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")


@pytest.fixture(scope="session")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every stand-in of the incident, before and after."""
    folder = tmp_path_factory.mktemp("wheelhouse")
    packages = incident_packages()
    build_wheels((*packages.before, *packages.after), folder)
    return folder


@pytest.fixture(scope="session")
def incident_venv(tmp_path_factory: pytest.TempPathFactory, wheelhouse: Path) -> Path:
    """The incident's environment before the repair, to be copied by tests that change it."""
    venv = make_venv(tmp_path_factory.mktemp("incident") / ".venv")
    wheels = [str(wheelhouse / wheel_name(standin)) for standin in incident_packages().before]
    pip(venv, wheelhouse, "install", "--no-deps", "--no-compile", *wheels)
    return venv


@pytest.fixture
def sandbox(tmp_path: Path, incident_venv: Path, wheelhouse: Path) -> Sandbox:
    """A fresh copy of the incident's environment, with the report's requirements file."""
    folder = tmp_path / "sandbox"
    folder.mkdir()
    (folder / "requirements.txt").write_text("# requirements.txt\ntorch==2.2.0\ntransformers==4.38.0\n")
    venv = make_venv(folder / ".venv")
    copy_distributions(incident_venv, venv)
    return Sandbox(folder, venv, wheelhouse, incident_profile())


def perform_all(sandbox: Sandbox) -> list[tuple[object, object]]:
    done = []
    for change in sandbox.propose().changes:
        prepared = sandbox.subject.prepare(change.operation, sandbox.context)
        sandbox.subject.perform(change.operation, prepared, sandbox.context)
        done.append((change.operation, prepared))
    return done


def undo_all(sandbox: Sandbox, done: list[tuple[object, object]]) -> None:
    for operation, prepared in reversed(done):
        assert isinstance(operation, Install) or operation
        sandbox.subject.undo(operation, prepared, sandbox.context)  # type: ignore[arg-type]


def test_apply_verify_again_undo(sandbox: Sandbox) -> None:
    before = tree(sandbox.venv)
    requirements = (sandbox.folder / "requirements.txt").read_bytes()

    done = perform_all(sandbox)

    situation = sandbox.situation()
    findings = sandbox.subject.compare(situation)
    assert [found for found in findings if found.outcome is not Outcome.SAME and not found.is_advice] == []
    assert sandbox.subject.propose(situation, findings).changes == ()
    install = next(operation for operation, _ in done if isinstance(operation, Install))
    assert sandbox.subject.state(install, sandbox.context) is State.AFTER
    # What the pins require moved too, and what they don't stayed.
    assert sandbox.subject.read(sandbox.facts(), "installed:triton") == "2.1.0"
    assert sandbox.subject.read(sandbox.facts(), "installed:requests") == "2.34.2"

    undo_all(sandbox, done)

    assert tree(sandbox.venv) == before
    assert (sandbox.folder / "requirements.txt").read_bytes() == requirements
    assert sandbox.subject.state(install, sandbox.context) is State.BEFORE
    assert not (sandbox.context.run_folder / "environment").exists()


def test_second_perform_runs_nothing(sandbox: Sandbox) -> None:
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)
    sandbox.subject.perform(install, prepared, sandbox.context)
    sandbox.context.runner = None  # type: ignore[assignment]
    assert not sandbox.subject.perform(install, prepared, sandbox.context).changed


def test_undo_twice(sandbox: Sandbox) -> None:
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)
    sandbox.subject.perform(install, prepared, sandbox.context)
    assert sandbox.subject.undo(install, prepared, sandbox.context).changed
    assert not sandbox.subject.undo(install, prepared, sandbox.context).changed


def test_operation_survives_the_plan_file(sandbox: Sandbox) -> None:
    install = sandbox.install()
    assert msgspec.json.decode(msgspec.json.encode(install), type=sandbox.subject.operation_type) == install


def half_install(sandbox: Sandbox) -> None:
    """As a pip run leaves it that is killed while it replaces transformers, after torch."""
    pip(sandbox.venv, sandbox.wheelhouse, "install", "torch==2.1.2", "--no-deps")
    folder = site(sandbox.venv)
    (folder / "transformers-4.38.0.dist-info").rename(folder / "~ransformers-4.38.0.dist-info")
    (folder / "transformers" / "__init__.py").unlink()
    (folder / "transformers" / "__init__.py").write_text("__version__ = '4.36.2'\n")
    (folder / "transformers" / "new_in_4_36.py").write_text("")
    (sandbox.venv / "bin" / "transformers-cli").unlink()


def test_undo_of_a_half_done_install_is_exact(sandbox: Sandbox) -> None:
    before = tree(sandbox.venv)
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)
    half_install(sandbox)
    assert sandbox.subject.state(install, sandbox.context) is State.OTHER

    sandbox.subject.undo(install, prepared, sandbox.context)

    assert tree(sandbox.venv) == before


def test_perform_again_after_a_half_done_install(sandbox: Sandbox) -> None:
    before = tree(sandbox.venv)
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)
    half_install(sandbox)

    sandbox.subject.perform(install, prepared, sandbox.context)

    assert sandbox.subject.state(install, sandbox.context) is State.AFTER
    assert not any(path.name.startswith("~") for path in site(sandbox.venv).iterdir())
    sandbox.subject.undo(install, prepared, sandbox.context)
    assert tree(sandbox.venv) == before


def test_undo_continues_where_it_was_killed(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(sandbox.venv)
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)
    sandbox.subject.perform(install, prepared, sandbox.context)
    replace, count = Path.replace, iter(range(100))

    def killed(self: Path, target: Path) -> Path:
        if next(count) == 7:
            raise KeyboardInterrupt
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            sandbox.subject.undo(install, prepared, sandbox.context)

    sandbox.subject.undo(install, prepared, sandbox.context)
    assert tree(sandbox.venv) == before


def test_what_the_user_installed_later_stays(sandbox: Sandbox, tmp_path: Path) -> None:
    before = tree(sandbox.venv)
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)
    sandbox.subject.perform(install, prepared, sandbox.context)
    house = tmp_path / "mine"
    build_wheels([Standin("mine", "1.0")], house)
    pip(sandbox.venv, house, "install", "mine")

    sandbox.subject.undo(install, prepared, sandbox.context)

    after = tree(sandbox.venv)
    added = {
        Path(path).relative_to(site(sandbox.venv).relative_to(sandbox.venv)).parts[0] for path in after.keys() - before
    }
    assert added == {"mine", "mine-1.0.dist-info"}
    assert {path: after[path] for path in before} == before


def test_what_was_changed_again_later_is_not_overwritten(sandbox: Sandbox) -> None:
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)
    sandbox.subject.perform(install, prepared, sandbox.context)
    pip(sandbox.venv, sandbox.wheelhouse, "install", "--no-deps", "numpy==2.4.6")
    here = tree(sandbox.venv)

    with pytest.raises(EditedSinceError, match="numpy"):
        sandbox.subject.undo(install, prepared, sandbox.context)

    assert tree(sandbox.venv) == here


def test_undo_without_the_set_aside_files_uses_pip(sandbox: Sandbox) -> None:
    former = sandbox.facts().sections["packages"].distributions
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)
    sandbox.subject.perform(install, prepared, sandbox.context)
    shutil.rmtree(sandbox.context.run_folder / "environment")

    performed = sandbox.subject.undo(install, prepared, sandbox.context)

    assert "Successfully installed" in performed.output
    now = sandbox.facts().sections["packages"].distributions
    assert [(item.name, item.version) for item in now] == [(item.name, item.version) for item in former]


def test_missing_wheel(sandbox: Sandbox, tmp_path: Path) -> None:
    before = tree(sandbox.venv)
    house = tmp_path / "without-numpy"
    shutil.copytree(sandbox.wheelhouse, house)
    (house / "numpy-1.26.4-py3-none-any.whl").unlink()
    sandbox.wheelhouse = house
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)

    with pytest.raises(ApplyError) as caught:
        sandbox.subject.perform(install, prepared, sandbox.context)

    assert "No matching distribution found for numpy==1.26.4" in caught.value.cause
    assert "nothing was changed" in caught.value.hint
    assert tree(sandbox.venv) == before
    sandbox.subject.undo(install, prepared, sandbox.context)
    assert tree(sandbox.venv) == before


def test_wrong_build_from_the_index(sandbox: Sandbox, tmp_path: Path) -> None:
    """The index has torch 2.1.2 for another CUDA version: found out after the install, and undone."""
    before = tree(sandbox.venv)
    house = tmp_path / "cpu"
    shutil.copytree(sandbox.wheelhouse, house)
    build_wheels([Standin("torch", "2.1.2", cuda=None)], house)
    sandbox.wheelhouse = house
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)

    with pytest.raises(ApplyError, match="not as planned") as caught:
        sandbox.subject.perform(install, prepared, sandbox.context)

    assert "torch is built for CUDA None, wanted is 12.1" in caught.value.cause
    sandbox.subject.undo(install, prepared, sandbox.context)
    assert tree(sandbox.venv) == before


def test_same_version_for_another_cuda_is_replaced(sandbox: Sandbox, tmp_path: Path) -> None:
    house = tmp_path / "cpu"
    build_wheels([Standin("torch", "2.1.2+cpu", cuda=None)], house)
    pip(sandbox.venv, house, "install", "--no-deps", "torch==2.1.2+cpu")
    findings = {finding.code: finding for finding in sandbox.subject.compare(sandbox.situation())}
    assert findings["PKG002"].outcome is Outcome.DIFFERS

    perform_all(sandbox)

    assert sandbox.facts().sections["packages"].torch_build.cuda == "12.1"


def test_target_with_its_own_pip_uses_it(sandbox: Sandbox, tmp_path: Path) -> None:
    house = tmp_path / "pip"
    build_wheels([Standin("pip", "23.0")], house)
    pip(sandbox.venv, house, "install", "--no-deps", "pip==23.0")
    assert sandbox.install().argv[:3] == (str(sandbox.venv / "bin" / "python"), "-m", "pip")


def test_double_metadata_is_repaired(sandbox: Sandbox) -> None:
    folder = site(sandbox.venv)
    shutil.copytree(folder / "numpy-2.4.6.dist-info", folder / "numpy-1.26.4.dist-info")
    metadata = folder / "numpy-1.26.4.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("2.4.6", "1.26.4"))
    before = tree(sandbox.venv)
    install = sandbox.install()
    assert install.discard

    prepared = sandbox.subject.prepare(install, sandbox.context)
    sandbox.subject.perform(install, prepared, sandbox.context)
    assert [path.name for path in folder.glob("numpy-*")] == ["numpy-1.26.4.dist-info"]
    assert "1.26.4" in (folder / "numpy" / "__init__.py").read_text()

    sandbox.subject.undo(install, prepared, sandbox.context)
    assert tree(sandbox.venv) == before


def test_copies_where_links_are_refused(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object, **kwargs: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    before = tree(sandbox.venv)
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)
    sandbox.subject.perform(install, prepared, sandbox.context)
    sandbox.subject.undo(install, prepared, sandbox.context)
    assert tree(sandbox.venv) == before


def test_the_set_aside_tree_keeps_only_what_was_replaced(sandbox: Sandbox) -> None:
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)
    whole = sum(1 for _ in sandbox.context.run_folder.rglob("*.py"))
    sandbox.subject.perform(install, prepared, sandbox.context)
    snapshot = load_snapshot(sandbox.context.run_folder / "environment")
    assert snapshot is not None
    assert snapshot.is_settled
    kept = {path.parent.name for path in sandbox.context.run_folder.rglob("*.py")}
    assert kept == {"torch", "transformers", "numpy", "triton", "nccl"}
    assert len(kept) < whole


class KillingRunner:
    """Kills pip, and what it started, as soon as something is there or gone."""

    def __init__(self, is_time: Callable[[], bool]) -> None:
        self.is_time = is_time

    def __call__(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> Completed:
        process = subprocess.Popen(
            list(argv), env=env, cwd=cwd, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and not self.is_time():
            time.sleep(0.0005)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        returncode = process.wait()
        # What pip had started is not our child: it ends in its own time.
        while working_in(Path(str(cwd))):
            time.sleep(0.001)
        return Completed(tuple(argv), returncode, "", "killed")


@pytest.mark.parametrize(
    ("present", "path"),
    [
        (False, "numpy-2.4.6.dist-info"),
        (True, "numpy-1.26.4.dist-info/METADATA"),
        (True, "torch-2.1.2.dist-info/INSTALLER"),
        (False, "transformers-4.38.0.dist-info"),
        (True, "transformers-4.36.2.dist-info"),
    ],
)
def test_pip_killed_in_the_middle(sandbox: Sandbox, present: bool, path: str) -> None:
    """The former set comes back, byte for byte, and the install can be finished."""
    before = tree(sandbox.venv)
    install = sandbox.install()
    for is_finished in (False, True):
        prepared = sandbox.subject.prepare(install, sandbox.context)
        sandbox.context.runner = KillingRunner(lambda: bool(list(site(sandbox.venv).glob(path))) is present)
        # On a busy machine pip may be done before it is killed; the half-done cases above are exact.
        with contextlib.suppress(ApplyError):
            sandbox.subject.perform(install, prepared, sandbox.context)
        sandbox.context.runner = run_process
        if is_finished:
            sandbox.subject.perform(install, prepared, sandbox.context)
            assert sandbox.subject.state(install, sandbox.context) is State.AFTER
        sandbox.subject.undo(install, prepared, sandbox.context)
        assert tree(sandbox.venv) == before


def test_pip_that_still_runs_is_not_disturbed(sandbox: Sandbox) -> None:
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)
    folder = sandbox.context.run_folder / "pip"
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", "input()"], cwd=folder, stdin=subprocess.PIPE) as orphan:
        with pytest.raises(ApplyError, match=str(orphan.pid)):
            sandbox.subject.undo(install, prepared, sandbox.context)
        with pytest.raises(ApplyError, match=str(orphan.pid)):
            sandbox.subject.perform(install, prepared, sandbox.context)
        orphan.kill()
    assert not sandbox.subject.undo(install, prepared, sandbox.context).changed
