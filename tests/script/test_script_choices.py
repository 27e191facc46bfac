"""What a person can choose: unsafe fixes, rules that a profile leaves out, lines that a comment keeps."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from script.samples import HEAD, facts_of, run_patch, wanted

from remediate import api
from remediate.errors import ProfileError
from remediate.model import Facts, Outcome, Plan, Risk
from remediate.profile.load import load_profile

COMPILED = (
    HEAD
    + 'tokenizer = AutoTokenizer.from_pretrained("m")\n'
    + 'model = AutoModelForCausalLM.from_pretrained("m", device_map="cuda", torch_dtype=torch.bfloat16)\n'
    + "model.generate = torch.compile(model.generate)\n"
    + 'print(model.generate(**tokenizer("x", return_tensors="pt").to("cuda")))\n'
)
PROFILE = """\
schema_version = 1
name = "mine"
extends = "base"

[script.ignore]
"""


@pytest.fixture
def facts(tmp_path: Path) -> Facts:
    (tmp_path / "infer.py").write_text(COMPILED)
    return api.observe(tmp_path, only=["script"])


def planned(facts: Facts, *, unsafe_fixes: bool) -> Plan:
    return api.plan(facts, "base", unsafe_fixes=unsafe_fixes)


def test_unsafe_fixes_wait_to_be_asked_for(facts: Facts) -> None:
    plan = planned(facts, unsafe_fixes=False)
    assert plan.changes == ()
    (held,) = (item for item in plan.withheld if item.codes == ("SCR016",))
    assert "may change what the script means" in held.because
    assert "--unsafe-fixes" in held.enable


def test_unsafe_fixes_are_made_and_carry_their_risk(facts: Facts) -> None:
    (change,) = planned(facts, unsafe_fixes=True).changes
    assert change.codes == ("SCR016",)
    assert Risk.UNSAFE in change.risks
    assert b"model.forward = torch.compile(model.forward)" in change.operation.content
    assert "unsafe:" in change.items[0].reason


def test_a_safe_change_carries_no_unsafe_risk(facts: Facts, tmp_path: Path) -> None:
    (tmp_path / "infer.py").write_text(
        COMPILED.replace("model.generate = torch.compile(model.generate)", "torch.cuda._lazy_init()")
    )
    (change,) = planned(api.observe(tmp_path, only=["script"]), unsafe_fixes=True).changes
    assert change.risks == (Risk.SAFE,)


def test_a_profile_leaves_rules_out(facts: Facts, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(PROFILE + 'SCR016 = "measured: it pays off here"\n')
    plan = api.plan(facts, load_profile(str(path)), unsafe_fixes=True)
    assert not any(finding.code == "SCR016" for finding in plan.findings)
    assert plan.changes == ()


@pytest.mark.parametrize(
    ("line", "problem"),
    [('GPU001 = "x"', "no script rule's code"), ('SCR013 = " "', "say why"), ("SCR013 = true", "expected")],
)
def test_what_a_profile_may_leave_out_is_checked(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"{PROFILE}{line}\n")
    with pytest.raises(ProfileError) as caught:
        load_profile(str(path))
    assert problem in str(caught.value)


def test_a_comment_with_a_reason_keeps_its_line() -> None:
    text = COMPILED.replace("(model.generate)\n", "(model.generate)  # remediate: ignore[SCR016] measured, it pays\n")
    want = msgspec.structs.replace(wanted(), is_unsafe=True)
    made = run_patch(text, want)
    assert made.content.decode() == text
    assert facts_of(text).ignores[0].codes == ("SCR016",)
    assert facts_of(text).ignores[0].reason == "measured, it pays"


def test_an_ignored_line_gives_no_finding(tmp_path: Path) -> None:
    text = COMPILED.replace("(model.generate)\n", "(model.generate)  # remediate: ignore[SCR016] measured\n")
    (tmp_path / "infer.py").write_text(text)
    plan = api.plan(api.observe(tmp_path, only=["script"]), "base", unsafe_fixes=True)
    assert not any(f.code == "SCR016" and f.outcome is Outcome.DIFFERS for f in plan.findings)


@pytest.mark.parametrize(
    ("version", "has_it"), [("4.36.2", False), ("4.46.3", False), ("4.48.3", True), ("5.17.0", True)]
)
def test_a_static_cache_is_advised_where_transformers_has_one(version: str, has_it: bool) -> None:
    made = run_patch(COMPILED, wanted({"distribution:transformers": version}))
    (held,) = (item for code, item in made.held if code == "SCR016")
    assert ("cache_implementation" in held.because) is has_it
