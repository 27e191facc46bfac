"""SCR000: a script that can't be read, or that the rules are not about."""

from __future__ import annotations

from collections.abc import Iterable

from remediate.model import Explanation, Outcome
from remediate.script.facts import FileFacts
from remediate.script.rules.base import Rule, Verdict, Wanted, describe


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Say why a file is not judged."""
    del wanted
    if file.problem:
        yield Verdict(file.problem_line or 1, Outcome.UNKNOWN, f"not judged: {file.problem}")
    elif file.training:
        yield Verdict(
            file.training[0].line,
            Outcome.SAME,
            f"left alone: it trains a model ({describe(file.training)})",
            is_advice=True,
        )
    elif not file.is_inference:
        summary = "left alone: it loads a model and never runs it" if file.loads else "left alone: it loads no model"
        line = file.loads[0].line if file.loads else 1
        yield Verdict(line, Outcome.SAME, summary, is_advice=True)


RULE = Rule(
    Explanation(
        code="SCR000",
        title="The script can't be judged",
        what="Whether the file can be decoded and parsed, and whether it is an inference program: it loads a model, "
        "runs it, and does not train it.",
        why="A file that does not parse can't be edited safely, and the other rules say nothing useful about training "
        "or conversion scripts.",
        fix="Nothing is edited. Repair the line that is named; a file written for a newer Python than the one that "
        "runs `remediate` is reported here too.",
        sources=("PEP 263 (source encodings)",),
    ),
    check,
)
