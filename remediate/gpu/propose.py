"""Changes, what is held back, and the command script, from judgements. Pure."""

from __future__ import annotations

import shlex

from remediate.gpu.busy import who_notices
from remediate.gpu.commands import LOCKS, Operation, Setting, render_script, setting_name, show_value
from remediate.gpu.compare import SUBJECT, target_of
from remediate.gpu.facts import GpuFacts
from remediate.gpu.judgement import BLOCKED, LOST, NO_DRIVER, Judgement
from remediate.gpu.keys import read_key
from remediate.gpu.settings import judge
from remediate.model import Artifact, Change, Risk, Withheld
from remediate.profile.schema import Profile
from remediate.subject import Proposal

SCRIPT_NAME = "gpu-commands.sh"
_HOW = {
    BLOCKED: "run these where the GPU can be set",
    NO_DRIVER: "run these on the machine itself, as root",
    LOST: "look here first, on the machine itself",
}
_DEPENDENCIES = {
    Setting.PERSISTENCE_MODE: ("persistence_mode",),
    Setting.COMPUTE_MODE: ("compute_mode",),
    Setting.MODULE_POWER_LIMIT: ("module_power_limit_w",),
    Setting.POWER_LIMIT: ("power_limit_w", "power_limit_min_w", "power_limit_max_w"),
    Setting.APPLICATION_CLOCKS: ("application_clocks", "supported_clocks"),
    Setting.LOCKED_GPU_CLOCKS: ("locked_gpu_clocks", "supported_clocks"),
    Setting.LOCKED_MEMORY_CLOCKS: ("locked_memory_clocks", "supported_clocks"),
}


def propose(facts: GpuFacts, profile: Profile, is_root: bool, needs_root: bool = True) -> Proposal:
    """Changes in order, with the commands that are held back and the script of all of them.

    Args:
        needs_root: False for a simulated board that grants the rights itself.
    """
    found = judge(facts, profile.gpu, is_root, profile.gpu_for)
    changes = tuple(_change(facts, item, item.operation, needs_root) for item in found if item.operation)
    withheld = tuple(_withheld(item) for item in found if item.because)
    if not changes and not any(item.commands for item in withheld):
        return Proposal(withheld=withheld)
    script = Artifact(SCRIPT_NAME, render_script(changes, withheld), executable=True)
    return Proposal(changes, withheld, (script,))


def _change(facts: GpuFacts, found: Judgement, operation: Operation, needs_root: bool) -> Change:
    setting = operation.setting
    affects = who_notices(operation, facts)
    keys = ("driver_version", *(f"{operation.uuid}/{name}" for name in _DEPENDENCIES[setting]))
    return Change(
        id=f"{SUBJECT}:{operation.uuid}:{setting}",
        subject=SUBJECT,
        codes=(found.code,),
        target=target_of(found),
        title=f"{setting_name(setting)} of GPU {operation.index}",
        before=_before(operation),
        after=show_value(setting, operation.after),
        reason=found.reason,
        risks=_risks(needs_root, bool(affects)),
        depends_on={key: read_key(facts, key) for key in keys},
        operation=operation,
        command=operation.argv,
        affects=affects,
    )


def _before(operation: Operation) -> str:
    if operation.setting in LOCKS and not operation.before:
        return "no lock known"
    return show_value(operation.setting, operation.before)


def _risks(needs_root: bool, is_noticed: bool) -> tuple[Risk, ...]:
    return (Risk.ROOT,) * needs_root + (Risk.DISRUPTIVE,) * is_noticed


def _withheld(found: Judgement) -> Withheld:
    return Withheld(
        codes=(found.code,),
        subject=SUBJECT,
        target=target_of(found),
        summary=found.summary,
        because=found.because,
        enable=_HOW.get(found.code, "run the command yourself if you mean it") if found.commands else "",
        commands=tuple(shlex.join(argv) for argv in found.commands),
    )
