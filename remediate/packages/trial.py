"""Trying the target environment out, for `verify --smoke`."""

from __future__ import annotations

from collections.abc import Sequence

from remediate.effects import Runner, run_process
from remediate.model import Facts, Finding, Outcome
from remediate.packages.facts import PackagesFacts
from remediate.packages.intent import smoke_of
from remediate.packages.smoke import judge_smoke, run_smoke
from remediate.profile.schema import Profile


def try_out(facts: Facts, profile: Profile, runner: Runner = run_process) -> Sequence[Finding]:
    """A finding for each step of the smoke test; one that says why where there is nothing to try.

    Raises:
        ApplyError: the target's interpreter could not be started, or did not end in time.
    """
    section = facts.sections["packages"]
    if not isinstance(section, PackagesFacts) or section.target is None:
        reason = "no target environment was found"
        return (Finding("PKG030", "packages", "smoke test", Outcome.UNKNOWN, f"smoke test: {reason}"),)
    return judge_smoke(run_smoke(section.target.python, smoke_of(profile), runner))
