from __future__ import annotations

from pathlib import Path

import pytest

from remediate.errors import ProfileError
from remediate.profile.lines import key_lines
from remediate.profile.load import load_profile, shipped_names
from remediate.profile.select import mismatches, select

HEAD = 'schema_version = 1\nname = "mine"\n'


def write(folder: Path, text: str, name: str = "mine.toml") -> str:
    path = folder / name
    path.write_text(text, "utf-8")
    return str(path)


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_profiles_are_valid_and_give_reasons(name: str) -> None:
    resolved = load_profile(name)
    assert resolved.profile.name == name
    assert all(pin.reason for pin in resolved.profile.packages.values())


def test_the_incident_profile_holds_what_makes_the_pair_work() -> None:
    profile = load_profile("incident-a100").profile
    pins = {name: pin.version for name, pin in profile.packages.items()}
    assert (pins["torch"], pins["transformers"]) == ("2.1.2", "4.36.2")
    assert pins["numpy"].startswith("1.")
    assert {"accelerate", "sentencepiece", "protobuf"} <= set(pins)
    assert "nvidia-smi -ac 1410,877" in {correction.said for correction in profile.corrections}


def test_all_problems_at_once_with_lines_and_paths(tmp_path: Path) -> None:
    text = (
        'schema_version = 1\nname = "Bad"\ntitel = "x"\ncosts = [\n "a",\n 3]\n[packages.torch]\n'
        'version = "2.1.2+cu121"\nacept = "x"\n[gpu]\npower_limit = "maximum"\npower_limit_w = "250"\n'
        'persistence_mode = 1\n[[corrections]]\nsaid = """\n[fake]\nx = 1\n"""\nfoo = 1\n'
    )
    with pytest.raises(ProfileError) as caught:
        load_profile(write(tmp_path, text))
    problems = caught.value.problems
    expected = [
        "line 2: name: `Bad` must be",
        "line 3: titel: unknown key `titel`; did you mean `title`?",
        "line 4: costs.1: expected text, got 3",
        "line 8: packages.torch.version: `2.1.2+cu121` has a local part",
        "line 9: packages.torch.acept: unknown key `acept`; did you mean `accept`?",
        'line 11: gpu.power_limit: expected "default", "max", got \'maximum\'',
        "line 12: gpu.power_limit_w: expected a number, got '250'",
        "line 13: gpu.persistence_mode: expected true or false, got 1",
        "line 14: corrections.0.about: missing",
        "line 14: corrections.0.used: missing",
        "line 14: corrections.0.because: missing",
        "line 19: corrections.0.foo: unknown key `foo`",
    ]
    assert len(problems) == len(expected)
    for problem, start in zip(problems, expected, strict=True):
        assert problem.startswith(start), problem


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "schema_version: missing"),
        ('schema_version = 2\nname = "x"\n', "this program reads version 1"),
        (HEAD + "[packages.Torch_X]\nversion = '1'\n", "write the canonical name `torch-x`"),
        (HEAD + "[packages.torch]\nversion = 'new'\n", "is not a version"),
        (HEAD + "[packages.torch]\nreason = 'no version'\n", "a pin needs an exact version"),
        (HEAD + "[packages.torch]\nversion = '2.1.2'\naccept = '>=3'\n", "does not accept the pin's own version"),
        (HEAD + "[packages.torch]\nversion = '2.1.2'\naccept = 'about 3'\n", "is not a version specifier"),
        (HEAD + "[gpu]\npower_limit = 'max'\npower_limit_w = 250\n", "can't stand beside"),
        (HEAD + "[gpu]\npower_limit_fraction = 1.5\n", "above 0 and at most 1"),
        (HEAD + "[gpu]\nsm_clock_mhz = -5\n", "above 0"),
        (HEAD + "[match]\ngpu = 'A100'\n", "expected a list"),
        (HEAD + "gpu = 3\n", "expected a table"),
        (HEAD + "date = 2026-01-01\n", "unknown key"),
        ("name = [unclosed", "is not TOML"),
        ("a = " + "[" * 5000 + "]" * 5000, "is not TOML"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ProfileError, match=message.replace("[", r"\[")) as caught:
        load_profile(write(tmp_path, text))
    assert message in str(caught.value)


