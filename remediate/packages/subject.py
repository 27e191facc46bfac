"""The packages subject: the distributions of the target environment and the files that pin them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from remediate import files
from remediate.files import FileEdit
from remediate.model import Explanation, Facts, Finding, Performed, Request, State
from remediate.packages.facts import PackagesFacts
from remediate.packages.install import Install
from remediate.packages.pins import find_blockers, plan_pins, planned_torch_cuda
from remediate.packages.target import Probe, find_interpreter, start_probe
from remediate.profile.schema import Profile
from remediate.subject import Begun, Context, Ledger, Observed, Proposal, Settings, Situation


class PackagesSubject:
    """The installed distributions of the target interpreter, and the folder's requirements files."""

    name = "packages"
    title = "Packages"
    facts_type = PackagesFacts
    operation_type = FileEdit | Install

    def begin(self, request: Request) -> Probe | None:
        """Start the target interpreter, which takes longer than all the rest. None where there is none to start.

        Raises:
            TargetError: the interpreter that was named does not exist.
        """
        candidate = find_interpreter(Path(request.folder), request.python)
        return None if candidate is None else start_probe(candidate)

    def observe(self, request: Request, settings: Settings, ledger: Ledger, begun: Begun | None = None) -> Observed:
        """Read the target environment and the requirements files.

        Raises:
            TargetError: the interpreter that was named does not work.
            RequirementsError: the requirements file that was named can't be read or parsed.
        """
        del settings, ledger
        from remediate.packages.observe import observe_packages

        probe = begun if isinstance(begun, Probe) else None
        facts, choices = observe_packages(
            Path(request.folder), request.python, request.requirements, probe, request.install.installer
        )
        if request.check_files:
            from msgspec.structs import replace

            from remediate.packages.intact import find_changed

            facts = replace(facts, problems=(*facts.problems, *find_changed(facts.distributions)))
        return Observed(facts, choices)

    def explanations(self) -> Mapping[str, Explanation]:
        """The pages of the `PKG…` codes."""
        from remediate.packages.explanations import EXPLANATIONS

        return EXPLANATIONS

    def describe(self, facts: Facts) -> Sequence[tuple[str, str]]:
        """The target, torch's build, the pins' usual suspects and the files, for a person."""
        from remediate.packages.describe import describe_packages

        return describe_packages(_section(facts))

    def announce(self, facts: Facts, profile: Profile) -> Mapping[str, str]:
        """`distribution:NAME` with the planned version, `packages:torch_cuda`, `packages:python`.

        Where nothing can be installed, the planned version is the installed one. A driver that is too old is not known
        here: the GPU subject announces it at the same time.
        """
        section = _section(facts)
        planned = {f"distribution:{found.name}": section.version_of(found.name) for found in section.distributions}
        pins = plan_pins(section, profile)
        if section.target is not None and not find_blockers(section, profile):
            planned |= {f"distribution:{pin.name}": pin.planned for pin in pins.values() if pin.is_judged}
            planned["packages:torch_cuda"] = planned_torch_cuda(section, pins)
        else:
            planned["packages:torch_cuda"] = planned_torch_cuda(section, {})
        planned["packages:python"] = section.target.version if section.target else _listed_python(section)
        return {key: value for key, value in planned.items() if value is not None}

    def compare(self, situation: Situation) -> Sequence[Finding]:
        """See `remediate.packages.compare`."""
        from remediate.packages.compare import compare_packages

        return compare_packages(_section(situation.facts), situation.profile, situation.announced)

    def propose(self, situation: Situation, findings: Sequence[Finding]) -> Proposal:
        """See `remediate.packages.propose`."""
        from msgspec.structs import replace

        from remediate.packages.advisories.costs import costs_of
        from remediate.packages.propose import propose_packages

        section = _section(situation.facts)
        proposal = propose_packages(section, situation, findings)
        return replace(proposal, costs=costs_of(situation.profile, section))

    def read(self, facts: Facts, key: str) -> str:
        """`installed:NAME` gives the version, empty when absent; `target:prefix` and `target:version` the target's."""
        section = _section(facts)
        kind, _, name = key.partition(":")
        if kind == "installed":
            return section.version_of(name) or ""
        if section.target is None:
            return str(section.target_unknown or "")
        return str(getattr(section.target, name, ""))

    def state(self, operation: FileEdit | Install, context: Context) -> State:
        """Read the file or the environment afresh."""
        if isinstance(operation, FileEdit):
            return files.state(operation, context)
        from remediate.packages import effects

        return effects.state(operation, context)

    def prepare(self, operation: FileEdit | Install, context: Context) -> Any:
        """Save the file's bytes, or note the former set and set its files aside."""
        if isinstance(operation, FileEdit):
            return files.prepare(operation, context)
        from remediate.packages import effects

        return effects.prepare(operation, context)

    def perform(self, operation: FileEdit | Install, prepared: Any, context: Context) -> Performed:
        """Write the file, or run pip and check what it did."""
        if isinstance(operation, FileEdit):
            return files.perform(operation, prepared, context)
        from remediate.packages import effects

        return effects.perform(operation, prepared, context)

    def undo(self, operation: FileEdit | Install, prepared: Any, context: Context) -> Performed:
        """Bring back the file's bytes, or the former set of distributions."""
        if isinstance(operation, FileEdit):
            return files.undo(operation, prepared, context)
        from remediate.packages import effects

        return effects.undo(operation, prepared, context)

    def affected(self, operation: FileEdit | Install, facts: Facts) -> Sequence[str]:
        """Nobody: what runs has read its files already."""
        del operation, facts
        return ()

    def remember(self, operation: FileEdit | Install, done: bool) -> Mapping[str, str | None]:
        """Nothing: everything that this subject sets can be read back."""
        del operation, done
        return {}


def _listed_python(section: PackagesFacts) -> str | None:
    listed = section.listing
    return listed.python if listed is not None and isinstance(listed.python, str) else None


def _section(facts: Facts) -> PackagesFacts:
    section = facts.sections["packages"]
    if not isinstance(section, PackagesFacts):
        raise TypeError(f"packages facts expected, not {type(section).__name__}")
    return section
