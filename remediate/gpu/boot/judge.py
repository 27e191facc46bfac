"""Whether the settings survive a reboot, and the steps that make them, or stop them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from remediate.gpu.boot import places
from remediate.gpu.boot.facts import BootFacts
from remediate.gpu.boot.unit import MARK, is_current, render_unit
from remediate.model import Outcome, Unknown, UnknownKind


class Step(msgspec.Struct, frozen=True):
    """One thing to do. `after` None removes the file; for the switch, `path` is empty and `enable` says which way."""

    name: str
    """`settings`, `unit`, or `enabled`."""
    path: str = ""
    before: str = ""
    after: str | None = None
    enable: bool = False


class BootVerdict(msgspec.Struct, frozen=True):
    """What the wish came to.

    Attributes:
        because: why nothing is done about it; empty where `steps` do it.
        commands: lines for a person, where `because` is given.
    """

    outcome: Outcome
    summary: str
    observed: str = ""
    wanted: str = ""
    evidence: tuple[str, ...] = ()
    is_advice: bool = False
    steps: tuple[Step, ...] = ()
    because: str = ""
    enable: str = ""
    commands: tuple[tuple[str, ...], ...] = ()


def judge_boot(facts: BootFacts, wish: bool | None, settings: str) -> BootVerdict | None:
    """The boot unit against the wish; None where the profile has none and there is nothing to say.

    Args:
        settings: the text that the settings file should have.
    """
    if wish is None:
        return _unasked(facts)
    failure = next((r for r in (facts.unit, facts.settings, facts.is_enabled) if isinstance(r, Unknown)), None)
    if failure is not None:
        outcome = Outcome.UNSUPPORTED if failure.kind is UnknownKind.NOT_SUPPORTED else Outcome.UNKNOWN
        return BootVerdict(outcome, f"whether the settings survive a reboot could not be told: {failure.reason}")
    return _judge_wanted(facts, settings) if wish else _judge_unwanted(facts)


def _unasked(facts: BootFacts) -> BootVerdict | None:
    if not _is_ours(facts) or facts.is_enabled is not True:
        return None
    summary = f"`{places.UNIT}` sets the GPUs at each boot, and the profile does not say whether it should"
    evidence = (f"it applies `{places.SETTINGS_PATH}`, which this profile may disagree with",)
    return BootVerdict(Outcome.DIFFERS, summary, evidence=evidence, is_advice=True)


def _judge_wanted(facts: BootFacts, settings: str) -> BootVerdict:
    wanted = f"{places.UNIT} enabled and current"
    if facts.systemd is not True:
        reason = facts.systemd.reason if isinstance(facts.systemd, Unknown) else "systemd does not manage this machine"
        summary = f"the settings can't be made to survive a reboot from here: {reason}"
        where = "in a container, do it on the host; with another init, run `remediate gpu-boot` from its boot script"
        return BootVerdict(Outcome.UNSUPPORTED, summary, wanted=wanted, evidence=(where,))
    problems = tuple(_problems(facts, settings))
    evidence = tuple(f"`{name}` changes the unit" for name in facts.drop_ins)
    if not problems:
        summary = f"the settings survive a reboot: `{places.UNIT}` is enabled and current"
        return BootVerdict(Outcome.SAME, summary, wanted, wanted, evidence)
    observed = "; ".join(problems)
    summary = f"the settings do not survive a reboot: {observed}"
    found = BootVerdict(Outcome.DIFFERS, summary, observed, wanted, evidence)
    obstacle = _obstacle(facts)
    if obstacle is not None:
        because, enable, commands = obstacle
        return msgspec.structs.replace(found, because=because, enable=enable, commands=commands)
    return msgspec.structs.replace(found, steps=tuple(_install(facts, settings)))


def _problems(facts: BootFacts, settings: str) -> Iterator[str]:
    if facts.is_masked:
        yield f"`{places.UNIT}` is masked"
    elif facts.unit == "":
        yield f"there is no unit `{facts.root}{places.UNIT_PATH}`"
    elif not _is_ours(facts):
        yield f"`{facts.root}{places.UNIT_PATH}` was written by somebody else"
    elif not _is_current(facts):
        yield "the unit is not as this version writes it, or its program is gone"
    if facts.settings == "":
        yield f"there is no `{facts.root}{places.SETTINGS_PATH}`"
    elif facts.settings != settings:
        yield f"`{facts.root}{places.SETTINGS_PATH}` holds other wishes than the profile"
    if not facts.is_enabled:
        yield "the unit is not enabled"


def _obstacle(facts: BootFacts) -> tuple[str, str, tuple[tuple[str, ...], ...]] | None:
    """Why the steps are left to a person: the reason, how to have them, command lines."""
    if facts.is_masked:
        unmask = places.systemctl(facts.root, "unmask", places.UNIT)
        return f"somebody masked `{places.UNIT}`, so that it must not run", "unmask it, then plan again", (unmask,)
    if facts.unit != "" and not _is_ours(facts):
        because = f"a unit of that name is there already and its first line is not `{MARK} ...`; it is left alone"
        return because, "remove it if it is not needed, then plan again", ()
    if facts.packaged:
        return f"`{facts.packaged}` brings a unit of that name; it is left alone", "remove that package first", ()
    if facts.distrust and not _is_current(facts):
        because = f"root would run this program at each boot, and {facts.distrust}"
        return because, "install remediate where only root can write, as with `sudo pipx install --global`", ()
    return None


def wanted_unit(facts: BootFacts) -> str:
    """The unit's text. The installed unit's own program stays, if it exists: another user's plan sees another one."""
    return render_unit(facts.unit_command or facts.command)


def _install(facts: BootFacts, settings: str) -> Iterator[Step]:
    if facts.settings != settings:
        yield Step("settings", facts.root + places.SETTINGS_PATH, str(facts.settings), settings)
    if not _is_current(facts):
        yield Step("unit", facts.root + places.UNIT_PATH, str(facts.unit), wanted_unit(facts))
    if not facts.is_enabled:
        yield Step("enabled", enable=True)


def _judge_unwanted(facts: BootFacts) -> BootVerdict:
    wanted = f"no {places.UNIT}"
    steps = tuple(_remove(facts))
    if not steps:
        summary = "nothing of this program sets the GPUs at boot"
        is_foreign = facts.unit != "" or bool(facts.packaged)
        evidence = (f"a unit `{places.UNIT}` of somebody else is there and is left alone",) if is_foreign else ()
        return BootVerdict(Outcome.SAME, summary, wanted, wanted, evidence)
    summary = f"`{places.UNIT}` or its file is installed, and the profile wants it gone"
    return BootVerdict(Outcome.DIFFERS, summary, "installed", wanted, steps=steps)


def _remove(facts: BootFacts) -> Iterator[Step]:
    if _is_ours(facts):
        if facts.is_enabled:
            yield Step("enabled", enable=False)
        yield Step("unit", facts.root + places.UNIT_PATH, str(facts.unit), None)
    if facts.settings != "":
        yield Step("settings", facts.root + places.SETTINGS_PATH, str(facts.settings), None)


def _is_current(facts: BootFacts) -> bool:
    """As this version writes it, and with a program that exists."""
    return bool(facts.unit_command) and isinstance(facts.unit, str) and is_current(facts.unit)


def _is_ours(facts: BootFacts) -> bool:
    return isinstance(facts.unit, str) and facts.unit.startswith(MARK)
