"""The values of expressions where a reader of the file could tell them: constants, options' defaults, arguments."""

from __future__ import annotations

import ast
import math
from typing import TypeAlias

from remediate.script.reading.module import Function, Module, constant, keyword

Literal: TypeAlias = str | int | float | bool | list["Literal"] | dict[str, "Literal"] | None

_MAX_HOPS = 6
_MAX_TEXT = 20_000
_ENVIRONMENT = ("os.getenv", "os.environ.get")


class NoLiteralError(ValueError):
    """The file alone does not tell the value."""


def literal(module: Module, node: ast.AST | None, hops: int = 0) -> Literal:
    """The one value of an expression.

    A name counts for its only assignment, `args.x` for the default of `--x`, `os.getenv("X", y)` for `y`, and the
    parameter of a function for what its only caller passes.

    Raises:
        NoLiteralError: it can't be told, or is no text, number, list or table of such.
    """
    if node is None or hops > _MAX_HOPS:
        raise NoLiteralError
    if isinstance(node, ast.Constant):
        return _checked(node.value)
    if isinstance(node, ast.List | ast.Tuple):
        return [literal(module, item, hops + 1) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {_key(key): literal(module, value, hops + 1) for key, value in zip(node.keys, node.values, strict=True)}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = literal(module, node.operand, hops + 1)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return -value
    if isinstance(node, ast.Call):
        return _of_call(module, node, hops)
    return literal(module, _behind(module, node), hops + 1)


def text(module: Module, node: ast.AST | None) -> str | None:
    """The text that an expression stands for; None when it is none or can't be told."""
    try:
        value = literal(module, node)
    except NoLiteralError:
        return None
    return value if isinstance(value, str) else None


def _checked(value: object) -> Literal:
    if isinstance(value, float) and not math.isfinite(value):
        raise NoLiteralError
    if isinstance(value, str) and len(value) > _MAX_TEXT:
        raise NoLiteralError
    if value is None or isinstance(value, str | int | float):
        return value
    raise NoLiteralError


def _key(node: ast.expr | None) -> str:
    value = constant(node)
    if not isinstance(value, str):
        raise NoLiteralError
    return value


def _of_call(module: Module, call: ast.Call, hops: int) -> Literal:
    """`os.getenv("X", "y")`, and `dict(a=1)`."""
    name = module.resolve(call.func)
    if name in _ENVIRONMENT and len(call.args) > 1:
        return literal(module, call.args[1], hops + 1)
    if isinstance(call.func, ast.Name) and call.func.id == "dict" and not call.args:
        return {argument.arg or "": literal(module, argument.value, hops + 1) for argument in call.keywords}
    raise NoLiteralError


def _behind(module: Module, node: ast.AST) -> ast.AST | None:
    """The only expression that a name or attribute is given."""
    if isinstance(node, ast.Attribute):
        return _default_of_option(module, node.attr) or _only_value(module, module.text(node))
    if not isinstance(node, ast.Name):
        return None
    function = module.function_of(node)
    if function is not None and node.id in parameters(function):
        passed = arguments_for(module, function, node.id)
        return passed[0] if len(passed) == 1 else None
    return _only_value(module, node.id)


def _only_value(module: Module, name: str) -> ast.AST | None:
    stores = module.stores.get(name, [])
    if len(stores) != 1:
        return None
    parent = module.parents[stores[0]]
    if isinstance(parent, ast.Assign) and stores[0] in parent.targets:
        return parent.value
    return parent.value if isinstance(parent, ast.AnnAssign) else None


def _default_of_option(module: Module, name: str) -> ast.expr | None:
    """The default that argparse gives an option."""
    for call in module.calls:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"):
            continue
        flags = [flag for flag in map(constant, call.args) if isinstance(flag, str)]
        if any(flag.lstrip("-").replace("-", "_") == name for flag in flags):
            return keyword(call, "default")
    return None


def parameters(function: Function) -> list[str]:
    """Names of a function's parameters that can be given by position, in order."""
    return [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]


def arguments_for(module: Module, function: Function, name: str) -> list[ast.expr]:
    """What the calls in the file pass for a parameter of a plain function or a method, in the order of the text."""
    names = parameters(function)
    position = names.index(name) - (1 if names[:1] in (["self"], ["cls"]) else 0)
    found = []
    for call in module.calls:
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if called != function.name:
            continue
        given = keyword(call, name) or (call.args[position] if 0 <= position < len(call.args) else None)
        if given is not None:
            found.append(given)
    return found
