"""The records that every room shares: facts, findings, changes, plans, outcomes.

Plain immutable values. They know nothing of devices, files or of each other's makers; the subjects put their own
records into the open places (`Facts.sections`, `Change.operation`), and `remediate.subject` says how.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

SCHEMA_VERSION = 1
"""Version of the facts and plan documents. A reader refuses another one."""

T = TypeVar("T")


class UnknownKind(enum.StrEnum):
    """Why a reading has no value. The kinds lead to different advice and stay apart."""

    NOT_SUPPORTED = "not supported"
    """The device or version has no such thing."""
    NO_PERMISSION = "no permission"
    DEPRECATED = "deprecated"
    """The driver still has the name and no longer answers."""
    LOST = "lost"
    """The device fell off the bus or needs a reset."""
    NOT_READ = "not read"
    """Nobody asked: the source does not say, or something earlier failed."""
    FAILED = "failed"
    """It was asked and went wrong."""


class Unknown(msgspec.Struct, frozen=True, rename={"kind": "unknown"}):
    """A reading that failed, with its reason; never replaced by 0 or by "different"."""

    kind: UnknownKind
    reason: str

    def __str__(self) -> str:
        return f"unknown ({self.reason})"


Reading: TypeAlias = T | Unknown
"""A value or the reason why there is none."""


class Choice(msgspec.Struct, frozen=True):
    """Something the program chose by itself, and why, so that a person can disagree."""

    what: str
    chosen: str
    because: str


class Host(msgspec.Struct, frozen=True):
    """The machine that the facts were read on."""

    system: str
    """`platform.system()`, as `Linux`."""
    machine: str
    """`platform.machine()`, as `x86_64`."""
    boot_id: Reading[str]
    """Changes at each boot (`/proc/sys/kernel/random/boot_id`); GPU settings do not outlive it."""
    is_root: bool
    """The effective user is root, so that NVML setters are allowed outside of a restricted container."""


class InstallOptions(msgspec.Struct, frozen=True):
    """How packages are to be installed, where the user said so."""

    installer: str = ""
    """`pip` or `uv`; empty for pip, which the configuration may overrule."""
    prune: bool = False
    """Remove what neither the profile nor its lock names."""
    smoke: bool = False
    """Try the environment out afterwards; a failure makes the install fail."""


class Request(msgspec.Struct, frozen=True):
    """What to look at. A plan carries it, so that apply and verify look at the same things again."""

    folder: str
    """Absolute path of the sandbox folder."""
    python: str | None = None
    """Target interpreter or environment folder, as the user gave it; None means: look for one."""
    scripts: tuple[str, ...] = ()
    requirements: str | None = None
    gpus: tuple[str, ...] = ()
    """UUIDs or indices; empty means all."""
    board: str | None = None
    """Path of a board file to use instead of the real GPUs."""
    only: tuple[str, ...] = ()
    """Names of the subjects to look at; empty means all."""
    sample_s: float = 0.0
    """Seconds for which the GPUs are read again and again. Of the facts only: a plan asks for no sample."""
    install: InstallOptions = InstallOptions()
    check_files: bool = False
    """Compare the files of torch, transformers and what goes with them with the record of their installation."""


class Facts(msgspec.Struct, frozen=True):
    """What was observed. `sections` maps a subject's name to that subject's own facts record, in registry order."""

    schema_version: int
    tool_version: str
    observed_at: str
    """UTC, ISO 8601, seconds. Not part of any comparison."""
    request: Request
    host: Host
    choices: tuple[Choice, ...]
    sections: dict[str, Any]
    reports: tuple[str, ...] = ()
    """What the facts were imported from, as `bug.txt: nvidia-smi -q`; empty when they were observed."""


class Outcome(enum.StrEnum):
    """What a comparison came to."""

    SAME = "same"
    DIFFERS = "differs"
    UNSUPPORTED = "unsupported here"
    UNKNOWN = "could not tell"


class Finding(msgspec.Struct, frozen=True):
    """One comparison between facts and profile.

    `is_advice` marks something worth knowing that no command is held up for: it never makes `verify` fail.
    """

    code: str
    """Stable: `PKG…`, `GPU…`, `SCR…`; `remediate explain CODE` prints its page."""
    subject: str
    target: str
    """What it is about: a distribution, a GPU, `file.py:12`."""
    outcome: Outcome
    summary: str
    """One line for a person."""
    observed: str = ""
    wanted: str = ""
    evidence: tuple[str, ...] = ()
    reason: str = ""
    """Why it matters here; from the profile where it gives one."""
    is_advice: bool = False


class Explanation(msgspec.Struct, frozen=True):
    """The page behind a finding's code, for `remediate explain CODE` and docs/findings.md."""

    code: str
    title: str
    what: str
    """What was compared, and with what."""
    why: str
    """Why it matters, with measured numbers where there are some."""
    fix: str
    """What the plan does about it, and what a person can do."""
    sources: tuple[str, ...] = ()


