"""From a profile's wishes and a device's facts to judgements: what agrees, what differs, what would close the gap."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from remediate.gpu.clocks import judge_clocks
from remediate.gpu.facts import Device, GpuFacts
from remediate.gpu.health import judge_foreign_lock, judge_processes
from remediate.gpu.judgement import LOST, NO_DRIVER, Judgement, first_unknown
from remediate.gpu.modes import judge_compute_mode, judge_persistence_mode
from remediate.gpu.nvml import commands_after, hint_for
from remediate.gpu.obstacles import find_obstacle, hold_back
from remediate.gpu.power import judge_module_power_limit, judge_power_limit
from remediate.gpu.throttle import judge_throttling
from remediate.gpu.wishes import has_wishes, wishes_of
from remediate.model import Outcome, Unknown, UnknownKind
from remediate.profile.schema import GpuFor, GpuWish

_NO_DEVICE = Device(index=-1)
_READ_LOG = ("journalctl", "-k", "-g", "NVRM|Xid")


def judge(facts: GpuFacts, wish: GpuWish, is_root: bool, tables: Sequence[GpuFor] = ()) -> tuple[Judgement, ...]:
    """All judgements, device by device, in the order in which their operations should be performed.

    Persistence mode comes first: with it off, a limit is lost as soon as its last client, nvidia-smi itself, leaves.

    Args:
        wish: what is wished of every GPU.
        is_root: the facts were read by root, who in a container may still lack CAP_SYS_ADMIN.
        tables: wishes for particular GPUs, laid over `wish`.
    """
    if not facts.devices:
        anything = has_wishes(wish) or any(has_wishes(table) for table in tables)
        return (_no_device(facts, anything),)
    wish_for = wishes_of(wish, tables)
    return tuple(found for device in facts.devices for found in _judge_device(facts, device, wish_for(device), is_root))


def _judge_device(facts: GpuFacts, device: Device, wish: GpuWish, is_root: bool) -> tuple[Judgement, ...]:
    gone = _lost(device)
    if gone is not None:
        return (_lost_device(device, gone, has_wishes(wish)),)
    modes = (*judge_persistence_mode(device, wish, facts), *judge_compute_mode(device, wish))
    lasting = (
        *judge_power_limit(device, wish),
        *judge_module_power_limit(device, wish),
        *judge_clocks(device, wish),
    )
    if device.persistence_mode is False and not wish.persistence_mode:
        lasting = tuple(_volatile(found) for found in lasting)
    settings = tuple(msgspec.structs.replace(found, reason=wish.why.get(found.why, "")) for found in (*modes, *lasting))
    obstacle = find_obstacle(facts, device, is_root)
    if obstacle is not None:
        settings = hold_back(device, settings, obstacle)
    return (*settings, *judge_throttling(device), *judge_foreign_lock(device), *judge_processes(device))


def _no_device(facts: GpuFacts, has_wish: bool) -> Judgement:
    driver = facts.driver_version
    failure = first_unknown(driver, facts.device_count)
    commands: tuple[tuple[str, ...], ...] = ()
    if failure is not None:
        hint, commands = hint_for(failure), commands_after(failure)
        summary = f"no GPU could be looked at: {failure.reason}"
    else:
        hint = "see `nvidia-smi -L`; in a container, start it with the GPUs"
        summary = f"driver {driver} sees no GPU"
    return Judgement(
        NO_DRIVER,
        _NO_DEVICE,
        Outcome.UNKNOWN,
        summary,
        evidence=(hint,) if hint and not commands else (),
        is_advice=not has_wish,
        because=hint if commands and has_wish else "",
        commands=commands,
    )


def _lost(device: Device) -> Unknown | None:
    if device.lost is not None:
        return device.lost
    readings = (device.uuid, device.power.draw_w, device.clocks.sm_mhz)
    # Losing the device between two readings leaves LOST behind in the later ones.
    return next((r for r in readings if isinstance(r, Unknown) and r.kind is UnknownKind.LOST), None)


def _lost_device(device: Device, reason: Unknown, has_wish: bool) -> Judgement:
    return Judgement(
        LOST,
        device,
        Outcome.UNKNOWN,
        f"the device can't be read: {reason.reason}",
        is_advice=not has_wish,
        because="read the kernel log, then restart the machine" if has_wish else "",
        commands=(_READ_LOG,) if has_wish else (),
    )


def _volatile(found: Judgement) -> Judgement:
    note = "persistence mode is off: the setting is lost when the last client leaves"
    return found if found.operation is None else msgspec.structs.replace(found, evidence=(*found.evidence, note))
