"""`remediate verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from remediate.cli import options

if TYPE_CHECKING:
    from remediate.model import Plan


def verify(
    *,
    folder: options.FolderOption = Path(),
    profile: options.ProfileOption = None,
    python: options.PythonOption = None,
    script: options.ScriptOption = None,
    requirements: options.RequirementsOption = None,
    gpu: options.GpuOption = None,
    board: options.BoardOption = None,
    facts: options.FactsOption = None,
    only: options.OnlyOption = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="Also try the environment out with a tiny model.")] = False,
    json: options.JsonOption = False,
    sample: options.SampleOption = 0.0,
    check_files: options.CheckFilesOption = False,
    state_dir: options.StateOption = None,
) -> None:
    """Compare the host with the profile again, one line a finding.

    Exit 0 in agreement, 3 where something differs, 4 where something could not be told or is not supported here.
    Advice counts for neither.

    Marks: = agrees, ~ differs, ? could not tell, ! not supported here, i advice.
    """
    from remediate import api
    from remediate.cli.confirm import warn_of_unsettled
    from remediate.cli.console import Console
    from remediate.cli.report import print_choices, print_findings
    from remediate.cli.session import check_code, get_facts, print_document
    from remediate.documents import encode_findings
    from remediate.errors import UsageError
    from remediate.runs.store import Store

    scripts, gpus = tuple(script or ()), tuple(gpu or ())
    target = options.Target(folder, python, scripts, requirements, gpus, board, options.names(only), state_dir, sample)
    target = replace(target, check_files=check_files)
    if facts is None:
        warn_of_unsettled(Store(state_dir))
    if smoke and facts is not None:
        raise UsageError(
            "`--smoke` runs on this host", cause="`--facts` speaks of another", hint="leave one of them out"
        )
    observed = get_facts(target, facts)
    made = api.plan(observed, profile)
    if smoke:
        made = replace(made, findings=(*made.findings, *api.try_out(observed, profile)))
    if json:
        print_document(encode_findings(made))
    else:
        console = Console()
        print_choices(console, made.choices)
        print_findings(console, made.findings)
        console.line()
        console.text(verdict(made), style="bold")
    raise typer.Exit(check_code(made))


def verdict(made: Plan) -> str:
    """One sentence on how the host stands."""
    from remediate.cli.report import plural

    if not made.differences and not made.unknowns:
        return f"In agreement with profile `{made.profile_name}`."
    parts = []
    if made.differences:
        parts.append(f"{plural(len(made.differences), 'difference')} from profile `{made.profile_name}`")
    if made.unknowns:
        parts.append(f"{plural(len(made.unknowns), 'thing')} could not be told or done here")
    return ", ".join(parts) + "."
