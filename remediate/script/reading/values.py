"""What an expression comes to where that can be told from the file: devices and constants."""

from __future__ import annotations

import ast

from remediate.script.facts import Device
from remediate.script.reading.module import Module

_MAX_HOPS = 6
"""Assignments followed for one value; enough for `device = args.device or DEFAULT`, and no cycle hangs it."""

_SPREADING = ("auto", "balanced", "balanced_low_0", "sequential")


def device_of(module: Module, node: ast.AST | None, models: frozenset[str] = frozenset(), hops: int = 0) -> Device:
    """Where an expression that names a device points.

    Args:
        models: names of models, so that `model.device` is recognised.
        hops: how many assignments were followed already.
    """
    if node is None:
        return Device.NONE
    if isinstance(node, ast.Constant):
        return _device_of_constant(node.value)
    if isinstance(node, ast.Attribute) and node.attr == "device" and module.text(node.value) in models:
        return Device.MODEL
    parts = _alternatives(module, node) if hops < _MAX_HOPS else []
    return join_devices({device_of(module, part, models, hops + 1) for part in parts})


def _alternatives(module: Module, node: ast.AST) -> list[ast.expr]:
    """The expressions that one may stand for: both sides of `x if y else z`, the values given to a name."""
    if isinstance(node, ast.JoinedStr):
        return node.values[:1] if node.values and isinstance(node.values[0], ast.Constant) else []
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, ast.Call):
        return node.args[:1] if module.resolve(node.func) == "torch.device" else []
    return assigned_values(module, node) if isinstance(node, ast.Name | ast.Attribute) else []


def join_devices(devices: set[Device]) -> Device:
    """One answer for alternatives: a GPU with a fallback counts as the GPU; what is not certain stays unknown."""
    if len(devices) == 1:
        return devices.pop()
    if not devices or Device.UNKNOWN in devices or Device.MODEL in devices or Device.AUTO in devices:
        return Device.UNKNOWN
    return Device.CUDA if Device.CUDA in devices else Device.OTHER


def _device_of_constant(value: object) -> Device:
    if isinstance(value, bool) or value is None:
        return Device.NONE if value is None else Device.UNKNOWN
    if isinstance(value, int):
        return Device.CUDA if value >= 0 else Device.CPU
    if not isinstance(value, str):
        return Device.UNKNOWN
    if value in _SPREADING:
        return Device.AUTO
    kind = value.split(":")[0]
    return {"cuda": Device.CUDA, "cpu": Device.CPU}.get(kind, Device.OTHER)


def assigned_values(module: Module, node: ast.Name | ast.Attribute) -> list[ast.expr]:
    """The values that a name is given anywhere in the file; empty when one of them can't be followed."""
    text = module.text(node)
    if any(argument.arg == text for argument in module.every(ast.arg)):
        return []
    values: list[ast.expr] = []
    for store in module.stores.get(text, ()):
        parent = module.parents[store]
        is_assigned = isinstance(parent, ast.Assign | ast.AnnAssign) and store is not parent.value
        value = parent.value if is_assigned and isinstance(parent, ast.Assign | ast.AnnAssign) else None
        if value is None or (isinstance(parent, ast.Assign) and store not in parent.targets):
            return []
        values.append(value)
    return values


def is_constant(module: Module, node: ast.AST) -> bool:
    """Whether an expression is the same each time it is evaluated: literals, imported names, module constants."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and not _is_constant_name(module, part):
            return False
        if isinstance(part, ast.Call | ast.Await | ast.Yield | ast.Lambda | ast.NamedExpr | ast.Starred):
            return False
    return True


def _is_constant_name(module: Module, node: ast.Name) -> bool:
    if module.resolve(node):
        return True
    stores = module.stores.get(node.id, [])
    arguments = any(argument.arg == node.id for argument in module.every(ast.arg))
    if len(stores) != 1 or arguments:
        return False
    statement = module.parents[stores[0]]
    return (
        isinstance(statement, ast.Assign)
        and statement in module.tree.body
        and statement.lineno < node.lineno
        and isinstance(statement.value, ast.Constant)
    )
