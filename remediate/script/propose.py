"""Patched scripts as changes. Reads the files that the facts name and don't hold, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from remediate import files
from remediate.effects import sha256
from remediate.model import Artifact, Change, ChangeItem, Finding, Outcome, Risk, Withheld
from remediate.script.compare import SUBJECT, display_path, open_codes, wanted_of
from remediate.script.facts import FileFacts, ScriptFacts
from remediate.script.observe import read_bytes
from remediate.script.patch import Patch, patch
from remediate.script.reading.layout import read_layout
from remediate.script.rules.base import Fix, Safety, Wanted
from remediate.subject import Proposal, Situation


def propose(situation: Situation, findings: Sequence[Finding]) -> Proposal:
    """One change for each script that the rules can put right, and what they hold back."""
    facts: ScriptFacts = situation.facts.sections[SUBJECT]
    folder = situation.facts.request.folder
    changes: list[Change] = []
    withheld: list[Withheld] = []
    wanted = wanted_of(situation)
    for file in facts.files:
        name = display_path(file.path, folder)
        codes = _open_codes(findings, name)
        if not codes:
            continue
        raw = file.content if file.content is not None else read_bytes(file.path)
        if raw is None or sha256(raw) != file.sha256:
            withheld.append(_out_of_reach(name, codes, is_there=raw is not None))
            continue
        made = patch(file.path, raw, wanted, frozenset(situation.settings.ignore))
        withheld += _withheld(file, made, name)
        if made.fixes:
            changes.append(_change(file, name, raw, made, _closed(file, made, wanted)))
    return Proposal(tuple(changes), tuple(withheld), _artifacts(changes))


def _open_codes(findings: Sequence[Finding], name: str) -> tuple[str, ...]:
    """Codes of a file's findings that differ."""
    found = (f for f in findings if f.outcome is Outcome.DIFFERS and f.target.startswith(f"{name}:"))
    return tuple(sorted({finding.code for finding in found}))


def _out_of_reach(name: str, codes: tuple[str, ...], *, is_there: bool) -> Withheld:
    because = "it changed since the facts were recorded" if is_there else "the file can't be read on this machine"
    return Withheld(
        codes, SUBJECT, name, f"patch `{name}`", because, "run `remediate plan` where the script is, on fresh facts"
    )


def _withheld(file: FileFacts, made: Patch, name: str) -> list[Withheld]:
    return [
        Withheld((code,), SUBJECT, f"{name}:{file.place(held.line)}", held.summary, held.because, held.by_hand)
        for code, held in made.held
    ]


def _closed(file: FileFacts, made: Patch, wanted: Wanted) -> tuple[str, ...]:
    """Codes that the patch settles, also those that another rule's edit settled on the way."""
    after, _ = read_layout(file.path, made.content)
    settled = open_codes(file, wanted) - open_codes(after, wanted)
    return tuple(sorted(settled | {code for code, _ in made.fixes}))


def _change(file: FileFacts, name: str, raw: bytes, made: Patch, codes: tuple[str, ...]) -> Change:
    path = Path(file.path)
    fixes = sorted(made.fixes, key=lambda item: (item[1].line, item[0]))
    items = tuple(ChangeItem(f"{name}:{file.place(fix.line)}", fix.before, fix.after, _reason(fix)) for _, fix in fixes)
    return Change(
        id=f"script:{file.path}",
        subject=SUBJECT,
        codes=codes,
        target=name,
        title=f"script `{name}`",
        before="not patched",
        after=f"{len(fixes)} place{'s' if len(fixes) > 1 else ''} patched",
        reason="brings the script to the profile's layout; bytes outside of the patched places stay as they are",
        risks=(Risk.SAFE, Risk.UNSAFE) if any(f.safety is Safety.UNSAFE for _, f in fixes) else (Risk.SAFE,),
        depends_on={f"{file.path}/sha256": file.sha256},
        operation=files.plan_edit(path, raw, made.content),
        items=items,
        diff=_diff(file, raw, made.content),
    )


def _reason(fix: Fix) -> str:
    """The reason, with what is in doubt for an edit that was asked for by `--unsafe-fixes`."""
    return f"{fix.reason} (unsafe: {fix.check})" if fix.safety is Safety.UNSAFE else fix.reason


def _diff(file: FileFacts, raw: bytes, content: bytes) -> str:
    """Unified diff; of a notebook that of its code, cell by cell, for a line of its JSON may hold a whole cell."""
    if file.cells:
        from remediate.script.notebook.difference import diff_notebooks

        return diff_notebooks(Path(file.path).name, raw, content)
    return files.diff(Path(file.path), raw, content, file.encoding.split()[0])


def _artifacts(changes: list[Change]) -> tuple[Artifact, ...]:
    """The patched scripts by file name; folders become part of the name where two would share it."""
    names = [Path(change.target).name for change in changes]
    artifacts = []
    for change, name in zip(changes, names, strict=True):
        is_shared = names.count(name) > 1
        flat = change.target.strip("/").replace("/", "-") if is_shared else name
        artifacts.append(Artifact(flat, change.operation.content))
    return tuple(artifacts)
