"""The broken environments that are known, each beside its healthy neighbours, judged from recorded facts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from packages.packages_records import SITE, TARGET, document, facts_of, profile_of, propose

from remediate.documents import decode_facts, encode
from remediate.model import Facts, Finding, Outcome
from remediate.packages.compare import compare_packages
from remediate.packages.facts import DistributionFacts, MetadataProblem, PackagesFacts, ProblemKind, TorchBuild
from remediate.profile.schema import Pin, Profile

NOTHING = profile_of()
DRIVER = {"gpu:driver_version": "535.104.05", "gpu:cuda_driver_version": "12.2", "gpu:name": "NVIDIA A100-SXM4-40GB"}
A100 = {**DRIVER, "gpu:compute_capabilities": "8.0"}
V100 = {**DRIVER, "gpu:compute_capabilities": "7.0", "gpu:driver_version": "580.95.05"}
B200 = {**DRIVER, "gpu:compute_capabilities": "10.0", "gpu:driver_version": "580.95.05"}
RTX5090 = {**B200, "gpu:compute_capabilities": "12.0"}
DEVICE_MAP = {"script:needs_accelerate": "/s/inference.py"}
LINUX = '; platform_system == "Linux" and platform_machine == "x86_64"'
NCCL = {
    "2.1.2": (f"nvidia-nccl-cu12==2.18.1 {LINUX}", f"triton==2.1.0 {LINUX}"),
    "2.2.0": (f"nvidia-nccl-cu12==2.19.3 {LINUX}", f"triton==2.2.0 {LINUX}"),
}
TRANSFORMERS = {
    "4.36.2": ("tokenizers>=0.14,<0.19", "huggingface-hub<1.0,>=0.19.3"),
    "4.57.6": ("tokenizers>=0.22.0,<=0.23.0", "huggingface-hub<1.0,>=0.34.0"),
}


def environment(versions: str, *, cuda: str | None = "12.1", python: str = "3.11.7", **more: Any) -> PackagesFacts:
    """Facts of an environment from `name==version name==version`; torch and transformers with their requirements."""
    found = []
    for item in versions.split():
        name, _, version = item.partition("==")
        requires = {"torch": NCCL, "transformers": TRANSFORMERS}.get(name, {}).get(version.partition("+")[0], ())
        found.append(
            DistributionFacts(name, name, version, f"{SITE}/{name}-{version}.dist-info", "pip", requires=requires)
        )
    torch = next((item.version for item in found if item.name == "torch"), None)
    build = None if torch is None else TorchBuild(f"{SITE}/torch/version.py", torch, cuda)
    target = msgspec.structs.replace(TARGET, version=python, **more)
    facts = facts_of(*sorted(found, key=lambda item: item.name), target=target)
    judged_facts: PackagesFacts = msgspec.structs.replace(facts, torch_build=build)
    return judged_facts


def judged(facts: PackagesFacts, announced: dict[str, str], profile: Profile = NOTHING) -> list[Finding]:
    """What differs, through a facts document, but for what is known of versions and files that are not there."""
    recorded: Facts = decode_facts(encode(document(facts)), "facts.json")
    findings = compare_packages(recorded.sections["packages"], profile, announced)
    skipped = ("PKG001", "PKG002", "PKG003", "PKG020")
    return [item for item in findings if item.outcome is Outcome.DIFFERS and item.code not in skipped]


WHOLE = "nvidia-nccl-cu12==2.18.1 triton==2.1.0 numpy==1.26.4"
STACK = f"torch==2.1.2 transformers==4.36.2 tokenizers==0.15.2 huggingface-hub==0.36.2 {WHOLE}"

BROKEN = [
    # name, environment, announced, code and target, a word of the advice
    ("numpy 2 with torch 2.1.2", environment(STACK.replace("1.26.4", "2.4.6")), {}, "PKG004:numpy", "numpy<2"),
    (
        "numpy 2 with torch 2.2.2",
        environment("torch==2.2.2 numpy==2.0.2"),
        {},
        "PKG004:numpy",
        "numpy<2",
    ),
    (
        "NCCL of 2.1 under torch 2.2.0",
        environment("torch==2.2.0 nvidia-nccl-cu12==2.18.1 triton==2.2.0"),
        {},
        "PKG014:nvidia-nccl-cu12",
        "nvidia-nccl-cu12==2.19.3",
    ),
    (
        "NCCL is gone",
        environment("torch==2.2.0 triton==2.2.0"),
        {},
        "PKG014:nvidia-nccl-cu12",
        "nvidia-nccl-cu12==2.19.3",
    ),
    (
        "NCCL for two CUDA versions",
        environment("torch==2.2.0 nvidia-nccl-cu12==2.19.3 nvidia-nccl-cu11==2.14.3 triton==2.2.0"),
        {},
        "PKG016:nvidia/nccl/lib/libnccl.so.2",
        "nvidia-nccl-cu12",
    ),
    (
        "accelerate is missing",
        environment(STACK),
        DEVICE_MAP,
        "PKG005:accelerate",
        "accelerate>=0.21",
    ),
    (
        "accelerate is too old",
        environment("transformers==5.24.0 torch==2.13.0 accelerate==1.0.1", cuda="13.0"),
        DEVICE_MAP,
        "PKG015:accelerate",
        "accelerate>=1.1",
    ),
    (
        "CUDA 13 on driver 570",
        environment("torch==2.11.0 numpy==2.4.6", cuda="13.0"),
        {**A100, "gpu:driver_version": "570.172.08"},
        "PKG006:driver",
        ">=580",
    ),
    (
        "CUDA 12 on driver 470",
        environment("torch==2.3.0 numpy==1.26.4"),
        {**A100, "gpu:driver_version": "470.256.02"},
        "PKG006:driver",
        ">=525",
    ),
    (
        "CUDA 13 on a V100",
        environment("torch==2.11.0 numpy==2.4.6", cuda="13.0"),
        V100,
        "PKG013:torch",
        "7.5 to 12.0",
    ),
    (
        "a V100 beside an A100",
        environment("torch==2.14.1 numpy==2.4.6", cuda="13.0"),
        {**V100, "gpu:compute_capabilities": "8.0\n7.0"},
        "PKG013:torch",
        "7.5 to 12.0",
    ),
    (
        "CUDA 12.8 of torch 2.11 on a V100",
        environment("torch==2.11.0+cu128 numpy==2.4.6", cuda="12.8"),
        V100,
        "PKG013:torch",
        "7.5 to 12.0",
    ),
    ("torch 2.1 on Blackwell", environment(STACK), B200, "PKG013:torch", "5.0 to 9.0"),
    (
        "CUDA 12.4 on an RTX 5090",
        environment("torch==2.6.0 numpy==2.4.6", cuda="12.4"),
        RTX5090,
        "PKG013:torch",
        "5.0 to 9.0",
    ),
    (
        "a CPU build on a machine with a GPU",
        environment("torch==2.13.0+cpu numpy==2.4.6", cuda=None),
        A100,
        "PKG013:torch",
        "a build for CUDA",
    ),
    (
        "pynvml 11 hides nvidia-ml-py",
        environment("pynvml==11.5.3 nvidia-ml-py==13.615.71"),
        {},
        "PKG016:pynvml",
        "nvidia-ml-py",
    ),
    (
        "nvidia-ml-py3 beside nvidia-ml-py",
        environment("nvidia-ml-py3==7.352.0 nvidia-ml-py==13.615.71"),
        {},
        "PKG016:pynvml",
        "nvidia-ml-py",
    ),
    (
        "transformers 4.57 with torch 2.1",
        environment("torch==2.1.2 transformers==4.57.6 tokenizers==0.22.1 huggingface-hub==0.36.2 " + WHOLE),
        {},
        "PKG015:transformers",
        "torch>=2.2",
    ),
    (
        "transformers 5.0 with torch 2.1",
        environment("torch==2.1.2 transformers==5.0.0 " + WHOLE),
        {},
        "PKG015:transformers",
        "torch>=2.2",
    ),
    (
        "transformers 5.24 with torch 2.1",
        environment("torch==2.1.2 transformers==5.24.0 " + WHOLE),
        {},
        "PKG015:transformers",
        "torch>=2.6",
    ),
    (
        "transformers 5.24 with torch 2.3",
        environment("torch==2.3.0 transformers==5.24.0 numpy==2.0.2"),
        {},
        "PKG015:transformers",
        "torch>=2.6",
    ),
    (
        "tokenizers too new for transformers 4.36",
        environment(STACK.replace("0.15.2", "0.19.1")),
        {},
        "PKG014:tokenizers",
        "tokenizers>=0.14,<0.19",
    ),
    (
        "hub 1 with transformers 4.57",
        environment("transformers==4.57.6 tokenizers==0.22.1 huggingface-hub==1.3.0"),
        {},
        "PKG014:huggingface-hub",
        "huggingface-hub<1.0,>=0.34.0",
    ),
    (
        "no sentencepiece for a slow tokenizer",
        environment(STACK),
        {"script:needs_sentencepiece": "/s/inference.py"},
        "PKG021:sentencepiece",
        "sentencepiece",
    ),
    (
        "no protobuf for a slow tokenizer",
        environment(STACK + " sentencepiece==0.2.3"),
        {"script:needs_sentencepiece": "/s/inference.py"},
        "PKG021:protobuf",
        "protobuf",
    ),
]

HEALTHY = [
    ("numpy 1 with torch 2.1.2", environment(STACK), A100),
    ("numpy 2 with torch 2.3.0", environment("torch==2.3.0 numpy==2.0.2"), A100),
    ("the local version +cu121", environment("torch==2.1.2+cu121 " + WHOLE), A100),
    ("NCCL of its own", environment("torch==2.2.0 nvidia-nccl-cu12==2.19.3 triton==2.2.0 numpy==1.26.4"), A100),
    ("accelerate is there", environment(STACK + " accelerate==1.15.0"), DEVICE_MAP),
    ("accelerate is not needed", environment(STACK), {}),
    ("CUDA 13 on driver 580", environment("torch==2.11.0", cuda="13.0"), {**A100, "gpu:driver_version": "580.65.06"}),
    (
        "CUDA 12.8 on driver 570",
        environment("torch==2.10.0", cuda="12.8"),
        {**A100, "gpu:driver_version": "570.172.08"},
    ),
    ("CUDA 12.8 on driver 535", environment("torch==2.10.0", cuda="12.8"), A100),
    ("CUDA 12.1 on driver 525", environment("torch==2.3.0"), {**A100, "gpu:driver_version": "525.60.13"}),
    ("CUDA 12.8 of torch 2.10 on a V100", environment("torch==2.10.0", cuda="12.8"), V100),
    ("CUDA 12.6 of torch 2.14 on a V100", environment("torch==2.14.1+cu126", cuda="12.6"), V100),
    ("CUDA 13 on a T4", environment("torch==2.11.0", cuda="13.0"), {**V100, "gpu:compute_capabilities": "7.5"}),
    ("an L4 has code of 8.6", environment("torch==2.3.0"), {**A100, "gpu:compute_capabilities": "8.9"}),
    ("CUDA 12.8 on an RTX 5090", environment("torch==2.7.1", cuda="12.8"), RTX5090),
    (
        "intermediate code for a newer GPU",
        environment("torch==2.11.0", cuda="13.0"),
        {**B200, "gpu:compute_capabilities": "13.0"},
    ),
    ("a container's own build", environment("torch==2.2.0a0+81ea7a4", cuda="12.3"), B200),
    ("another machine", environment("torch==2.11.0", cuda="13.0", machine="aarch64"), V100),
    ("a CPU build without a GPU", environment("torch==2.13.0+cpu", cuda=None), {}),
    ("nvidia-ml-py alone", environment("nvidia-ml-py==13.615.71"), {}),
    ("transformers 4.44 with torch 2.1", environment("torch==2.1.2 transformers==4.44.2 " + WHOLE), {}),
    (
        "transformers 4.57 with torch 2.2",
        environment(
            "torch==2.2.0 transformers==4.57.6 nvidia-nccl-cu12==2.19.3 triton==2.2.0 tokenizers==0.22.1 "
            "huggingface-hub==0.36.2"
        ),
        {},
    ),
    ("transformers 5.24 with torch 2.13", environment("torch==2.13.0 transformers==5.24.0", cuda="13.0"), {}),
    ("transformers 4.52 with torch 2.8", environment("torch==2.8.0 transformers==4.52.4", cuda="12.8"), {}),
    ("transformers without torch", environment("transformers==5.24.0"), {}),
    (
        "sentencepiece and protobuf",
        environment(STACK + " sentencepiece==0.2.3 protobuf==7.36.2"),
        {"script:needs_sentencepiece": "x"},
    ),
    (
        "a slow tokenizer of transformers 5",
        environment("torch==2.13.0 transformers==5.24.0", cuda="13.0"),
        {"script:needs_sentencepiece": "x"},
    ),
]


@pytest.mark.parametrize(
    ("facts", "announced", "code", "advice"), [row[1:] for row in BROKEN], ids=[r[0] for r in BROKEN]
)
def test_broken_environments_are_recognised(
    facts: PackagesFacts, announced: dict[str, str], code: str, advice: str
) -> None:
    found = {f"{item.code}:{item.target}": item for item in judged(facts, announced)}
    assert code in found
    assert advice in found[code].wanted
    assert found[code].reason
    others = {key for key in found if key != code and not found[key].is_advice}
    assert not others


@pytest.mark.parametrize(("facts", "announced"), [row[1:] for row in HEALTHY], ids=[row[0] for row in HEALTHY])
def test_healthy_neighbours_are_not(facts: PackagesFacts, announced: dict[str, str]) -> None:
    assert judged(facts, announced) == []


def test_deprecated_pynvml_of_today_is_advice_alone() -> None:
    found = judged(environment("pynvml==13.0.1 nvidia-ml-py==13.615.71"), {})
    assert [(item.code, item.is_advice) for item in found] == [("PKG009", True)]


def test_newer_libraries_are_advice() -> None:
    found = judged(environment("torch==2.2.0 nvidia-nccl-cu12==2.20.5 triton==2.2.0 numpy==1.26.4"), {})
    assert [(item.code, item.is_advice) for item in found] == [("PKG014", True)]


def test_a_list_without_metadata_is_judged_by_what_is_known() -> None:
    facts = environment("torch==2.2.0 nvidia-nccl-cu12==2.18.1 nvidia-cuda-runtime-cu12==12.1.105 numpy==1.26.4")
    bare = [msgspec.structs.replace(item, metadata_path="", requires=()) for item in facts.distributions]
    listed = msgspec.structs.replace(facts, distributions=tuple(bare), torch_build=None)
    assert [item.target for item in judged(listed, {**A100, "gpu:driver_version": "470.82.01"})] == [
        "driver",
        "nvidia-nccl-cu12",
    ]


def test_remedies_are_commands_for_a_person() -> None:
    mixed = environment("torch==2.2.0 nvidia-nccl-cu12==2.18.1 triton==2.2.0 numpy==1.26.4")
    (item,) = propose(mixed, NOTHING).withheld
    assert item.commands == ("/e/bin/python -m pip install nvidia-nccl-cu12==2.19.3",)
    shadowed = environment("pynvml==11.5.3 nvidia-ml-py==13.615.71")
    (item,) = propose(shadowed, NOTHING).withheld
    assert item.commands == (
        "/e/bin/python -m pip uninstall pynvml",
        "/e/bin/python -m pip install --force-reinstall --no-deps nvidia-ml-py==13.615.71",
    )


def test_pins_that_do_not_fit_the_gpu_are_withheld() -> None:
    pinned = profile_of(torch=Pin(version="2.11.0", cuda="13.0"))
    facts = msgspec.structs.replace(environment("torch==2.2.0 numpy==1.26.4"), requirements=())
    assert propose(facts, pinned, gpu__compute_capabilities="8.0").changes
    held = propose(facts, pinned, gpu__compute_capabilities="7.0")
    assert held.changes == ()
    assert any("PKG013" in item.codes and "7.0" in item.because for item in held.withheld)


def test_pins_without_a_wheel_for_the_python_are_withheld() -> None:
    pinned = profile_of(torch=Pin(version="2.1.2", cuda="12.1"))
    assert propose(environment("numpy==1.26.4", python="3.11.7"), pinned).changes
    held = propose(environment("numpy==1.26.4", python="3.12.1"), pinned)
    assert held.changes == ()
    assert "no wheel of torch 2.1.2 for Python 3.12.1" in held.withheld[0].because
    own_wheels = msgspec.structs.replace(pinned, python=">=3.12")
    assert propose(environment("numpy==1.26.4", python="3.12.1"), own_wheels).changes


def test_a_profile_that_names_a_pair_that_does_not_work_is_told() -> None:
    pinned = profile_of(torch=Pin(version="2.1.2"), transformers=Pin(version="5.24.0"))
    found = judged(environment("numpy==1.26.4"), {}, pinned)
    assert ["are planned" in item.summary for item in found if item.code == "PKG015"] == [True]


def test_a_distribution_past_its_python_is_told() -> None:
    newer = DistributionFacts("transformers", "transformers", "5.24.0", f"{SITE}/t", requires_python=">=3.11")
    facts = facts_of(newer, target=msgspec.structs.replace(TARGET, version="3.10.2"))
    found = judged(facts, {}, profile_of(transformers=Pin(version="5.24.0")))
    assert [item.code for item in found] == ["PKG008"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"is_editable": True, "direct_url": "file:///src/torch"}, "editable install of file:///src/torch"),
        ({"direct_url": "git+https://github.com/a/b@c0ffee"}, "built from git+https://github.com/a/b@c0ffee"),
        ({"direct_url": "file:///w/torch.whl"}, "came from file:///w/torch.whl"),
        ({"installer": "conda"}, "installed by conda"),
        ({"metadata_path": "/usr/lib/python3/dist-packages/torch-2.2.0.dist-info"}, "belongs to the system"),
        ({"metadata_path": "/home/u/.local/lib/python3.11/site-packages/torch-2.2.0.dist-info"}, "`--user`"),
        ({"metadata_path": f"{SITE}/torch-2.2.0.egg-info", "has_record": False}, "distutils"),
        ({}, ""),
    ],
)
def test_what_is_replaced_is_told_for_what_it_is(changes: dict[str, Any], says: str) -> None:
    facts = environment("torch==2.2.0", user_site="/home/u/.local/lib/python3.11/site-packages")
    moved = tuple(msgspec.structs.replace(item, **changes) for item in facts.distributions)
    pinned = profile_of(torch=Pin(version="2.1.2", cuda="12.1"))
    found = judged(msgspec.structs.replace(facts, distributions=moved), {}, pinned)
    told = [item.summary for item in found if item.code == "PKG019"]
    assert [says in summary for summary in told] == ([True] if says else [])
    assert not any(item.code == "PKG019" for item in judged(facts, {}, profile_of(torch=Pin(version="2.2.0"))))


@pytest.mark.parametrize("kind", [ProblemKind.EMPTY, ProblemKind.MIXED, ProblemKind.DUPLICATE])
def test_what_is_not_what_its_metadata_says_is_installed_anew(kind: ProblemKind) -> None:
    facts = environment("torch==2.1.2 " + WHOLE)
    torn = MetadataProblem(kind, "torch", facts.distributions[-2].metadata_path, "it is torn")
    pinned = profile_of(torch=Pin(version="2.1.2", cuda="12.1"))
    assert propose(facts, pinned).changes == ()
    (change,) = propose(msgspec.structs.replace(facts, problems=(torn,)), pinned).changes
    assert change.id == "packages:install"
    assert [item.target for item in change.items] == ["torch"]
