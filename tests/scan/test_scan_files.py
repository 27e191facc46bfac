"""Which files a scan looks at, with git itself as the measure."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remediate.errors import UsageError
from remediate.script.scan.files import find_files

GIT = shutil.which("git")


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def found(folder: Path, *named: str) -> list[str]:
    return [os.path.relpath(path, folder) for path in find_files(named, folder).files]


def test_scripts_and_notebooks_below_a_folder(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "b.ipynb", "c.txt", "d/e/f.py", "tests/g.py")
    assert found(tmp_path) == ["a.py", "b.ipynb", "d/e/f.py", "tests/g.py"]


def test_environments_hidden_and_installed_files_are_passed_over(tmp_path: Path) -> None:
    make(tmp_path, "a.py", ".x/a.py", "env/pyvenv.cfg", "env/a.py", "conda/conda-meta/x.py", "conda/a.py")
    make(tmp_path, "node_modules/a.py", "lib/site-packages/a.py", "__pycache__/a.py", ".ipynb_checkpoints/a.ipynb")
    assert found(tmp_path) == ["a.py"]
    assert found(tmp_path, "env") == ["env/a.py"], "named itself"
    assert found(tmp_path, "**/*.py") == ["a.py"], "a pattern means the same as the walk"


def test_links_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "a/a.py")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "link.py").symlink_to(tmp_path / "a" / "a.py")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe.py")
    assert found(tmp_path) == ["a/a.py"]
    assert found(tmp_path, "link.py", "pipe.py") == ["link.py", "pipe.py"], "named itself"


def test_a_named_file_is_taken_whatever_it_is_called_and_once(tmp_path: Path) -> None:
    make(tmp_path, "serve", "a.py", "[x].py")
    (tmp_path / ".gitignore").write_text("*\n")
    assert {Path(path).name for path in find_files(["a.py", "."], tmp_path).named} == {"a.py"}
    assert found(tmp_path, "serve", "a.py", "./a.py", "[x].py") == ["[x].py", "a.py", "serve"]


@pytest.mark.parametrize("name", ["gone", "gone.py", "*.nothing"])
def test_what_is_not_there_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_files([name], tmp_path)
    assert name in caught.value.what


def test_a_folder_that_cannot_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.py", "closed/b.py")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr("os.scandir", refuse)
    result = find_files((), tmp_path)
    assert [Path(path).name for path in result.files] == ["a.py"]
    assert result.unreadable == ((str(tmp_path / "closed"), "Permission denied"),)


def test_patterns_of_parents_and_of_git_itself_hold(tmp_path: Path) -> None:
    make(tmp_path, "sub/deep/a.py", "sub/deep/b.py", "sub/deep/c.py", "sub/d/e.py")
    (tmp_path / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("c.py\n")
    (tmp_path / ".gitignore").write_text("/sub/deep/a.py\nd/\n")
    (tmp_path / "sub" / ".gitignore").write_text("b.py\n!a.py\n")
    assert found(tmp_path) == ["sub/deep/a.py"]
    assert found(tmp_path / "sub", ".") == ["deep/a.py"]
    assert found(tmp_path, "sub/d") == ["sub/d/e.py"], "an ignored folder that is named itself"
    assert found(tmp_path, "sub/*/*.py") == ["sub/deep/a.py"]


NAMES = st.sampled_from(["a.py", "b.py", "c.ipynb", "x", "y", "a b.py"])
PATHS = st.lists(st.lists(st.sampled_from(["x", "y", "z"]), max_size=3).map("/".join), max_size=6)
NAME_RULES = ["*.py", "a.py", "/a.py", "!a.py", "*.ipynb", "[ab].py", "?.py", "a b.py", "!*.py", "a.py ", "\\!a.py"]
FOLDER_RULES = ["x/", "x", "/x/*", "!x/", "**/y", "x/**/b.py", "y/**", "!/x/y/c.ipynb", "x/y", "/*", "!/x", "**/x/**"]
ODD_RULES = [
    "[!a].py",
    r"\*.py",
    r"a\.py",
    "[[:alpha:]].py",
    "x**",
    "**",
    "*",
    "x/**/",
    "**/a.py",
    "/**/b.py",
    "**/",
    "[",
]
LINES = st.lists(st.sampled_from([*NAME_RULES, *FOLDER_RULES, *ODD_RULES, "", "# a.py"]), max_size=5)


@pytest.mark.property
@pytest.mark.skipif(GIT is None, reason="git is not installed")
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(folders=PATHS, rules=st.dictionaries(st.sampled_from(["", "x", "x/y", "y"]), LINES, max_size=3))
def test_the_walk_takes_what_git_takes(
    folders: list[str], rules: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.mktemp("tree")
    for place in ["", *folders]:
        make(base, *(f"{place}/{name}".strip("/") for name in ("a.py", "b.py", "c.ipynb", "a b.py")))
    for place, lines in rules.items():
        (base / place).mkdir(parents=True, exist_ok=True)
        (base / place / ".gitignore").write_text("\n".join(lines) + "\n")
    env = {"HOME": str(base), "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    assert GIT is not None
    subprocess.run([GIT, "init", "-q"], cwd=base, env=env, check=True)
    listing = [GIT, "ls-files", "-z", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=base, env=env, check=True, capture_output=True, text=True).stdout.split("\0")
    assert found(base) == sorted(name for name in listed if name.endswith((".py", ".ipynb")))
