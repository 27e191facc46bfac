"""What pip's output says about a failure."""

from __future__ import annotations

from remediate.effects import Completed
from remediate.errors import ApplyError
from remediate.packages.metadata import without_credentials

_HINTS = (
    ("No space left on device", "free some space on that file system, then apply again"),
    ("externally-managed-environment", "use a virtual environment: `python3 -m venv .venv`"),
    (
        "Requires-Python",
        "the pinned version has no release for this Python; use an environment with one that the profile names",
    ),
    (
        "No matching distribution found",
        "the package index does not have it for this Python and machine; check `index_url` and `find_links`",
    ),
    ("ResolutionImpossible", "two of the pins, or a constraint of pip's own configuration, exclude each other"),
    ("hash", "a hash does not fit the file that the index gave"),
    (
        "does not support python",
        "the environment has no pip of its own, and this program's is too new for it: run `python -m ensurepip` in the "
        "environment, or add `--installer uv`",
    ),
    ("Permission denied", "run it as the owner of that environment"),
    ("Temporary failure in name resolution", "the package index was not reached; check the network"),
    ("Max retries exceeded", "the package index was not reached; check the network"),
    ("timed out", "the package index did not answer in time; check the network and apply again"),
)
_MAX_LINES = 4


def explain_failure(completed: Completed, prefix: str, *, is_whole: bool) -> ApplyError:
    """The error for a pip run that ended with another exit code than 0.

    Args:
        prefix: the environment.
        is_whole: nothing in the environment was changed.
    """
    output = without_credentials(f"{completed.stdout}\n{completed.stderr}")
    advice = next((hint for text, hint in _HINTS if text in output), "see pip's output in the journal")
    aftermath = (
        "nothing was changed" if is_whole else "the environment may be half changed: `remediate rollback` restores it"
    )
    return ApplyError(
        f"pip could not change `{prefix}` (exit code {completed.returncode})",
        cause="\n         ".join(meaningful_lines(output)) or "it printed nothing",
        hint=f"{advice}; {aftermath}",
    )


def meaningful_lines(output: str) -> tuple[str, ...]:
    """The last lines that say what went wrong: those that pip marks as errors, else simply the last ones."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR:", "error:"))]
    return tuple((errors or lines)[-_MAX_LINES:])
