"""Facts and profile to findings and proposals: no process, no file."""

from __future__ import annotations

import msgspec
import pytest
from packages.packages_records import (
    SITE,
    TARGET,
    TORCH,
    change,
    dist,
    document,
    facts_of,
    findings_of,
    install_of,
    profile_of,
    propose,
)

from remediate.model import Outcome, Unknown, UnknownKind
from remediate.packages.compare import compare_packages
from remediate.packages.explanations import EXPLANATIONS
from remediate.packages.facts import (
    DistributionFacts,
    MetadataProblem,
    PackagesFacts,
    ProblemKind,
    RequirementsFileFacts,
)
from remediate.packages.names import contains, is_same_version, public
from remediate.packages.subject import PackagesSubject
from remediate.profile.schema import InstallSource, Pin
from remediate.subject import Settings


@pytest.mark.parametrize(
    ("installed", "pin", "outcome", "planned"),
    [
        ("2.1.2", TORCH, Outcome.SAME, "2.1.2"),
        ("2.1.2+cu121", TORCH, Outcome.SAME, "2.1.2"),
        ("2.2.0", TORCH, Outcome.DIFFERS, "2.1.2"),
        ("2.1", Pin(version="2.1.0"), Outcome.SAME, "2.1"),
        ("2.2.0a0+git123", Pin(version="2.3.0", accept=">=2.1"), Outcome.SAME, "2.2.0a0"),
        ("1.25.0", Pin(version="1.26.4", accept=">=1.23,<2"), Outcome.SAME, "1.25.0"),
        ("2.0.0", Pin(version="1.26.4", accept=">=1.23,<2"), Outcome.DIFFERS, "1.26.4"),
        ("not-a-version", TORCH, Outcome.DIFFERS, "2.1.2"),
        (None, TORCH, Outcome.DIFFERS, "2.1.2"),
    ],
)
def test_versions(installed: str | None, pin: Pin, outcome: Outcome, planned: str) -> None:
    facts = facts_of(*(() if installed is None else (dist("torch", installed),)))
    profile = profile_of(torch=pin, numpy=Pin(version="1.26.4", required=False))
    assert findings_of(facts, profile)["PKG001:torch"].outcome is outcome
    assert PackagesSubject().announce(document(facts), profile)["distribution:torch"] == planned


def test_an_unreadable_version_is_unknown() -> None:
    unreadable = DistributionFacts("torch", "torch", Unknown(UnknownKind.FAILED, "no version"), "/x")
    finding = findings_of(facts_of(unreadable), profile_of(torch=TORCH))["PKG001:torch"]
    assert (finding.outcome, "no version" in finding.summary) == (Outcome.UNKNOWN, True)


def test_optional_pins_are_judged_where_installed() -> None:
    profile = profile_of(sentencepiece=Pin(version="0.2.3", required=False))
    assert "PKG001:sentencepiece" not in findings_of(facts_of(), profile)
    assert (
        findings_of(facts_of(dist("sentencepiece", "0.1")), profile)["PKG001:sentencepiece"].outcome is Outcome.DIFFERS
    )
    assert propose(facts_of(requirements=b""), profile).changes == ()


def test_without_a_target_nothing_is_told() -> None:
    facts = PackagesFacts(None, Unknown(UnknownKind.FAILED, "it hangs"), requirements=())
    findings = compare_packages(facts, profile_of(">=3.10", torch=TORCH), {})
    assert {item.outcome for item in findings if not item.is_advice} == {Outcome.UNKNOWN}
    assert propose(facts, profile_of(torch=TORCH)).changes == ()


@pytest.mark.parametrize(
    ("cuda", "outcome"), [("12.1", Outcome.SAME), ("11.8", Outcome.DIFFERS), (None, Outcome.DIFFERS)]
)
def test_cuda_build(cuda: str | None, outcome: Outcome) -> None:
    facts = facts_of(dist("torch", "2.1.2"), cuda=cuda)
    assert findings_of(facts, profile_of(torch=TORCH))["PKG002:torch"].outcome is outcome
    changes = propose(facts, profile_of(torch=TORCH)).changes
    assert bool(changes) is (outcome is Outcome.DIFFERS)
    if changes:
        install = install_of(propose(facts, profile_of(torch=TORCH)))
        assert install.uninstall[0][-1] == "torch"
        assert change(propose(facts, profile_of(torch=TORCH)), "packages:install").codes == ("PKG002",)


