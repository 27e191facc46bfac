"""The error tree: what happened, why, what to do next, and the exit code it ends with.

Every error a person can act on is a `RemediateError`. Its parts stay apart (`what`, `cause`, `hint`) so that tests
check fields and the command line decides on the layout. One family per stage of the pipeline.
"""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """Exit codes of every command, documented in docs/exit-codes.md."""

    OK = 0
    """In agreement, or done."""
    FAILED = 1
    """Something was tried and failed."""
    USAGE = 2
    """The command line, a profile or another input file is wrong; nothing was tried."""
    DIFFERS = 3
    """Differences remain (`plan --check`, `verify`, a declined `apply`)."""
    UNKNOWN = 4
    """Could not tell, or not doable here (no permission, not supported)."""


class RemediateError(Exception):
    """Base of all errors that are reported without a traceback.

    Attributes:
        what: what happened, one line, naming the subject and the values.
        cause: why it happened, as far as it is known; may be empty.
        hint: what to do next; may be empty.
        exit_code: the exit code that the command line ends with.
    """

    exit_code: ExitCode = ExitCode.FAILED

    def __init__(self, what: str, *, cause: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.cause = cause
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.what]
        if self.cause:
            lines.append(f"  cause: {self.cause}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class UsageError(RemediateError):
    """The request itself is wrong: an option, a path, a combination."""

    exit_code = ExitCode.USAGE


class ConfigError(UsageError):
    """`remediate.toml` or `[tool.remediate]` is wrong."""


class ProfileError(UsageError):
    """A profile can't be used. `problems` holds every problem of the file, not only the first.

    Attributes:
        problems: one line each, with line number and dotted path where known.
    """

    def __init__(self, what: str, *, problems: tuple[str, ...] = (), cause: str = "", hint: str = "") -> None:
        super().__init__(what, cause=cause or "\n         ".join(problems), hint=hint)
        self.problems = problems


class DocumentError(UsageError):
    """A facts, plan or board file can't be used: not JSON, another schema version, or edited by hand."""


class ObserveError(RemediateError):
    """The host could not be read at all (a single failed reading is an `Unknown`, not an error)."""


class TargetError(ObserveError):
    """The target interpreter can't be used."""

    exit_code = ExitCode.USAGE


class ScriptError(ObserveError):
    """A script that was named explicitly can't be read."""

    exit_code = ExitCode.USAGE


class ApplyError(RemediateError):
    """A change could not be made, or could not be undone."""


class StalePlanError(ApplyError):
    """The host moved since the plan was made.

    Attributes:
        moved: one line for each fact that moved: name, planned value, value now.
    """

    exit_code = ExitCode.DIFFERS

    def __init__(self, moved: tuple[str, ...]) -> None:
        super().__init__(
            "the plan is stale: the host is not as it was when the plan was made",
            cause="\n         ".join(moved),
            hint="run `remediate plan` again and apply the new plan",
        )
        self.moved = moved


class LockHeldError(ApplyError):
    """Another run holds the lock."""


class InterruptedRunError(ApplyError):
    """An earlier run ended between an intent and its outcome and must be finished or rolled back first."""


class DisruptionError(ApplyError):
    """Somebody uses what a change would disturb, and nobody agreed to that.

    Attributes:
        affected: one line for each who notices.
    """

    exit_code = ExitCode.DIFFERS

    def __init__(self, titles: tuple[str, ...], affected: tuple[str, ...]) -> None:
        super().__init__(
            f"nothing was changed, for somebody would notice: {', '.join(titles)}",
            cause="\n         ".join(affected),
            hint="choose a quiet moment, or add `--allow-disruption`; without `--yes` it asks",
        )
        self.affected = affected


class UnconfirmedRunError(ApplyError):
    """An earlier run waits for its confirmation, or was not confirmed and still stands."""


class JournalError(ApplyError):
    """The journal can't be read or written."""


class EditedSinceError(ApplyError):
    """Rolling back would overwrite something that was changed after the run."""


class NeedsRootError(ApplyError):
    """A change needs rights that this process lacks."""

    exit_code = ExitCode.UNKNOWN


class InternalError(RemediateError):
    """A promise of the program to itself was broken; a defect."""
