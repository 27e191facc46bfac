"""Write docs/rules/SCR….md and the table in docs/script-rules.md from the rules and the samples beside them.

    python tools/write_rule_pages.py [--check]

`--check` writes nothing and exits 1 where a file is not current.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from textwrap import wrap
from typing import Any

from remediate.script.rules import RULES, UNREADABLE
from remediate.script.rules.base import Rule

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "remediate" / "script" / "rules" / "samples"
INDEX = ROOT / "docs" / "script-rules.md"
MARK = "<!-- The table is written by tools/write_rule_pages.py. -->\n"
_WIDTH = 120


def main(arguments: Sequence[str]) -> int:
    """Write what is not current, or only say so."""
    stale = [path for path, text in pages() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        sys.stderr.writelines(f"not current: {path.relative_to(ROOT)}\n" for path in stale)
        return int(bool(stale))
    for path, text in pages():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


def pages() -> Iterator[tuple[Path, str]]:
    """Every page with its text, and the index."""
    rules = (UNREADABLE, *RULES)
    for rule in rules:
        yield ROOT / "docs" / "rules" / f"{rule.code}.md", page(rule)
    head = INDEX.read_text(encoding="utf-8").partition(MARK)[0]
    rows = [f"| [{rule.code}](rules/{rule.code}.md) | {rule.title} | {edits(rule)} |" for rule in rules]
    yield INDEX, "\n".join([f"{head}{MARK}", "| code | what it finds | what it does |", "|---|---|---|", *rows]) + "\n"


def edits(rule: Rule) -> str:
    """What a rule does, in a few words; by its samples."""
    samples = shown_samples(rule, every=True)
    if not any("after" in sample for sample in samples):
        return "advice" if rule.is_advice else "says so"
    always = any("after" in sample and not sample.get("unsafe") for sample in samples)
    return "edits where the check holds" if always else "edits with `--unsafe-fixes`"


def shown_samples(rule: Rule, *, every: bool = False) -> list[dict[str, Any]]:
    """The samples of a rule that its page shows."""
    document = tomllib.loads((SAMPLES / f"{rule.code}.toml").read_text(encoding="utf-8"))
    return [sample for sample in document["sample"] if every or sample.get("shown", True)]


def page(rule: Rule) -> str:
    """A rule's page."""
    text = rule.explanation
    parts = [f"# {text.code}: {text.title}"]
    if rule.is_advice:
        parts.append("*Advice: it never makes `verify` fail.*")
    parts += [_section("What is compared", text.what), _section("Why it matters", text.why)]
    parts += [_section("What is done", text.fix), "## Examples"]
    parts += [_example(sample) for sample in shown_samples(rule)]
    if text.sources:
        parts += ["## Sources", "\n".join(f"- {source}" for source in text.sources)]
    parts.append(
        _section(
            "To leave a line alone",
            f"`# remediate: ignore[{text.code}] and the reason` on the line; for a whole sandbox `ignore` in "
            "`remediate.toml`, for all that a profile is used for `[script.ignore]` in the profile.",
        )
    )
    return "\n\n".join(parts) + "\n"


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n" + "\n".join(wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False))


def _example(sample: dict[str, Any]) -> str:
    name = f"{sample['name'][0].upper()}{sample['name'][1:]}"
    if "after" in sample:
        before, after = sample["before"].splitlines(), sample["after"].splitlines()
        lines = list(unified_diff(before, after, lineterm="", n=2))[3:]
        shown = [line for line in lines if not line.startswith("@@")]
        return f"{name}:\n\n```diff\n" + "\n".join(shown) + "\n```"
    said = {"agrees": "nothing to do", "nothing": "nothing is said", "could not tell": "reported, not edited"}
    what = "withheld" if sample.get("withheld") else "not edited"
    if sample["says"] in said:
        what = said[sample["says"]]
    return f"{name} ({what}):\n\n```python\n{sample['before'].rstrip()}\n```"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
