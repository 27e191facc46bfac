"""Scanning many scripts against a profile, and the plan that patches them. The host itself is not looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remediate import api
from remediate._version import __version__
from remediate.config import load_config
from remediate.errors import UsageError
from remediate.model import SCHEMA_VERSION, Change, Choice, Finding, Outcome, Plan, Request, Withheld
from remediate.observation import observe_host
from remediate.planner import announce, pinned_versions
from remediate.profile.load import ResolvedProfile, load_profile
from remediate.registry import subject_named
from remediate.script.scan.files import find_files
from remediate.script.scan.judge import Judged, Task, unreadable
from remediate.script.scan.many import judge_all
from remediate.subject import Settings

if TYPE_CHECKING:
    from remediate.script.scan.many import Watcher

SUBJECT = "script"
DEFAULT_PROFILE = "base"
"""The wishes about scripts without any version: what is said does not depend on the machine that scans."""


class Scan(msgspec.Struct, frozen=True):
    """What a scan came to.

    Attributes:
        task: what the files were held against.
        profile: the resolved profile.
        choices: what was chosen by itself, and why.
        looked_at: number of files.
        judged: what was found, by name; files that can't be inference scripts are left out.
    """

    task: Task
    profile: ResolvedProfile
    choices: tuple[Choice, ...]
    looked_at: int
    judged: tuple[Judged, ...]

    @property
    def scripts(self) -> int:
        """Number of inference scripts."""
        return sum(item.is_script for item in self.judged)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, by file and line; what agrees is left out."""
        return tuple(spot.finding for item in self.judged for spot in item.spots)

    @property
    def changes(self) -> tuple[Change, ...]:
        """One for each file that can be patched."""
        return tuple(change for item in self.judged for change in item.changes)

    @property
    def withheld(self) -> tuple[Withheld, ...]:
        """Edits that are not made."""
        return tuple(held for item in self.judged for held in item.withheld)

    @property
    def differences(self) -> int:
        """Findings that differ and are more than advice."""
        return sum(finding.outcome is Outcome.DIFFERS and not finding.is_advice for finding in self.findings)

    @property
    def unknowns(self) -> int:
        """Files and places that could not be judged."""
        return sum(
            finding.outcome in (Outcome.UNKNOWN, Outcome.UNSUPPORTED) and not finding.is_advice
            for finding in self.findings
        )


def scan(
    named: Iterable[str] = (),
    *,
    folder: str | Path = ".",
    profile: str | None = None,
    python: str | None = None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    unsafe_fixes: bool = False,
    jobs: int | None = None,
    watch: Watcher | None = None,
) -> Scan:
    """Judge the scripts and notebooks that are named, or that stand below the folders that are named.

    Args:
        named: files, folders, patterns, relative to `folder`; none stands for `folder`.
        folder: its `remediate.toml` counts, and names are relative to it.
        profile: name or path; None takes the configuration's, else `base`.
        python: interpreter or environment whose installed versions count where the profile pins none.
        select: only these codes; empty for all.
        ignore: not these codes, beside those that the configuration ignores.
        unsafe_fixes: also propose edits that may change what a script means.
        jobs: processes at most.
        watch: told how far it is.

    Raises:
        UsageError: a path, pattern or code does not exist.
        ProfileError, ConfigError, TargetError: as `api.plan` and `api.observe`.
    """
    base = Path(api.make_request(folder).folder)
    config = load_config(base)
    wanted = profile or config.profile or DEFAULT_PROFILE
    resolved = load_profile(wanted)
    because = "it was asked for" if profile else f"`{config.place}` names it" if config.profile else "none was named"
    ignored = {**config.settings.ignore, **_ignored(select, ignore)}
    settings = Settings(ignore=ignored, unsafe_fixes=unsafe_fixes)
    interpreter = python or config.fill(Request(str(base))).python
    task = Task(str(base), resolved.profile, _versions(resolved, base, interpreter), settings, observe_host())
    found = find_files(named, base)
    judged = [
        *(unreadable(path, task.folder, f"the folder can't be listed: {why}") for path, why in found.unreadable),
        *judge_all(found.files, task, jobs, watch, found.named),
    ]
    return Scan(
        task=task,
        profile=resolved,
        choices=(*config.choices, Choice("profile", resolved.profile.name, because)),
        looked_at=len(found.files),
        judged=_sorted(judged),
    )


