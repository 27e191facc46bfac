"""The other forms that state requirements: pyproject.toml, conda's environment.yml, compiled files, includes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediate.model import Choice, Unknown
from remediate.packages.conda import add_to_conda, render_conda
from remediate.packages.facts import FileKind, PackagesFacts
from remediate.packages.pins import PlannedPin
from remediate.packages.pyproject import add_to_pyproject, render_pyproject
from remediate.packages.render import Rendered, Wanted
from remediate.packages.requirements import RequirementsError
from remediate.packages.sources import read_sources
from remediate.packages.statements import compile_sources, find_compile_command
from remediate.packages.wanted import plan_requirements
from remediate.profile.schema import Pin

WANTED = {
    "torch": Wanted("2.1.2", "the report's pin"),
    "transformers": Wanted("4.36.2"),
    "numpy": Wanted("1.26.4", "below 2"),
}
LINUX = {"python_version": "3.11", "sys_platform": "linux", "platform_system": "Linux"}


def pyproject(text: str, *, only_contradictions: bool = False) -> Rendered:
    return render_pyproject(
        text.encode(), "pyproject.toml", WANTED, environment=LINUX, only_contradictions=only_contradictions
    )


PYPROJECT = """\
# head
[build-system]
requires = ["torch>=1"]  # not a dependency of ours

[project]
name = "x"   # mine
dependencies = [
    'torch>=2',           # the model
    "transformers[sentencepiece] >= 4.30 ; python_version > '3.8'",

    "numpy>=1; sys_platform == 'win32'", "flask",
]

[project.optional-dependencies]
gpu = ["torch==2.2.0"]

[dependency-groups]
dev = [{include-group = "test"}, "numpy"]
test = ["pytest"]

[tool.ruff]
line-length = 100
"""
PYPROJECT_AFTER = (
    PYPROJECT.replace("'torch>=2'", "'torch==2.1.2'")
    .replace("[sentencepiece] >= 4.30 ; python", "[sentencepiece]==4.36.2 ; python")
    .replace('["torch==2.2.0"]', '["torch==2.1.2"]')
    .replace('"test"}, "numpy"]', '"test"}, "numpy==1.26.4"]')
)


def test_pyproject_changes_governed_strings_only() -> None:
    rendered = pyproject(PYPROJECT)
    assert rendered.content.decode() == PYPROJECT_AFTER
    assert [(edit.name, edit.line) for edit in rendered.edits] == [
        ("torch", 8),
        ("transformers", 9),
        ("torch", 15),
        ("numpy", 18),
    ]
    again = pyproject(rendered.content.decode())
    assert (again.content, again.edits) == (rendered.content, ())


def test_pyproject_windows_line_ends_stay() -> None:
    text = '[project]\r\nname = "x"\r\ndependencies = [\r\n  "torch",\r\n]\r\n'
    assert pyproject(text).content.decode() == text.replace('"torch"', '"torch==2.1.2"')


def test_pyproject_beside_a_requirements_file_changes_only_what_contradicts() -> None:
    text = '[project]\nname = "x"\ndependencies = ["torch>=2,<3", "numpy>=2"]\n'
    rendered = pyproject(text, only_contradictions=True)
    assert rendered.content.decode() == text.replace("numpy>=2", "numpy==1.26.4")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '[project]\nname = "x"\ndependencies = ["flask"]\n',
            '[project]\nname = "x"\ndependencies = ["flask", "numpy==1.26.4", "torch==2.1.2"]\n',
        ),
        (
            '[project]\nname = "x"\ndependencies = [\n    "flask",\n]\n',
            '[project]\nname = "x"\ndependencies = [\n    "flask",\n    "numpy==1.26.4", # below 2\n'
            '    "torch==2.1.2", # the report\'s pin\n]\n',
        ),
        (
            '[project]\nname = "x"\ndependencies = [\n    "flask"\n]\n',
            '[project]\nname = "x"\ndependencies = [\n    "flask",\n    "numpy==1.26.4", # below 2\n'
            '    "torch==2.1.2", # the report\'s pin\n]\n',
        ),
    ],
)
def test_pyproject_missing_pins_are_appended(before: str, after: str) -> None:
    added = add_to_pyproject(before.encode(), "pyproject.toml", WANTED, {"torch", "numpy"})
    assert added.content.decode() == after
    assert [edit.name for edit in added.edits] == ["numpy", "torch"]


@pytest.mark.parametrize(
    "text", ['[project]\nname = "x"\ndynamic = ["dependencies"]\n', "[dependency-groups]\na = []\n"]
)
def test_pyproject_without_a_list_of_its_own_is_an_obstacle(text: str) -> None:
    added = add_to_pyproject(text.encode(), "pyproject.toml", WANTED, {"torch"})
    assert added.content == text.encode()
    assert [obstacle.name for obstacle in added.obstacles] == ["torch"]


CONDA = """\
# head
name: x
channels: [pytorch]
dependencies:
  - python=3.11
  - pytorch::pytorch=2.2.0   # the model
  - numpy >=1.20
  - "transformers>=4"
  - cudatoolkit=12.1
  - pip:
      - -r more.txt
      - torch>=2 ; sys_platform == "linux"  # again
      - 'numpy<3'
      - flask
  - scipy
