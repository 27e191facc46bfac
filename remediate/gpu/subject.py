# The signatures are the interface's; this subject does not need every argument.
# ruff: noqa: ARG002
"""The GPU subject: the core's view of this room. Heavier parts are imported where they are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from remediate.errors import InternalError
from remediate.gpu.commands import Operation
from remediate.gpu.facts import GpuFacts
from remediate.model import Explanation, Facts, Finding, Performed, Request, State, Unknown
from remediate.profile.schema import Profile
from remediate.subject import Begun, Context, Ledger, Observed, Proposal, Settings, Situation


class GpuSubject:
    """Implements `remediate.subject.Subject`."""

    name: str = "gpu"
    title: str = "GPU"
    facts_type: type[msgspec.Struct] = GpuFacts
    operation_type: Any = Operation

    def begin(self, request: Request) -> None:
        """Nothing takes long enough."""

    def observe(self, request: Request, settings: Settings, ledger: Ledger, begun: Begun | None = None) -> Observed:
        """The real GPUs, or the simulated board that the request names."""
        from remediate.gpu.observe import observe

        if request.board is None:
            return Observed(observe(request.gpus, ledger=ledger))
        from remediate.gpu.board import Board, BoardHost, SimulatedNvml

        facts = Board.load(request.board).facts
        return Observed(observe(request.gpus, ledger=ledger, nvml=SimulatedNvml(facts), host=BoardHost(facts)))

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
        lowest of all boards); keys that could not be read are left out.
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
        }
        return {key: value for key, value in announced.items() if value}

    def compare(self, situation: Situation) -> Sequence[Finding]:
        """One finding for each wish on each device, and advice beside them."""
        from remediate.gpu.compare import compare

        return compare(self._section(situation.facts), situation.profile.gpu, self._is_root(situation.facts))

    def propose(self, situation: Situation, findings: Sequence[Finding]) -> Proposal:
        """nvidia-smi calls, one setting each, and a script of them."""
        from remediate.gpu.propose import propose

        gpu = self._section(situation.facts)
        # A simulated board grants the rights itself, unless it plays a container without them.
        needs_root = situation.facts.request.board is None or gpu.has_cap_sys_admin is not True
        return propose(gpu, situation.profile.gpu, self._is_root(situation.facts), needs_root)

    def read(self, facts: Facts, key: str) -> str:
        """The present value of a fact, as `remediate.gpu.keys` names it."""
        from remediate.gpu.keys import read_key

        return read_key(self._section(facts), key)

    def state(self, operation: Any, context: Context) -> State:
        """Where the device stands."""
        from remediate.gpu import effects

        return effects.state(operation, context)

    def prepare(self, operation: Any, context: Context) -> Any:
        """The value that is there now."""
        from remediate.gpu import effects

        return effects.prepare(operation, context)

    def perform(self, operation: Any, prepared: Any, context: Context) -> Performed:
        """Set the value and read it back."""
        from remediate.gpu import effects

        return effects.perform(operation, context)

    def undo(self, operation: Any, prepared: Any, context: Context) -> Performed:
        """Bring back the value that `prepare` saw."""
        from remediate.gpu import effects

        return effects.undo(operation, prepared, context)

    def remember(self, operation: Any, done: bool) -> Mapping[str, str | None]:
        """Locked clocks, which no driver call reads back."""
        from remediate.gpu import effects

        return effects.remember(operation, done)

    def _section(self, facts: Facts) -> GpuFacts:
        section = facts.sections.get(self.name)
        if not isinstance(section, GpuFacts):
            raise InternalError("the facts have no GPU section", cause=f"it is {type(section).__name__}")
        return section

    def _is_root(self, facts: Facts) -> bool:
        """Whether facts were read by a root that could set something; never on a simulated board."""
        return facts.host.is_root and facts.request.board is None


def _version_key(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())
