"""What an uninstall or install that ended half-way leaves: read from real folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from remediate.packages.facts import DistributionFacts, ProblemKind, TorchBuild
from remediate.packages.inspect import read_distributions
from remediate.packages.modules import find_mixed


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
    found = find_mixed(TorchBuild("/e/torch/version.py", build, "12.1"), torch)
    assert (found is not None and found.kind is ProblemKind.MIXED) is is_mixed
