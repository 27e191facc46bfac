"""Hold the script rules against a corpus of real scripts: expected, found, patched and withheld for each row.

    python tools/script_corpus.py FOLDER TABLE.tsv [--profile NAME] [--markdown FILE] [--diffs FOLDER]

`FOLDER` holds `<id>.py` for each row that could be had; nothing is fetched here. The table is tab-separated with the
columns `id`, `kind`, `faults`, `patch_must_change` and `patch_must_not_touch`. The exit status is 1 where a script
crashes the rules, a row that needs no change was changed, a headline fault is missed, or there are more than two false
alarms.
"""

from __future__ import annotations

import argparse
import csv
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from remediate.files import diff
from remediate.model import Outcome
from remediate.profile.load import load_profile
from remediate.script.compare import verdicts_of
from remediate.script.patch import Patch, patch
from remediate.script.reading.layout import read_layout
from remediate.script.rules.base import Wanted

FAULTS = {
    "LOAD_REQ": ("SCR001",),
    "LOAD_LAZY": ("SCR012",),
    "COMP_DEAD": ("SCR002",),
    "COMP_RISK": ("SCR016",),
    "DEV_MIX": ("SCR003", "SCR004", "SCR005"),
    "DEV_NONE": ("SCR004",),
    "DEV_VER": ("SCR004",),
    "DTYPE_NONE": ("SCR006",),
    "GC_HOT": ("SCR007",),
    "ALLOC_LATE": ("SCR008",),
    "INF_NONE": ("SCR010",),
    "INF_NOGRAD": ("SCR010",),
    "INF_THREAD": ("SCR010", "SCR015"),
    "WARM_NONE": ("SCR011",),
    "SYNTAX": ("SCR000",),
}
"""Which rules may speak of a fault. The near-universal ones (no compile, no allocator variable) have no finding of
their own unless the profile asks for it."""

HEADLINE = ("LOAD_REQ", "COMP_DEAD", "DEV_MIX", "GC_HOT")
MAX_FALSE_ALARMS = 2


class Row(msgspec.Struct, frozen=True):
    """What came of one script."""

    id: str
    kind: str
    expected: tuple[str, ...]
    must_not_change: bool
    found: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    """Codes of findings that are more than advice."""
    patched: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    crash: str = ""
    is_there: bool = True

    @property
    def missed(self) -> tuple[str, ...]:
        """Headline faults that no finding speaks of."""
        if not self.is_there:
            return ()
        return tuple(fault for fault in HEADLINE if fault in self.expected and not set(FAULTS[fault]) & set(self.found))

    @property
    def false_alarms(self) -> tuple[str, ...]:
        """Headline codes that are reported as a fault and that the table does not know."""
        known = {code for fault in self.expected for code in FAULTS.get(fault, ())}
        if "DEV_NONE" in self.expected:
            known.add("SCR003")
        codes = {code for fault in HEADLINE for code in FAULTS[fault]}
        return tuple(code for code in self.alarms if code in codes and code not in known)

    @property
    def broken(self) -> bool:
        """A script that needed no change was changed."""
        return self.must_not_change and bool(self.patched)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run over the corpus and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--profile", default="incident-a100")
    parser.add_argument("--unsafe", action="store_true", help="also make the fixes that may change what a script means")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there")
    parser.add_argument("--diffs", type=Path, metavar="FOLDER", help="write each script's diff there")
    options = parser.parse_args(arguments)
    wanted = wanted_of(options.profile, is_unsafe=options.unsafe)
    with options.table.open(encoding="utf-8", newline="") as lines:
        entries = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    rows = [judge(entry, options.folder, wanted, options.diffs) for entry in entries]
    text = markdown(rows, options.profile)
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    too_many = sum(len(row.false_alarms) for row in rows) > MAX_FALSE_ALARMS
    return int(too_many or any(row.crash or row.broken or row.missed for row in rows))


