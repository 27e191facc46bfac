"""The small interface through which the core knows a subject, and the context it hands over.

A subject is one folder: it observes one part of the sandbox, compares it with the profile, renders the exact bytes
or argument lists of the changes, performs and undoes them. The core never branches on a subject's name;
`remediate.registry` lists them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from remediate.effects import Runner, run_process
from remediate.model import Artifact, Change, Choice, Explanation, Facts, Finding, Performed, Request, State, Withheld
from remediate.profile.schema import Profile


class Settings(msgspec.Struct, frozen=True):
    """What the user fixed in `remediate.toml`, beside the request. Values are as written there.

    Attributes:
        index_url: package index for installs; None leaves pip's own configuration.
        find_links: folders or pages with wheels.
        no_index: only use `find_links`.
        ignore: finding codes to leave out, each with its reason.
        unsafe_fixes: edits that may change what a script means are made too; asked for on the command line.
    """

    index_url: str | None = None
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    ignore: Mapping[str, str] = {}
    unsafe_fixes: bool = False


class Ledger(msgspec.Struct, frozen=True):
    """What earlier runs set and no getter tells: key as `GPU-…/locked_gpu_clocks`, value as text.

    Entries of another boot are left out before it is handed over, for GPU settings do not outlive a reboot.

    Attributes:
        place: the state folder that it is kept in; empty where there is none.
    """

    entries: Mapping[str, str] = {}
    place: str = ""


class Observed(msgspec.Struct, frozen=True):
    """A subject's facts and what it chose by itself on the way."""

    facts: msgspec.Struct
    choices: tuple[Choice, ...] = ()


class Situation(msgspec.Struct, frozen=True):
    """All that a comparison may use: facts, profile, and what the other subjects announced.

    Attributes:
        announced: as `distribution:transformers` -> `4.36.2` (planned version), `gpu:compute_capability` -> `8.0`.
            Lets one subject depend on another's outcome without importing it.
        lock_stems: where locks of the profile and of those that it extends may lie, without what the target adds to
            the name: `/profiles/locks/incident-a100`.
    """

    facts: Facts
    profile: Profile
    settings: Settings = msgspec.field(default_factory=Settings)
    announced: Mapping[str, str] = {}
    lock_stems: tuple[str, ...] = ()


class Proposal(msgspec.Struct, frozen=True):
    """What a subject wants done: changes in order, what it holds back, and files for `--out-dir`."""

    changes: tuple[Change, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    costs: tuple[str, ...] = ()
    """What it costs to be where the profile leads; shown with the profile's own costs."""


class Context(msgspec.Struct):
    """What performing, undoing and checking a change may use.

    Attributes:
        run_folder: the journal's folder for this run; backups go below it.
        temporary_suffix: suffix for temporary siblings, fixed for the run so that leftovers can be found.
        request: what the plan looked at, with the board file.
        runner: starts processes.
        is_root: whether administrator rights are there.
        progress: receives one line of text at a time while something long runs.
        has_rebooted: the machine was restarted since the run, so that what does not outlive a boot is gone and no
            edit by somebody.
    """

    run_folder: Path
    temporary_suffix: str
    request: Request
    runner: Runner = run_process
    is_root: bool = False
    progress: Progress | None = None
    has_rebooted: bool = False


class Progress(Protocol):
    """Receives lines about something that takes long."""

    def __call__(self, line: str) -> None:
        """Take one line of text."""
        ...


class Begun(Protocol):
    """Something that `Subject.begin` started."""

    def close(self) -> None:
        """End it, where nobody collected it. May be called again."""
        ...


class Subject(Protocol):
    """One part of the sandbox. Implementations hold no state."""

    @property
    def name(self) -> str:
        """As in `--only NAME`, in `Facts.sections` and in `Finding.subject`."""
        ...

    @property
    def title(self) -> str:
        """For headings."""
        ...

    @property
    def facts_type(self) -> type[msgspec.Struct]:
        """Record in `Facts.sections[name]`."""
        ...

    @property
    def operation_type(self) -> Any:
        """Record (or tagged union of records) in `Change.operation`."""
        ...

    def begin(self, request: Request) -> Begun | None:
        """Start what takes a while beside this process; `observe` collects it. None where there is nothing.

        Raises:
            ObserveError: as `observe`.
        """
        ...

    def observe(self, request: Request, settings: Settings, ledger: Ledger, begun: Begun | None = None) -> Observed:
        """Read the host. A failed reading is `Unknown` inside the facts.

        Raises:
            ObserveError: something that the user named explicitly does not exist or can't be read.
        """
        ...

    def explanations(self) -> Mapping[str, Explanation]:
        """The page of every code that this subject's findings carry, by code."""
        ...

    def describe(self, facts: Facts) -> Sequence[tuple[str, str]]:
        """Label and value of what a person wants to see of the facts, in reading order. Pure."""
        ...

    def announce(self, facts: Facts, profile: Profile) -> Mapping[str, str]:
        """What other subjects may want to know about this subject's planned state. Pure."""
        ...

    def compare(self, situation: Situation) -> Sequence[Finding]:
        """One finding for each wish of the profile. Pure."""
        ...

    def propose(self, situation: Situation, findings: Sequence[Finding]) -> Proposal:
        """The changes that close this subject's gap, rendered. Pure, but for reading files named in the facts."""
        ...

    def read(self, facts: Facts, key: str) -> str:
        """The present value of a fact that a change depends on, as text; `Unknown`s as `str(unknown)`. Pure."""
        ...

    def state(self, operation: Any, context: Context) -> State:
        """Whether reality stands before or after the operation, read afresh from the host."""
        ...

    def prepare(self, operation: Any, context: Context) -> Any:
        """Save what undoing will need (a backup below `run_folder`) before the intent is written.

        Returns JSON-able values that are stored with the intent and handed to `perform` and `undo`.
        """
        ...

    def perform(self, operation: Any, prepared: Any, context: Context) -> Performed:
        """Do it and read it back.

        Raises:
            ApplyError: it was not done, or it was done and the value read back is another.
        """
        ...

    def undo(self, operation: Any, prepared: Any, context: Context) -> Performed:
        """Bring back what `prepare` saved. Works also after an operation that was done by half.

        Raises:
            ApplyError: it could not be undone.
        """
        ...

    def affected(self, operation: Any, facts: Facts) -> Sequence[str]:
        """Who notices the operation: one line each, as a process with its user; empty for nobody. Pure.

        Asked again before applying, with fresh facts: somebody may have come since the plan was made.
        """
        ...

    def remember(self, operation: Any, done: bool) -> Mapping[str, str | None]:
        """Ledger entries that this operation sets (`done`) or clears (undone: None deletes). Pure."""
        ...
