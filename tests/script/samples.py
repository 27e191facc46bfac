"""Shared by the script tests: the wishes, and small scripts made of parts."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent

import msgspec

from remediate.model import Outcome
from remediate.profile.schema import ScriptWish
from remediate.script.facts import FileFacts
from remediate.script.patch import Patch, patch
from remediate.script.reading.layout import read_layout
from remediate.script.rules import RULES
from remediate.script.rules.base import Verdict, Wanted

INCIDENT_WISH = ScriptWish(load="once", device="cuda", dtype="bfloat16", compile="none", cuda_init="public")
LEAVE_WISH = msgspec.structs.replace(INCIDENT_WISH, cuda_init="leave", compile="effective")
OLD = {
    "distribution:transformers": "4.36.2",
    "distribution:accelerate": "0.25.0",
    "gpu:compute_capability": "8.0",
}
NEW = {**OLD, "distribution:transformers": "5.17.0", "distribution:accelerate": "1.15.0"}

HEAD = """\
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

"""
GOOD = (
    HEAD
    + """\
tokenizer = AutoTokenizer.from_pretrained("m")
model = AutoModelForCausalLM.from_pretrained("m", device_map="cuda", torch_dtype=torch.bfloat16)


def query(prompt):
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    return model.generate(**inputs)
"""
)


def script(text: str) -> str:
    """A script from an indented literal."""
    return dedent(text).lstrip("\n")


def facts_of(text: str | bytes) -> FileFacts:
    """The layout of a script's text."""
    raw = text if isinstance(text, bytes) else text.encode()
    return read_layout("/sandbox/infer.py", raw)[0]


def wanted(announced: Mapping[str, str] = OLD, **wishes: object) -> Wanted:
    """The wish of most tests (no CUDA initialisation), with some of it replaced."""
    return Wanted(msgspec.structs.replace(LEAVE_WISH, **wishes), announced)


def patched(text: str, want: Wanted | None = None) -> str:
    """A script's text after patching."""
    return run_patch(text, want).content.decode()


def run_patch(text: str | bytes, want: Wanted | None = None) -> Patch:
    """Patch a script; the result must be at rest."""
    raw = text if isinstance(text, bytes) else text.encode()
    want = want or wanted()
    made = patch("/sandbox/infer.py", raw, want)
    again = patch("/sandbox/infer.py", made.content, want)
    assert again.content == made.content
    assert not again.fixes
    return made


def verdicts(text: str, code: str, want: Wanted | None = None) -> list[Verdict]:
    """What one rule says about a script."""
    file = facts_of(text)
    assert not file.problem, file.problem
    (rule,) = (rule for rule in RULES if rule.code == code)
    return list(rule.check(file, want or wanted()))


def outcomes(text: str, code: str, want: Wanted | None = None) -> list[tuple[Outcome, bool]]:
    """Outcome and whether it is advice, of each verdict of one rule."""
    return [(verdict.outcome, verdict.is_advice) for verdict in verdicts(text, code, want)]
