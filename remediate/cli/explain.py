"""`remediate explain`."""

from __future__ import annotations

from typing import Annotated

import typer


def explain(
    code: Annotated[
        str | None, typer.Argument(metavar="[CODE]", help="As `GPU003`; without one all codes are listed.")
    ] = None,
) -> None:
    """Say what a finding's code means, why it matters and where that is documented."""
    from remediate.cli.console import Console
    from remediate.explanations import all_explanations, explanation_of

    console = Console()
    if code is None:
        for page in all_explanations():
            console.labelled(page.code, page.title)
        return
    page = explanation_of(code)
    console.line(f"{page.code}: {page.title}", "bold")
    for label, text in (("what", page.what), ("why", page.why), ("fix", page.fix)):
        console.line()
        console.labelled(f"{label}:", text)
    if page.sources:
        console.heading("Sources")
        for source in page.sources:
            console.item("-", "cyan", source)
