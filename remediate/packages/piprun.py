"""Running pip: where, with what environment variables, and what became of an earlier one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from remediate.effects import Completed
from remediate.errors import ApplyError
from remediate.packages.metadata import without_credentials
from remediate.packages.pipoutput import explain_failure
from remediate.subject import Context

PIP_TIMEOUT_S = 3600.0
"""A torch with its CUDA libraries is 2 to 3 GB to download."""
_MAX_OUTPUT = 20_000
_PROCESSES = Path("/proc")
# These would send the installation elsewhere; what says where distributions come from stays in force.
_DIVERTING = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP")


def pip_folder(context: Context) -> Path:
    """The folder in which pip of this run works: no module lies there, and a process can be found by it."""
    folder = context.run_folder / "pip"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run_pip(
    argv: tuple[str, ...], folder: Path, context: Context, prefix: str, is_whole: Callable[[], bool] = lambda: False
) -> str:
    """Run one pip command and return what it printed, without credentials.

    Args:
        prefix: the environment, for messages.
        is_whole: asked after a failure: whether nothing in the environment was changed.

    Raises:
        ApplyError: it failed, could not be started or took too long.
    """
    if context.progress:
        context.progress(without_credentials(" ".join(argv)))
    completed: Completed = context.runner(argv, timeout_s=PIP_TIMEOUT_S, env=_environment(), cwd=str(folder))
    if completed.returncode != 0:
        raise explain_failure(completed, prefix, is_whole=is_whole())
    return without_credentials(completed.stdout + completed.stderr)


def shorten(output: Iterable[str]) -> str:
    """The end of pip's output, for the journal."""
    return "".join(output)[-_MAX_OUTPUT:]


def refuse_running(context: Context) -> None:
    """Refuse to touch the environment while pip of an earlier, killed run of the same journal still works on it.

    When a program is killed with SIGKILL, the pip that it started goes on. It is known by its working folder.

    Raises:
        ApplyError: there is one.
    """
    running = working_in(context.run_folder / "pip")
    if running:
        raise ApplyError(
            f"pip of the interrupted run still works on the environment (process {', '.join(running)})",
            cause="it went on when the program that had started it was killed",
            hint="wait until it has ended, or end it, then try again",
        )


def working_in(folder: Path) -> tuple[str, ...]:
    """Ids of the processes whose working folder that is; those of other users can't be seen."""
    return tuple(process.name for process in _PROCESSES.glob("[0-9]*") if _works_in(process, folder))


def _works_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink() == folder.resolve()
    except OSError:
        return False


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _DIVERTING}
