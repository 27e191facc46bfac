"""What a rule comes to: a finding, and what would put it right where no pin does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from remediate.model import Finding, Outcome
from remediate.packages.facts import PackagesFacts
from remediate.packages.pins import PlannedPin

SUBJECT = "packages"


class Remedy(msgspec.Struct, frozen=True):
    """Commands for a person: the profile does not govern what is wrong, so that nothing is chosen for the user.

    Attributes:
        summary: what they do, as `install accelerate`.
        because: why the plan leaves it to the user.
        remove: distributions to uninstall first.
        install: requirements to install then.
        reinstall: install anew what is already there.
    """

    summary: str
    because: str
    remove: tuple[str, ...] = ()
    install: tuple[str, ...] = ()
    reinstall: bool = False


class Judgement(msgspec.Struct, frozen=True):
    """A finding with its remedy, where there is one."""

    finding: Finding
    remedy: Remedy | None = None


class Evidence(msgspec.Struct, frozen=True):
    """All that a rule may use.

    Attributes:
        announced: what the other subjects tell, as `gpu:driver_version`.
    """

    facts: PackagesFacts
    pins: Mapping[str, PlannedPin]
    announced: Mapping[str, str]

    def version(self, name: str) -> str | None:
        """The installed version; None when it is absent or can't be told."""
        return self.facts.version_of(name)

    def planned(self, name: str) -> str | None:
        """The version when the plan is done: the pin's where one is judged, else the installed one."""
        pin = self.pins.get(name)
        return pin.planned if pin is not None and pin.is_judged else self.facts.version_of(name)

    def moves(self, *names: str) -> bool:
        """Whether the plan installs another version of one of them."""
        return any(name in self.pins and self.pins[name].needs_install for name in names)

    def is_needed(self, key: str) -> bool:
        """Whether another subject announced that; the value is where it was seen."""
        return self.announced.get(key, "").lower() not in ("", "false", "no", "0")


Rule = Callable[[Evidence], Iterable[Judgement]]


def wrong(code: str, target: str, summary: str, reason: str, *, is_advice: bool = False, **more: str) -> Finding:
    """A finding that something differs. `more`: `observed`, `wanted`, `evidence` (one line)."""
    return Finding(
        code,
        SUBJECT,
        target,
        Outcome.DIFFERS,
        summary,
        observed=more.get("observed", ""),
        wanted=more.get("wanted", ""),
        evidence=(more["evidence"],) if more.get("evidence") else (),
        reason=reason,
        is_advice=is_advice,
    )
