"""SCR007: the CUDA cache is emptied, or garbage is collected, for each request."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from remediate.model import Explanation, Outcome
from remediate.script import edits
from remediate.script.facts import CallSite, FileFacts
from remediate.script.reading.guards import RUNS
from remediate.script.reading.module import Module
from remediate.script.rules.base import Fix, Held, Rule, Safety, Verdict, Wanted
from remediate.script.rules.base import advice as as_advice

_WHY = "the next request has to ask the driver for the same memory again"
_BY_HAND = "delete the call, or move it to where the model is replaced"


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Point at calls in the request path that are not cleaning up after an error."""
    del wanted
    for site in _hot(file):
        summary = f"`{site.what}` in the request path ({site.scope})"
        if _is_on_purpose(file, site):
            yield as_advice(site.line, summary, _WHY, site.end_line)
        else:
            yield Verdict(
                site.line, Outcome.DIFFERS, summary, site.text, "not called there", (), _WHY, True, site.end_line
            )


def _hot(file: FileFacts) -> list[CallSite]:
    return [site for site in file.cache_clears if site.scope.is_repeated and not site.is_cleanup]


def _is_on_purpose(file: FileFacts, site: CallSite) -> str:
    """Why a call may be the point of the code around it; empty when it is plainly in the way."""
    if not file.is_inference:
        return "the model is loaded elsewhere, and the call may belong to how it is run"
    if not site.what.startswith(("torch.cuda", "gc.")):
        return "it is for another kind of device"
    if site.function.rpartition(".")[2] == "forward":
        return "it stands in a forward pass that moves its own layers"
    return ""


def fix(file: FileFacts, module: Module, wanted: Wanted) -> Iterable[Fix | Held]:
    """Take the call out where it is a statement of the repeated code itself and nothing decides about it."""
    if wanted.wish.cache_clear is None:
        return
    for site in _hot(file):
        call = module.call_at(site.start, site.end)
        obstacle = _is_on_purpose(file, site) or (_obstacle(module, call) if call else "it was not found again")
        made = edits.remove_statement(module, module.statement_of(call)) if call and not obstacle else ()
        if not made:
            because = obstacle or "it shares its line with other statements"
            yield Held(site.line, "take the cache clearing out", because, _BY_HAND, site.end_line)
            continue
        yield Fix(
            site.line,
            made,
            f"`{site.text}` for each request",
            "not called",
            _WHY,
            site.end_line,
            Safety.CHECKED,
            "a statement of the repeated code itself, under no condition, and not for cleaning up",
        )


def _obstacle(module: Module, call: ast.Call) -> str:
    """Why a call can't be plainly cut; empty when it can."""
    statement = module.statement_of(call)
    if not (isinstance(statement, ast.Expr) and statement.value is call):
        return "its result is used"
    for parent in module.ancestors(statement):
        if isinstance(parent, ast.If | ast.ExceptHandler | ast.While) and statement in getattr(parent, "orelse", ()):
            return "it stands in an `else`"
        if isinstance(parent, ast.If) and not _is_availability(module, parent.test):
            return f"`{module.text(parent.test)}` decides about it"
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return _obstacle_of_function(parent) or _obstacle_of_deletion(module, statement)
        if isinstance(parent, ast.For | ast.While | ast.AsyncFor):
            break
    return _obstacle_of_deletion(module, statement)


def _obstacle_of_function(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A function that does not run the model itself is called by name, perhaps from where it has its place."""
    runs = any(isinstance(node, ast.Attribute) and node.attr in RUNS for node in ast.walk(function))
    return "" if runs else f"`{function.name}` does not run the model itself, and its callers decide when it clears"


def _obstacle_of_deletion(module: Module, statement: ast.stmt) -> str:
    """`del model` before it: the memory of something large is meant to be given back."""
    block = module.block_of(statement)
    before = block[: block.index(statement)]
    return "something is deleted before it" if any(isinstance(s, ast.Delete) for s in before[-3:]) else ""


def _is_availability(module: Module, test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and module.resolve(test.func) == "torch.cuda.is_available"


RULE = Rule(
    Explanation(
        code="SCR007",
        title="The CUDA cache is emptied in the request path",
        what="Whether `torch.cuda.empty_cache` or `gc.collect` run for each request or turn, outside of `except` and "
        "`finally`.",
        why="Emptying the cache does not give PyTorch more memory; it hands cached blocks back to the driver and the "
        "next request pays for getting them again. It has its place before a measurement, at shutdown and after "
        "running out of memory.",
        fix="The call is taken out where it is a statement of the loop or handler itself, no condition or option "
        "decides about it, and nothing is deleted before it. Calls for other devices (`torch.mps`, `torch.xpu`), in "
        "an offloading forward pass, and in functions that do not run the model themselves are left. To free memory, "
        "move the call to where the model is replaced: drop all references, `gc.collect()`, then `empty_cache()`.",
        sources=("PyTorch documentation of torch.cuda.empty_cache", "FastVideo#606"),
    ),
    check,
    fix,
    needs_load=False,
    is_advice=True,
)
