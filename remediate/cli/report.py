"""How findings, changes and plans read on a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Sequence

from remediate.cli.console import MARKS, RISK_WORDS, Console
from remediate.model import Change, Choice, Finding, Outcome, Plan, Risk, Withheld
from remediate.registry import subjects


def print_plan(console: Console, plan: Plan) -> None:
    """The whole plan: choices, findings, changes, diffs, commands, what is withheld, a summary."""
    print_choices(console, plan.choices)
    print_findings(console, plan.findings, {code for change in plan.changes for code in change.codes})
    print_changes(console, plan.changes, is_reported=bool(plan.reports))
    print_diffs(console, plan.changes)
    print_commands(console, plan.changes)
    print_withheld(console, plan.withheld)
    print_costs(console, plan)
    print_summary(console, plan)


def print_choices(console: Console, choices: Iterable[Choice]) -> None:
    """What the program chose by itself, and why."""
    rows = list(choices)
    width = max((len(choice.what) for choice in rows), default=0)
    for choice in rows:
        console.labelled(choice.what.ljust(width), f"{choice.chosen} ({choice.because})")


def print_findings(console: Console, findings: Sequence[Finding], answered: Container[str] = ()) -> None:
    """By subject: what agrees, what differs, what can't be told, then advice.

    Args:
        answered: codes whose reason is told with the change that answers them.
    """
    for subject in subjects():
        own = [finding for finding in findings if finding.subject == subject.name]
        if not own:
            continue
        console.heading(subject.title)
        for finding in sorted(own, key=lambda finding: finding.is_advice):
            print_finding(console, finding, with_reason=finding.code not in answered)


def print_finding(console: Console, finding: Finding, *, with_reason: bool = True) -> None:
    """One line with mark and code; below it the evidence and the reason, where it is not `same`."""
    mark, colour = ("i", "cyan") if finding.is_advice else MARKS[finding.outcome]
    word = "" if finding.outcome in (Outcome.SAME, Outcome.DIFFERS) or finding.is_advice else f"{finding.outcome}: "
    where = "" if finding.target in finding.summary else f"{finding.target}: "
    console.item(mark, colour, f"{where}{word}{finding.summary}", tail=finding.code)
    if finding.outcome is Outcome.SAME:
        return
    for line in finding.evidence:
        console.text(line, indent=4, style="dim")
    if finding.reason and with_reason:
        console.labelled("why:", finding.reason, indent=4)


def print_changes(console: Console, changes: Sequence[Change], *, is_reported: bool = False) -> None:
    """The changes in order: title, before -> after, reason, risk.

    Args:
        is_reported: they rest on reports, which each change says.
    """
    if not changes:
        return
    console.heading(f"Changes, in this order ({len(changes)})")
    told: tuple[str, ...] = ()
    for number, change in enumerate(changes, 1):
        codes = ", ".join(change.codes)
        console.item(f"{number}. {_mark(change)}", "magenta", change.title, tail=codes)
        if change.items:
            _print_items(console, change)
        else:
            console.text(f"{change.before or 'absent'} -> {change.after or 'absent'}", indent=7, style="bold")
        if change.reason:
            console.labelled("why:", change.reason, indent=7)
        console.labelled("risk:", risks(change), indent=7)
        if change.affects:
            who = "the same" if change.affects == told else "; ".join(change.affects)
            console.labelled("noticed by:", who, indent=7)
            told = change.affects
        if is_reported:
            console.labelled("from:", "a report; apply compares it with the machine first", indent=7)


def print_noticed(console: Console, noticed: Iterable[str]) -> None:
    """Who notices, before the question whether to go on."""
    lines = list(noticed)
    if lines:
        console.heading("Who notices these changes now")
        for line in lines:
            console.item("i", "cyan", line)
        console.line()


def _print_items(console: Console, change: Change) -> None:
    for item in change.items:
        console.text(f"{item.target}: {item.before or 'absent'} -> {item.after or 'absent'}", indent=7, style="bold")
        if item.reason:
            console.text(item.reason, indent=9)


def _mark(change: Change) -> str:
    if not change.before and not change.items:
        return "+"
    return "-" if not change.after and not change.items else "~"


def risks(change: Change) -> str:
    """The change's risks in words."""
    return ", ".join(RISK_WORDS[risk] for risk in change.risks) or "none"


def print_diffs(console: Console, changes: Iterable[Change]) -> None:
    """Unified diffs of the files."""
    for change in changes:
        if change.diff:
            console.heading(change.target)
            console.diff(change.diff)


def print_commands(console: Console, changes: Iterable[Change]) -> None:
    """The exact commands, each as one line that a shell would take."""
    rows = [change for change in changes if change.command]
    if rows:
        console.heading("Commands")
        for change in rows:
            console.line(command_line(change), indent=2)


def command_line(change: Change) -> str:
    """The change's argument list, quoted for a shell."""
    return shlex.join(change.command)


def print_withheld(console: Console, withheld: Sequence[Withheld]) -> None:
    """What the plan leaves out, and how to get it."""
    if not withheld:
        return
    console.heading(f"Left out ({len(withheld)})")
    for item in withheld:
        console.item("!", "magenta", f"{item.target}: {item.summary}", tail=", ".join(item.codes))
        console.labelled("because:", item.because, indent=4)
        if item.enable:
            console.labelled("to have it:", item.enable, indent=4)
        for command in item.commands:
            console.line(command, indent=6)


def print_costs(console: Console, plan: Plan) -> None:
    """What the profile says it costs to be on it."""
    if plan.costs:
        console.heading(f"What profile `{plan.profile_name}` costs")
        for cost in plan.costs:
            console.item("i", "cyan", cost)


def print_summary(console: Console, plan: Plan) -> None:
    """One or two lines that say where this leaves the reader."""
    console.line()
    if not plan.changes:
        console.text(_no_changes(plan), style="bold")
        return
    count = len(plan.changes)
    root = sum(change.needs_root for change in plan.changes)
    disruptive = sum(Risk.DISRUPTIVE in change.risks for change in plan.changes)
    risky = [f"{root} as root"] * bool(root) + [f"{disruptive} disruptive"] * bool(disruptive)
    of_them = f" ({', '.join(risky)})" if risky else ""
    console.text(f"{plural(count, 'change')}{of_them}. Nothing was changed.", style="bold")
    console.text("`remediate apply` makes them; `remediate explain CODE` says more about a code.", style="dim")


def _no_changes(plan: Plan) -> str:
    if not plan.differences and not plan.unknowns:
        return f"Nothing to do: the host agrees with profile `{plan.profile_name}`."
    left = []
    if plan.differences:
        left.append(f"{plural(len(plan.differences), 'difference')} that no change can close from here")
    if plan.unknowns:
        left.append(f"{plural(len(plan.unknowns), 'thing')} that could not be told")
    return f"No changes to make; {' and '.join(left)}."


def plural(count: int, noun: str) -> str:
    """`1 change`, `2 changes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
