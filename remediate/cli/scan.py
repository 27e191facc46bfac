"""`remediate scan`."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediate.cli import options

if TYPE_CHECKING:
    from remediate.cli.console import Console
    from remediate.scanning import Scan


class Format(enum.StrEnum):
    """How the findings are written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


def scan(
    *,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Files, folders, patterns. Default: the folder.", show_default=False),
    ] = None,
    folder: options.FolderOption = Path(),
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            "-p",
            metavar="NAME|FILE",
            help="Profile to hold the scripts against. Default: that of `remediate.toml`, else `base`.",
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="PATH", help="Environment whose versions count where the profile pins none."),
    ] = None,
    select: Annotated[list[str] | None, typer.Option("--select", metavar="CODE,...", help="Only these codes.")] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", metavar="CODE,...", help="Not these codes.")] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Patch what is safe to patch; `rollback` undoes it.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Print what --fix would change, and nothing else.")] = False,
    unsafe_fixes: options.UnsafeOption = False,
    check: Annotated[bool, typer.Option("--check", help="Exit 3 where differences remain, 4 where unclear.")] = False,
    form: Annotated[
        Format, typer.Option("--format", help="How to write the findings.", case_sensitive=False)
    ] = Format.TEXT,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes at most. Default: all processors."),
    ] = None,
    state_dir: options.StateOption = None,
) -> None:
    """Look through many scripts and notebooks, and patch them where that is safe.

    Only files are looked at, not the host: the answer is the same on every machine. Folders are walked without what
    git ignores. A file that can't be read is a finding.

    \b
    remediate scan                            this folder
    remediate scan src 'jobs/**/*.ipynb'      some folders, files, patterns
    remediate scan --diff                     what would be patched
    remediate scan --fix                      patch it, journalled
    remediate scan --check --format github    for a CI

    Marks: ~ differs, ? could not tell, i advice.
    """
    from remediate.cli.scan_report import Counter, print_diffs, print_scan, write_document
    from remediate.scanning import scan as scan_files

    counter = Counter(sys.stderr)
    try:
        made = scan_files(
            paths or (),
            folder=folder,
            profile=profile,
            python=python,
            select=options.names(select),
            ignore=options.names(ignore),
            unsafe_fixes=unsafe_fixes,
            jobs=jobs,
            watch=counter,
        )
    finally:
        counter.clear()
    wanted = Format.JSON if json else form
    if diff:
        print_diffs(made)
    if fix and made.changes:
        made = _fix(made, state_dir, is_text=wanted is Format.TEXT and not diff)
    if not diff and wanted is Format.TEXT:
        print_scan(made, has_fixed=fix)
    elif not diff:
        write_document(made, wanted)
    if check:
        raise typer.Exit(_code(made))


def _code(made: Scan) -> int:
    from remediate.errors import ExitCode

    if made.differences:
        return ExitCode.DIFFERS
    return ExitCode.UNKNOWN if made.unknowns else ExitCode.OK


def _fix(made: Scan, state_dir: Path | None, *, is_text: bool) -> Scan:
    """Make the changes as a journalled run, and look at the files again.

    Raises:
        RemediateError: the first change that failed; those before it stay made, and the journal says so.
    """
    from remediate.cli.console import Console
    from remediate.cli.report import plural
    from remediate.cli.steps import StepPrinter
    from remediate.runs.execute import apply_plan
    from remediate.runs.store import Store
    from remediate.scanning import plan_of, scan_again

    console = Console(sys.stdout if is_text else sys.stderr)
    made_plan = plan_of(made)
    result = apply_plan(made_plan, store=Store(state_dir), events=StepPrinter(console, "patching"))
    if result.run_id:
        _say(console, f"{plural(len(result.done), 'file')} patched in run {result.run_id}")
    if result.failure is not None:
        raise result.failure
    return scan_again(made, made_plan.request.scripts)


def _say(console: Console, text: str) -> None:
    console.text(f"{text}; `remediate rollback` undoes it.", style="bold")
    console.line()
