"""The pages behind the codes of installing and trying out: PKG030 and up."""

from __future__ import annotations

from remediate.model import Explanation

PAGES = (
    Explanation(
        "PKG030",
        "The environment does not do what it is for",
        "A tiny LLaMA with random weights, in the target environment and in a process of its own: torch and "
        "transformers are imported, an array goes through torch and back, 8 tokens are generated, the model is saved "
        "and loaded with `device_map` where the profile has accelerate, and a forward pass is compiled where the "
        "profile's script may.",
        "Right versions can still fail together: `pip check` is content with torch 2.2.0 and numpy 2, and `.numpy()` "
        "raises. Only running it tells.",
        "Run with `verify --smoke`, or after an install with `apply --smoke`, where a failed step makes the change "
        "fail. The step's own error says what is wrong. Without a C compiler the compiled step is skipped, and said.",
        ("torch 2.2.0, transformers 4.38.0 and numpy 2.4.6 on Python 3.11: docs/real-end-to-end.md",),
    ),
    Explanation(
        "PKG033",
        "Distributions that neither the profile nor its lock names",
        "With `--prune`, what is installed with the pins and the lock that fits the target.",
        "What else is installed may be what the user's own program needs; that is why nothing is removed unasked.",
        "`apply --prune` removes them and `rollback` brings them back. pip, setuptools, wheel, uv, this program, and "
        "what is installed in development mode stay. Without a lock nothing is pruned, for only a lock names what "
        "the pins require.",
        ("pip-tools#2229: a sync that uninstalls itself",),
    ),
)