class Risk(enum.StrEnum):
    """What a change puts at stake. Shown before consent."""

    SAFE = "safe"
    """A file that the run backs up."""
    ROOT = "root"
    """Needs administrator rights."""
    DISRUPTIVE = "disruptive"
    """Running GPU clients notice, or installed packages are replaced."""
    UNSAFE = "unsafe"
    """May change what a script means; never applied by default."""


class ChangeItem(msgspec.Struct, frozen=True):
    """One line of a change that does several things at once, as one pip run does."""

    target: str
    before: str
    after: str
    reason: str


class Change(msgspec.Struct, frozen=True):
    """One effect with everything needed to show it, do it, check it and undo it.

    `operation` is the owning subject's record of the exact bytes or argument list. `depends_on` maps fact keys (see
    `Subject.read`) to the values they had; apply refuses the change when one moved.
    """

    id: str
    """Unique in a plan and stable between plans on the same host: `gpu:GPU-…:power_limit`."""
    subject: str
    codes: tuple[str, ...]
    target: str
    title: str
    """What is changed: `power limit of GPU 0`."""
    before: str
    after: str
    reason: str
    risks: tuple[Risk, ...]
    depends_on: Mapping[str, str]
    operation: Any
    items: tuple[ChangeItem, ...] = ()
    command: tuple[str, ...] = ()
    """The argument list that will be run, for display; empty for a file."""
    diff: str = ""
    """Unified diff, for a file."""
    affects: tuple[str, ...] = ()
    """Who noticed it when the plan was made (`Subject.affected`)."""

    @property
    def needs_root(self) -> bool:
        """Whether `Risk.ROOT` is among the risks."""
        return Risk.ROOT in self.risks


class Withheld(msgspec.Struct, frozen=True):
    """Something the plan could do and does not, with how to get it."""

    codes: tuple[str, ...]
    subject: str
    target: str
    summary: str
    because: str
    enable: str = ""
    commands: tuple[str, ...] = ()
    """Lines for a person to run elsewhere (on the host of a container), never run by the program."""


class Plan(msgspec.Struct, frozen=True):
    """The ordered changes that close the gap between facts and profile, frozen with their exact bytes."""

    schema_version: int
    tool_version: str
    profile_name: str
    profile_sha256: str
    """Of the resolved profile's canonical form."""
    request: Request
    choices: tuple[Choice, ...]
    findings: tuple[Finding, ...]
    changes: tuple[Change, ...]
    withheld: tuple[Withheld, ...]
    artifacts: tuple[Artifact, ...] = ()
    costs: tuple[str, ...] = ()
    """What the profile says it costs to be on it."""
    reports: tuple[str, ...] = ()
    """As in the facts: not empty when the plan rests on reports, and nothing was looked at."""

    @property
    def differences(self) -> tuple[Finding, ...]:
        """Findings that differ and are more than advice."""
        return tuple(f for f in self.findings if f.outcome is Outcome.DIFFERS and not f.is_advice)

    @property
    def unknowns(self) -> tuple[Finding, ...]:
        """Findings that could not be told or done here, and are more than advice."""
        unclear = (Outcome.UNKNOWN, Outcome.UNSUPPORTED)
        return tuple(f for f in self.findings if f.outcome in unclear and not f.is_advice)


class Artifact(msgspec.Struct, frozen=True):
    """A rendered file for `--out-dir`: the requirements file, the command script, the patched script."""

    name: str
    """File name below the output folder, without separators."""
    content: bytes
    executable: bool = False


class State(enum.StrEnum):
    """Where reality stands with respect to one change, read afresh."""

    BEFORE = "before"
    AFTER = "after"
    OTHER = "other"
    """Neither: somebody else changed it, or it was done by half."""
    UNKNOWN = "unknown"


class Performed(msgspec.Struct, frozen=True):
    """What doing or undoing one change came to.

    `changed` is False when the goal was already met and nothing was run.
    """

    detail: str
    changed: bool = True
    output: str = ""
    """What a command printed, for the journal."""
    undo: Any = None
    """JSON-able values that replace what `Subject.prepare` returned when the operation is undone later; None keeps
    them. For what is known only once the operation is done."""
