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
    advice.GUARD,
    advice.WARM_UP,
    advice.LAZY,
    advice.REVISION,
    advice.BENCHMARK,
)
