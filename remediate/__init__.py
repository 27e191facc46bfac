"""Plan, apply, verify and undo the repair of a GPU sandbox that serves a language model.

For embedding:

    import remediate

    facts = remediate.observe("/srv/sandbox")
    plan = remediate.plan(facts, "incident-a100")
    for change in plan.changes:
        print(change.title, change.before, "->", change.after)
    result = remediate.apply(plan)

The functions load on first use, so that `import remediate` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remediate._version import __version__

if TYPE_CHECKING:
    from remediate.api import apply, confirm, import_reports, observe, plan, rollback, verify
    from remediate.profile.load import load_profile

__all__ = [
    "__version__",
    "apply",
    "confirm",
    "import_reports",
    "load_profile",
    "observe",
    "plan",
    "rollback",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "load_profile":
        from remediate.profile.load import load_profile

        return load_profile
    if name in __all__:
        from remediate import api

        return getattr(api, name)
    raise AttributeError(f"module `remediate` has no attribute `{name}`")