def test_cuda_build_that_can_not_be_read() -> None:
    facts = facts_of(dist("torch", "2.1.2"), torch_build=None)
    assert findings_of(facts, profile_of(torch=TORCH))["PKG002:torch"].outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("torch", "numpy", "outcome"),
    [("2.2.0", "2.4.6", "differs"), ("2.2.0", "1.26.4", "same"), ("2.3.0", "2.4.6", None), ("2.3.0a0", "2.0.0", None)],
)
def test_numpy_2(torch: str, numpy: str, outcome: str | None) -> None:
    """The profile says nothing about either."""
    facts = facts_of(dist("torch", torch), dist("numpy", numpy))
    finding = findings_of(facts, profile_of()).get("PKG004:numpy")
    assert (finding.outcome if finding else None) == outcome
    proposal = propose(facts, profile_of())
    assert [item.id for item in proposal.changes] == (["packages:install"] if outcome == "differs" else [])
    if proposal.changes:
        assert install_of(proposal).argv[-1] == "numpy==1.26.4"


def test_numpy_is_held_below_2_for_a_torch_that_needs_it() -> None:
    install = install_of(propose(facts_of(), profile_of(torch=TORCH)))
    assert install.constraints == ("numpy==1.26.4",)
    assert install.argv[-1] == "torch==2.1.2"


@pytest.mark.parametrize(("needed", "outcome"), [("true", Outcome.DIFFERS), ("false", None)])
def test_accelerate(needed: str, outcome: Outcome | None) -> None:
    finding = findings_of(facts_of(), profile_of(), script__needs_accelerate=needed).get("PKG005:accelerate")
    assert (finding.outcome if finding else None) == outcome
    withheld = propose(facts_of(), profile_of(), script__needs_accelerate=needed).withheld
    assert [item.commands for item in withheld] == ([("/e/bin/python -m pip install accelerate",)] if outcome else [])
    governed = profile_of(accelerate=Pin(version="1.15.0"))
    assert "PKG005:accelerate" not in findings_of(facts_of(), governed, script__needs_accelerate=needed)


@pytest.mark.parametrize(
    ("cuda", "driver", "outcome"),
    [
        ("13.0", "580.95.05", Outcome.SAME),
        ("13.0", "575.57.08", Outcome.DIFFERS),
        ("12.1", "525.60.13", Outcome.SAME),
        ("11.8", "440.33", Outcome.DIFFERS),
        ("12.1", "", Outcome.UNKNOWN),
    ],
)
def test_driver(cuda: str, driver: str, outcome: Outcome) -> None:
    profile = profile_of(torch=Pin(version="2.11.0", cuda=cuda))
    facts = facts_of(dist("torch", "2.3.0"))
    finding = findings_of(facts, profile, gpu__driver_version=driver)["PKG006:driver"]
    assert finding.outcome is outcome
    proposal = propose(facts, profile, gpu__driver_version=driver)
    if outcome is Outcome.DIFFERS:
        assert proposal.changes == ()
        assert "PKG006" in proposal.withheld[-1].codes
    else:
        assert install_of(proposal)


def test_python_outside_of_the_range() -> None:
    profile = profile_of("<3.11", torch=TORCH)
    facts = facts_of(requirements=b"torch==2.2.0\n")
    assert findings_of(facts, profile)["PKG008:python"].outcome is Outcome.DIFFERS
    proposal = propose(facts, profile)
    assert (proposal.changes, proposal.artifacts) == ((), ())
    requirements, install = proposal.withheld
    assert (requirements.codes, install.codes) == (("PKG003",), ("PKG001", "PKG008"))
    assert install.commands == ("/e/bin/python -m pip install --disable-pip-version-check --no-input torch==2.1.2",)


@pytest.mark.parametrize("trait", [{"externally_managed": True}, {"is_writable": False}])
def test_environments_that_are_not_ours(trait: dict[str, bool]) -> None:
    facts = facts_of(target=msgspec.structs.replace(TARGET, **trait), requirements=b"torch==2.2.0\n")
    profile = profile_of(torch=TORCH)
    assert findings_of(facts, profile)["PKG010:/e"].outcome is Outcome.UNSUPPORTED
    proposal = propose(facts, profile)
    assert [item.id for item in proposal.changes] == ["packages:requirements:/s/requirements.txt"]
    assert proposal.withheld[0].codes == ("PKG001", "PKG010")
    lines = proposal.withheld[0].commands
    options = "--disable-pip-version-check --no-input torch==2.1.2"
    assert lines[-1] == f"{'/s/.venv' if 'externally_managed' in trait else '/e'}/bin/python -m pip install {options}"
    assert (lines[0] == "/e/bin/python -m venv /s/.venv") is ("externally_managed" in trait)
    # What is not installed is not announced as if it were.
    assert "distribution:torch" not in PackagesSubject().announce(document(facts), profile)


