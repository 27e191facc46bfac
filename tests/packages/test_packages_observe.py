"""Reading an environment from the outside: interpreters that work and don't, metadata good and bad."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from packages.packages_sandbox import make_venv, pip, site

from remediate.demo.wheels import Standin, build_wheels
from remediate.errors import TargetError
from remediate.model import Unknown, UnknownKind
from remediate.packages.facts import ProblemKind, TorchBuild
from remediate.packages.inspect import parse_torch_version, read_distributions
from remediate.packages.metadata import parse_direct_url, parse_header, runtime_requirements, without_credentials
from remediate.packages.observe import observe_packages
from remediate.packages.requirements import RequirementsError
from remediate.packages.sources import content_of, read_sources
from remediate.packages.target import find_interpreter, finish_probe, start_probe


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def dist_info(folder: Path, name: str, metadata: str | None, **files: str) -> Path:
    path = folder / name
    path.mkdir(parents=True)
    if metadata is not None:
        (path / "METADATA").write_text(metadata)
    for file, text in files.items():
        (path / file.replace("__", ".")).write_text(text)
    return path


def test_a_virtual_environment(tmp_path: Path) -> None:
    venv = make_venv(tmp_path / ".venv")
    build_wheels([Standin("Foo.Bar", "1.0", requires=("requests>=2",))], tmp_path / "w")
    pip(venv, tmp_path / "w", "install", "--no-deps", "foo-bar")

    facts, choices = observe_packages(tmp_path, None, None)

    target = facts.target
    assert target is not None
    assert target.python == str(venv / "bin" / "python")
    assert (target.prefix, target.is_virtual, target.is_writable) == (str(venv), True, True)
    assert target.version == ".".join(map(str, sys.version_info[:3]))
    assert target.purelib == str(site(venv))
    assert target.scripts == str(venv / "bin")
    assert choices[0].because == "the folder has a `.venv`"
    (found,) = facts.distributions
    assert (found.name, found.written_name, found.version) == ("foo-bar", "Foo.Bar", "1.0")
    assert (found.installer, found.has_record, found.requires) == ("pip", True, ("requests>=2",))
    assert isinstance(facts.pip, Unknown)
    assert isinstance(facts.tool_pip, str)


def test_order_of_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [tmp_path / name / "bin" / "python" for name in (".venv", "venv", "active", "conda")]
    for place in places:
        script(place, "exit 0")
    path = script(tmp_path / "path" / "python3", "exit 0")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    monkeypatch.setenv("PATH", str(path.parent))
    for place in [*places, path]:
        found = find_interpreter(tmp_path, None)
        assert found is not None
        assert found.python == str(place)
        assert found.choice is not None
        place.unlink()
    assert find_interpreter(tmp_path, None) is None


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("echo hello", "does not answer as Python 3 does"),
        ("echo broken >&2; exit 3", "exit code 3: broken"),
        ("echo 'remediate-probe:{'", "does not answer as Python 3 does"),
        ("exec sleep 30", "did not answer within 0.5 s"),
    ],
)
def test_interpreters_that_are_none(tmp_path: Path, text: str, cause: str) -> None:
    path = script(tmp_path / "python", text)
    candidate = find_interpreter(tmp_path, str(path))
    assert candidate is not None
    with pytest.raises(TargetError) as caught:
        finish_probe(start_probe(candidate), timeout_s=0.5)
    assert cause in caught.value.cause
    assert str(path) in caught.value.what
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("python", ["absent", "empty", "file.txt"])
def test_interpreters_that_are_absent(tmp_path: Path, python: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("no program")
    with pytest.raises(TargetError):
        observe_packages(tmp_path, python, None)


def test_a_found_interpreter_that_does_not_work_is_unknown(tmp_path: Path) -> None:
    script(tmp_path / ".venv" / "bin" / "python", "exit 1")
    facts, _ = observe_packages(tmp_path, None, None)
    assert facts.target is None
    assert facts.target_unknown is not None
    assert facts.target_unknown.kind is UnknownKind.FAILED


def test_noise_from_pth_files_is_passed_over(tmp_path: Path) -> None:
    venv = make_venv(tmp_path / ".venv")
    (site(venv) / "noise.pth").write_text("import sys; print('remediate noise')\n")
    facts, _ = observe_packages(tmp_path, ".venv", None)
    assert facts.target is not None


def test_broken_metadata_is_a_fact(tmp_path: Path) -> None:
    good = "Metadata-Version: 2.1\nName: Good\nVersion: 1.0\n"
    dist_info(tmp_path, "good-1.0.dist-info", good, INSTALLER="uv\n", RECORD="")
    dist_info(tmp_path, "empty-1.0.dist-info", None)
    dist_info(tmp_path, "nameless-1.0.dist-info", "Version: 1.0\n")
    dist_info(tmp_path, "versionless-1.5.dist-info", "Name: versionless\n")
    dist_info(tmp_path, "twice-1.0.dist-info", "Name: twice\nVersion: 1.0\n")
    dist_info(tmp_path, "twice-2.0.dist-info", "Name: twice\nVersion: 2.0\n")
    dist_info(tmp_path, "~orch-2.2.0.dist-info", "Name: torch\nVersion: 2.2.0\n")
    (tmp_path / "binary-1.0.dist-info").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "old-3.egg-info").write_text("Name: old\nVersion: 3\n")
    (tmp_path / "gone.egg-link").write_text("/nowhere\n.\n")

    inventory = read_distributions([str(tmp_path), str(tmp_path / "absent")])

    found = {item.name: item for item in inventory.distributions}
    assert {name: item.version for name, item in found.items()} == {
        "good": "1.0",
        "old": "3",
        "twice": "1.0",
        "versionless": "1.5",
    }
    assert (found["good"].installer, found["good"].has_record) == ("uv", True)
    assert not found["old"].has_record
    assert {(problem.kind, problem.name) for problem in inventory.problems} == {
        (ProblemKind.BROKEN, "empty"),
        (ProblemKind.BROKEN, "nameless"),
        (ProblemKind.BROKEN, "binary"),
        (ProblemKind.BROKEN, "gone"),
        (ProblemKind.DUPLICATE, "twice"),
        (ProblemKind.LEFTOVER, "?orch"),
    }


def test_the_first_on_the_path_wins(tmp_path: Path) -> None:
    for folder, version in (("a", "1.0"), ("b", "2.0")):
        dist_info(tmp_path / folder, f"x-{version}.dist-info", f"Name: x\nVersion: {version}\n")
    inventory = read_distributions([str(tmp_path / "b"), str(tmp_path / "a")])
    assert [item.version for item in inventory.distributions] == ["2.0"]
    assert inventory.problems == ()


def test_editable(tmp_path: Path) -> None:
    url = '{"url": "file:///src/x", "dir_info": {"editable": true}}'
    dist_info(tmp_path, "x-1.dist-info", "Name: x\nVersion: 1\n", direct_url__json=url)
    source = tmp_path / "source"
    (source / "y.egg-info").mkdir(parents=True)
    (source / "y.egg-info" / "PKG-INFO").write_text("Name: y\nVersion: 2\n")
    (tmp_path / "y.egg-link").write_text(f"{source}\n.\n")
    x, y = read_distributions([str(tmp_path)]).distributions
    assert (x.is_editable, x.direct_url) == (True, "file:///src/x")
    assert (y.is_editable, y.direct_url, y.version) == (True, f"file://{source}", "2")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("__version__ = '2.1.2+cu121'\ncuda = '12.1'\nhip = None\n", ("2.1.2+cu121", "12.1", None)),
        ("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n", ("2.13.0+cpu", None, None)),
        ('__version__: str = "2.4"\ncuda:str="12.4"\nhip: Optional[str] = "6.0"', ("2.4", "12.4", "6.0")),
    ],
)
def test_torch_build(text: str, expected: tuple[object, ...]) -> None:
    assert parse_torch_version("v.py", text) == TorchBuild("v.py", *expected)  # type: ignore[arg-type]


def test_torch_build_that_does_not_say() -> None:
    build = parse_torch_version("v.py", "from x import *\n# cuda = '1'\n")
    assert isinstance(build.version, Unknown)
    assert isinstance(build.cuda, Unknown)


def test_header() -> None:
    text = "Name: a\r\nRequires-Dist: b>=1\r\n  ,<2\r\nrequires-dist: c ; extra == 'x'\r\n\r\nName: body\r\n"
    fields = parse_header(text)
    assert fields == {"name": ("a",), "requires-dist": ("b>=1 ,<2", "c ; extra == 'x'")}
    assert runtime_requirements(fields["requires-dist"]) == ("b>=1 ,<2",)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"url": "https://me:secret@h/x.whl"}', ("https://****@h/x.whl", False)),
        (b'{"url": "https://h/x", "vcs_info": {"vcs": "git", "commit_id": "0a"}}', ("git+https://h/x@0a", False)),
        (b"[]", (None, False)),
        (b"\xff", (None, False)),
        (b'{"url": 1}', (None, False)),
    ],
)
def test_direct_url(content: bytes, expected: tuple[str | None, bool]) -> None:
    assert parse_direct_url(content) == expected


def test_credentials() -> None:
    assert without_credentials("a https://u:p@h/x b git+ssh://git@h/y") == "a https://****@h/x b git+ssh://git@h/y"


def test_requirements_are_found(tmp_path: Path) -> None:
    assert read_sources(tmp_path, None).files == ()
    (tmp_path / "requirements-gpu.txt").write_text("torch\n")
    assert read_sources(tmp_path, None).choices[0].because == "it is the folder's only `requirements*.txt`"
    (tmp_path / "requirements-dev.txt").write_text("x\n")
    several = read_sources(tmp_path, None)
    assert (several.files, several.choices[0].chosen) == ((), "none")
    (tmp_path / "requirements.txt").write_text("torch\n")
    assert [file.content for file in read_sources(tmp_path, None).files] == [b"torch\n"]


def test_includes_are_read_once(tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    folder.mkdir()
    (folder / "requirements.txt").write_text("-r a.txt\n-c ../shared.txt\n-r https://h/remote.txt\n")
    (folder / "a.txt").write_text("-r requirements.txt\ntorch\n")
    (tmp_path / "shared.txt").write_text("numpy<2\n")
    files = read_sources(folder, None).files
    assert [(Path(file.path).name, file.is_constraints, file.is_inside) for file in files] == [
        ("requirements.txt", False, True),
        ("a.txt", False, True),
        ("shared.txt", True, False),
    ]


def test_a_named_file_must_be_good(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("torch 2\n")
    with pytest.raises(RequirementsError):
        read_sources(tmp_path, "bad.txt")
    (tmp_path / "requirements.txt").write_text("torch 2\n")
    assert isinstance(read_sources(tmp_path, None).files[0].content, Unknown)
    with pytest.raises(RequirementsError):
        read_sources(tmp_path, "absent/requirements.txt")
    assert read_sources(tmp_path, "new.txt").files[0].content is None


def test_credentials_stay_out_of_the_facts(tmp_path: Path) -> None:
    text = b"--index-url https://me:secret@h/simple\ntorch\n"
    (tmp_path / "requirements.txt").write_bytes(text)
    (file,) = read_sources(tmp_path, None).files
    assert isinstance(file.content, Unknown)
    assert content_of(file) == text
    (tmp_path / "requirements.txt").write_bytes(text + b"x\n")
    assert isinstance(content_of(file), Unknown)


def test_an_environment_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permissions are refused here, for the tests may run as root."""
    venv = make_venv(tmp_path / ".venv")
    access = os.access
    refused = str(site(venv))
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != refused and access(path, mode))
    facts, _ = observe_packages(tmp_path, None, None)
    assert facts.target is not None
    assert not facts.target.is_writable