def test_a_binary_file_a_missing_file_and_a_misspelt_name(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\x7fELF\xff\xfe\x00")
    with pytest.raises(ProfileError, match="is not text"):
        load_profile(str(binary))
    with pytest.raises(ProfileError, match="can't be read"):
        load_profile(str(tmp_path / "absent.toml"))
    with pytest.raises(ProfileError) as caught:
        load_profile("incident-a10")
    assert "did you mean `incident-a100`" in caught.value.hint
    with pytest.raises(ProfileError, match="can't be read"):
        load_profile(f"{tmp_path}/")


def test_extends_merges_and_tells_origins(tmp_path: Path) -> None:
    write(
        tmp_path,
        HEAD.replace("mine", "parent") + "costs = ['old']\n[gpu]\npower_limit = 'default'\n"
        "persistence_mode = true\n[packages.torch]\nversion = '2.1.2'\nreason = 'because'\n",
        "parent.toml",
    )
    child = write(
        tmp_path,
        HEAD + "extends = './parent.toml'\ncosts = ['new']\n[gpu]\npower_limit_w = 250\n"
        "[packages.torch]\naccept = '>=2.1'\n",
    )
    resolved = load_profile(child)
    profile = resolved.profile
    assert resolved.chain == ("mine", "parent")
    assert (profile.gpu.power_limit, profile.gpu.power_limit_w, profile.gpu.persistence_mode) == (None, 250, True)
    assert (profile.packages["torch"].version, profile.packages["torch"].accept) == ("2.1.2", ">=2.1")
    assert profile.costs == ("new",)
    assert resolved.origins["packages.torch.version"] == "parent"
    assert resolved.origins["packages.torch.accept"] == "mine"
    assert "gpu.power_limit" not in resolved.origins


def test_a_cycle_is_named(tmp_path: Path) -> None:
    for name, parent in (("one", "two"), ("two", "three"), ("three", "one")):
        write(tmp_path, f'schema_version = 1\nname = "{name}"\nextends = "./{parent}.toml"\n', f"{name}.toml")
    with pytest.raises(ProfileError, match="extends itself") as caught:
        load_profile(str(tmp_path / "one.toml"))
    assert caught.value.cause == "one -> two -> three -> ./one.toml"


def test_the_digest_is_of_the_values(tmp_path: Path) -> None:
    one = load_profile(write(tmp_path, HEAD + "[gpu]\npersistence_mode = true\n"))
    two = load_profile(write(tmp_path, "# comment\n" + HEAD + "[gpu]\npersistence_mode   =   true # yes\n"))
    three = load_profile(write(tmp_path, HEAD + "[gpu]\npersistence_mode = false\n"))
    assert one.sha256 == two.sha256 != three.sha256


def test_lines_inside_values_are_no_keys() -> None:
    text = 'a = """\nb = 1\n"""\nc = [\n  "d = 2", # ]\n  "e",\n]\n[f."g.h"]\ni = 3\n[[j]]\nk = 4\n[[j]]\nk = 5\n'
    assert key_lines(text) == {"a": 1, "c": 4, "f.g.h": 8, "f.g.h.i": 9, "j.0": 10, "j.0.k": 11, "j.1": 12, "j.1.k": 13}


H200 = {"gpu:name": "NVIDIA H200", "gpu:driver_version": "580.159.04", "gpu:compute_capability": "9.0"}


@pytest.mark.parametrize(
    ("announced", "chosen"),
    [
        (H200, "h200"),
        (H200 | {"gpu:name": "NVIDIA H200\nNVIDIA A100-SXM4-40GB"}, "current"),
        (H200 | {"gpu:driver_version": "535.161.08"}, None),
        (H200 | {"gpu:name": "Tesla V100-SXM2-16GB", "gpu:compute_capability": "7.0"}, None),
        ({}, "current"),
    ],
)
def test_selection(announced: dict[str, str], chosen: str | None) -> None:
    profile, because = select([load_profile(name).profile for name in shipped_names()], announced)
    assert (profile.name if profile else None) == chosen
    assert because


def test_a_mismatch_says_both_sides() -> None:
    match = load_profile("incident-a100").profile.match
    reasons = mismatches(match, H200 | {"gpu:driver_version": "470.1"})
    assert reasons == (
        "GPU is NVIDIA H200, the profile is for NVIDIA A100* or A100*",
        "driver is 470.1, the profile is for >=525",
    )
