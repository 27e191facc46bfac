"""Finding, changes and files for the boot unit. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from remediate import files
from remediate.gpu.boot import places
from remediate.gpu.boot.codes import BOOT
from remediate.gpu.boot.facts import BootFacts
from remediate.gpu.boot.judge import BootVerdict, Step, judge_boot, wanted_unit
from remediate.gpu.boot.operations import BootFile, UnitSwitch
from remediate.gpu.boot.settings import encode_settings
from remediate.model import Artifact, Change, Finding, Outcome, Risk, Withheld
from remediate.profile.schema import Profile
from remediate.subject import Proposal

SUBJECT = "gpu"
TARGET = "boot"
_KEYS = ("boot/settings", "boot/unit", "boot/enabled")


def boot_findings(facts: BootFacts, profile: Profile, uuids: Sequence[str]) -> tuple[Finding, ...]:
    """The finding about surviving a reboot; none where the profile does not ask."""
    found = _judge(facts, profile, uuids)
    if found is None:
        return ()
    return (
        Finding(
            code=BOOT,
            subject=SUBJECT,
            target=TARGET,
            outcome=found.outcome,
            summary=found.summary,
            observed=found.observed,
            wanted=found.wanted,
            evidence=found.evidence,
            reason=profile.gpu.why.get("survive_reboot", ""),
            is_advice=found.is_advice,
        ),
    )


def boot_proposal(facts: BootFacts, profile: Profile, uuids: Sequence[str]) -> Proposal:
    """The steps as changes, in the order that leaves nothing half installed in between: file, unit, switch."""
    found = _judge(facts, profile, uuids)
    if found is None:
        return Proposal()
    if found.because:
        return Proposal(withheld=(_withheld(found),))
    changes = tuple(_change(facts, step, profile) for step in found.steps)
    is_install = profile.gpu.survive_reboot is True and found.outcome is Outcome.DIFFERS
    return Proposal(changes, artifacts=_artifacts(facts, profile, uuids) if is_install else ())


def _judge(facts: BootFacts, profile: Profile, uuids: Sequence[str]) -> BootVerdict | None:
    wish = profile.gpu.survive_reboot
    return judge_boot(facts, wish, encode_settings(profile, uuids) if wish else "")


def _change(facts: BootFacts, step: Step, profile: Profile) -> Change:
    risks = () if facts.root else (Risk.ROOT,)
    bare = Change(
        id=f"{SUBJECT}:boot:{step.name}",
        subject=SUBJECT,
        codes=(BOOT,),
        target=step.path or places.UNIT,
        title=f"file {step.path}",
        before="",
        after="",
        reason=profile.gpu.why.get("survive_reboot", ""),
        risks=risks,
        depends_on={key: read_boot(facts, key) for key in _KEYS},
        operation=None,
    )
    return _file_change(facts, step, bare) if step.path else _switch_change(facts, step, bare)


def _switch_change(facts: BootFacts, step: Step, bare: Change) -> Change:
    switch = _switch(facts.root, step.enable)
    before, after = ("not enabled", "enabled at boot") if step.enable else ("enabled at boot", "not enabled")
    return msgspec.structs.replace(
        bare, title=f"unit {places.UNIT}", before=before, after=after, operation=switch, command=switch.argv
    )


def _file_change(facts: BootFacts, step: Step, bare: Change) -> Change:
    before = step.before.encode() if step.before else None
    after = None if step.after is None else step.after.encode()
    path = Path(step.path)
    reload = places.systemctl("", "daemon-reload") if step.name == "unit" and not facts.root else ()
    return msgspec.structs.replace(
        bare,
        before=("former content" if after else "installed") if before else "",
        after="" if after is None else ("new content" if before else "installed"),
        risks=(*bare.risks, Risk.SAFE),
        operation=BootFile(files.plan_edit(path, before, after, mode=0o644), reload, step.name == "settings"),
        diff=files.diff(path, before, after),
    )


def _switch(root: str, enable: bool) -> UnitSwitch:
    on, off = (places.systemctl(root, verb, places.UNIT) for verb in ("enable", "disable"))
    read = places.systemctl(root, "is-enabled", places.UNIT)
    return UnitSwitch(places.UNIT, enable, on if enable else off, off if enable else on, read)


def _artifacts(facts: BootFacts, profile: Profile, uuids: Sequence[str]) -> tuple[Artifact, ...]:
    settings = encode_settings(profile, uuids)
    return (Artifact(places.UNIT, wanted_unit(facts).encode()), Artifact("gpu.json", settings.encode()))


def _withheld(found: BootVerdict) -> Withheld:
    return Withheld(
        codes=(BOOT,),
        subject=SUBJECT,
        target=TARGET,
        summary=found.summary,
        because=found.because,
        enable=found.enable,
        commands=tuple(shlex.join(argv) for argv in found.commands),
    )


def read_boot(facts: BootFacts, key: str) -> str:
    """The present value of a fact that a boot change depends on: a hash, a word, or empty where there is no file."""
    from remediate.effects import sha256

    if key == "boot/enabled":
        return "masked" if facts.is_masked else str(facts.is_enabled)
    content = facts.unit if key == "boot/unit" else facts.settings
    return sha256(content.encode()) if isinstance(content, str) and content else str(content)
