"""Persistence mode: whether the driver keeps a GPU initialised, and its settings, when the last client leaves."""

from __future__ import annotations

from remediate.gpu.commands import Setting
from remediate.gpu.facts import Device
from remediate.gpu.judgement import PERSISTENCE, Judgement, operation_for, outcome_of
from remediate.model import Outcome, Reading, Unknown
from remediate.profile.schema import GpuWish


def judge_persistence_mode(device: Device, wish: GpuWish, daemon: Reading[bool]) -> tuple[Judgement, ...]:
    """Persistence mode against the profile's wish; empty where the profile has none.

    `nvidia-smi -pm` goes through nvidia-persistenced where that runs, so the command is the same with and without it.
    """
    wanted = wish.persistence_mode
    if wanted is None:
        return ()
    present = device.persistence_mode
    if isinstance(present, Unknown):
        summary = f"persistence mode could not be read: {present.reason}"
        return (Judgement(PERSISTENCE, device, outcome_of(present), summary, why="persistence_mode"),)
    now, target = _word(present), _word(wanted)
    is_same = present == wanted
    return (
        Judgement(
            PERSISTENCE,
            device,
            Outcome.SAME if is_same else Outcome.DIFFERS,
            f"persistence mode is {now}" + ("" if is_same else f", wanted {target}"),
            observed=now,
            wanted=target,
            evidence=("nvidia-persistenced runs",) if daemon is True else (),
            why="persistence_mode",
            operation=None
            if is_same
            else operation_for(device, Setting.PERSISTENCE_MODE, str(int(present)), str(int(wanted))),
        ),
    )


def _word(is_on: bool) -> str:
    return "on" if is_on else "off"
