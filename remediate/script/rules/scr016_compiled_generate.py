"""SCR016: torch.compile around the whole of generate."""

from __future__ import annotations

from collections.abc import Iterable

from remediate.model import Explanation, Outcome
from remediate.script import edits
from remediate.script.facts import CompileSite, FileFacts
from remediate.script.reading.module import Module
from remediate.script.rules.base import Fix, Held, Rule, Safety, Verdict, Wanted

STATIC_CACHE = (4, 48)
"""transformers whose `generate` compiles by itself with a static cache on CUDA (absent in 4.46.3, present in 4.48.3);
4.36.2 raises ValueError for `cache_implementation`."""

_WHY = "generate is a Python loop: it breaks into many graphs, and raises with `fullgraph=True`"


def _sites(file: FileFacts) -> list[CompileSite]:
    return [site for site in file.compiles if site.form == "generate"]


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Report each compile of a bound `generate`."""
    if wanted.wish.compile is None:
        return
    for site in _sites(file):
        yield Verdict(
            site.line,
            Outcome.DIFFERS,
            "compiles the whole of `generate`",
            observed=site.text,
            wanted="compile the forward pass",
            reason=wanted.why("compile", _WHY),
            end_line=site.end_line,
        )


def fix(file: FileFacts, module: Module, wanted: Wanted) -> Iterable[Fix | Held]:
    """Compile `forward` instead, where the line is `model.generate = torch.compile(model.generate, ...)`."""
    if wanted.wish.compile is None:
        return
    for site in _sites(file):
        call = module.call_at(site.start, site.end)
        statement = module.statement_of(call) if call else None
        model = site.target.rpartition(".")[0]
        forward = f"{model}.forward = {site.text.replace(site.target, f'{model}.forward', 1)}"
        is_plain = statement is not None and module.text(statement) == f"{site.target} = {site.text}"
        if statement is None or not is_plain or not edits.stands_alone(module, statement):
            by_hand = f"compile `{model}.forward`{_with_static_cache(wanted)}"
            yield Held(
                site.line, "compile the forward pass", "the result has a name of its own", by_hand, site.end_line
            )
            continue
        doubt = f"the first call then costs seconds, and it pays off with shapes that stay{_with_static_cache(wanted)}"
        made = edits.replace_node(module, statement, forward)
        yield Fix(site.line, made, f"`{site.text}`", f"`{forward}`", _WHY, site.end_line, Safety.UNSAFE, doubt)


def _with_static_cache(wanted: Wanted) -> str:
    """How to keep shapes fixed; only where the planned transformers has it."""
    version = wanted.version("transformers")
    has_it = version is not None and version >= STATIC_CACHE
    return ', and give `generate` `cache_implementation="static"`' if has_it else ""


RULE = Rule(
    Explanation(
        code="SCR016",
        title="The whole of generate is compiled",
        what="Whether `torch.compile` is given a model's `generate`.",
        why="`generate` is a loop in Python with decisions that depend on data: 12 broken graphs for 12 tokens of a "
        "tiny LLaMA, against 3 when the forward pass is compiled, and an error with `fullgraph=True`.",
        fix="Compile the forward pass instead, `model.forward = torch.compile(model.forward)`, and use a static cache "
        '(`cache_implementation="static"`), with which transformers from 4.48 compiles by itself on CUDA. The line is '
        "changed with `--unsafe-fixes` only: a compile costs seconds at first, for each class of prompt lengths.",
        sources=("tested with torch 2.14.1 and transformers 5.24.0", "transformers 4.48.3, generation/utils.py"),
    ),
    check,
    fix,
)
