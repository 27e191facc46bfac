"""What a script's tokenizer needs beside transformers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from remediate.packages.judge.base import Evidence, Judgement, Remedy, wrong
from remediate.packages.names import contains

SLOW = "script:needs_sentencepiece"
"""Announced by the script subject: a script that loads a tokenizer class that reads `tokenizer.model` itself."""


def judge_tokenizer(evidence: Evidence) -> Iterator[Judgement]:
    """sentencepiece, and protobuf beside it, for the slow tokenizers of transformers 4.

    From transformers 5 on these classes read `tokenizer.json`, and whether a checkpoint has one can't be told here.
    """
    transformers = evidence.planned("transformers")
    if not evidence.is_needed(SLOW) or transformers is None or not contains("<5.dev0", transformers):
        return
    if _is_missing("sentencepiece", evidence):
        yield _missing("sentencepiece", "`LlamaTokenizer` raises `requires the SentencePiece library`", is_advice=False)
    elif _is_missing("protobuf", evidence):
        reason = "with `legacy=False`, or to convert a `tokenizer.model`, it raises `requires the protobuf library`"
        yield _missing("protobuf", reason, is_advice=True)


def _is_missing(name: str, evidence: Evidence) -> bool:
    pin = evidence.pins.get(name)
    is_pinned = pin is not None and pin.is_judged
    return evidence.version(name) is None and evidence.facts.tells_absence(name) and not is_pinned


def _missing(name: str, reason: str, *, is_advice: bool) -> Judgement:
    finding = wrong(
        "PKG021",
        name,
        f"the script's tokenizer needs {name}, which is absent",
        reason,
        observed="absent",
        wanted=name,
        is_advice=is_advice,
    )
    remedy = Remedy(f"install {name}", "the profile does not say which version", install=(name,))
    return Judgement(finding, remedy)
