"""SCR008: the allocator's environment variable is missing, or set when torch has already read it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from remediate.model import Explanation, Outcome
from remediate.script import edits
from remediate.script.facts import FileFacts
from remediate.script.reading.module import Module
from remediate.script.reading.surroundings import first_foreign_import
from remediate.script.rules.base import Fix, Held, Rule, Verdict, Wanted, same

VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"
"""The one name that every torch from 2.1 to 2.14 reads; `PYTORCH_ALLOC_CONF` is unknown up to 2.8."""

_WHY = "torch reads the variable when CUDA starts; later changes do nothing"


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Judge where the variable is set, if the profile asks for a value."""
    wish = wanted.wish.allocator
    if wish is None:
        return
    if not file.allocator:
        yield Verdict(
            1, Outcome.DIFFERS, f"does not set `{VARIABLE}`", "not set", wish, reason=wanted.why("allocator", _WHY)
        )
    for site in file.allocator:
        if not site.is_early:
            summary = f"sets `{site.variable}` after an import that may load torch"
            yield Verdict(site.line, Outcome.DIFFERS, summary, "set late", wish, (), _WHY, False, site.end_line)
        elif wish in site.value:
            yield same(site.line, f"sets `{site.variable}` before torch is imported", site.value, wish)
        else:
            summary = f"sets `{site.variable}` to another value; left alone"
            yield Verdict(site.line, Outcome.DIFFERS, summary, site.value, wish, (), "", True, site.end_line)


def fix(file: FileFacts, module: Module, wanted: Wanted) -> Iterable[Fix | Held]:
    """Put `os.environ.setdefault` above the first import that may load torch."""
    wish = wanted.wish.allocator
    if wish is None:
        return
    for site in file.allocator:
        if not site.is_early:
            by_hand = "move it above the first import that is not the standard library's"
            yield Held(
                site.line,
                "set the allocator variable in time",
                "it is the script's own setting",
                by_hand,
                site.end_line,
            )
    if file.allocator:
        return
    before = first_foreign_import(module)
    if before is None or not edits.stands_alone(module, before) or not _is_plain(wish):
        by_hand = f"set `{VARIABLE}={wish}` in the environment that starts the script"
        yield Held(1, "set the allocator variable", "no place for it was found", by_hand)
        return
    lines = [f'os.environ.setdefault("{VARIABLE}", "{wish}")']
    if not _has_os(module, before):
        lines = ["import os", "", *lines]
    first = min([before.lineno, *(d.lineno for d in getattr(before, "decorator_list", ()))])
    made = (edits.insert_lines(module.source, first, [*lines, ""]),)
    yield Fix(before.lineno, made, "not set", wish, wanted.why("allocator", _WHY))


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
        what=f"Whether the script sets `{VARIABLE}` before the first import that may load torch. Judged only where the "
        "profile asks for a value.",
        why="With expandable segments the memory that is free after a reload is one block of 12.6 to 12.9 GiB instead "
        "of 226 segments of at most 250 MiB (H200); it did not change latency. Set after torch started CUDA, the "
        "variable does nothing.",
        fix="`os.environ.setdefault` is added above the first import that is not the standard library's, so that a "
        "value from outside wins. A setting of the script's own is never changed.",
        sources=("pytorch#104801", "pytorch#183387", "measured on an H200, torch 2.11"),
    ),
    check,
    fix,
)
