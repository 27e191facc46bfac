"""`remediate advisories`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediate.cli import options

if TYPE_CHECKING:
    from remediate.cli.console import Console
    from remediate.packages.advisories.check import Answer, Candidate, Report
    from remediate.packages.advisories.records import Advisory

_DATABASES = ("osv", "index")


def advisories(
    *,
    folder: options.FolderOption = Path(),
    python: options.PythonOption = None,
    profile: Annotated[
        str | None, typer.Option("--profile", "-p", metavar="NAME|FILE|-", help="Judge the pins of a profile.")
    ] = None,
    facts: Annotated[
        Path | None, typer.Option("--facts", metavar="FILE", help="Judge what a facts document lists.")
    ] = None,
    update: Annotated[bool, typer.Option("--update", help="Ask a database now, and keep its answers.")] = False,
    database: Annotated[
        str, typer.Option("--from", metavar="osv|index", help="Which database: OSV, or the package index's JSON API.")
    ] = "osv",
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Another address of that database.", show_default=False)
    ] = None,
    json: options.JsonOption = False,
    state_dir: options.StateOption = None,
) -> None:
    """List known vulnerabilities and regressions of what is installed, of a profile's pins, or of recorded facts.

    Without `--update` the shipped data answers, and what earlier updates kept. It covers few distributions; the others
    are told as not checked. Exit 3 where something is known, 4 where nothing is and not all could be checked, or where
    `--update` got no answer for some; 0 only for a complete check that found nothing.
    """
    from remediate.cli.console import Console
    from remediate.cli.session import print_document
    from remediate.documents import encode
    from remediate.errors import UsageError
    from remediate.packages.advisories.check import check, exit_code
    from remediate.packages.advisories.saved import read_answers
    from remediate.runs.store import Store

    if database not in _DATABASES:
        raise UsageError(f"there is no database `{database}`", hint=f"known are: {', '.join(_DATABASES)}")
    if profile is not None and facts is not None:
        raise UsageError("`--profile` and `--facts` can't stand together", hint="give one of them")
    about, candidates = _candidates(folder, python, profile, facts, state_dir)
    root = Store(state_dir).root
    answers = read_answers(root)
    if update:
        answers |= _ask(candidates, database, url, root)
    report = check(candidates, answers, about, asked=update)
    if json:
        print_document(encode(report))
    else:
        _print(Console(), report, update)
    raise typer.Exit(exit_code(report, asked=update))


def _candidates(
    folder: Path, python: str | None, profile: str | None, document: Path | None, state_dir: Path | None
) -> tuple[str, tuple[Candidate, ...]]:
    from remediate.cli.session import get_facts
    from remediate.errors import ObserveError
    from remediate.packages.advisories.check import candidates_of_facts, candidates_of_profile

    if profile is not None:
        from remediate.profile.load import load_profile

        loaded = load_profile(profile).profile
        return f"the pins of profile `{loaded.name}`", candidates_of_profile(loaded)
    target = options.Target(folder=folder, python=python, only=("packages",), state_dir=state_dir)
    section = get_facts(target, document).sections["packages"]
    if not section.has_list:
        reason = section.target_unknown.reason if section.target_unknown else "no interpreter was found"
        raise ObserveError("there is no environment to check", cause=reason, hint="name one with `--python`")
    where = section.target.prefix if section.target is not None else section.listing.source
    return f"what is installed in {where}", candidates_of_facts(section)


def _ask(candidates: tuple[Candidate, ...], database: str, url: str | None, root: Path) -> dict[str, Answer]:
    from datetime import UTC, datetime

    from remediate.packages.advisories import index, osv
    from remediate.packages.advisories.saved import keep_answers
    from remediate.public_index import json_url

    today = datetime.now(UTC).strftime("%Y-%m-%d")
    if database == "osv":
        answers = osv.ask(candidates, today, url or osv.URL)
    else:
        answers = index.ask(candidates, today, url or json_url())
    try:
        keep_answers(root, answers)
    except OSError as error:
        typer.echo(f"the answers could not be kept in {root}: {error.strerror}", err=True)
    return answers


def _print(console: Console, report: Report, update: bool) -> None:
    from remediate.cli.report import plural

    console.line(f"Advisories for {report.about}", "bold")
    for row in report.distributions:
        if row.advisories:
            console.heading(f"{row.name} {row.version}")
        for advisory in row.advisories:
            _print_advisory(console, advisory)
    _print_unchecked(console, report, update)
    console.line()
    total = len(report.distributions)
    known = f"{report.found} known" if report.found else "Nothing known"
    checked = f"all {plural(total, 'distribution')}" if report.complete else f"{total - report.unchecked} of {total}"
    console.text(f"{known}; {checked} could be checked.", style="bold")


def _print_advisory(console: Console, advisory: Advisory) -> None:
    rating = f" ({advisory.severity})" if advisory.severity else ""
    label = "" if advisory.kind == "vulnerability" else f"{advisory.kind}: "
    console.item("!", "magenta", f"{advisory.id}{rating}: {label}{advisory.effect}")
    fixed = f"fixed in {advisory.fixed}" if advisory.fixed else "no fixed version is known"
    console.text(f"{fixed}; {advisory.sure}: {advisory.source}", indent=4, style="dim")
    if advisory.note:
        console.text(advisory.note, indent=4, style="dim")


def _print_unchecked(console: Console, report: Report, update: bool) -> None:
    rows = [row for row in report.distributions if row.unchecked]
    if not rows:
        return
    console.heading(f"Not checked ({len(rows)})")
    reasons: dict[str, list[str]] = {}
    for row in rows:
        reasons.setdefault(row.unchecked, []).append(f"{row.name} {row.version}".rstrip())
    for reason, names in reasons.items():
        console.item("?", "magenta", f"{reason}: {', '.join(names)}")
    if not update:
        console.text("`--update` asks OSV about all of them.", indent=4, style="dim")
