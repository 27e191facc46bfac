"""The changes that close the gap: the requirements files and one pip run. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from remediate.files import diff, plan_edit
from remediate.model import Artifact, Change, ChangeItem, Finding, Risk, Withheld
from remediate.packages.facts import ListingFacts, PackagesFacts, RequirementsFileFacts, TargetFacts
from remediate.packages.install import Install
from remediate.packages.metadata import without_credentials
from remediate.packages.pins import Blocker, PlannedPin, find_blockers, plan_pins
from remediate.packages.wanted import FilePlan, RequirementsPlan, plan_requirements
from remediate.subject import Proposal, Situation

if TYPE_CHECKING:
    from remediate.packages.intent import Intent

_SUBJECT = "packages"


def propose_packages(facts: PackagesFacts, situation: Situation, findings: Iterable[Finding]) -> Proposal:
    """Requirements first, then the install, so that a failed install leaves the wanted state written down."""
    pins = plan_pins(facts, situation.profile)
    blockers = find_blockers(facts, situation.profile, situation.announced)
    requirements = plan_requirements(facts, pins, situation.profile.name)
    edits, held_edits = _propose_edits(pins, requirements, blockers)
    installs, held_installs = _propose_install(facts, situation, pins, blockers)
    return Proposal(
        changes=(*edits, *installs),
        withheld=(
            *held_edits,
            *held_installs,
            *_withhold_remedies(facts, situation, pins, findings),
            *(_withhold_locks(facts, pins) if edits or installs else ()),
        ),
        artifacts=_artifacts(facts, situation, pins, requirements, blockers),
    )


def _propose_edits(
    pins: Mapping[str, PlannedPin], plan: RequirementsPlan, blockers: tuple[Blocker, ...]
) -> tuple[list[Change], list[Withheld]]:
    changes: list[Change] = []
    withheld: list[Withheld] = []
    for file in plan.files:
        name = _relative(file.facts.path, plan)
        if file.edits:
            blocker = next((found for found in blockers if found.also_requirements), None)
            if blocker is None:
                changes.append(_edit(file, name, pins))
            else:
                summary = f"pin {', '.join(edit.name for edit in file.edits)}"
                withheld.append(Withheld(("PKG003",), _SUBJECT, name, summary, blocker.because, blocker.enable))
        for obstacle in file.obstacles:
            wanted = f"{obstacle.name}=={pins[obstacle.name].planned}"
            place = f"{name}:{obstacle.line}" if obstacle.line else name
            enable = file.facts.compile_command or "write it there yourself; lock a hashed file again from its source"
            withheld.append(Withheld(("PKG003",), _SUBJECT, place, f"pin {wanted}", obstacle.because, enable))
    return changes, withheld


def _edit(file: FilePlan, name: str, pins: Mapping[str, PlannedPin]) -> Change:
    path = Path(file.facts.path)
    return Change(
        id=f"packages:requirements:{file.facts.path}",
        subject=_SUBJECT,
        codes=("PKG003",),
        target=name,
        title=f"pins in {name}",
        before="absent" if file.before is None else _lines_before(file),
        after="created" if file.before is None else "pinned",
        reason="the environment can be built again as it is",
        risks=(Risk.SAFE,),
        depends_on={f"installed:{edit.name}": pins[edit.name].installed or "" for edit in file.edits},
        operation=plan_edit(path, file.before, file.after),
        items=tuple(
            ChangeItem(edit.name, edit.was or "not stated", f"{edit.name}=={pins[edit.name].planned}", "")
            for edit in file.edits
        ),
        diff=without_credentials(diff(path, file.before, file.after)),
    )


def _lines_before(file: FilePlan) -> str:
    if file.before is None:
        return "absent"
    others = sum(1 for edit in file.edits if edit.line)
    counts = ((others, "otherwise"), (len(file.edits) - others, "not stated"))
    return ", ".join(f"{count} {what}" for count, what in counts if count)


def _propose_install(
    facts: PackagesFacts, situation: Situation, pins: Mapping[str, PlannedPin], blockers: tuple[Blocker, ...]
) -> tuple[list[Change], list[Withheld]]:
    moving = {name: pin for name, pin in pins.items() if pin.needs_install}
    if facts.listing is not None and moving:
        return [], [_withhold_listed(facts.listing, moving)]
    if facts.target is None or not (moving or situation.facts.request.install.prune):
        return [], []
    from remediate.packages.intent import plan_intent

    intent = plan_intent(facts, facts.target, pins, situation)
    held = list(intent.withheld)
    if not moving and not intent.install.prune:
        return [], held
    install, folder = intent.install, situation.facts.request.folder
    if not blockers:
        return [_install(facts.target, intent, pins, moving)], held
    summary = "install " + ", ".join(f"{name} {pin.planned}" for name, pin in moving.items())
    codes = tuple(dict.fromkeys(["PKG001", *(blocker.code for blocker in blockers)]))
    because = "; ".join(blocker.because for blocker in blockers)
    enable = "; ".join(blocker.enable for blocker in blockers)
    return [], [
        *held,
        Withheld(
            codes,
            _SUBJECT,
            facts.target.prefix,
            summary,
            because,
            enable,
            _lines(install, moving, facts.target, folder),
        ),
    ]


def _withhold_listed(listing: ListingFacts, moving: Mapping[str, PlannedPin]) -> Withheld:
    """What a list shows to be wrong is put right where the list was made."""
    import shlex

    wanted = [f"{name}=={pin.planned}" for name, pin in moving.items()]
    return Withheld(
        ("PKG001",),
        _SUBJECT,
        listing.source,
        "install " + ", ".join(f"{name} {pin.planned}" for name, pin in moving.items()),
        "this plan is made from a report, and the environment was not looked at",
        "run `remediate plan` in that environment, or the command below",
        (shlex.join(("python", "-m", "pip", "install", *wanted)),),
    )


def _withhold_locks(facts: PackagesFacts, pins: Mapping[str, PlannedPin]) -> tuple[Withheld, ...]:
    from remediate.packages.lockhints import withhold_locks

    return withhold_locks(facts, pins)


def _install(
    target: TargetFacts, intent: Intent, pins: Mapping[str, PlannedPin], moving: Mapping[str, PlannedPin]
) -> Change:
    install = intent.install
    codes = ["PKG001"] if any(not pin.is_met for pin in moving.values()) else []
    codes += ["PKG002"] if any(pin.cuda_differs for pin in moving.values()) else []
    codes += ["PKG007"] if install.discard else []
    codes += ["PKG033"] if install.prune else []
    count = len(moving) + len(install.prune)
    items = (*(_item(pin, install) for pin in moving.values()), *intent.removals)
    return Change(
        id="packages:install",
        subject=_SUBJECT,
        codes=tuple(codes),
        target=target.prefix,
        title=f"{count} distribution{'s' if count != 1 else ''} in {target.prefix}",
        before=", ".join(f"{item.target} {item.before}" for item in items),
        after=", ".join(f"{item.target} {item.after}" for item in items),
        reason=intent.reason,
        risks=(Risk.DISRUPTIVE,),
        depends_on={
            "target:prefix": target.prefix,
            "target:version": target.version,
            **{f"installed:{name}": pin.installed or "" for name, pin in pins.items()},
        },
        operation=install,
        items=items,
        command=tuple(map(without_credentials, install.argv or install.remove)),
    )


def _item(pin: PlannedPin, install: Install) -> ChangeItem:
    expected = next(item for item in install.expected if item.name == pin.name)
    build = f" (CUDA {expected.cuda})" if pin.cuda_differs else ""
    return ChangeItem(pin.name, pin.installed or "absent", f"{pin.planned}{build}", pin.pin.reason)


def _lines(install: Install, moving: Mapping[str, PlannedPin], target: TargetFacts, folder: str) -> tuple[str, ...]:
    """Command lines for a person, with the constraints spelled out as requirements: there is no file to refer to.

    pip would refuse an externally managed environment, so that the lines make one in the folder and install there.
    """
    import shlex

    if not install.argv:
        return (shlex.join(map(without_credentials, install.remove)),)
    head = install.argv[: install.argv.index("--constraint")]
    before = list(install.uninstall)
    if target.externally_managed:
        environment = Path(folder, ".venv")
        before = [(target.python, "-m", "venv", str(environment))]
        head = (str(environment / "bin" / "python"), "-m", "pip", *head[head.index("install") :])
    known = {item.name for item in install.expected}
    others = [line for line in install.constraints if line.partition("==")[0] in known]
    pins = [f"{name}=={pin.planned}" for name, pin in moving.items()]
    return tuple(shlex.join(map(without_credentials, argv)) for argv in (*before, (*head, *pins, *others)))


def _withhold_remedies(
    facts: PackagesFacts, situation: Situation, pins: Mapping[str, PlannedPin], findings: Iterable[Finding]
) -> list[Withheld]:
    """What is wrong and not governed, so that nothing is chosen for the user."""
    from remediate.packages.judge.remedies import withhold_remedies
    from remediate.packages.judge.rules import judge

    return withhold_remedies(judge(facts, pins, situation.announced), findings, facts, situation)


def _artifacts(
    facts: PackagesFacts,
    situation: Situation,
    pins: Mapping[str, PlannedPin],
    plan: RequirementsPlan,
    blockers: tuple[Blocker, ...],
) -> tuple[Artifact, ...]:
    """The chosen requirements file as it should be and the includes that change; a new one where there is none."""
    if any(blocker.also_requirements for blocker in blockers) or plan.unreadable is not None or not pins:
        return ()
    if not plan.files:
        return (Artifact("requirements.txt", _new_file(facts, situation, pins)),)
    shown = [file for index, file in enumerate(plan.files) if index == 0 or file.edits]
    names = [_relative(file.facts.path, plan).replace(os.sep, "_") for file in shown]
    return tuple(Artifact(name, file.after) for name, file in zip(names, shown, strict=True))


def _new_file(facts: PackagesFacts, situation: Situation, pins: Mapping[str, PlannedPin]) -> bytes:
    path = f"{situation.facts.request.folder}/requirements.txt"
    imagined = PackagesFacts(facts.target, requirements=(RequirementsFileFacts(path, None, ""),))
    return plan_requirements(imagined, pins, situation.profile.name).files[0].after


def _relative(path: str, plan: RequirementsPlan) -> str:
    """The path as seen from the chosen file's folder; never upwards, so that it can name an artifact."""
    relative = os.path.relpath(path, Path(plan.files[0].facts.path).parent)
    return Path(path).name if relative.startswith("..") else relative
