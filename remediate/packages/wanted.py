"""The requirements files of the facts with the planned pins in them; pure, but for files with credentials."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from remediate.model import Unknown
from remediate.packages.environment import marker_environment
from remediate.packages.facts import FileKind, PackagesFacts, RequirementsFileFacts
from remediate.packages.pins import PlannedPin
from remediate.packages.render import Edit, Obstacle, Rendered, Wanted
from remediate.packages.sources import content_of
from remediate.packages.statements import add_to_file, render_file


class FilePlan(msgspec.Struct, frozen=True):
    """One requirements file, before and after.

    Attributes:
        before: its bytes; None when it does not exist.
        after: the bytes that it should have.
        edits: lines that change or are added.
        obstacles: lines that should change and can't.
    """

    facts: RequirementsFileFacts
    before: bytes | None
    after: bytes
    edits: tuple[Edit, ...]
    obstacles: tuple[Obstacle, ...]


class RequirementsPlan(msgspec.Struct, frozen=True):
    """All requirements files, the chosen one first.

    Attributes:
        stated: governed names that a line of some file, constraints aside, is about.
        unreadable: why a file could not be read; nothing is edited then, for what it holds is not known.
    """

    files: tuple[FilePlan, ...] = ()
    stated: frozenset[str] = frozenset()
    unreadable: Unknown | None = None

    def obstacle_of(self, name: str) -> Obstacle | None:
        """The first line of that distribution that should change and can't."""
        return next((found for file in self.files for found in file.obstacles if found.name == name), None)

    def edit_of(self, name: str) -> tuple[FilePlan, Edit] | None:
        """The first line of that distribution that changes or is added, with its file."""
        return next(((file, edit) for file in self.files for edit in file.edits if edit.name == name), None)


def plan_requirements(facts: PackagesFacts, pins: Mapping[str, PlannedPin], profile: str) -> RequirementsPlan:
    """Pin the judged distributions in every file; what no file states is added to the chosen one."""
    environment = marker_environment(facts.target)
    wanted = {
        name: Wanted(pin.planned, pin.pin.reason, pin.pin.required) for name, pin in pins.items() if pin.is_judged
    }
    rendered: list[tuple[RequirementsFileFacts, bytes | None, Rendered]] = []
    for index, file in enumerate(facts.requirements):
        content = content_of(file)
        if isinstance(content, Unknown):
            return RequirementsPlan(unreadable=content)
        result = render_file(file, content or b"", wanted, environment=environment, is_chosen=index == 0)
        rendered.append((file, content, result))
    settled = {
        name for index, (file, _, result) in enumerate(rendered) if _is_list(file, index) for name in result.settled
    }
    missing = {name for name, wish in wanted.items() if wish.is_required} - settled
    return RequirementsPlan(
        tuple(
            _finish(
                file,
                before,
                result,
                add_to_file(file, result.content, wanted, missing if index == 0 else (), profile),
            )
            for index, (file, before, result) in enumerate(rendered)
        ),
        frozenset(settled),
    )


def _is_list(file: RequirementsFileFacts, index: int) -> bool:
    """Whether what it states need not be added: it is the chosen file or one that it includes."""
    is_other = file.kind is not FileKind.REQUIREMENTS or bool(file.compile_command)
    return not file.is_constraints and (index == 0 or not is_other)


def _finish(
    file: RequirementsFileFacts,
    before: bytes | None,
    result: Rendered,
    added: Rendered,
) -> FilePlan:
    edits = result.edits + added.edits
    obstacles = result.obstacles + added.obstacles
    if edits and not file.is_inside:
        because = "the file lies outside of the folder and may belong to others"
        obstacles += tuple(Obstacle(edit.name, file.path, edit.line, because) for edit in edits)
        return FilePlan(file, before, before or b"", (), obstacles)
    return FilePlan(file, before, added.content, edits, obstacles)
