"""Facts from `pip freeze`, `pip list` and `collect_env`: what they name, what they leave open."""

from __future__ import annotations

import pytest
from importing.support import COLLECTED, FREEZE

from remediate.errors import DocumentError
from remediate.model import Unknown
from remediate.packages.facts import ListingFacts, PackagesFacts
from remediate.packages.reports import read_reports
from remediate.reports import NOT_IN_REPORT, Report


def read(*texts: str) -> PackagesFacts:
    readout = read_reports([Report(f"report {index}", text) for index, text in enumerate(texts)])
    assert readout is not None
    assert isinstance(readout.facts, PackagesFacts)
    return readout.facts


def listing(facts: PackagesFacts) -> ListingFacts:
    assert facts.listing is not None
    return facts.listing


def versions(facts: PackagesFacts) -> dict[str, str | None]:
    return {found.name: facts.version_of(found.name) for found in facts.distributions}


@pytest.mark.parametrize(
    "text",
    [
        FREEZE,
        "$ pip freeze\n" + FREEZE + "\n[notice] A new release of pip is available: 23.0 -> 24.0\n",
        "WARNING: Could not generate requirement for distribution -ip\n" + FREEZE.replace("==", "==="),
        "Package      Version\n------------ ------------\naccelerate   0.25.0\nnumpy        2.0.1\n"
        "torch        2.1.2+cu121\ntransformers 4.38.0\n\n[notice] A new release of pip\n",
        "Package      Version     Editable project location\n---- ---- ----\naccelerate 0.25.0\nnumpy 2.0.1\n"
        "torch 2.1.2+cu121\ntransformers 4.38.0 /home/a/my folder\n",
        '[{"name": "accelerate", "version": "0.25.0"}, {"name": "numpy", "version": "2.0.1"},'
        ' {"name": "torch", "version": "2.1.2+cu121"}, {"name": "transformers", "version": "4.38.0"}]',
        "accelerate (0.25.0)\nnumpy (2.0.1)\ntorch (2.1.2+cu121)\ntransformers (4.38.0, /home/a/src)\n",
    ],
    ids=["freeze", "prompt and notice", "warning", "columns", "editable columns", "json", "before pip 10"],
)
def test_every_form_of_a_list_gives_the_same(text: str) -> None:
    facts = read(text)
    assert versions(facts) == {
        "accelerate": "0.25.0",
        "numpy": "2.0.1",
        "torch": "2.1.2+cu121",
        "transformers": "4.38.0",
    }
    assert facts.target is None
    assert facts.torch_build is not None
    assert facts.torch_build.cuda == "12.1"
    assert facts.tells_absence("sentencepiece")


def test_a_list_in_a_bug_report_under_its_command() -> None:
    text = (
        f"Steps:\n\n{COLLECTED}\n```\n(venv) alice@box:~$ pip freeze\n{FREEZE.replace('2.0.1', '1.26.4')}```\nthe end\n"
    )
    facts = read(text)
    assert facts.version_of("transformers") == "4.38.0"
    assert listing(facts).source == "torch.utils.collect_env in report 0, pip freeze in report 0"
    assert facts.tells_absence("sentencepiece")


def test_pip_freeze_says_nothing_of_pip_itself() -> None:
    assert not read(FREEZE).tells_absence("setuptools")
    assert read("Package Version\n---- ----\nnumpy 2.0.1\n").tells_absence("setuptools")


def test_places_in_place_of_versions() -> None:
    text = (
        "torch @ https://download.pytorch.org/whl/cu121/torch-2.1.2%2Bcu121-cp310-cp310-linux_x86_64.whl#sha256=00\n"
        "numpy @ file:///croot/numpy_1/work\n-e git+https://user:secret@git.example.com/x.git@0a1b#egg=My_Tool\n"
        "# Editable install with no version control (local-thing==1.2)\n-e /home/a/local-thing\npip==24.0\n"
    )
    facts = read(text)
    assert versions(facts) == {
        "local-thing": "1.2",
        "my-tool": None,
        "numpy": None,
        "pip": "24.0",
        "torch": "2.1.2+cu121",
    }
    assert "secret" not in repr(facts)


def test_an_editable_folder_without_a_name_leaves_absence_open() -> None:
    assert not read(FREEZE + "-e /home/a/thing\n").tells_absence("thing")


@pytest.mark.parametrize(
    "text",
    [
        "numpy>=1.2\ntorch==2.1.2\n",
        "numpy\n",
        "",
        "\n",
        "just words\n",
        "torch==2.1.2 ; python_version < '3.9'\n",
        "[]",
        "[{}]",
    ],
)
def test_what_is_no_list(text: str) -> None:
    assert read_reports([Report("text", text)]) is None


def test_collect_env() -> None:
    facts = read(COLLECTED)
    assert versions(facts) == {"numpy": "1.26.4", "torch": "2.1.2+cu121"}
    assert listing(facts).python == "3.10.12"
    assert facts.torch_build is not None
    # 11.5 is nvcc's, which says nothing of torch.
    assert facts.torch_build.cuda == "12.1"
    assert not facts.tells_absence("transformers")


def test_collect_env_of_conda_and_of_a_cpu_build() -> None:
    text = COLLECTED.replace("CUDA used to build PyTorch: 12.1", "CUDA used to build PyTorch: None")
    text = text.replace("PyTorch version: 2.1.2+cu121", "PyTorch version: 2.1.2")
    text = text.replace("[pip3] numpy==1.26.4\n[pip3] torch==2.1.2+cu121\n", "")
    text = text.replace(
        "[conda] Could not collect", "[conda] numpy 1.26.3 py310h5f9d8c6_0\n[conda] pytorch 2.1.2 py3.10_cpu_0 pytorch"
    )
    facts = read(text)
    assert versions(facts) == {"numpy": "1.26.3", "torch": "2.1.2"}
    assert facts.torch_build is not None
    assert facts.torch_build.cuda is None


def test_collect_env_without_torch() -> None:
    text = COLLECTED.replace("PyTorch version: 2.1.2+cu121", "PyTorch version: N/A").replace(
        "[pip3] torch==2.1.2+cu121\n", ""
    )
    facts = read(text)
    assert facts.torch_build is None
    assert facts.installed("torch") is None
    assert not facts.tells_absence("torch")


def test_the_padded_form_of_collect_env() -> None:
    lines = [line.partition(": ") for line in COLLECTED.splitlines()]
    padded = "\n".join(
        f"{key.ljust(28)} : {value}" if colon and not key.startswith("GPU ") else key + colon + value
        for key, colon, value in lines
    )
    assert versions(read(padded)) == versions(read(COLLECTED))
    assert listing(read(padded)).python == "3.10.12"


def test_a_freeze_completes_a_collect_env() -> None:
    facts = read(COLLECTED, FREEZE.replace("2.0.1", "1.26.4").replace("+cu121", ""))
    assert listing(facts).python == "3.10.12"
    assert facts.version_of("torch") == "2.1.2+cu121"
    assert facts.tells_absence("sentencepiece")


def test_lists_of_two_environments_are_refused() -> None:
    with pytest.raises(DocumentError, match=r"numpy is 1.26.4 and 2.0.1"):
        read(COLLECTED, FREEZE)


def test_torch_from_the_package_index_names_no_build() -> None:
    facts = read("torch==2.11.0\n")
    assert facts.torch_build is not None
    assert isinstance(facts.torch_build.cuda, Unknown)
    assert listing(facts).python == NOT_IN_REPORT
