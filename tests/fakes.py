"""A subject that edits files, with the real interface, for tests of the core."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from remediate import files
from remediate.effects import read_bytes, sha256
from remediate.errors import ApplyError
from remediate.files import FileEdit
from remediate.model import (
    Artifact,
    Change,
    Explanation,
    Facts,
    Finding,
    Outcome,
    Performed,
    Request,
    Risk,
    State,
)
from remediate.profile.schema import Profile
from remediate.subject import Begun, Context, Ledger, Observed, Proposal, Settings, Situation


class FolderFacts(msgspec.Struct, frozen=True):
    """Content of the watched files, by name; None where a file is absent."""

    contents: dict[str, bytes | None]


class FolderSubject:
    """Wants the files of a folder to have given contents."""

    title = "Files"
    facts_type: type[msgspec.Struct] = FolderFacts
    operation_type: Any = FileEdit

    def __init__(self, wanted: Mapping[str, bytes], *, name: str = "folder", root: bool = False) -> None:
        self.name = name
        self.wanted = dict(wanted)
        self.root = root
        self.fail_on: str | None = None
        self.performed: list[str] = []
        self.noticed_by: tuple[str, ...] = ()

    def begin(self, request: Request) -> None:
        return None

    def observe(self, request: Request, settings: Settings, ledger: Ledger, begun: Begun | None = None) -> Observed:
        return Observed(FolderFacts({key: read_bytes(Path(request.folder) / key) for key in self.wanted}))

    def explanations(self) -> Mapping[str, Explanation]:
        return {"FIL001": Explanation("FIL001", "A file differs", "content", "it is a test", "it is written")}

    def describe(self, facts: Facts) -> Sequence[tuple[str, str]]:
        return [(key, str(content)) for key, content in facts.sections[self.name].contents.items()]

    def announce(self, facts: Facts, profile: Profile) -> Mapping[str, str]:
        return {}

    def compare(self, situation: Situation) -> Sequence[Finding]:
        contents = situation.facts.sections[self.name].contents
        return [
            Finding(
                "FIL001", self.name, key, Outcome.SAME if contents[key] == content else Outcome.DIFFERS, f"file {key}"
            )
            for key, content in self.wanted.items()
        ]

    def propose(self, situation: Situation, findings: Sequence[Finding]) -> Proposal:
        contents = situation.facts.sections[self.name].contents
        folder = Path(situation.facts.request.folder)
        differing = [finding.target for finding in findings if finding.outcome is Outcome.DIFFERS]
        changes = [self._change(folder / key, key, contents[key]) for key in differing]
        return Proposal(tuple(changes), artifacts=tuple(Artifact(key, self.wanted[key]) for key in differing))

    def _change(self, path: Path, key: str, before: bytes | None) -> Change:
        return Change(
            id=f"{self.name}:{key}",
            subject=self.name,
            codes=("FIL001",),
            target=key,
            title=f"file {key}",
            before="" if before is None else before.decode(),
            after=self.wanted[key].decode(),
            reason="it is a test",
            risks=(Risk.SAFE, Risk.ROOT) if self.root else (Risk.SAFE,),
            depends_on={key: _hash(before)},
            operation=files.plan_edit(path, before, self.wanted[key]),
            diff=files.diff(path, before, self.wanted[key]),
        )

    def read(self, facts: Facts, key: str) -> str:
        return _hash(facts.sections[self.name].contents.get(key))

    def state(self, operation: FileEdit, context: Context) -> State:
        return files.state(operation, context)

    def prepare(self, operation: FileEdit, context: Context) -> Any:
        return files.prepare(operation, context)

    def perform(self, operation: FileEdit, prepared: Any, context: Context) -> Performed:
        name = os.path.basename(operation.path)  # noqa: PTH119
        if name == self.fail_on:
            raise ApplyError(f"{name} refuses", cause="the test says so")
        self.performed.append(name)
        return files.perform(operation, prepared, context)

    def undo(self, operation: FileEdit, prepared: Any, context: Context) -> Performed:
        return files.undo(operation, prepared, context)

    def affected(self, operation: FileEdit, facts: Facts) -> Sequence[str]:
        return self.noticed_by

    def remember(self, operation: FileEdit, done: bool) -> Mapping[str, str | None]:
        return {f"{os.path.basename(operation.path)}/written": "yes" if done else None}  # noqa: PTH119


def _hash(content: bytes | None) -> str:
    return "" if content is None else sha256(content)
