"""Whether a function loads at its first call and keeps the model: lazy singletons, caches, guards by `is None`."""

from __future__ import annotations

import ast
import re

from remediate.script.reading.module import Function, Module, last_name

_MISSING_TEST = re.compile(r"\bis None\b|\bnot in\b|\bnot hasattr\b|^not \w|== None|\bif not\b|\.get\(.*\) is None")
_PRESENT_TEST = re.compile(r"is not None|^[\w.]+$| in |^hasattr|!= None")
_MISSING_ERRORS = frozenset(("KeyError", "AttributeError", "NameError", "LookupError"))


def is_lazy(module: Module, node: ast.AST, function: Function) -> bool:
    """Whether a load is kept, and made only where it is missing."""
    return _is_tested(module, node, function) and keeps(module, node, function)


def keeps(module: Module, node: ast.AST, function: Function) -> bool:
    """Whether what is loaded outlives the call: in a global, an attribute, or an entry of something."""
    if _sets_a_global(function):
        return True
    statement = module.statement_of(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if any(not isinstance(target, ast.Name | ast.Tuple) for target in targets):
        return True
    names = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return any(_stores(part, names) for part in ast.walk(function) if isinstance(part, ast.Assign))


def _sets_a_global(function: Function) -> bool:
    """A function that only reads a global name often declares it too."""
    declared = {
        name for part in ast.walk(function) if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names
    }
    stored = {part.id for part in ast.walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return bool(declared & stored)


def _stores(statement: ast.Assign, names: set[str]) -> bool:
    """`CACHE[key] = model`, `self.model = model`, `CACHE[key] = (model, tokenizer)`."""
    is_outside = any(isinstance(target, ast.Attribute | ast.Subscript) for target in statement.targets)
    parts = (*getattr(statement.value, "elts", ()), statement.value)
    return is_outside and any(isinstance(part, ast.Name) and part.id in names for part in parts)


def _is_tested(module: Module, node: ast.AST, function: Function) -> bool:
    for parent in module.ancestors(node):
        if parent is function:
            break
        if isinstance(parent, ast.If) and _MISSING_TEST.search(module.text(parent.test)):
            return True
        if (
            isinstance(parent, ast.ExceptHandler)
            and parent.type is not None
            and last_name(parent.type) in _MISSING_ERRORS
        ):
            return True
    return _returns_early(module, function, node)


def _returns_early(module: Module, function: Function, node: ast.AST) -> bool:
    """`if model is not None: return model` before the load."""
    line = getattr(node, "lineno", 0)
    for statement in function.body:
        if statement.lineno >= line:
            return False
        is_check = isinstance(statement, ast.If) and _PRESENT_TEST.search(module.text(statement.test))
        if is_check and any(isinstance(part, ast.Return) for part in ast.walk(statement)):
            return True
    return False
