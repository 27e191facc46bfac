"""What an uninstall or install that ended half-way leaves: read from real folders."""

from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from packages.packages_sandbox import Sandbox, make_venv, pip, tree
from packages.packages_sandbox import site as site_of
from typer.testing import CliRunner

from remediate.cli import make_app
from remediate.demo.wheels import Standin, build_wheels
from remediate.errors import UsageError
from remediate.packages.facts import DistributionFacts, ProblemKind, TorchBuild
from remediate.packages.inspect import read_distributions
from remediate.packages.intact import find_changed
from remediate.packages.modules import find_mixed
from remediate.profile.schema import Pin, Profile


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    return folder


def install(site: Path, name: str, version: str, *, module: bool = True, **files: str) -> Path:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    (folder / "RECORD").write_text("")
    for file, text in files.items():
        (folder / file.replace("__", ".")).write_text(text)
    if module:
        (site / name).mkdir()
        (site / name / "__init__.py").write_text("")
    return folder


def problems(*folders: Path) -> list[tuple[ProblemKind, str]]:
    return [(problem.kind, problem.name) for problem in read_distributions(map(str, folders)).problems]


def test_whole_installs_have_no_problem(site: Path) -> None:
    install(site, "torch", "2.1.2")
    install(site, "huggingface_hub", "0.36.2")
    install(site, "unknown", "1.0", module=False)
    assert problems(site) == []


def test_a_module_that_was_left_behind(site: Path) -> None:
    (site / "transformers" / "__pycache__").mkdir(parents=True)
    assert problems(site) == [(ProblemKind.ORPHAN, "transformers")]


def test_a_module_whose_metadata_lies_in_another_folder_belongs_to_it(site: Path, tmp_path: Path) -> None:
    other = tmp_path / "lib64" / "site-packages"
    other.mkdir(parents=True)
    install(other, "torch", "2.1.2", module=False, RECORD="")
    (site / "torch").mkdir()
    # The metadata's own folder lacks it: an installer writes both into one.
    assert problems(site, other) == [(ProblemKind.EMPTY, "torch")]


def test_a_checkout_on_the_search_path_is_no_leftover(tmp_path: Path) -> None:
    (tmp_path / "src" / "transformers").mkdir(parents=True)
    assert problems(tmp_path / "src") == []


def test_metadata_whose_module_is_gone(site: Path) -> None:
    install(site, "tokenizers", "0.15.2", module=False)
    assert problems(site) == [(ProblemKind.EMPTY, "tokenizers")]


@pytest.mark.parametrize("file", ["tokenizers.py", "tokenizers.cpython-311-x86_64-linux-gnu.so", "tokenizers.abi3.so"])
def test_a_module_of_one_file_is_one(site: Path, file: str) -> None:
    install(site, "tokenizers", "0.15.2", module=False)
    (site / file).write_text("")
    assert problems(site) == []


def test_editable_installs_have_their_module_elsewhere(site: Path) -> None:
    url = '{"url": "file:///src/accelerate", "dir_info": {"editable": true}}'
    install(site, "accelerate", "1.0", module=False, direct_url__json=url)
    assert problems(site) == []


def test_packages_of_the_system_list_no_files(site: Path) -> None:
    folder = install(site, "numpy", "1.26.4", module=False)
    (folder / "RECORD").unlink()
    assert problems(site) == []


@pytest.mark.parametrize(
    ("build", "metadata", "is_mixed"),
    [
        ("2.1.2+cu121", "2.1.2", False),
        ("2.13.0+cpu", "2.13.0+cpu", False),
        ("2.2.0a0+81ea7a4", "2.2.0a0+81ea7a4", False),
        ("2.2.0+cu121", "2.1.2", True),
    ],
)
def test_files_of_another_version(build: str, metadata: str, is_mixed: bool) -> None:
    torch = DistributionFacts("torch", "torch", metadata, "/e/torch.dist-info")
    found = list(find_mixed(TorchBuild("/e/torch/version.py", build, "12.1"), torch))
    assert [problem.kind for problem in found] == ([ProblemKind.MIXED] if is_mixed else [])


def record(site: Path, name: str, files: dict[str, bytes]) -> DistributionFacts:
    """A distribution with files recorded as installers do; `RECORD` itself and compiled modules without a hash."""
    folder = install(site, name, "1.0")
    rows = []
    for path, content in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(content)}")
    rows += [f"{folder.name}/RECORD,,", f"{name}/__pycache__/gone.pyc,,"]
    (folder / "RECORD").write_text("\n".join(rows) + "\n")
    return next(found for found in read_distributions([str(site)]).distributions if found.name == name)


FILES = {"torch/a.py": b"one", "torch/lib/x.so": b"\0" * 10, "../bin/torchrun": b"#!"}


