"""SCR007: the CUDA cache is emptied, or garbage is collected, for each request."""

from __future__ import annotations

from collections.abc import Iterable

from remediate.model import Explanation
from remediate.script.facts import FileFacts
from remediate.script.rules.base import Rule, Verdict, Wanted, advice


def check(file: FileFacts, wanted: Wanted) -> Iterable[Verdict]:
    """Point at calls in the request path that are not cleaning up after an error."""
    del wanted
    for site in file.cache_clears:
        if site.scope.is_repeated and not site.is_cleanup:
            reason = "the next request has to ask the driver for the same memory again"
            yield advice(site.line, f"`{site.what}` in the request path ({site.scope})", reason, site.end_line)


RULE = Rule(
    Explanation(
        code="SCR007",
        title="The CUDA cache is emptied in the request path",
        what="Whether `torch.cuda.empty_cache` or `gc.collect` run for each request or turn, outside of `except` and "
        "`finally`.",
        why="Emptying the cache does not give PyTorch more memory; it hands cached blocks back to the driver and the "
        "next request pays for getting them again. It has its place before a measurement, at shutdown and after "
        "running out of memory.",
        fix="Nothing is edited. Delete the call, or move it to where the model is replaced: drop all references, "
        "`gc.collect()`, then `empty_cache()`.",
        sources=("PyTorch documentation of torch.cuda.empty_cache", "FastVideo#606"),
    ),
    check,
)
