"""Options that several commands share, and how they become a request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from remediate.errors import UsageError
from remediate.model import InstallOptions

FolderOption = Annotated[
    Path, typer.Option("--folder", "-C", help="Sandbox folder to look at.", show_default="this folder")
]
PythonOption = Annotated[
    str | None,
    typer.Option(
        "--python",
        metavar="PATH",
        help="Target interpreter or environment folder. Default: the folder's, then the active one.",
    ),
]
ScriptOption = Annotated[
    list[str] | None,
    typer.Option("--script", metavar="FILE", help="Inference script; repeatable. Default: those that load a model."),
]
RequirementsOption = Annotated[
    str | None, typer.Option("--requirements", metavar="FILE", help="Requirements file. Default: the folder's.")
]
GpuOption = Annotated[
    list[str] | None,
    typer.Option("--gpu", metavar="UUID|INDEX", help="GPU to look at; may be repeated. Default: all."),
]
BoardOption = Annotated[
    str | None,
    typer.Option("--board", metavar="NAME|FILE", help="Use a simulated board (or recorded facts), not the GPUs."),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        "-p",
        metavar="NAME|FILE|-",
        help="Known-good profile. Default: the one that `remediate.toml` names, else the shipped one that fits.",
    ),
]
FactsOption = Annotated[
    Path | None, typer.Option("--facts", metavar="FILE", help="Use a facts document in place of this host.")
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="SUBJECT,...", help="Only these subjects: packages, script, gpu."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
StateOption = Annotated[
    Path | None,
    typer.Option("--state-dir", metavar="DIR", help="Where runs, backups and the lock are kept.", show_default=False),
]
UnsafeOption = Annotated[
    bool,
    typer.Option("--unsafe-fixes", help="Also make script edits that may change what a script means."),
]
SampleOption = Annotated[
    float,
    typer.Option(
        "--sample",
        metavar="SECONDS",
        min=0,
        max=600,
        help="Read the GPUs again and again for so long: shares of time by what holds the clocks down.",
        show_default=False,
    ),
]
CheckFilesOption = Annotated[
    bool,
    typer.Option("--check-files", help="Compare installed files with the record of their installation; takes seconds."),
]
InstallerOption = Annotated[
    str | None,
    typer.Option("--installer", metavar="pip|uv", help="What installs packages. Default: pip.", show_default=False),
]
PruneOption = Annotated[
    bool, typer.Option("--prune", help="Remove what neither the profile nor its lock names. Needs a lock.")
]
SmokeOption = Annotated[
    bool, typer.Option("--smoke", help="Try the environment out with a tiny model; a failure makes the change fail.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


class Target(msgspec.Struct, frozen=True):
    """What the options say to look at."""

    folder: Path = Path()
    python: str | None = None
    scripts: tuple[str, ...] = ()
    requirements: str | None = None
    gpus: tuple[str, ...] = ()
    board: str | None = None
    only: tuple[str, ...] = ()
    state_dir: Path | None = None
    sample_s: float = 0.0
    install: InstallOptions = InstallOptions()
    check_files: bool = False


def install_options(installer: str | None, *, prune: bool, smoke: bool) -> InstallOptions:
    """How to install, from the options.

    Raises:
        UsageError: there is no such installer.
    """
    if installer not in (None, "pip", "uv"):
        raise UsageError(f"there is no installer `{installer}`", hint="use `--installer pip` or `--installer uv`")
    return InstallOptions(installer or "", prune, smoke)


def names(values: list[str] | None) -> tuple[str, ...]:
    """`--only a,b --only c` as `(a, b, c)`."""
    return tuple(name.strip() for value in values or () for name in value.split(",") if name.strip())