def scan_again(before: Scan, paths: Sequence[str]) -> Scan:
    """The same scan with some files read afresh, after they were patched."""
    again = set(paths)
    kept = [item for item in before.judged if item.path not in again]
    return msgspec.structs.replace(before, judged=_sorted([*kept, *judge_all(paths, before.task, 1)]))


def plan_of(made: Scan) -> Plan:
    """The plan that makes the scan's changes; applying it looks at the files that it changes and at nothing else."""
    paths = tuple(item.path for item in made.judged if item.changes)
    return Plan(
        schema_version=SCHEMA_VERSION,
        tool_version=__version__,
        profile_name=made.profile.profile.name,
        profile_sha256=made.profile.sha256,
        request=Request(made.task.folder, scripts=paths, only=(SUBJECT,)),
        choices=made.choices,
        findings=made.findings,
        changes=made.changes,
        withheld=made.withheld,
    )


def _sorted(judged: Iterable[Judged]) -> tuple[Judged, ...]:
    return tuple(sorted(judged, key=lambda item: (item.name, item.path)))


def _ignored(select: Iterable[str], ignore: Iterable[str]) -> dict[str, str]:
    """Code to the reason for leaving it out.

    Raises:
        UsageError: there is no such code.
    """
    known = subject_named(SUBJECT).explanations()
    chosen, left_out = ({code.upper() for code in codes} for codes in (select, ignore))
    for code in sorted(chosen | left_out):
        if code not in known:
            raise UsageError(f"there is no script code `{code}`", hint=f"known are: {', '.join(known)}")
    unselected = set(known) - chosen if chosen else set()
    return {**dict.fromkeys(unselected, "not selected"), **dict.fromkeys(left_out, "ignored on the command line")}


def _versions(resolved: ResolvedProfile, folder: Path, python: str | None) -> dict[str, str]:
    """The versions that the scripts will meet: those that the profile pins, over those of an environment."""
    pinned = pinned_versions(resolved.profile)
    if python is None:
        return pinned
    return {**pinned, **announce(api.observe(folder, python=python, only=("packages",)), resolved.profile)}


class ScanFile(msgspec.Struct, frozen=True):
    """One file of a scan's document."""

    name: str
    is_script: bool
    findings: tuple[ScanFinding, ...]
    diff: str
    """What a fix would change; empty for nothing."""
    withheld: tuple[Withheld, ...]


class ScanFinding(msgspec.Struct, frozen=True):
    """One finding with its place: a line of the file, of a notebook one of its JSON."""

    line: int
    finding: Finding


class ScanDocument(msgspec.Struct, frozen=True):
    """What `scan --json` prints."""

    schema_version: int
    kind: str
    profile_name: str
    files: int
    scripts: int
    differences: int
    unknowns: int
    judged: tuple[ScanFile, ...]


def document_of(made: Scan) -> ScanDocument:
    """The scan as a document; files about which nothing is said are left out."""
    return ScanDocument(
        schema_version=SCHEMA_VERSION,
        kind="remediate-scan",
        profile_name=made.profile.profile.name,
        files=made.looked_at,
        scripts=made.scripts,
        differences=made.differences,
        unknowns=made.unknowns,
        judged=tuple(_file(item) for item in made.judged if item.spots or item.is_script),
    )


def _file(item: Judged) -> ScanFile:
    findings = tuple(ScanFinding(spot.line, spot.finding) for spot in item.spots)
    return ScanFile(item.name, item.is_script, findings, "".join(c.diff for c in item.changes), item.withheld)
