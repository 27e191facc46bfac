"""What the boot unit does: wait for the driver, plan afresh from the fixed file, make the changes."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from remediate.effects import sha256
from remediate.errors import ObserveError
from remediate.gpu.boot.settings import BootSettings
from remediate.gpu.facts import GpuFacts
from remediate.model import Facts, Plan, Request, Unknown, UnknownKind
from remediate.observation import observe, read_boot_id
from remediate.planner import make_plan
from remediate.profile.load import ResolvedProfile
from remediate.runs.store import Store

_PAUSE_S = 2.0
GPU = "gpu"


class Pacing(msgspec.Struct, frozen=True):
    """How long to wait for the driver. `sleep` and `clock` are in seconds."""

    wait_s: float = 120.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic


def plan_for_boot(
    settings: BootSettings,
    store: Store,
    *,
    board: str | None = None,
    pacing: Pacing | None = None,
    say: Callable[[str], None] | None = None,
) -> Plan:
    """A plan from the fixed file's wishes and the GPUs as they are once the driver is up.

    Where it does not come up in time, the plan says so in its findings, as any plan does.

    Args:
        board: simulated board in place of the real GPUs.
        say: told what is waited for.

    Raises:
        ObserveError: a GPU that the file names did not appear in time.
    """
    facts = observe_when_ready(settings, store, board=board, pacing=pacing or Pacing(), say=say or _nothing)
    profile = settings.profile
    digest = sha256(msgspec.json.encode(profile, order="deterministic"))
    return make_plan(facts, ResolvedProfile(profile, {}, (profile.name,), digest))


def observe_when_ready(
    settings: BootSettings, store: Store, *, board: str | None, pacing: Pacing, say: Callable[[str], None]
) -> Facts:
    """GPU facts as soon as every GPU answers, or the last ones when the time is up.

    At boot the driver is loaded by udev beside everything else, and the devices appear one after the other.

    Raises:
        ObserveError: a GPU that the file names did not appear in time.
    """
    request = Request(folder="/", gpus=settings.gpus, board=board, only=(GPU,))
    deadline = pacing.clock() + pacing.wait_s
    told = ""
    while True:
        is_last = pacing.clock() >= deadline
        try:
            facts = observe(request, None, store.ledger(read_boot_id()))
            reason = _missing(facts)
        except ObserveError as error:
            if is_last:
                raise
            reason = error.what
        else:
            if is_last or not reason:
                return facts
        if reason != told:
            say(f"waiting for the driver, at most {pacing.wait_s:g} s: {reason}")
            told = reason
        pacing.sleep(_PAUSE_S)


def _nothing(line: str) -> None:
    """Say nothing."""


def _missing(facts: Facts) -> str:
    """What is not there yet; empty when nothing is worth waiting for."""
    gpu: GpuFacts = facts.sections[GPU]
    for reading in (gpu.driver_version, gpu.device_count):
        if isinstance(reading, Unknown):
            return reading.reason
    if not gpu.devices:
        return "the driver sees no GPU"
    # A lost GPU stays lost until the next restart; every other failure may be one that is still coming up.
    failures = (device.lost for device in gpu.devices if device.lost is not None)
    return next((failure.reason for failure in failures if failure.kind is not UnknownKind.LOST), "")
