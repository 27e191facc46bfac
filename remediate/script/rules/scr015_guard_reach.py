"""SCR015: a guard that does not reach the thread or the coroutine that runs the model."""

from __future__ import annotations

from collections.abc import Iterable

from remediate.model import Explanation
from remediate.script.facts import FileFacts
from remediate.script.rules.base import Rule, Verdict, Wanted, advice

_WHY = "a guard holds for the thread that enters it, and for the time until it is left"


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Guards that miss the run inside of them; runs in a thread that no guard reaches."""
    del wanted
    missing = [site for site in file.guards if site.misses]
    for site in missing:
        yield advice(site.line, f"`{site.text}` does not reach the model: {site.misses}", _WHY, site.end_line)
    open_ = [run for run in file.threads if not run.is_guarded]
    if open_ and not missing:
        run = open_[0]
        summary = f"`{run.what}` runs in another thread, where no guard is"
        yield advice(run.line, summary, _WHY, run.end_line)


RULE = Rule(
    Explanation(
        code="SCR015",
        title="The inference guard does not reach the model",
        what="Whether `no_grad` or `inference_mode` stands on an `async def` that runs the model, or around code that "
        "hands the run to another thread; and whether a run that is handed to a thread has a guard there.",
        why="The guard follows the thread, not the call tree: a decorator on a function that starts a thread does "
        "nothing for the thread, one on an `async def` does nothing at all, and a `with` block leaks across a `yield` "
        "or `await` into other code. `generate` guards itself with `no_grad`, so answers stay right; a direct forward "
        "pass keeps its activations.",
        fix="Nothing is edited. Give the thread a function of its own that enters the guard: "
        "`def run(): with torch.inference_mode(): model.generate(**kwargs)`.",
        sources=("tested with torch 2.14.1",),
    ),
    check,
    needs_load=False,
    is_advice=True,
)
