"""SCR011 to SCR014: worth one line for each file, and never worth an edit.

They hold for more than nine in ten of the scripts that were read for this; at the weight of a reload they
would bury it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from remediate.model import Explanation
from remediate.script.facts import FileFacts, Scope
from remediate.script.rules.base import Rule, Verdict, Wanted, advice

_HUB_NAME = re.compile(r"""["'][\w.-]+/[\w.-]+["']""")
_STARTING = (Scope.MODULE, Scope.MAIN, Scope.ONCE, Scope.HOOK, Scope.CONSTRUCTOR)


def check_warm_up(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """A resident program whose first run of the model is the first request."""
    del wanted
    if file.handlers and not any(run.scope in _STARTING for run in file.generates):
        reason = "the first request pays for loading kernels and growing the memory pool"
        yield advice(file.handlers[0].line, "no warm-up before the first request", reason)


def check_lazy(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """A resident program that loads with the first request."""
    del wanted
    lazy = [load for load in file.models if load.scope is Scope.LAZY]
    if lazy and file.handlers:
        yield advice(
            lazy[0].line, f"loads the model with the first request: {lazy[0].because}", "that request waits for it"
        )


def check_revision(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """A model named by its place on the hub without a revision."""
    del wanted
    open_ = [load for load in file.models if _HUB_NAME.fullmatch(load.model) and not load.revision]
    if open_ and not any(load.has_open_keywords for load in open_):
        reason = "the newest revision is taken, which may be another one tomorrow"
        yield advice(open_[0].line, f"model {open_[0].model} has no `revision`", reason)


def check_benchmark(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """cudnn.benchmark is switched on in a program that runs a language model."""
    del wanted
    if file.cudnn_benchmark and any(load.is_causal_lm for load in file.models):
        reason = "it tunes convolutions, and a decoder has none"
        yield advice(file.cudnn_benchmark[0].line, "`cudnn.benchmark` does nothing for this model", reason)


WARM_UP = Rule(
    Explanation(
        code="SCR011",
        title="No warm-up",
        what="Whether a program that answers requests runs the model once before the first of them.",
        why="The first call loads kernels and grows the memory pool: on an H200 0.11 to 0.14 s for the first matrix "
        "product alone, seconds where something is compiled.",
        fix="Nothing is edited. Call `generate` once with a short prompt at the end of the load.",
        sources=("measured on an H200, torch 2.11",),
    ),
    check_warm_up,
    is_advice=True,
)
LAZY = Rule(
    Explanation(
        code="SCR012",
        title="The model is loaded with the first request",
        what="Whether a program that answers requests loads lazily: below `if model is None`, or in a cached function.",
        why="The model is kept, so this costs once: the first request waits for the whole load.",
        fix="Nothing is edited: loading earlier changes start-up time and what an import does. Call the loader from "
        "the server's start hook.",
    ),
    check_lazy,
    is_advice=True,
)
REVISION = Rule(
    Explanation(
        code="SCR013",
        title="The model's revision is not pinned",
        what="Whether a model that is named as on the hub carries `revision=`.",
        why="A pinned environment with an open revision still changes when the repository does, remote code included.",
        fix="Nothing is edited. Add `revision=` with the commit that you tested.",
        sources=("transformers documentation of from_pretrained, revision",),
    ),
    check_revision,
    is_advice=True,
)
BENCHMARK = Rule(
    Explanation(
        code="SCR014",
        title="cudnn.benchmark does nothing here",
        what="Whether `torch.backends.cudnn.benchmark = True` stands in a script that runs a language model.",
        why="It chooses convolution algorithms; a LLaMA has no convolution and dispatches none. On an H200 50 tokens "
        "took 1.07 to 1.15 s without it and 1.06 to 1.08 s with it.",
        fix="Nothing is edited. It may go.",
        sources=("PyTorch notes on randomness", "measured on an H200, torch 2.11, transformers 5.17"),
    ),
    check_benchmark,
    is_advice=True,
)
