"""SCR002: torch.compile on a model that is only used through generate, which never runs what was compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from remediate.model import Explanation, Outcome
from remediate.script import edits
from remediate.script.facts import CompileSite, FileFacts
from remediate.script.reading.module import Module
from remediate.script.reading.values import is_constant
from remediate.script.rules.base import Fix, Held, Rule, Verdict, Wanted, same
from remediate.script.source import Edit

_WHY = "generate runs the original forward pass of the model inside of the wrapper, so nothing is compiled"


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Judge each compile by whether anything runs what it made."""
    if wanted.wish.compile is None:
        return
    for site in file.compiles:
        if site.is_dead:
            yield Verdict(
                site.line,
                Outcome.DIFFERS,
                "compiles a model that only `generate` is called on, so nothing is compiled",
                observed=site.text,
                wanted="no compile, or one that generate uses",
                reason=wanted.why("compile", _WHY),
                end_line=site.end_line,
            )
        elif site.form in ("forward", "in place"):
            yield same(site.line, "compiles the forward pass that generate runs", site.text)
        else:
            yield Verdict(
                site.line,
                Outcome.UNKNOWN,
                f"can't tell whether generate uses this compile (`{site.form}`)",
                observed=site.text,
                is_advice=True,
                end_line=site.end_line,
            )


def fix(file: FileFacts, module: Module, wanted: Wanted) -> Iterable[Fix | Held]:
    """Take the compile out: the statement, or the call around the model."""
    if wanted.wish.compile is None:
        return
    for site in file.compiles:
        if not site.is_dead:
            continue
        call = module.call_at(site.start, site.end)
        made = _removal(module, call) if call else ()
        if made:
            reason = wanted.why("compile", _WHY)
            yield Fix(site.line, made, site.text, "not compiled", reason, site.end_line)
        else:
            yield _held(site)


def _held(site: CompileSite) -> Held:
    return Held(
        site.line,
        "take the unused compile out",
        "the statement does more than compile, or shares its line",
        "delete the call and keep the model",
        site.end_line,
    )


def _removal(module: Module, call: ast.Call) -> tuple[Edit, ...]:
    """Edits that leave the model uncompiled; empty where an argument might have an effect of its own."""
    rest = (*call.args[1:], *(argument.value for argument in call.keywords))
    if not all(is_constant(module, value) for value in rest):
        return ()
    statement = module.statement_of(call)
    model = module.text(call.args[0])
    is_rebinding = (
        isinstance(statement, ast.Assign)
        and statement.value is call
        and isinstance(call.args[0], ast.Name | ast.Attribute)
    )
    if is_rebinding and isinstance(statement, ast.Assign) and [module.text(t) for t in statement.targets] == [model]:
        return _statement_removal(module, statement)
    start, end = module.span(call.args[0])
    call_start, call_end = module.span(call)
    if "#" in module.source.text[call_start:start] + module.source.text[end:call_end]:
        return ()
    return Edit(call_start, start, ""), Edit(end, call_end, "")


def _statement_removal(module: Module, statement: ast.stmt) -> tuple[Edit, ...]:
    """Without the statement, an `if` that only guarded it, and a comment that is about nothing else."""
    guard = module.parents[statement]
    if isinstance(guard, ast.If) and guard.body == [statement] and not guard.orelse and _is_free(module, guard.test):
        statement = guard
    made = edits.remove_statement(module, statement)
    _, comment = edits.remove_comment_above(module, statement, "compil")
    if comment is None or not made or made[0].text:
        return made
    source = module.source
    last = source.line_of(made[0].end - 1) if made[0].end > made[0].start else statement.lineno
    following = last + 1
    is_blank_left = following <= len(source.line_starts) and not source.line_text(following).strip()
    end = source.line_start(following + 1) if is_blank_left and following < len(source.line_starts) else made[0].end
    return (Edit(comment.start, end, ""),)


def _is_free(module: Module, test: ast.expr) -> bool:
    """A condition that can be dropped: it calls nothing but `hasattr`."""
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call | ast.Await | ast.NamedExpr)]
    return all(isinstance(node, ast.Call) and module.text(node.func) == "hasattr" for node in calls)


RULE = Rule(
    Explanation(
        code="SCR002",
        title="The compiled model is never run",
        what="Whether `torch.compile(model)` is followed by anything but `generate`. `generate` is fetched from the "
        "model inside of the wrapper and runs its plain forward pass.",
        why="0 frames are compiled in torch 2.1.2, 2.2.0, 2.2.2, 2.3.0 and 2.13, and with "
        '`mode="max-autotune"` in 2.1.2 and 2.13; '
        "latency on an H200 is unchanged. It hides that the script is not compiled, and saved state gets "
        "`_orig_mod.` keys.",
        fix="The statement is taken out, or the call around the model. To compile what generate runs, use "
        "`model.forward = torch.compile(model.forward)` or a static cache, and measure: the first call then costs "
        "seconds, and each new class of prompt lengths compiles again. Compiled LLaMA crashes on the CPU "
        "in torch 2.1.2.",
        sources=("pytorch#141473", "pytorch#161743", "transformers#34906", "tested with the versions named"),
    ),
    check,
    fix,
)
