"""`remediate wheelhouse` and `remediate profiles lock`: a profile's files, fixed by hash and collected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from remediate.profile.load import ResolvedProfile

_PythonVersions = Annotated[
    list[str] | None,
    typer.Option("--python", metavar="X.Y", help="Version of the target's Python; repeatable. Default: this one's."),
]
_Platform = Annotated[
    str | None,
    typer.Option("--platform", metavar="NAME", help="As linux_x86_64 or linux_aarch64. Default: this machine's."),
]


def lock(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A shipped profile, or a file by its path.")],
    python: _PythonVersions = None,
    platform: _Platform = None,
    uv: Annotated[bool, typer.Option("--uv", help="Resolve with uv: for any Python and platform, and faster.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Default: `locks` beside the profile.")
    ] = None,
) -> None:
    """Fix a profile by hash: every distribution that its pins need, for a Python version and a platform.

    `plan` and `apply` use the lock that fits the target, and pip then takes no file but those. pip-tools resolves for
    Pythons of this machine; uv, where it is installed, for any, with the same result. What only this machine is
    configured with (find-links, extra indexes, constraints) is not used; `[install]` of the profile is.

    \b
    remediate profiles lock incident-a100 --python 3.10 --python 3.11
    remediate profiles lock ./ours.toml --uv --platform linux_aarch64
    """
    from remediate.cli.console import Console
    from remediate.packages.locking import LockRequest, make_lock, own_platform, own_python
    from remediate.profile.load import load_profile
    from remediate.units import gigabytes

    resolved = load_profile(name)
    console = Console()
    folder = output or _folder(resolved)
    for version in python or [own_python()]:
        _check_version(version)
        made = make_lock(LockRequest(resolved.profile, version, platform or own_platform(), folder, uv))
        sizes = [entry.size for entry in made.entries if entry.size is not None]
        known = f", {gigabytes(sum(sizes))}" if len(sizes) == len(made.entries) else ""
        change = "wrote" if made.is_changed else "unchanged:"
        console.item("+" if made.is_changed else "=", "green", f"{change} {made.path} (by {made.tool})")
        console.text(f"{len(made.entries)} distributions{known}", indent=4, style="dim")


def wheelhouse(
    *,
    profile: Annotated[str, typer.Option("--profile", "-p", metavar="NAME|FILE", help="The profile to collect for.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where the files go.")],
    folder: Annotated[
        Path, typer.Option("--folder", "-C", help="Whose `remediate.toml` names the index.", show_default="this folder")
    ] = Path(),
    python: _PythonVersions = None,
    platform: _Platform = None,
) -> None:
    """Collect everything that a profile needs, for a host without network.

    Takes the profile's lock where there is one for that Python and platform, and checks every file's hash. On the other
    host, `find_links` and `no_index` in `remediate.toml` make `apply` take the files from the folder.
    """
    from remediate.cli.console import Console
    from remediate.config import load_config
    from remediate.packages.install import source_options
    from remediate.packages.locking import own_platform, own_python
    from remediate.packages.wheelhouse import collect
    from remediate.profile.load import load_profile
    from remediate.units import gigabytes

    resolved = load_profile(profile)
    settings = load_config(folder).settings
    sources = source_options(resolved.profile.install, settings, str(folder.resolve()))
    console = Console()
    for version in python or [own_python()]:
        _check_version(version)
        made = collect(resolved, output.resolve(), python=version, platform=platform or own_platform(), sources=sources)
        by = f"as `{made.lock.name}` locks them" if made.lock else "as pip found them; there is no lock for that target"
        console.item("+", "green", f"Python {version}: {len(made.files)} files, {gigabytes(made.size)}, {by}")
    console.line()
    console.text("On the other host, in remediate.toml:")
    console.line(f'find_links = "{output}"', indent=2)
    console.line("no_index = true", indent=2)


def _folder(resolved: ResolvedProfile) -> Path:
    from remediate.errors import UsageError

    if not resolved.lock_stems:
        raise UsageError("a profile from standard input has no folder", hint="name one with `--output`")
    return Path(resolved.lock_stems[0]).parent


def _check_version(version: str) -> None:
    import re

    from remediate.errors import UsageError

    if not re.fullmatch(r"3\.\d+", version):
        raise UsageError(f"`{version}` is no Python version", hint="give major and minor: `--python 3.11`")
