"""The samples beside the rules: what each rule says of them, and what it makes of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest
from script.samples import LEAVE_WISH, OLD, facts_of

from remediate.model import Outcome
from remediate.script.compare import verdicts_of
from remediate.script.patch import patch
from remediate.script.rules import RULES, UNREADABLE
from remediate.script.rules.base import Verdict, Wanted

ALL = (UNREADABLE, *RULES)
FOLDER = Path(__file__).parents[2] / "remediate" / "script" / "rules" / "samples"


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One script and what the rule of its file makes of it."""

    name: str
    says: str
    before: str
    after: str | None = None
    withheld: str = ""
    unsafe: bool = False
    shown: bool = True
    versions: dict[str, str] = {}
    wish: dict[str, str] = {}


def samples() -> list[tuple[str, Sample]]:
    """Code and sample, of every rule."""
    found = []
    for rule in ALL:
        document = tomllib.loads((FOLDER / f"{rule.code}.toml").read_text())
        found += [(rule.code, sample) for sample in msgspec.convert(document["sample"], list[Sample])]
    return found


def wanted_for(sample: Sample) -> Wanted:
    """The wishes of the base profile and the versions of the incident's, as far as a sample says nothing else."""
    named = {"gpu:compute_capability" if k == "gpu" else f"distribution:{k}": v for k, v in sample.versions.items()}
    wish = msgspec.structs.replace(LEAVE_WISH, guard="inference_mode", cache_clear="none", **sample.wish)
    return Wanted(wish, {**OLD, **named}, sample.unsafe)


def says(verdicts: list[Verdict]) -> str:
    """One word for what a rule says."""
    worst = min(verdicts, key=lambda v: (v.outcome is Outcome.SAME, v.is_advice), default=None)
    if worst is None:
        return "nothing"
    if worst.outcome is Outcome.SAME:
        return "agrees"
    if worst.outcome is Outcome.UNKNOWN:
        return "could not tell"
    return "advice" if worst.is_advice else "differs"


@pytest.mark.parametrize(("code", "sample"), [pytest.param(c, s, id=f"{c} {s.name}") for c, s in samples()])
def test_a_sample_is_judged_and_patched_as_written(code: str, sample: Sample) -> None:
    want = wanted_for(sample)
    raw = sample.before.encode()
    found = [verdict for rule, verdict in verdicts_of(facts_of(raw), want) if rule.code == code]
    assert says(found) == sample.says
    others = frozenset(rule.code for rule in ALL) - {code}
    made = patch("/sandbox/infer.py", raw, want, others)
    assert made.content.decode() == (sample.before if sample.after is None else sample.after)
    assert patch("/sandbox/infer.py", made.content, want, others).content == made.content
    held = " / ".join(f"{item.because} {item.by_hand}" for _, item in made.held)
    assert sample.withheld in held
    assert bool(held) == bool(sample.withheld)


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.code)
def test_a_rule_of_advice_holds_nothing_up(rule: object) -> None:
    said = [says_ for code, sample in samples() if code == rule.code for says_ in [sample.says]]  # type: ignore[attr-defined]
    assert said
    if rule.is_advice:  # type: ignore[attr-defined]
        assert "differs" not in said


def test_every_rule_that_edits_shows_an_edit_and_a_script_that_it_leaves() -> None:
    by_code: dict[str, list[Sample]] = {}
    for code, sample in samples():
        by_code.setdefault(code, []).append(sample)
    for rule in RULES:
        if rule.fix is not None:
            assert any(sample.after for sample in by_code[rule.code]), rule.code
            assert any(sample.after is None for sample in by_code[rule.code]), rule.code
