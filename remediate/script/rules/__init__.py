"""The rules about an inference script, one module each; `RULES` lists them in the order of their codes."""

from __future__ import annotations

from remediate.script.rules import (
    advice,
    scr000_unreadable,
    scr001_reload,
    scr002_dead_compile,
    scr003_device_mismatch,
    scr004_no_placement,
    scr005_placed_twice,
    scr006_no_dtype,
    scr007_cache_clear,
    scr008_allocator,
    scr009_cuda_init,
    scr010_guard,
    scr015_guard_reach,
    scr016_compiled_generate,
)
from remediate.script.rules.base import Rule

UNREADABLE = scr000_unreadable.RULE
"""Speaks about files that the others are not asked about."""

RULES: tuple[Rule, ...] = (
    scr001_reload.RULE,
    scr002_dead_compile.RULE,
    scr003_device_mismatch.RULE,
    scr004_no_placement.RULE,
    scr005_placed_twice.RULE,
    scr006_no_dtype.RULE,
    scr007_cache_clear.RULE,
    scr008_allocator.RULE,
    scr009_cuda_init.RULE,
    scr010_guard.RULE,
    advice.WARM_UP,
    advice.LAZY,
    advice.REVISION,
    advice.BENCHMARK,
    scr015_guard_reach.RULE,
    scr016_compiled_generate.RULE,
)

# fmt: off
_BY_COST = (
    "SCR000", "SCR001", "SCR002", "SCR016", "SCR003", "SCR004", "SCR005", "SCR006", "SCR007", "SCR008", "SCR009",
    "SCR015", "SCR010", "SCR012", "SCR011", "SCR013", "SCR014",
)
# fmt: on


def rank(code: str) -> int:
    """Place of a rule by what its fault costs: a reload first, what holds for nearly every script last."""
    return _BY_COST.index(code)
