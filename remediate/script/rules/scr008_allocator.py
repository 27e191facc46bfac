"""SCR008: the allocator's environment variable is missing, or set when torch has already read it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import msgspec

from remediate.model import Explanation, Outcome
from remediate.script import edits
from remediate.script.facts import AllocatorSite, FileFacts
from remediate.script.reading.module import Module
from remediate.script.reading.surroundings import first_foreign_import
from remediate.script.rules.base import Fix, Held, Rule, Safety, Verdict, Wanted, same
from remediate.script.source import Edit

VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"
"""The one name that every torch from 2.1 to 2.14 reads; `PYTORCH_ALLOC_CONF` is unknown up to 2.8."""

NEW_NAME = (2, 10)
"""torch from which `PYTORCH_ALLOC_CONF` is heeded: unknown up to 2.8, and in 2.9.1 ignored for expandable segments
(pytorch#183387)."""

_BY_HAND = "move it above the first import that is not the standard library's"
_WHY_NAME = f"torch before 2.10 reads `{VARIABLE}` only"
_WHY = "torch reads the variable when CUDA starts; later changes do nothing"


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Judge where the variable is set and by which name; that it is missing, if the profile asks for a value."""
    wish = wanted.wish.allocator
    if not file.allocator and wish is not None:
        yield Verdict(
            1, Outcome.DIFFERS, f"does not set `{VARIABLE}`", "not set", wish, reason=wanted.why("allocator", _WHY)
        )
    for site in file.allocator:
        if not site.is_early:
            summary = f"sets `{site.variable}` after an import that may load torch"
            asked = wish or "set before torch is imported"
            yield Verdict(site.line, Outcome.DIFFERS, summary, "set late", asked, (), _WHY, False, site.end_line)
        elif _is_unknown(site, wanted):
            summary = f"sets `{site.variable}`, which the planned torch does not heed"
            yield Verdict(
                site.line, Outcome.DIFFERS, summary, site.variable, VARIABLE, (), _WHY_NAME, False, site.end_line
            )
        elif wish is None or wish in site.value:
            yield same(site.line, f"sets `{site.variable}` before torch is imported", site.value, wish or "")
        else:
            summary = f"sets `{site.variable}` to another value; left alone"
            yield Verdict(site.line, Outcome.DIFFERS, summary, site.value, wish, (), "", True, site.end_line)


def _is_unknown(site: AllocatorSite, wanted: Wanted) -> bool:
    version = wanted.version("torch")
    return site.variable != VARIABLE and version is not None and version < NEW_NAME


def fix(file: FileFacts, module: Module, wanted: Wanted) -> Iterable[Fix | Held]:
    """Set the variable above the first import that may load torch: the script's own line, or `setdefault`."""
    for site in file.allocator:
        if not site.is_early:
            yield _move(site, module)
        elif _is_unknown(site, wanted):
            yield from _rename(site, module)
    wish = wanted.wish.allocator
    if file.allocator or wish is None:
        return
    before = first_foreign_import(module)
    if before is None or not edits.stands_alone(module, before) or not _is_plain(wish):
        by_hand = f"set `{VARIABLE}={wish}` in the environment that starts the script"
        yield Held(1, "set the allocator variable", "no place for it was found", by_hand)
        return
    lines = [f'os.environ.setdefault("{VARIABLE}", "{wish}")']
    if not _has_os(module, before):
        lines = ["import os", "", *lines]
    made = (edits.insert_lines(module.source, _first_line(before), [*lines, ""]),)
    check_ = "above the first import that is not the standard library's; a value from outside wins"
    yield Fix(before.lineno, made, "not set", wish, wanted.why("allocator", _WHY), 0, Safety.CHECKED, check_)


def _move(site: AllocatorSite, module: Module) -> Fix | Held:
    """The script's own line above the imports: safe where it always runs and says one plain text."""
    held = Held(site.line, "set the allocator variable in time", "", _BY_HAND, site.end_line)
    statement = _statement_at(module, site)
    before = first_foreign_import(module)
    if statement is None or before is None:
        return msgspec.structs.replace(held, because="no place for it was found")
    text = module.text(statement)
    if not site.value or not text.startswith("os.environ"):
        return msgspec.structs.replace(held, because="it is not a plain text that is put into `os.environ`")
    if not (edits.stands_alone(module, statement) and edits.stands_alone(module, before)):
        return msgspec.structs.replace(held, because="it shares its line with other statements")
    function = module.function_of(statement)
    if statement not in (module.tree.body if function is None else function.body):
        return msgspec.structs.replace(held, because="a condition decides about it")
    lines = [text] if _has_os(module, before) else ["import os", "", text]
    first = _first_line(before)
    made = (edits.insert_lines(module.source, first, [*lines, ""]), *edits.remove_statement(module, statement))
    return Fix(
        site.line,
        made,
        "set after torch is loaded",
        f"set before line {first}",
        _WHY,
        site.end_line,
        Safety.SAFE if function is None else Safety.UNSAFE,
        "" if function is None else f"it would be set at import, and not only where `{site.function}` is called",
    )


def _rename(site: AllocatorSite, module: Module) -> Iterable[Fix]:
    statement = _statement_at(module, site)
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Constant) and node.value == site.variable:
            start, end = module.span(node)
            quote = module.source.text[end - 1]
            made = (Edit(start, end, f"{quote}{VARIABLE}{quote}"),)
            yield Fix(site.line, made, f"`{site.variable}`", f"`{VARIABLE}`", _WHY_NAME, site.end_line, Safety.SAFE)


def _statement_at(module: Module, site: AllocatorSite) -> ast.stmt | None:
    found = (node for node in module.every(ast.stmt) if module.span(node) == (site.start, site.end))
    return next(found, None)


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _is_plain(value: str) -> bool:
    """Nothing in the profile's text could end the string literal that it is put into."""
    return value.isascii() and all(character.isalnum() or character in "_:,.[]->= " for character in value)


def _has_os(module: Module, before: ast.stmt) -> bool:
    for statement in module.tree.body:
        if statement is before:
            return False
        if isinstance(statement, ast.Import) and any(a.name == "os" and not a.asname for a in statement.names):
            return True
    return False


RULE = Rule(
    Explanation(
        code="SCR008",
        title="The allocator variable is missing or late",
        what=f"Whether the script sets `{VARIABLE}` before the first import that may load torch, and by a name that "
        "the planned torch reads. That it is missing is judged only where the profile asks for a value.",
        why="With expandable segments the memory that is free after a reload is one block of 12.6 to 12.9 GiB instead "
        "of 226 segments of at most 250 MiB (H200); it did not change latency. Set after torch started CUDA, the "
        "variable does nothing.",
        fix="`os.environ.setdefault` is added above the first import that is not the standard library's, so that a "
        "value from outside wins. The script's own line is moved there where it always runs and sets a plain text; "
        "one in a function with `--unsafe-fixes` only. The name `PYTORCH_ALLOC_CONF` becomes the old one below torch "
        "2.10. The script's own value is never changed.",
        sources=("pytorch#104801", "pytorch#183387", "measured on an H200, torch 2.11"),
    ),
    check,
    fix,
)
