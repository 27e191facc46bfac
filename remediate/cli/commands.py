"""The commands, and an app of all of them or of the one that is asked for.

Typer builds every option of every registered command at each start: 70 ms for all of them. A plan, which onboarding
scripts run, should not pay for the others, so that only the named command is imported and registered.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module

import msgspec
import typer


class Entry(msgspec.Struct, frozen=True):
    """One command.

    Attributes:
        module: below `remediate.cli`.
        function: of the module, or `app` for a group of commands.
        help: the line in the list of commands.
    """

    name: str
    module: str
    function: str
    help: str = ""
    hidden: bool = False

    def register(self, app: typer.Typer) -> None:
        """Import it and add it to the app."""
        found = getattr(import_module(f"remediate.cli.{self.module}"), self.function)
        words = self.help or None
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=self.name, hidden=self.hidden, short_help=words)
        else:
            app.command(self.name, hidden=self.hidden, short_help=words)(found)


ENTRIES = (
    Entry("plan", "plan", "plan", "Show what differs, and the changes that would close the gap."),
    Entry("apply", "apply", "apply", "Make a plan's changes, each journalled and read back."),
    Entry("verify", "verify", "verify", "Compare with the profile again, one line a finding."),
    Entry("rollback", "rollback", "rollback", "Undo a run: everything as it was before."),
    Entry("confirm", "confirm", "confirm", "Keep a run that would else be undone."),
    Entry("scan", "scan", "scan", "Look through many scripts and notebooks."),
    Entry("render", "render", "app", "Write files from the templates."),
    Entry("advisories", "advisories", "advisories", "List known vulnerabilities and regressions of the versions."),
    Entry("history", "rollback", "history", "List the runs of all folders."),
    Entry("facts", "facts", "app", "Show what is installed, set and laid out; import reports."),
    Entry("show", "plan", "show", "Show a saved plan again."),
    Entry("explain", "explain", "explain", "Say what a finding's code means."),
    Entry("profiles", "profiles", "app"),
    Entry("profile", "profiles", "app", hidden=True),
    Entry("wheelhouse", "wheelhouse", "wheelhouse", "Collect a profile's files for a host without network."),
    Entry("demo", "demo", "demo", "Walk through the incident on a simulated A100."),
    Entry("gpu-boot", "gpu_boot", "gpu_boot", hidden=True),
)
"""In the order in which they are listed."""


def entries_for(arguments: Sequence[str]) -> tuple[Entry, ...]:
    """The entry that the command line names first; all of them for a list, an unknown name and shell completion."""
    named = [entry for entry in ENTRIES if arguments and entry.name == arguments[0]]
    return tuple(named) if named and "_REMEDIATE_COMPLETE" not in os.environ else ENTRIES
