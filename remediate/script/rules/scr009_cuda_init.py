"""SCR009: CUDA is initialised by a private call, or late."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from remediate.model import Explanation, Outcome
from remediate.script import edits
from remediate.script.facts import Device, FileFacts, Load, Scope
from remediate.script.reading.module import Module
from remediate.script.rules.base import Fix, Held, Rule, Verdict, Wanted, advice, describe, device_of_load, same
from remediate.script.rules.scr004_no_placement import obstacle_to_moving
from remediate.script.source import Edit

PRIVATE = "torch.cuda._lazy_init"
_AT_START = (Scope.MODULE, Scope.MAIN, Scope.ONCE)
_WHY_PRIVATE = "`torch.cuda.init()` is the same call in public"
_WHY_EARLY = "moves about 0.3 s out of the first use of the GPU; it saves nothing"


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Judge the initialisation calls, or that there is none."""
    if wanted.wish.cuda_init is None:
        return
    for site in file.cuda_inits:
        if site.what == PRIVATE:
            yield Verdict(
                site.line,
                Outcome.DIFFERS,
                "initialises CUDA by a private call",
                observed=site.text,
                wanted="torch.cuda.init()",
                reason=_WHY_PRIVATE,
                end_line=site.end_line,
            )
        elif site.scope.is_repeated:
            summary = f"initialises CUDA in the request path ({site.scope})"
            yield advice(site.line, summary, "only the first call does anything", site.end_line)
        else:
            yield same(site.line, "initialises CUDA by the public call", site.text, "torch.cuda.init()")
    if wanted.wish.cuda_init == "public" and not file.cuda_inits and file.models:
        yield _without_init(file, wanted)


def _without_init(file: FileFacts, wanted: Wanted) -> Verdict:
    why_not = _reason_to_leave(file, wanted)
    if why_not:
        return same(file.models[0].line, f"CUDA is left to start with the first use: {why_not}")
    return Verdict(
        file.torch_line or file.models[0].line,
        Outcome.DIFFERS,
        "does not initialise CUDA at start",
        observed="with the first use",
        wanted="torch.cuda.init() at start",
        reason=wanted.why("cuda_init", _WHY_EARLY),
        is_advice=not file.torch_name,
    )


def _reason_to_leave(file: FileFacts, wanted: Wanted) -> str:
    """Why CUDA must not start earlier in this script; empty when it may."""
    if file.multiprocess:
        return f"a process that started CUDA can't be forked ({describe(file.multiprocess)})"
    if file.environment:
        return f"the script chooses its GPUs itself ({describe(file.environment)})"
    if any(note.what == "LOCAL_RANK" for note in file.placed_elsewhere):
        return "one process runs for each GPU"
    return _reason_in_loads(file, wanted)


def _reason_in_loads(file: FileFacts, wanted: Wanted) -> str:
    if any(site.form in ("forward", "in place") for site in file.compiles):
        return "the script compiles its model, and so warms up by itself"
    if not all(load.scope in _AT_START for load in file.models):
        return f"the model is not loaded at start ({file.models[0].because})"
    if wanted.wish.device is None or not all(_is_for_gpu(file, load) for load in file.models):
        return "it is not certain that the model runs on the GPU"
    return ""


def _is_for_gpu(file: FileFacts, load: Load) -> bool:
    device = device_of_load(file, load)
    return device in (Device.CUDA, Device.AUTO) or (device is Device.NONE and not obstacle_to_moving(file))


def fix(file: FileFacts, module: Module, wanted: Wanted) -> Iterable[Fix | Held]:
    """Rename the private call; add a guarded public one where the profile asks for it."""
    if wanted.wish.cuda_init is None:
        return
    for site in file.cuda_inits:
        if site.what != PRIVATE:
            continue
        call = module.call_at(site.start, site.end)
        if call is None or not isinstance(call.func, ast.Attribute):
            by_hand = "import torch and call `torch.cuda.init()`"
            yield Held(
                site.line, "use the public call", "the private function was imported by name", by_hand, site.end_line
            )
            continue
        end = module.span(call.func)[1]
        made = (Edit(end - len(call.func.attr), end, "init"),)
        yield Fix(site.line, made, site.text, site.text.replace("_lazy_init", "init"), _WHY_PRIVATE, site.end_line)
    if wanted.wish.cuda_init == "public" and not file.cuda_inits and file.models and not _reason_to_leave(file, wanted):
        yield _addition(file, module, wanted)


def _addition(file: FileFacts, module: Module, wanted: Wanted) -> Fix | Held:
    source = module.source
    last = _end_of_imports(module, file.torch_line) if file.torch_name else None
    if last is None or not edits.stands_alone(module, last):
        because = "torch is not imported at module level" if not file.torch_name else "its import shares a line"
        by_hand = "call `torch.cuda.init()` before the load, if `torch.cuda.is_available()`"
        return Held(file.torch_line or 1, "initialise CUDA at start", because, by_hand)
    line = (last.end_lineno or last.lineno) + 1
    torch = file.torch_name
    lines = [
        "",
        f"if {torch}.cuda.is_available():",
        f"{edits.indent_unit(source)}{torch}.cuda.init()  # at start instead of with the first use",
    ]
    if line <= len(source.line_starts) and source.line_text(line).strip():
        lines.append("")
    made = (edits.insert_lines(source, line, lines),)
    return Fix(
        file.torch_line, made, "with the first use", f"`{torch}.cuda.init()`", wanted.why("cuda_init", _WHY_EARLY)
    )


def _end_of_imports(module: Module, torch_line: int) -> ast.stmt | None:
    """The last of the imports that follow the one of torch without anything between."""
    last = None
    for statement in module.tree.body:
        if last is None and (statement.end_lineno or statement.lineno) != torch_line:
            continue
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            break
        last = statement
    return last


RULE = Rule(
    Explanation(
        code="SCR009",
        title="CUDA is initialised privately or late",
        what="Calls of `torch.cuda._lazy_init` and `torch.cuda.init`, and whether the program starts other processes.",
        why="`_lazy_init` is private and `init` is the same call. Calling it early moves the cost and saves none: 0.26 "
        "s and then 0.18 s for the first tensor, against 0.31 s without it, on an H200. In a program that forks "
        'workers it breaks every worker ("Cannot re-initialize CUDA in forked subprocess").',
        fix='A private call becomes the public one. Where the profile says `cuda_init = "public"`, a call guarded by '
        "`torch.cuda.is_available()` is added after the imports of a single-process script that loads at start.",
        sources=("torch/cuda/__init__.py of 2.1.2, 2.2.0 and 2.13", "pytorch#68861", "measured on an H200, torch 2.11"),
    ),
    check,
    fix,
)
