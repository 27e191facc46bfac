"""What it costs to be on a profile's pins, with the profile that it names as its successor."""

from __future__ import annotations

from collections.abc import Mapping

from remediate.packages.advisories.judge import pin_costs
from remediate.packages.facts import PackagesFacts
from remediate.packages.pins import plan_pins
from remediate.profile.load import load_profile
from remediate.profile.schema import Profile


def costs_of(profile: Profile, facts: PackagesFacts | None = None) -> tuple[str, ...]:
    """One line for each pin of which something is known, and one for what the successor leaves behind.

    Reads the successor's profile, which is shipped.

    Args:
        profile: resolved.
        facts: of the environment, whose versions stay where the pins accept them; None takes the pins' own.
    """
    if not profile.packages:
        return ()
    versions: Mapping[str, str] = {name: pin.version for name, pin in profile.packages.items()}
    if facts is not None:
        versions = {name: pin.planned for name, pin in plan_pins(facts, profile).items() if pin.is_judged}
    successor = load_profile(profile.successor).profile if profile.successor else None
    return pin_costs(successor, versions)
