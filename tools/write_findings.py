"""Write docs/findings.md from the pages behind the findings' codes: `./dev docs`."""

from __future__ import annotations

from pathlib import Path

from remediate.explanations import all_explanations

TARGET = Path(__file__).resolve().parent.parent / "docs" / "findings.md"
HEAD = """\
# Findings

Every code that `plan` and `verify` print, as `remediate explain CODE` tells it. Written by `./dev docs`.
"""


def render() -> str:
    """The page."""
    parts = [HEAD]
    for page in all_explanations():
        parts.append(f"\n## {page.code}: {page.title}\n\n**What.** {page.what}\n\n**Why.** {page.why}\n")
        parts.append(f"\n**Fix.** {page.fix}\n")
        if page.sources:
            parts.append("\nSources:\n\n" + "".join(f"- {source}\n" for source in page.sources))
    return "".join(parts)


if __name__ == "__main__":
    TARGET.write_text(render(), "utf-8")
    print(f"wrote {TARGET.name}")
