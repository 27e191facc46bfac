"""Moving the call of a loading function out of a handler: part of SCR001's fix.

`model, tokenizer = load("m")` in a handler becomes the same line at module level, where `load` does nothing but load.
"""

from __future__ import annotations

import ast

from remediate.script import edits
from remediate.script.reading.module import Module
from remediate.script.reading.tracks import is_pipeline
from remediate.script.reading.values import is_constant
from remediate.script.source import Edit

_HARMLESS_METHODS = frozenset(("eval", "to", "cuda", "half", "bfloat16", "requires_grad_"))


def loader_call(module: Module, loader: ast.FunctionDef) -> tuple[ast.FunctionDef, ast.Assign] | None:
    """The one place that calls a function which only loads, as an assignment of a plain function's own body."""
    uses = [node for node in module.every(ast.Name) if node.id == loader.name and isinstance(node.ctx, ast.Load)]
    if loader not in module.tree.body or len(uses) != 1 or not _only_loads(module, loader):
        return None
    call = module.parents[uses[0]]
    statement = module.statement_of(uses[0])
    caller = module.parents[statement]
    is_plain = isinstance(statement, ast.Assign) and statement.value is call and isinstance(caller, ast.FunctionDef)
    if not is_plain or caller not in module.tree.body or caller is loader:
        return None
    return (caller, statement) if isinstance(caller, ast.FunctionDef) and isinstance(statement, ast.Assign) else None


def _only_loads(module: Module, loader: ast.FunctionDef) -> bool:
    """Whether a function makes models, tokenizers and pipelines, sets them up, returns them, and does nothing else."""
    if loader.decorator_list:
        return False
    for statement in loader.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr | ast.Return):
            return False
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        if not all(_is_loading(module, call) for call in calls):
            return False
    return True


def _is_loading(module: Module, call: ast.Call) -> bool:
    dotted = module.resolve(call.func)
    if dotted.startswith(("transformers.", "peft.", "torch.device")):
        return dotted.endswith(".from_pretrained") or is_pipeline(dotted) or dotted == "torch.device"
    is_method = isinstance(call.func, ast.Attribute) and not dotted
    return is_method and isinstance(call.func, ast.Attribute) and call.func.attr in _HARMLESS_METHODS


def obstacle(module: Module, loader: ast.FunctionDef, caller: ast.FunctionDef, statement: ast.Assign) -> str:
    """Why the call can't be moved; empty when it can."""
    call = statement.value
    values = [*call.args, *(argument.value for argument in call.keywords)] if isinstance(call, ast.Call) else []
    if not all(is_constant(module, value) for value in values):
        return f"what `{loader.name}` is called with depends on the call"
    body = module.tree.body
    if body.index(loader) > body.index(caller):
        return f"`{loader.name}` is defined after `{caller.name}`"
    if any(isinstance(node, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom) for node in ast.walk(caller)):
        return f"`{caller.name}` uses global names or is a generator"
    if not edits.stands_alone(module, statement):
        return "it shares its line with other statements"
    return _obstacle_of_names(module, caller, statement) or _obstacle_before(module, caller, statement)


def _obstacle_of_names(module: Module, caller: ast.FunctionDef, statement: ast.Assign) -> str:
    target = statement.targets[0]
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    for name in names:
        if len(statement.targets) != 1 or not isinstance(name, ast.Name):
            return "the result is not bound to plain names"
        taken = module.names.bound_in(module.tree) | set(module.names.imported)
        stores = [node for node in module.stores.get(name.id, ()) if module.function_of(node) is caller]
        is_argument = any(
            argument.arg == name.id for argument in ast.walk(caller.args) if isinstance(argument, ast.arg)
        )
        if name.id in taken or len(stores) != 1 or is_argument:
            return f"`{name.id}` is bound in more than one place"
    return ""


def _obstacle_before(module: Module, caller: ast.FunctionDef, statement: ast.Assign) -> str:
    for earlier in caller.body[: caller.body.index(statement)]:
        is_text = isinstance(earlier, ast.Expr) and isinstance(earlier.value, ast.Constant)
        calls = any(isinstance(node, ast.Call | ast.Await | ast.With) for node in ast.walk(earlier))
        if not is_text and (calls or not isinstance(earlier, ast.Assign)):
            return f"`{module.text(earlier)[:40]}` runs before the load"
    return ""


def moved(module: Module, caller: ast.FunctionDef, statement: ast.Assign) -> tuple[Edit, ...]:
    """The edits: the statement at module level before the caller, and gone (or `pass`) in it."""
    source = module.source
    first = min([caller.lineno, *(decorator.lineno for decorator in caller.decorator_list)])
    while first > 1 and source.line_text(first - 1).startswith("#"):
        first -= 1
    start, end = module.span(statement)
    text = source.text[start : source.line_start(source.line_of(end) + 1)].rstrip("\r\n")
    return (edits.insert_lines(source, first, [text, "", ""]), *edits.remove_statement(module, statement))