def test_a_python_that_was_only_found_on_path_is_left_alone() -> None:
    guess = msgspec.structs.replace(TARGET, is_guess=True)
    plain = msgspec.structs.replace(guess, prefix="/usr", base_prefix="/usr")
    profile = profile_of(torch=TORCH)
    assert [change.id for change in propose(facts_of(target=guess), profile).changes] == ["packages:install"]
    proposal = propose(facts_of(target=plain), profile)
    assert proposal.changes == ()
    assert "--python /e/bin/python" in proposal.withheld[0].enable


def test_metadata_problems() -> None:
    problems = (
        MetadataProblem(ProblemKind.LEFTOVER, "?orch", f"{SITE}/~orch", "left"),
        MetadataProblem(ProblemKind.DUPLICATE, "torch", f"{SITE}/torch-2.2.0.dist-info", "two"),
        MetadataProblem(ProblemKind.BROKEN, "flask", f"{SITE}/flask-1.dist-info", "no name"),
    )
    facts = facts_of(dist("torch", "2.1.2"), problems=problems)
    found = findings_of(facts, profile_of(torch=TORCH))
    assert [found[f"PKG007:{name}"].is_advice for name in ("orch", "torch", "flask")] == [True, False, True]
    install = install_of(propose(facts, profile_of(torch=TORCH)))
    assert install.discard == (f"{SITE}/torch-2.1.2.dist-info", f"{SITE}/torch-2.2.0.dist-info")
    assert install.uninstall[0][-1] == "torch"


def test_pynvml_is_advice() -> None:
    finding = findings_of(facts_of(dist("pynvml", "11.5.0")), profile_of())["PKG009:pynvml"]
    assert (finding.outcome, finding.is_advice) == (Outcome.DIFFERS, True)


@pytest.mark.parametrize(
    ("line", "is_said"),
    [
        ("torch>=2.2", True),
        ("torch (>=2.2)", True),
        ("Torch[opt]>=2.2 ; python_version >= '3.8'", True),
        ("torch>=2.2 ; python_version < '3.8'", False),
        ("torch>=2.1", False),
        ("torch", False),
        ("torch==2.4.0", False),
        ("torchvision>=2.2", False),
    ],
)
def test_distributions_that_will_not_accept_it(line: str, is_said: bool) -> None:
    """`torch==2.4.0` does not accept what is installed now either."""
    facts = facts_of(dist("torch", "2.2.0"), dist("other", "1", requires=(line,)))
    assert ("PKG011:other" in findings_of(facts, profile_of(torch=TORCH))) is is_said


def test_requirements_and_install() -> None:
    facts = facts_of(
        dist("torch", "2.2.0"), dist("numpy", "1.25.0"), requirements=b"torch==2.2.0\n", other_sources=("uv.lock",)
    )
    profile = profile_of(torch=TORCH, numpy=Pin(version="1.26.4", accept="<2"), accelerate=Pin(version="1.15.0"))
    found = findings_of(facts, profile)
    assert {key for key, item in found.items() if item.outcome is Outcome.DIFFERS and not item.is_advice} == {
        "PKG001:torch",
        "PKG001:accelerate",
        "PKG003:torch",
        "PKG003:numpy",
        "PKG003:accelerate",
    }
    assert found["PKG012:other files"].is_advice
    proposal = propose(facts, profile)
    edit, install = proposal.changes
    assert edit.operation.content == (
        b"torch==2.1.2  # the report's\n# added by remediate: profile p\naccelerate==1.15.0\nnumpy==1.25.0\n"
    )
    assert [artifact.name for artifact in proposal.artifacts] == ["requirements.txt"]
    assert proposal.artifacts[0].content == edit.operation.content
    assert install.command[-4:] == ("--constraint", "constraints.txt", "accelerate==1.15.0", "torch==2.1.2")
    assert install.operation.constraints == ("numpy==1.25.0",)
    assert [(item.target, item.before, item.after) for item in install.items] == [
        ("accelerate", "absent", "1.15.0"),
        ("torch", "2.2.0", "2.1.2"),
    ]
    subject = PackagesSubject()
    for item in (edit, install):
        assert {key: subject.read(document(facts), key) for key in item.depends_on} == dict(item.depends_on)


def test_no_requirements_file_is_advice_and_an_artifact() -> None:
    proposal = propose(facts_of(), profile_of(torch=TORCH))
    assert [item.id for item in proposal.changes] == ["packages:install"]
    assert proposal.artifacts[0].content == b"# added by remediate: profile p\ntorch==2.1.2  # the report's\n"
    assert findings_of(facts_of(), profile_of(torch=TORCH))["PKG003:requirements"].is_advice


