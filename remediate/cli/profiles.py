"""`remediate profiles list | show | validate | lock`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from remediate.cli import options, wheelhouse

if TYPE_CHECKING:
    from remediate.cli.console import Console
    from remediate.profile.load import ResolvedProfile
    from remediate.profile.schema import GpuFor

app = typer.Typer(help="List, show, check and lock known-good profiles.", no_args_is_help=True)
app.command("lock")(wheelhouse.lock)


@app.command("list")
def list_profiles() -> None:
    """List the shipped profiles and the hosts that they fit."""
    from remediate.cli.console import Console
    from remediate.profile.load import load_profile, shipped_names

    console = Console()
    width = max(len(name) for name in shipped_names())
    for name in shipped_names():
        profile = load_profile(name).profile
        match = profile.match
        fits = [*match.gpu, *(f"driver {match.driver}",) * bool(match.driver)]
        fits += [f"compute capability {match.compute_capability}"] * bool(match.compute_capability)
        fits += ["only by name"] * match.on_request
        console.labelled(name.ljust(width), profile.title)
        console.labelled(" " * width, f"for {', '.join(fits) or 'any host'}", style="dim")


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A shipped profile, or a file by its path.")],
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Every value after `extends`, with the profile that it comes from.")
    ] = False,
    json: options.JsonOption = False,
) -> None:
    """Show a profile: pins and wishes with their reasons, corrections of the incident report, costs."""
    from remediate.cli.console import Console
    from remediate.cli.session import print_document
    from remediate.documents import encode
    from remediate.profile.load import load_profile

    loaded = load_profile(name)
    if json:
        print_document(encode(loaded.profile))
    elif resolved:
        _print_resolved(Console(), loaded)
    else:
        _print_profile(Console(), loaded)


@app.command()
def validate(
    file: Annotated[str, typer.Argument(metavar="FILE|NAME", help="A profile file.")],
) -> None:
    """Check a profile and report all its problems together. Exit 2 where there are some.

    Locks beside it that do not hold its pins are named; `plan` does not use them.
    """
    from remediate.cli.console import Console
    from remediate.packages.lockfile import stale_locks
    from remediate.profile.load import load_profile

    loaded = load_profile(file)
    chain = " -> ".join(loaded.chain)
    console = Console()
    console.text(f"`{file}` is a valid profile: {chain}, {len(loaded.profile.packages)} pins.")
    pins = {name: pin.version for name, pin in loaded.profile.packages.items()}
    for path, names in stale_locks(loaded.lock_stems[0], pins) if loaded.lock_stems else ():
        console.item("i", "cyan", f"lock `{path.name}` is stale ({', '.join(names)}); run `remediate profiles lock`")


def _print_profile(console: Console, loaded: ResolvedProfile) -> None:
    profile = loaded.profile
    console.line(f"{profile.name}: {profile.title}", "bold")
    console.text(profile.description)
    console.heading("Packages")
    for name, pin in sorted(profile.packages.items()):
        accept = f", accepts {pin.accept}" if pin.accept else ""
        console.item("=", "green", f"{name}=={pin.version}{accept}")
        console.labelled("why:", pin.reason, indent=4)
    for title, origin, why in (("GPU", "gpu.", profile.gpu.why), ("Script", "script.", profile.script.why)):
        console.heading(title)
        for path in sorted(loaded.origins):
            if path.startswith(origin) and not path.startswith(f"{origin}why"):
                console.item("=", "green", f"{path.removeprefix(origin)} = {_value(loaded, path)}")
        for topic, reason in why.items():
            console.labelled(f"why {topic}:", reason, indent=4)
    if profile.gpu_for:
        console.heading("For some GPUs, laid over the GPU wishes above")
    for table in profile.gpu_for:
        console.item("=", "green", _given(table))
    if profile.corrections:
        console.heading("Replaced from the incident report")
    for correction in profile.corrections:
        console.item("~", "magenta", f"{correction.said} -> {correction.used}", tail=correction.about)
        console.labelled("why:", correction.because, indent=4)
        console.labelled("source:", correction.source, indent=4)
    from remediate.packages.advisories.costs import costs_of

    costs = (*profile.costs, *costs_of(profile))
    if costs:
        console.heading("Costs")
        for cost in costs:
            console.item("i", "cyan", cost)


def _given(table: GpuFor) -> str:
    """What a `[[gpu_for]]` table says: conditions first, then wishes."""
    import json

    import msgspec

    nothing = msgspec.to_builtins(type(table)())
    given = {key: value for key, value in msgspec.to_builtins(table).items() if value != nothing[key]}
    conditions = [key for key in ("uuid", "pci", "name") if key in given]
    rest = [key for key in given if key not in conditions]
    words = [f"{key} = {json.dumps(given[key], ensure_ascii=False)}" for key in (*conditions, *rest)]
    return ", ".join(words)


def _print_resolved(console: Console, loaded: ResolvedProfile) -> None:
    for path, origin in sorted(loaded.origins.items()):
        console.item("=", "green", f"{path} = {_value(loaded, path)}", indent=0, tail=f"from {origin}")


def _value(loaded: ResolvedProfile, path: str) -> str:
    import json

    import msgspec

    value = msgspec.to_builtins(loaded.profile)
    parts = path.split(".")
    for part in parts:
        value = value[part]
    return json.dumps(value, ensure_ascii=False)
