"""SCR005: a model that a device map places is moved once more."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from remediate.model import Explanation, Outcome
from remediate.script import edits
from remediate.script.facts import Device, FileFacts, Load, Placement
from remediate.script.reading.module import Module
from remediate.script.rules.base import Fix, Held, Rule, Verdict, Wanted
from remediate.script.source import Edit

_WHY = "moving a model that accelerate dispatched does nothing, or raises where parts of it are offloaded"


def _moves(load: Load) -> list[Placement]:
    """The moves that always follow a device map or quantisation; another branch may need its own."""
    if not any(placement.how in ("device_map", "quantised") for placement in load.placements):
        return []
    return [placement for placement in load.placements if placement.how in ("to", "cuda") and placement.is_direct]


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Report each move that comes after a device map."""
    if wanted.wish.device is None:
        return
    for load in file.models:
        for move in _moves(load):
            yield Verdict(
                move.line,
                Outcome.DIFFERS,
                f"moves the model again, which line {load.line} already placed ({load.placements[0].text})",
                observed=f"{load.placements[0].text}, then .{move.how}",
                wanted="one placement",
                reason=_WHY,
                is_advice=_obstacle(file, load, move) != "",
                end_line=move.end_line,
            )


def _obstacle(file: FileFacts, load: Load, move: Placement) -> str:
    if len(file.models) > 1:
        return "the script loads several models"
    if not move.is_plain:
        return "it does more than move"
    if move.device is not Device.CUDA or load.placements[0].device not in (Device.CUDA, Device.AUTO):
        return "the two places are not the same GPU for certain"
    return ""


def fix(file: FileFacts, module: Module, wanted: Wanted) -> Iterable[Fix | Held]:
    """Take out a move on the same path as the load."""
    if wanted.wish.device is None:
        return
    for load in file.models:
        for move in _moves(load):
            obstacle = _obstacle(file, load, move)
            call = module.call_at(move.start, move.end)
            made = _removal(module, call) if call and not obstacle else ()
            if made and call:
                yield Fix(move.line, made, module.text(call), f"only {load.placements[0].text}", _WHY, move.end_line)
            else:
                because = obstacle or "the call can't be cut out cleanly"
                yield Held(move.line, "place the model once", because, f"delete `.{move.how}(...)`", move.end_line)


def _removal(module: Module, call: ast.Call) -> tuple[Edit, ...]:
    statement = module.statement_of(call)
    model = module.text(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    is_whole = (
        isinstance(statement, ast.Expr | ast.Assign)
        and statement.value is call
        and model.replace(".", "").isidentifier()
    )
    if is_whole and (isinstance(statement, ast.Expr) or _rebinds(module, statement, model)):
        return edits.remove_statement(module, statement)
    if not isinstance(call.func, ast.Attribute):
        return ()
    start, end = module.span(call.func.value)[1], module.span(call)[1]
    is_clean = (
        module.source.text[start:end].lstrip(" \t\r\n\\").startswith(".") and "#" not in module.source.text[start:end]
    )
    return (Edit(start, end, ""),) if is_clean else ()


def _rebinds(module: Module, statement: ast.stmt, model: str) -> bool:
    return isinstance(statement, ast.Assign) and [module.text(target) for target in statement.targets] == [model]


RULE = Rule(
    Explanation(
        code="SCR005",
        title="The model is placed twice",
        what="Whether a model that `device_map` or quantisation has placed is moved by `.to` or `.cuda` as well.",
        why="It is a no-op at best; a model of which parts are offloaded refuses to be moved, and a quantised one too.",
        fix="The move is taken out where it stands in the same block as the load and does nothing else.",
        sources=("accelerate 1.15.0, dispatch_model; tested with transformers 5.24.0",),
    ),
    check,
    fix,
)
