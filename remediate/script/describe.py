"""What a person wants to see of the script facts. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from remediate.script.compare import display_path
from remediate.script.facts import Device, FileFacts, Load, ScriptFacts


def describe_scripts(facts: ScriptFacts, folder: str) -> tuple[tuple[str, str], ...]:
    """Label and value: each script, and the loads, compiles and initialisations in it by line."""
    if not facts.files:
        return (("scripts", "none that loads a model"),)
    rows: list[tuple[str, str]] = []
    for file in facts.files:
        name = display_path(file.path, folder)
        rows.append(
            ("script", f"{name} ({file.encoding or 'not text'}, {file.newline or 'no lines'}, {file.size} bytes)")
        )
        rows += _describe_file(file)
    return tuple(rows)


def _describe_file(file: FileFacts) -> Iterator[tuple[str, str]]:
    if file.problem:
        yield "problem", f"line {file.problem_line}: {file.problem}" if file.problem_line else file.problem
        return
    for load in file.loads:
        yield "load", f"{_place(file, load.line)}: {_describe_load(load)}"
    for site in file.compiles:
        yield "compile", f"{_place(file, site.line)}: {site.text}{' (never run)' if site.is_dead else ''}"
    for init in file.cuda_inits:
        yield "CUDA", f"{_place(file, init.line)}: {init.text}"
    for allocator in file.allocator:
        yield "allocator", f"{_place(file, allocator.line)}: {allocator.variable}={allocator.value or '?'}"


def _place(file: FileFacts, line: int) -> str:
    place = file.place(line)
    return place if file.cells else f"line {place}"


def _describe_load(load: Load) -> str:
    placed = load.placements[-1].text if load.placements else Device.NONE
    dtype = load.dtype or "no dtype"
    name = load.loader.removesuffix(".from_pretrained").rsplit(".", 1)[-1]
    return f"{name} {load.model or '?'}, {load.because}; {placed}; {dtype}"