def test_obstacles_are_withheld_and_the_rest_is_edited() -> None:
    facts = facts_of(dist("torch", "2.1.2"), requirements=b"torch @ https://h/t.whl\nnumpy\n", other_sources=())
    profile = profile_of(torch=TORCH, numpy=Pin(version="1.26.4"))
    assert findings_of(facts, profile)["PKG003:torch"].outcome is Outcome.UNSUPPORTED
    proposal = propose(facts, profile)
    assert b"numpy==1.26.4\n" in change(proposal, "packages:requirements").operation.content
    assert [item.target for item in proposal.withheld] == ["requirements.txt:1"]


def test_an_included_file_is_edited_and_an_outer_one_is_not() -> None:
    files = (
        RequirementsFileFacts("/s/requirements.txt", b"-r sub/gpu.txt\n-r ../outer.txt\n", ""),
        RequirementsFileFacts("/s/sub/gpu.txt", b"torch\n", ""),
        RequirementsFileFacts("/outer.txt", b"numpy\n", "", is_inside=False),
    )
    facts = msgspec.structs.replace(facts_of(dist("torch", "2.1.2"), dist("numpy", "1.26.4")), requirements=files)
    proposal = propose(facts, profile_of(torch=TORCH, numpy=Pin(version="1.26.4")))
    assert [item.id for item in proposal.changes] == ["packages:requirements:/s/sub/gpu.txt"]
    assert [artifact.name for artifact in proposal.artifacts] == ["requirements.txt", "sub_gpu.txt"]
    assert [item.target for item in proposal.withheld] == ["outer.txt:1"]


def test_sources_of_user_and_profile() -> None:
    install = InstallSource(index_url="https://p/simple", extra_index_urls=("https://e",), find_links=("wheels",))
    profile = profile_of(install=install, torch=TORCH)
    assert install_of(propose(facts_of(), profile)).argv[6:-3] == (
        *("--index-url", "https://p/simple", "--extra-index-url", "https://e", "--find-links", "/s/wheels"),
    )
    settings = Settings(index_url="https://me:secret@u/simple", find_links=("/w",))
    argv = install_of(propose(facts_of(), profile, settings)).argv
    assert argv[6:8] == ("--index-url", "https://me:secret@u/simple")
    assert "secret" not in " ".join(change(propose(facts_of(), profile, settings), "packages:install").command)
    offline = install_of(propose(facts_of(), profile, Settings(no_index=True, find_links=("/w",)))).argv
    assert offline[6:-3] == ("--no-index", "--find-links", "/w", "--find-links", "/s/wheels")


def test_a_target_without_pip_gets_this_programs_pip() -> None:
    none = Unknown(UnknownKind.NOT_SUPPORTED, "no pip")
    facts = facts_of(pip=none, tool_pip="26.0", tool_python="/t/python")
    argv = install_of(propose(facts, profile_of(torch=TORCH))).argv
    assert argv[:6] == ("/t/python", "-m", "pip", "--python", "/e/bin/python", "install")
    without = facts_of(pip=none, tool_pip=none)
    assert "neither" in propose(without, profile_of(torch=TORCH)).withheld[0].because


def test_facts_round_trip() -> None:
    facts = facts_of(dist("torch", "2.1.2"), requirements=b"\xff\n")
    assert msgspec.json.decode(msgspec.json.encode(facts), type=PackagesFacts) == facts


def test_every_code_has_a_page() -> None:
    import re
    from pathlib import Path

    import remediate.packages

    folder = Path(remediate.packages.__file__).parent
    used = {code for path in folder.rglob("*.py") for code in re.findall(r"PKG\d{3}", path.read_text())}
    assert used == set(EXPLANATIONS)


def test_describe_has_no_holes() -> None:
    rows = dict(PackagesSubject().describe(document(facts_of(dist("torch", "2.1.2")))))
    assert rows["torch"] == "2.1.2 (by pip)"
    assert rows["torch build"] == "2.1.2, CUDA 12.1"
    assert dict(PackagesSubject().describe(document(PackagesFacts(None, Unknown(UnknownKind.FAILED, "gone")))))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [("2.1.2+cu121", "2.1.2", True), ("2.1", "2.1.0", True), ("2.1.2", "2.1.3", False), ("x", "x", True)],
)
def test_same_version(one: str, other: str, is_same: bool) -> None:
    assert is_same_version(one, other) is is_same


def test_nonsense_satisfies_nothing() -> None:
    assert not contains(">=two", "2")
    assert not contains(">=2", "two")
    assert public("two") == "two"