def test_files_as_recorded_are_intact(site: Path) -> None:
    assert list(find_changed([record(site, "torch", FILES)])) == []


def test_compiled_modules_are_written_anew_by_installers(site: Path) -> None:
    shipped = {**FILES, "torch/__pycache__/a.cpython-311.pyc": b"of another machine"}
    torch = record(site, "torch", shipped)
    (site / "torch/__pycache__/a.cpython-311.pyc").write_bytes(b"compiled here")
    assert list(find_changed([torch])) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda site: (site / "torch/a.py").write_bytes(b"eno"), "1 of its files changed (torch/a.py)"),
        (lambda site: (site / "torch/a.py").write_bytes(b"longer"), "1 of its files changed (torch/a.py)"),
        (lambda site: (site / "torch/lib/x.so").unlink(), "1 are gone (torch/lib/x.so)"),
        (lambda site: (site.parent / "bin/torchrun").write_bytes(b"!#"), "changed (../bin/torchrun)"),
    ],
)
def test_changed_and_lost_files_are_told(site: Path, change: Callable[[Path], object], says: str) -> None:
    torch = record(site, "torch", FILES)
    change(site)
    (problem,) = find_changed([torch])
    assert (problem.kind, problem.name) == (ProblemKind.CHANGED, "torch")
    assert says in problem.detail


def test_others_and_editable_installs_are_not_read(site: Path) -> None:
    other = record(site, "idna", {"idna/a.py": b"one"})
    (site / "idna/a.py").write_bytes(b"two")
    assert list(find_changed([other])) == []
    editable = DistributionFacts("torch", "torch", "1.0", str(site / "torch-1.0.dist-info"), is_editable=True)
    assert list(find_changed([editable])) == []


def test_a_broken_record_tells_nothing(site: Path) -> None:
    torch = record(site, "torch", FILES)
    for content in (b"", b"torch/a.py\n", b"torch/a.py,sha256=x,y\n", b'"', b"\xff,sha256=,1\n"):
        (site / "torch-1.0.dist-info" / "RECORD").write_bytes(content)
        assert [problem.kind for problem in find_changed([torch])] in ([], [ProblemKind.CHANGED])


def test_the_command_checks_files_on_request(tmp_path: Path) -> None:
    venv = make_venv(tmp_path / ".venv")
    folder = next((venv / "lib").glob("python3*/site-packages"))
    record(folder, "torch", FILES)
    (folder / "torch/a.py").write_bytes(b"eno")
    arguments = ["-C", str(tmp_path), "--only", "packages", "--state-dir", str(tmp_path / "state")]
    without = CliRunner().invoke(make_app(), ["facts", *arguments])
    assert "changed files" not in without.output
    checked = CliRunner().invoke(make_app(), ["facts", *arguments, "--check-files"])
    assert "changed files" in checked.output
    verified = CliRunner().invoke(make_app(), ["verify", "-p", "base", *arguments, "--check-files"])
    assert (verified.exit_code, "PKG018" in verified.output) == (0, True)
    with pytest.raises(UsageError, match="--check-files"):
        CliRunner().invoke(make_app(), ["verify", "--facts", "x.json", "--check-files"], catch_exceptions=False)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["module gone", "other files"])
def test_a_torn_install_is_repaired_and_undone(tmp_path: Path, how: str) -> None:
    (folder := tmp_path / "sandbox").mkdir()
    wheels, venv = tmp_path / "wheels", make_venv(folder / ".venv")
    build_wheels([Standin("torch", "2.1.2", cuda="12.1", local="cu121")], wheels)
    pip(venv, wheels, "install", "torch==2.1.2")
    module = site_of(venv) / "torch"
    if how == "module gone":
        shutil.rmtree(module)
    else:
        (module / "version.py").write_text("__version__ = '2.2.0+cu121'\ncuda = '12.1'\n")
    before = tree(venv)
    profile = Profile(schema_version=1, name="p", python=">=3.8", packages={"torch": Pin(version="2.1.2", cuda="12.1")})
    sandbox = Sandbox(folder, venv, wheels, profile)
    assert "PKG017" in {finding.code for finding in sandbox.subject.compare(sandbox.situation())}
    install = sandbox.install()
    prepared = sandbox.subject.prepare(install, sandbox.context)
    sandbox.subject.perform(install, prepared, sandbox.context)
    assert "2.1.2+cu121" in (module / "version.py").read_text()
    assert sandbox.facts().sections["packages"].problems == ()
    assert not any(change.id == "packages:install" for change in sandbox.propose().changes)
    sandbox.subject.undo(install, prepared, sandbox.context)
    assert tree(venv) == before