variables:
  A: b
"""
CONDA_AFTER = (
    CONDA.replace("pytorch=2.2.0 ", "pytorch=2.1.2 ")
    .replace("numpy >=1.20", "numpy=1.26.4")
    .replace('"transformers>=4"', '"transformers=4.36.2"')
    .replace("torch>=2 ;", "torch==2.1.2 ;")
    .replace("'numpy<3'", "'numpy==1.26.4'")
)


def test_conda_changes_governed_items_only() -> None:
    rendered = render_conda(CONDA.encode(), "environment.yml", WANTED, environment=LINUX)
    assert rendered.content.decode() == CONDA_AFTER
    assert [edit.line for edit in rendered.edits] == [6, 7, 8, 12, 13]
    again = render_conda(rendered.content, "environment.yml", WANTED, environment=LINUX)
    assert (again.content, again.edits) == (rendered.content, ())


def test_conda_build_of_another_version_is_an_obstacle() -> None:
    text = "dependencies:\n- pytorch=2.2.0=py3.11_cuda12.1_cudnn8.9.2_0\n- numpy=1.26.4=py311h\n"
    rendered = render_conda(text.encode(), "environment.yml", WANTED)
    assert rendered.content.decode() == text
    assert [(obstacle.name, obstacle.line) for obstacle in rendered.obstacles] == [("torch", 2)]


def test_conda_beside_a_requirements_file_changes_only_what_contradicts() -> None:
    text = "dependencies:\n- pytorch=2.1\n- numpy=2\n- transformers\n"
    rendered = render_conda(text.encode(), "environment.yml", WANTED, only_contradictions=True)
    assert rendered.content.decode() == text.replace("numpy=2", "numpy=1.26.4")


def test_conda_missing_pins_follow_the_last_of_the_pip_section() -> None:
    text = "dependencies:\n- pip\n- pip:\n  - flask\n"
    added = add_to_conda(text.encode(), "environment.yml", WANTED, {"torch", "numpy"})
    assert added.content.decode() == text + "  - numpy==1.26.4  # below 2\n  - torch==2.1.2  # the report's pin\n"
    without = add_to_conda(b"dependencies:\n- scipy\n", "environment.yml", WANTED, {"torch"})
    assert [obstacle.name for obstacle in without.obstacles] == ["torch"]


HEADER = """\
#
# This file is autogenerated by pip-compile with Python 3.11
# by the following command:
#
#    pip-compile --strip-extras requirements.in
#
"""


def pins(*names: str) -> Mapping[str, PlannedPin]:
    return {
        name: PlannedPin(name, Pin(version=WANTED[name].version), None, WANTED[name].version, True, False)
        for name in names
    }


def after(folder: Path, *names: str) -> tuple[dict[str, bytes], list[str]]:
    """The files as they should be, and the obstacles."""
    sources = read_sources(folder, None)
    plan = plan_requirements(PackagesFacts(None, requirements=sources.files), pins(*names), "p")
    assert plan.unreadable is None
    return {Path(file.facts.path).name: file.after for file in plan.files}, [
        f"{Path(found.place).name}: {found.because}" for file in plan.files for found in file.obstacles
    ]


def test_a_compiled_file_is_left_and_its_source_edited(tmp_path: Path) -> None:
    (tmp_path / "requirements.in").write_text("torch\n")
    compiled = HEADER + "torch==2.2.0\n    # via -r requirements.in\ntriton==2.2.0\n    # via torch\n"
    (tmp_path / "requirements.txt").write_text(compiled)
    files, obstacles = after(tmp_path, "torch", "numpy")
    assert files["requirements.in"].decode().startswith("torch==2.1.2\n# added by remediate")
    assert files["requirements.txt"].decode() == compiled
    assert obstacles == [
        "requirements.txt: it is compiled; run `pip-compile --strip-extras requirements.in` again",
    ]


def test_a_compiled_file_whose_source_is_gone_is_edited(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(HEADER + "torch==2.2.0\n")
    files, obstacles = after(tmp_path, "torch")
    assert files == {"requirements.txt": (HEADER + "torch==2.1.2\n").encode()}
    assert obstacles == []


def test_sources_of_a_compile_command(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    command = find_compile_command(
        b"# This file was autogenerated by uv via the following command:\n"
        b"#    uv pip compile pyproject.toml -o requirements.txt\n"
    )
    assert compile_sources(command, tmp_path) == (tmp_path / "pyproject.toml",)
    assert find_compile_command(b"torch\n# This file is autogenerated by hand\n") == ""


def test_pyproject_is_the_folders_list_where_no_requirements_file_is(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["torch>=2"]\n')
    (tmp_path / "uv.lock").write_text("")
    sources = read_sources(tmp_path, None)
    assert [file.kind for file in sources.files] == [FileKind.PYPROJECT]
    assert sources.other == ("uv.lock",)
    because = "no requirements file, and it states dependencies"
    assert sources.choices == (Choice("requirements file", str(tmp_path / "pyproject.toml"), because),)
    files, _ = after(tmp_path, "torch", "numpy")
    assert files["pyproject.toml"].decode().endswith('dependencies = ["torch==2.1.2", "numpy==1.26.4"]\n')


def test_what_pyproject_states_is_added_to_the_requirements_file_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("-c constraints.txt\n-r more.txt\n")
    (tmp_path / "constraints.txt").write_text("numpy<2\n")
    (tmp_path / "more.txt").write_text("transformers\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["torch>=2,<3"]\n')
    files, obstacles = after(tmp_path, "torch", "numpy", "transformers")
    assert files["requirements.txt"].decode().splitlines()[3:] == ["numpy==1.26.4", "torch==2.1.2"]
    assert files["constraints.txt"] == b"numpy<2\n"
    assert files["more.txt"] == b"transformers==4.36.2\n"
    assert b"torch>=2,<3" in files["pyproject.toml"]
    assert obstacles == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[tool.ruff]\nline-length = 1\n"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.1"\n'),
        ("environment.yml", "name: x\n"),
    ],
)
def test_a_file_without_such_dependencies_is_only_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    sources = read_sources(tmp_path, None)
    assert (sources.files, sources.other) == ((), (name,))


def test_a_broken_pyproject_is_named_or_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project\n")
    assert read_sources(tmp_path, None).other == ("pyproject.toml",)
    with pytest.raises(RequirementsError, match="is not TOML"):
        read_sources(tmp_path, "pyproject.toml")


def test_an_unreadable_list_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes(b"\xff\xfe\xfa\n")
    (file,) = read_sources(tmp_path, None).files
    assert isinstance(file.content, Unknown)


OTHERS = st.sampled_from(["flask>=2", "torchvision==0.17", "numpy-quaternion", "pytorch-lightning~=2.1", "x[torch]>=1"])
GOVERNED = st.sampled_from(["torch", "Torch>=2", "transformers[torch] ~= 4.30", "numpy<2", "numpy==1.26.4"])


@pytest.mark.property
@given(st.lists(st.one_of(OTHERS, GOVERNED), max_size=8), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_pyproject_keeps_the_rest(items: list[str], newline: str, is_multiline: bool) -> None:
    between = f",{newline}    " if is_multiline else ", "
    listed = between.join(f'"{item}"' for item in items)
    text = f'[project]{newline}name = "x"{newline}dependencies = [{listed}]  # mine{newline}'
    rendered = pyproject(text).content.decode()
    before, after = text.split('"'), rendered.split('"')
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert one == other or other.partition("==")[0].partition("[")[0].lower() in WANTED
    assert pyproject(rendered).content.decode() == rendered


@pytest.mark.property
@given(st.lists(st.tuples(st.one_of(OTHERS, GOVERNED), st.sampled_from(["", "  # why", "   "])), max_size=8))
def test_conda_keeps_the_rest(items: list[tuple[str, str]]) -> None:
    text = "name: x\ndependencies:\n- python=3.11\n- pip:\n" + "".join(f"  - {item}{end}\n" for item, end in items)
    rendered = render_conda(text.encode(), "environment.yml", WANTED).content.decode()
    for one, other, (item, end) in zip(text.split("\n")[4:], rendered.split("\n")[4:], items, strict=False):
        assert one == other or (other.startswith("  - ") and other.endswith(end.rstrip()) and item.lower()[0] in "tn")
    assert render_conda(rendered.encode(), "environment.yml", WANTED).content.decode() == rendered
