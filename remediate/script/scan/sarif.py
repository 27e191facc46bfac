"""Findings as SARIF 2.1.0 (OASIS Standard, March 2020), which code scanning and editors read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from remediate.model import Explanation
from remediate.script.scan.judge import Judged, Spot
from remediate.script.scan.levels import level_of, message_of

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(judged: Sequence[Judged], pages: Mapping[str, Explanation], version: str) -> dict[str, Any]:
    """One run with the results of all files, in the order given.

    Args:
        judged: what was found.
        pages: the page of every code.
        version: the program's.
    """
    codes = sorted({spot.finding.code for item in judged for spot in item.spots})
    driver = {
        "name": "remediate",
        "version": version,
        "rules": [_rule(pages[code]) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "the folder that was scanned"}}},
        "results": list(_results(judged, codes)),
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(page: Explanation) -> dict[str, Any]:
    return {
        "id": page.code,
        "shortDescription": {"text": page.title},
        "fullDescription": {"text": page.what},
        "help": {"text": f"{page.why}\n\n{page.fix}"},
    }


def _results(judged: Iterable[Judged], codes: Sequence[str]) -> Iterable[dict[str, Any]]:
    for item in judged:
        for spot in item.spots:
            finding = spot.finding
            yield {
                "ruleId": finding.code,
                "ruleIndex": codes.index(finding.code),
                "level": level_of(finding).value,
                "message": {"text": message_of(finding)},
                "locations": [{"physicalLocation": _place(item, spot)}],
            }


def _place(item: Judged, spot: Spot) -> dict[str, Any]:
    is_below = not item.name.startswith("/")
    place: dict[str, Any] = {"uri": quote(item.name) if is_below else "file://" + quote(item.name)}
    if is_below:
        place["uriBaseId"] = "SRCROOT"
    return {"artifactLocation": place, "region": {"startLine": spot.line}}
