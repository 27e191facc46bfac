"""Modes: persistence (whether the driver keeps a GPU initialised when the last client leaves) and compute mode."""

from __future__ import annotations

from remediate.gpu.commands import Setting, show_value
from remediate.gpu.facts import Device, GpuFacts
from remediate.gpu.host import BARE_HOST, WSL2
from remediate.gpu.judgement import COMPUTE_MODE, PERSISTENCE, Judgement, operation_for, outcome_of
from remediate.gpu.wishes import has_wishes
from remediate.model import Outcome, Unknown, UnknownKind
from remediate.profile.schema import GpuWish

_LEGACY = (
    "persistence mode is on by the driver's own flag, without nvidia-persistenced; NVIDIA calls that flag near its end "
    "of life, and it is gone after a restart"
)
_DAEMON = "`systemctl enable --now nvidia-persistenced` starts the daemon now and at each boot"


def judge_persistence_mode(device: Device, wish: GpuWish, facts: GpuFacts) -> tuple[Judgement, ...]:
    """Persistence mode against the profile's wish, and advice on how it is kept.

    `nvidia-smi -pm` goes through nvidia-persistenced where that runs, so the command is the same with and without it.
    """
    wanted, present = wish.persistence_mode, device.persistence_mode
    if wanted is None:
        return _suggest(device) if has_wishes(wish) else ()
    if isinstance(present, Unknown):
        return (_unread_persistence(device, present, facts),)
    now, target = _word(present), _word(wanted)
    is_same = present == wanted
    found = Judgement(
        PERSISTENCE,
        device,
        Outcome.SAME if is_same else Outcome.DIFFERS,
        f"persistence mode is {now}" + ("" if is_same else f", wanted {target}"),
        observed=now,
        wanted=target,
        evidence=_keeper(facts),
        why="persistence_mode",
        operation=None
        if is_same
        else operation_for(device, Setting.PERSISTENCE_MODE, str(int(present)), str(int(wanted))),
    )
    if wanted and present and _lacks_daemon(facts):
        return (found, Judgement(PERSISTENCE, device, Outcome.DIFFERS, _LEGACY, evidence=(_DAEMON,), is_advice=True))
    return (found,)


def judge_compute_mode(device: Device, wish: GpuWish) -> tuple[Judgement, ...]:
    """Compute mode against the profile's wish; empty where the profile has none."""
    if wish.compute_mode is None:
        return ()
    present, wanted = device.compute_mode, wish.compute_mode.replace("_", " ")
    if isinstance(present, Unknown):
        summary = f"compute mode could not be read: {present.reason}"
        return (Judgement(COMPUTE_MODE, device, outcome_of(present), summary, why="compute_mode"),)
    is_same = present == wanted
    return (
        Judgement(
            COMPUTE_MODE,
            device,
            Outcome.SAME if is_same else Outcome.DIFFERS,
            f"compute mode is {present}" + ("" if is_same else f", wanted {wanted}"),
            observed=present,
            wanted=wanted,
            why="compute_mode",
            operation=None
            if is_same
            else operation_for(device, Setting.COMPUTE_MODE, compute_mode_value(present), compute_mode_value(wanted)),
        ),
    )


def compute_mode_value(mode: str) -> str:
    """The word that nvidia-smi takes: `EXCLUSIVE_PROCESS` for `exclusive process`."""
    return mode.upper().replace(" ", "_")


def _unread_persistence(device: Device, present: Unknown, facts: GpuFacts) -> Judgement:
    """Not offered is normal where Windows keeps the driver loaded, and then nothing is missing."""
    stays_loaded = present.kind is UnknownKind.NOT_SUPPORTED and facts.platform == WSL2
    reason = present.reason
    if present.kind is UnknownKind.NOT_SUPPORTED:
        reason += "; normal on Windows and WSL2, where the driver stays loaded"
    return Judgement(
        PERSISTENCE,
        device,
        outcome_of(present),
        f"persistence mode could not be read: {reason}",
        why="persistence_mode",
        is_advice=stays_loaded,
    )


def _suggest(device: Device) -> tuple[Judgement, ...]:
    """Advice where the profile says nothing, the mode is off, and no display keeps the driver loaded anyhow."""
    processes = () if isinstance(device.processes, Unknown) else device.processes
    if device.persistence_mode is not False or any(process.kind == "graphics" for process in processes):
        return ()
    summary = "persistence mode is off: the first program pays the GPU's initialisation, and settings end with the last"
    return (Judgement(PERSISTENCE, device, Outcome.DIFFERS, summary, evidence=(_DAEMON,), is_advice=True),)


def _keeper(facts: GpuFacts) -> tuple[str, ...]:
    if facts.persistence_daemon is True:
        return ("nvidia-persistenced runs",)
    return ("nvidia-persistenced does not run; nvidia-smi sets the legacy flag",) if _lacks_daemon(facts) else ()


def _lacks_daemon(facts: GpuFacts) -> bool:
    """Only where it would be seen: a container does not show the daemon of its host."""
    return facts.persistence_daemon is False and facts.platform == BARE_HOST


def _word(is_on: bool) -> str:
    return show_value(Setting.PERSISTENCE_MODE, str(int(is_on)))
