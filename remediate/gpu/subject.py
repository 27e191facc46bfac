# The signatures are the interface's; this subject does not need every argument.
# ruff: noqa: ARG002
"""The GPU subject: the core's view of this room. Heavier parts are imported where they are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from remediate.errors import InternalError
from remediate.gpu.boot.operations import BootFile, UnitSwitch
from remediate.gpu.commands import Operation
from remediate.gpu.facts import GpuFacts
from remediate.model import Explanation, Facts, Finding, Performed, Request, State, Unknown
from remediate.profile.schema import Profile
from remediate.subject import Begun, Context, Ledger, Observed, Proposal, Settings, Situation

_BOOT = (BootFile, UnitSwitch)


class GpuSubject:
    """Implements `remediate.subject.Subject`."""

    name: str = "gpu"
    title: str = "GPU"
    facts_type: type[msgspec.Struct] = GpuFacts
    operation_type: Any = Operation | BootFile | UnitSwitch

    def begin(self, request: Request) -> Begun | None:
        """Start reading the real driver. None for a simulated board, which takes no time."""
        if request.board is not None:
            return None
        from remediate.gpu.observe import Sampling, begin

        return begin(request.gpus, Sampling(request.sample_s))

    def observe(self, request: Request, settings: Settings, ledger: Ledger, begun: Begun | None = None) -> Observed:
        """The real GPUs, or the simulated board that the request names."""
        from remediate.gpu.boot.observe import observe_boot
        from remediate.gpu.observe import Sampling, observe
        from remediate.gpu.watched import Watch

        boot = observe_boot(request, ledger)
        if request.board is None:
            started = begun if isinstance(begun, Watch) else None
            read = observe(request.gpus, ledger=ledger, sampling=Sampling(request.sample_s), begun=started)
            return Observed(msgspec.structs.replace(read, boot=boot))
        from remediate.gpu.board import Board, BoardHost, BoardPace, SimulatedNvml

        board = Board.load(request.board)
        nvml = SimulatedNvml(board.facts)
        # A recording stands still: reading it again would make shares of time out of one moment.
        seconds = 0.0 if board.file.is_recording else request.sample_s
        sampling = Sampling(seconds, BoardPace(board, nvml))
        read = observe(request.gpus, ledger=ledger, nvml=nvml, host=BoardHost(board.facts), sampling=sampling)
        return Observed(msgspec.structs.replace(read, boot=boot))

    def explanations(self) -> Mapping[str, Explanation]:
        """The pages of the `GPU…` codes."""
        from remediate.gpu.codes import EXPLANATIONS

        return EXPLANATIONS

    def describe(self, facts: Facts) -> Sequence[tuple[str, str]]:
        """Driver and devices in a few lines each."""
        from remediate.gpu.describe import describe

        return describe(self._section(facts))

    def announce(self, facts: Facts, profile: Profile) -> Mapping[str, str]:
        """`gpu:name` (one a line), `gpu:driver_version`, `gpu:cuda_driver_version`, `gpu:compute_capability` (the
        lowest of all boards), `gpu:compute_capabilities` (of all, one a line); keys that could not be read are left
        out.
        """
        gpu = self._section(facts)
        names = [device.name for device in gpu.devices if isinstance(device.name, str)]
        capabilities = [device.compute_capability for device in gpu.devices]
        known = [text for text in capabilities if isinstance(text, str)]
        announced = {
            "gpu:name": "\n".join(names),
            "gpu:driver_version": "" if isinstance(gpu.driver_version, Unknown) else gpu.driver_version,
            "gpu:cuda_driver_version": "" if isinstance(gpu.cuda_driver_version, Unknown) else gpu.cuda_driver_version,
            "gpu:compute_capability": min(known, key=_version_key, default=""),
            "gpu:compute_capabilities": "\n".join(dict.fromkeys(sorted(known, key=_version_key))),
        }
        return {key: value for key, value in announced.items() if value}

    def compare(self, situation: Situation) -> Sequence[Finding]:
        """One finding for each wish on each device, and advice beside them."""
        from remediate.gpu.boot.propose import boot_findings

        boot = boot_findings(self._section(situation.facts).boot, situation.profile, self._chosen(situation.facts))
        return (*self._compare_settings(situation), *boot)

    def _compare_settings(self, situation: Situation) -> Sequence[Finding]:
        from remediate.gpu.compare import compare

        return compare(self._section(situation.facts), situation.profile, self._is_root(situation.facts))

    def propose(self, situation: Situation, findings: Sequence[Finding]) -> Proposal:
        """nvidia-smi calls, one setting each, and a script of them; then what makes them survive a reboot."""
        from remediate.gpu.boot.propose import boot_proposal

        made = self._propose_settings(situation)
        boot = boot_proposal(self._section(situation.facts).boot, situation.profile, self._chosen(situation.facts))
        return Proposal(made.changes + boot.changes, made.withheld + boot.withheld, made.artifacts + boot.artifacts)

    def _propose_settings(self, situation: Situation) -> Proposal:
        from remediate.gpu.propose import propose

        gpu = self._section(situation.facts)
        # A simulated board grants the rights itself, unless it plays a container without them.
        needs_root = situation.facts.request.board is None or gpu.has_cap_sys_admin is not True
        return propose(gpu, situation.profile, self._is_root(situation.facts), needs_root)

    def read(self, facts: Facts, key: str) -> str:
        """The present value of a fact, as `remediate.gpu.keys` names it."""
        from remediate.gpu.keys import read_key

        if key.startswith("boot/"):
            from remediate.gpu.boot.propose import read_boot

            return read_boot(self._section(facts).boot, key)

        return read_key(self._section(facts), key)

    def state(self, operation: Any, context: Context) -> State:
        """Where the device stands."""
        from remediate.gpu import effects

        if isinstance(operation, _BOOT):
            from remediate.gpu.boot import effects as boot

            return boot.state(operation, context)
        return effects.state(operation, context)

    def prepare(self, operation: Any, context: Context) -> Any:
        """The value that is there now."""
        from remediate.gpu import effects

        if isinstance(operation, _BOOT):
            from remediate.gpu.boot import effects as boot

            return boot.prepare(operation, context)
        return effects.prepare(operation, context)

    def perform(self, operation: Any, prepared: Any, context: Context) -> Performed:
        """Set the value and read it back."""
        from remediate.gpu import effects

        if isinstance(operation, _BOOT):
            from remediate.gpu.boot import effects as boot

            return boot.perform(operation, prepared, context)
        return effects.perform(operation, context)

    def undo(self, operation: Any, prepared: Any, context: Context) -> Performed:
        """Bring back the value that `prepare` saw."""
        from remediate.gpu import effects

        if isinstance(operation, _BOOT):
            from remediate.gpu.boot import effects as boot

            return boot.undo(operation, prepared, context)
        return effects.undo(operation, prepared, context)

    def affected(self, operation: Any, facts: Facts) -> Sequence[str]:
        """The processes on the GPU whose clocks or limits change."""
        from remediate.gpu.busy import who_notices

        return () if isinstance(operation, _BOOT) else who_notices(operation, self._section(facts))

    def remember(self, operation: Any, done: bool) -> Mapping[str, str | None]:
        """Locked clocks, which no driver call reads back."""
        from remediate.gpu import effects

        return {} if isinstance(operation, _BOOT) else effects.remember(operation, done)

    def _section(self, facts: Facts) -> GpuFacts:
        section = facts.sections.get(self.name)
        if not isinstance(section, GpuFacts):
            raise InternalError("the facts have no GPU section", cause=f"it is {type(section).__name__}")
        return section

    def _chosen(self, facts: Facts) -> tuple[str, ...]:
        """UUIDs of the GPUs that the request picked; empty where it means all."""
        if not facts.request.gpus:
            return ()
        return tuple(device.uuid for device in self._section(facts).devices if isinstance(device.uuid, str))

    def _is_root(self, facts: Facts) -> bool:
        """Whether facts were read by a root that could set something; never on a simulated board."""
        return facts.host.is_root and facts.request.board is None


def _version_key(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())
