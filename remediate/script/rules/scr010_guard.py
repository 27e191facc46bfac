"""SCR010: the model runs without an inference guard, or with the weaker one."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from remediate.model import Explanation, Outcome
from remediate.script.facts import FileFacts, GuardSite
from remediate.script.reading.guards import INFERENCE_MODE, NO_GRAD
from remediate.script.reading.module import Module
from remediate.script.rules.base import Fix, Held, Rule, Safety, Verdict, Wanted, advice, describe, same
from remediate.script.source import Edit

_WHY = "`inference_mode` also spares views and version counters, which `no_grad` keeps"
_CHECK = (
    "the model runs in the same thread, nothing is yielded or awaited, compiled, deep-copied or differentiated, and no "
    "result is changed in place outside"
)


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """The forward pass without any guard; with the wish for `inference_mode`, also the weaker guard or none."""
    calls = [run for run in file.generates if run.form == "call"]
    if calls and not file.guards:
        reason = "a forward pass keeps what a backward pass would need"
        yield advice(calls[0].line, "calls the model without `inference_mode` or `no_grad`", reason)
    elif wanted.wish.guard is not None:
        yield from _judge(file)


def _judge(file: FileFacts) -> Iterable[Verdict]:
    weaker = [site for site in file.guards if site.what == NO_GRAD and site.covers_run]
    for site in weaker:
        summary = "runs the model under `no_grad`, not `inference_mode`"
        yield Verdict(
            site.line, Outcome.DIFFERS, summary, site.text, INFERENCE_MODE, (), _WHY, True, site.end_line
        )  # fmt: skip
    covering = [site for site in file.guards if site.what == INFERENCE_MODE and site.covers_run]
    runs = [run for run in file.generates if run.form == "generate"]
    if covering:
        yield same(covering[0].line, "runs the model under `inference_mode`")
    elif runs and not weaker and not file.threads:
        reason = "`generate` guards itself with `no_grad` only; the gain is small"
        yield advice(runs[0].line, "runs the model without `inference_mode`", reason)


def fix(file: FileFacts, module: Module, wanted: Wanted) -> Iterable[Fix | Held]:
    """Put `inference_mode` in the place of `no_grad`."""
    if wanted.wish.guard is None:
        return
    for site in file.guards:
        if site.what != NO_GRAD or not site.covers_run:
            continue
        obstacle = _obstacle(file, site)
        node = _name_at(module, site)
        if obstacle or node is None:
            because = obstacle or "it was imported by name"
            by_hand = "try `torch.inference_mode()` and compare the answers"
            yield Held(site.line, "use `inference_mode`", because, by_hand, site.end_line)
            continue
        doubt = _doubt(file)
        yield Fix(
            site.line,
            (_edit(module, node),),
            f"`{site.text}`",
            f"`{site.text.rpartition('.')[0]}.inference_mode`",
            _WHY,
            site.end_line,
            Safety.UNSAFE if doubt else Safety.CHECKED,
            doubt or _CHECK,
        )


def _obstacle(file: FileFacts, site: GuardSite) -> str:
    if site.obstacle:
        return site.obstacle
    if site.misses:
        return site.misses
    return "" if file.torch_name else "torch is not imported for certain"


def _doubt(file: FileFacts) -> str:
    """What the file can't tell; empty when nothing is left open."""
    if file.multiprocess or file.placed_elsewhere:
        return f"another library runs the model too ({describe(file.multiprocess or file.placed_elsewhere)})"
    if any(load.dtype_how == "quantised" or "quantization_config" in load.keywords for load in file.loads):
        return "kernels for quantised weights may keep state between calls"
    if any("remote" in keyword for load in file.loads for keyword in load.keywords):
        return "the model brings code of its own"
    return ""


def _name_at(module: Module, site: GuardSite) -> ast.Attribute | None:
    found = (node for node in module.every(ast.Attribute) if module.span(node) == (site.start, site.end))
    return next(found, None)


def _edit(module: Module, node: ast.Attribute) -> Edit:
    """The attribute alone; a decorator without parentheses gets them, which every torch understands."""
    end = module.span(node)[1]
    parent = module.parents[node]
    is_called = isinstance(parent, ast.Call) and parent.func is node
    return Edit(end - len(node.attr), end, "inference_mode" if is_called else "inference_mode()")


RULE = Rule(
    Explanation(
        code="SCR010",
        title="The model is called without an inference guard, or with the weaker one",
        what="Whether the forward pass is called directly in a file that has neither `inference_mode` nor `no_grad`; "
        "and, where the profile asks for `inference_mode`, whether `no_grad` stands around the model's run. `generate` "
        "and pipelines guard themselves with `no_grad`.",
        why="Without a guard each forward pass keeps its activations. `inference_mode` does less bookkeeping than "
        "`no_grad`; the gain in decoding is small, for it is bound by memory bandwidth.",
        fix="`no_grad` becomes `inference_mode` where the model runs in the same thread, nothing is yielded, awaited, "
        "compiled, deep-copied or differentiated, and no result is changed in place outside. With quantised weights, "
        "remote code or a launcher it is done with `--unsafe-fixes` only. A guard that is missing is not added: put "
        "`with torch.inference_mode():` around the call, in the thread that makes it.",
        sources=(
            "tested with torch 2.14.1 and transformers 5.24.0",
            "pytorch#103132",
            "pytorch#93042",
            "pytorch#135892",
        ),
    ),
    check,
    fix,
    is_advice=True,
)
