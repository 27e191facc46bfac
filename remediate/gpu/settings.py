"""From a profile's wishes and a device's facts to judgements: what agrees, what differs, what would close the gap."""

from __future__ import annotations

import msgspec

from remediate.gpu.clocks import judge_clocks
from remediate.gpu.facts import Device, GpuFacts
from remediate.gpu.health import judge_processes, judge_throttling
from remediate.gpu.judgement import LOST, NO_DRIVER, Judgement, first_unknown
from remediate.gpu.modes import judge_persistence_mode
from remediate.gpu.numbers import VGPU_GUEST
from remediate.gpu.nvml import hint_for
from remediate.gpu.power import judge_power_limit
from remediate.model import Outcome, Unknown, UnknownKind
from remediate.profile.schema import GpuWish

_NO_DEVICE = Device(index=-1)


def judge(facts: GpuFacts, wish: GpuWish, is_root: bool) -> tuple[Judgement, ...]:
    """All judgements, device by device, in the order in which their operations should be performed.

    Persistence mode comes first: with it off, a limit is lost as soon as its last client, nvidia-smi itself, leaves.

    Args:
        is_root: the facts were read by root, who in a container may still lack CAP_SYS_ADMIN.
    """
    if not facts.devices:
        return (_no_device(facts, wish),)
    return tuple(found for device in facts.devices for found in _judge_device(facts, device, wish, is_root))


def has_wishes(wish: GpuWish) -> bool:
    """Whether the profile wants anything of a GPU."""
    return msgspec.structs.replace(wish, why={}) != GpuWish()


def _judge_device(facts: GpuFacts, device: Device, wish: GpuWish, is_root: bool) -> tuple[Judgement, ...]:
    gone = _lost(device)
    if gone is not None:
        summary = f"the device can't be read: {gone.reason}"
        return (Judgement(LOST, device, Outcome.UNKNOWN, summary, is_advice=not has_wishes(wish)),)
    settings = judge_persistence_mode(device, wish, facts.persistence_daemon)
    lasting = (*judge_power_limit(device, wish), *judge_clocks(device, wish))
    if device.persistence_mode is False and not wish.persistence_mode:
        lasting = tuple(_volatile(found) for found in lasting)
    settings += lasting
    obstacle = _obstacle(facts, device, is_root)
    if obstacle:
        settings = tuple(_hold_back(found, obstacle) for found in settings)
    return (*settings, *judge_throttling(device), *judge_processes(device))


def _no_device(facts: GpuFacts, wish: GpuWish) -> Judgement:
    driver = facts.driver_version
    failure = first_unknown(driver, facts.device_count)
    if failure is not None:
        hint = hint_for(failure)
        summary = f"no GPU could be looked at: {failure.reason}"
    else:
        hint = "see `nvidia-smi -L`; in a container, start it with the GPUs"
        summary = f"driver {driver} sees no GPU"
    return Judgement(
        NO_DRIVER,
        _NO_DEVICE,
        Outcome.UNKNOWN,
        summary,
        evidence=(hint,) if hint else (),
        is_advice=not has_wishes(wish),
    )


def _lost(device: Device) -> Unknown | None:
    if device.lost is not None:
        return device.lost
    readings = (device.uuid, device.power.draw_w, device.clocks.sm_mhz)
    # Losing the device between two readings leaves LOST behind in the later ones.
    return next((r for r in readings if isinstance(r, Unknown) and r.kind is UnknownKind.LOST), None)


def _obstacle(facts: GpuFacts, device: Device, is_root: bool) -> str:
    """Why nothing can or should be set from here, although it can be read; empty where nothing stands in the way."""
    if device.virtualization == VGPU_GUEST:
        return "this is a vGPU guest; its host administers the board"
    if device.mig_current is True:
        return "MIG is on: a setting belongs to the whole GPU and would reach every instance"
    if is_root and facts.has_cap_sys_admin is False:
        return "this container lacks CAP_SYS_ADMIN, without which root can't set anything; run the command on its host"
    if isinstance(facts.smi, Unknown) and facts.smi.kind is UnknownKind.NOT_SUPPORTED:
        return "nvidia-smi is not on PATH"
    return ""


def _volatile(found: Judgement) -> Judgement:
    note = "persistence mode is off: the setting is lost when the last client leaves"
    return found if found.operation is None else msgspec.structs.replace(found, evidence=(*found.evidence, note))


def _hold_back(found: Judgement, obstacle: str) -> Judgement:
    if found.operation is None:
        return found
    return msgspec.structs.replace(
        found, outcome=Outcome.UNSUPPORTED, operation=None, because=obstacle, commands=(found.operation.argv,)
    )
