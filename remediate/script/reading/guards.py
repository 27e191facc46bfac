"""Inference guards: what they cover, whether they reach the model, and what speaks against `inference_mode` there.

A guard holds for the thread that enters it and nothing else. Measured with torch 2.14.1: a decorator does nothing for
a thread that the function starts, and nothing at all on an `async def`; a `with` block leaks across a `yield` into the
consumer and across an `await` into other tasks of the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remediate.script.facts import GuardSite, ThreadRun
from remediate.script.reading.module import FUNCTIONS, Function, Module, keyword, last_name
from remediate.script.reading.reach import Reach
from remediate.script.reading.tracks import Tracks

NO_GRAD = "torch.no_grad"
INFERENCE_MODE = "torch.inference_mode"
_NAMES = ("no_grad", "inference_mode")
RUNS = frozenset(("generate", "chat", "stream_chat", "stream_generate", "forward"))
_STARTERS = frozenset(("Thread", "Timer", "submit", "to_thread", "run_in_executor", "start_new_thread"))
_AUTOGRAD = frozenset(("backward", "requires_grad", "requires_grad_", "enable_grad", "grad", "autograd"))


def guard_sites(module: Module, tracks: Tracks, reach: Reach) -> tuple[GuardSite, ...]:
    """Every use of `no_grad` and `inference_mode`, in the order of the text."""
    found = []
    for node in module.every(ast.expr):
        may_be = isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and node.attr in _NAMES)
        dotted = module.resolve(node) if may_be else ""
        if dotted in (NO_GRAD, INFERENCE_MODE):
            found.append(_guard_site(module, tracks, reach, node, dotted))
    return tuple(found)


def _guard_site(module: Module, tracks: Tracks, reach: Reach, node: ast.expr, dotted: str) -> GuardSite:
    start, end = module.span(node)
    form, region = _region_of(module, node)
    is_running = any(_runs_model(module, tracks, part) for part in _same_thread(region))
    return GuardSite(
        line=node.lineno,
        end_line=node.end_lineno or node.lineno,
        start=start,
        end=end,
        what=dotted,
        scope=reach.where(node).scope,
        text=module.text(node),
        function=module.qualified_name(module.function_of(node)),
        form=form,
        covers_run=is_running,
        misses=_what_it_misses(module, tracks, form, region),
        obstacle=_obstacle(module, tracks, node, region) if form else "it is neither a decorator nor a `with`",
    )


def _region_of(module: Module, node: ast.expr) -> tuple[str, list[ast.stmt]]:
    """`decorator` or `with`, and the statements that the guard is meant for."""
    outer: ast.AST = node
    parent = module.parents[node]
    if isinstance(parent, ast.Call) and parent.func is node:
        outer, parent = parent, module.parents[parent]
    if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and outer in parent.decorator_list:
        return "decorator", [parent]
    if isinstance(parent, ast.withitem):
        block = module.parents[parent]
        return "with", block.body if isinstance(block, ast.With) else []
    return "", []


def _same_thread(region: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes below some statements, without those of functions that are only defined there."""
    waiting: list[ast.AST] = []
    for statement in region:
        if len(region) == 1 and isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += statement.body
        else:
            waiting.append(statement)
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, FUNCTIONS)]


def _runs_model(module: Module, tracks: Tracks, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in RUNS and not module.resolve(node.func):
        return True
    return bool(tracks.loads_of(node.func)) if isinstance(node.func, ast.Name | ast.Attribute) else False


def _what_it_misses(module: Module, tracks: Tracks, form: str, region: list[ast.stmt]) -> str:
    """Why a guard does nothing for the model's run inside of it; empty when it may work."""
    first = region[0] if region else None
    if form == "decorator" and isinstance(first, ast.AsyncFunctionDef):
        is_running = any(_runs_model(module, tracks, node) for node in ast.walk(first))
        return f"a decorator on `async def {first.name}` ends before its body runs" if is_running else ""
    for node in _same_thread(region):
        if isinstance(node, ast.Call) and started_run(module, tracks, node) is not None:
            return f"line {node.lineno} runs the model in another thread"
    return ""


def started_run(module: Module, tracks: Tracks, call: ast.Call) -> ast.expr | None:
    """The function that a call hands to another thread, where that function runs a model."""
    if last_name(call) not in _STARTERS:
        return None
    value = keyword(call, "target")
    candidates = [value] if value is not None else call.args[:2]
    for candidate in candidates:
        if isinstance(candidate, ast.Attribute) and candidate.attr in RUNS and not module.resolve(candidate):
            return candidate
        function = _function_named(module, candidate)
        if function is not None and any(_runs_model(module, tracks, node) for node in ast.walk(function)):
            return candidate
    return None


def _function_named(module: Module, node: ast.expr) -> Function | None:
    if not isinstance(node, ast.Name):
        return None
    found = [function for function in module.functions if function.name == node.id]
    return found[0] if len(found) == 1 else None


def thread_runs(module: Module, tracks: Tracks) -> tuple[ThreadRun, ...]:
    """Where the model's run is handed to another thread, and whether a guard stands in what that thread runs."""
    found = []
    for call in module.calls:
        target = started_run(module, tracks, call)
        if target is None:
            continue
        function = _function_named(module, target)
        is_guarded = function is not None and any(
            module.resolve(node) in (NO_GRAD, INFERENCE_MODE)
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute | ast.Name)
        )
        found.append(ThreadRun(call.lineno, call.end_lineno or call.lineno, module.text(target), is_guarded))
    return tuple(found)


def _obstacle(module: Module, tracks: Tracks, node: ast.expr, region: list[ast.stmt]) -> str:
    """Why `no_grad` must not become `inference_mode` there; empty when nothing speaks against it."""
    if not isinstance(node, ast.Attribute):
        return "it was imported by name"
    parts = list(_same_thread(region))
    if any(isinstance(part, ast.Yield | ast.YieldFrom | ast.Await) for part in parts):
        return "a `yield` or `await` stands inside, and the mode would leak out"
    if any(isinstance(part, ast.Call) and started_run(module, tracks, part) is not None for part in parts):
        return "the model runs in another thread"
    if any(isinstance(part, ast.Call) and part in tracks.loads for part in parts):
        return "a model is loaded inside, and its weights would become inference tensors"
    return _obstacle_of_file(module) or _obstacle_of_outputs(module, region, parts)


def _obstacle_of_file(module: Module) -> str:
    for node in module.every(ast.Attribute):
        if node.attr in _AUTOGRAD:
            return f"`{node.attr}` is used in the file"
        if node.attr == "compile" and not module.resolve(node).startswith("re."):
            return "something is compiled in the file"
    for call in module.calls:
        if last_name(call) == "deepcopy":
            return "something is deep-copied in the file"
    return ""


def _obstacle_of_outputs(module: Module, region: list[ast.stmt], parts: list[ast.AST]) -> str:
    """What is made inside must not be changed in place outside: torch refuses that for inference tensors."""
    inside = set(map(id, parts))
    names = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    is_function = len(region) == 1 and isinstance(region[0], ast.FunctionDef | ast.AsyncFunctionDef)
    if is_function:
        return ""
    for node in module.nodes:
        changed = _changed_in_place(node) if id(node) not in inside else ""
        if changed in names:
            return f"`{changed}` is changed in place outside of the block"
    return ""


def _changed_in_place(node: ast.AST) -> str:
    """The name that a statement or call changes in place."""
    target: ast.AST | None = None
    if isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        target = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        target = node.func.value if method.endswith("_") and not method.startswith("_") else None
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""