def wanted_of(profile_name: str, *, is_unsafe: bool) -> Wanted:
    """What a plan with that profile's pins would hold scripts against, on a GPU of compute capability 8.0."""
    profile = load_profile(profile_name).profile
    announced = {f"distribution:{name}": pin.version for name, pin in profile.packages.items() if pin.version}
    return Wanted(profile.script, {**announced, "gpu:compute_capability": "8.0"}, is_unsafe)


def judge(entry: dict[str, str], folder: Path, wanted: Wanted, diffs: Path | None) -> Row:
    """Find and patch in one script."""
    faults = entry["faults"].partition("|")[0].split()
    expected = tuple(fault for fault in faults if fault in FAULTS)
    wish = entry["patch_must_change"].strip().lower()
    row = Row(entry["id"], entry["kind"], expected, wish.startswith(("nothing", "advice only", "advice:")))
    path = folder / f"{entry['id']}.py"
    if not path.is_file():
        return msgspec.structs.replace(row, is_there=False)
    raw = path.read_bytes()
    try:
        file = read_layout(str(path), raw)[0]
        found = [(rule.code, verdict) for rule, verdict in verdicts_of(file, wanted)]
        made = patch(str(path), raw, wanted)
    except Exception:  # noqa: BLE001 - a crash of any kind is what is looked for
        return msgspec.structs.replace(row, crash=traceback.format_exc().splitlines()[-1])
    if diffs is not None and made.content != raw:
        diffs.mkdir(parents=True, exist_ok=True)
        (diffs / f"{row.id}.diff").write_text(diff(path, raw, made.content, "utf-8"), encoding="utf-8")
    differs = [
        (code, verdict)
        for code, verdict in found
        if verdict.outcome is Outcome.DIFFERS or (code == "SCR000" and verdict.outcome is Outcome.UNKNOWN)
    ]
    return msgspec.structs.replace(
        row,
        found=_codes(code for code, _ in differs),
        alarms=_codes(code for code, verdict in differs if not (verdict.is_advice or file.benchmark)),
        patched=_patched(made, raw),
        withheld=_codes(code for code, _ in made.held),
    )


def _patched(made: Patch, raw: bytes) -> tuple[str, ...]:
    return _codes(code for code, _ in made.fixes) if made.content != raw else ()


def _codes(codes: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(codes)))


def markdown(rows: Sequence[Row], profile_name: str) -> str:
    """The summary and the table."""
    there = [row for row in rows if row.is_there]
    headline = [(row, fault) for row in there for fault in HEADLINE if fault in row.expected]
    missed = [f"{row.id} {fault}" for row in there for fault in row.missed]
    false = [f"{row.id} {code}" for row in there for code in row.false_alarms]
    quiet = [row for row in there if row.must_not_change]
    broken = [row.id for row in quiet if row.broken]
    crashes = [f"{row.id} ({row.crash})" for row in there if row.crash]
    lines = [
        f"Profile `{profile_name}`; {len(there)} of {len(rows)} rows were at hand.",
        "",
        "| what | count | rows |",
        "|---|---|---|",
        f"| crashes | {len(crashes)} | {', '.join(crashes) or '-'} |",
        f"| rows that need no change, and were changed | {len(broken)} of {len(quiet)} | {', '.join(broken) or '-'} |",
        f"| headline faults found | {len(headline) - len(missed)} of {len(headline)} "
        f"| missed: {', '.join(missed) or '-'} |",
        f"| false alarms | {len(false)} | {', '.join(false) or '-'} |",
        f"| scripts patched | {sum(bool(row.patched) for row in there)} | |",
        "",
        "| row | kind | expected | found | patched | withheld |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_line(row) for row in rows]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    if not row.is_there:
        return f"| {row.id} | {row.kind} | {_list(row.expected)} | not at hand | | |"
    found = [f"**{code[3:]}**" if code in row.alarms else code[3:] for code in row.found]
    changed = "unchanged" if row.must_not_change and not row.patched else _list(code[3:] for code in row.patched)
    held = _list(code[3:] for code in row.withheld)
    return f"| {row.id} | {row.kind} | {_list(row.expected)} | {_list(found)} | {changed} | {held} |"


def _list(values: Iterable[str]) -> str:
    return " ".join(values)


if __name__ == "__main__":
    sys.exit(main())
