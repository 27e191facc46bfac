"""SARIF and workflow commands: valid, escaped, and in order."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scan.sarif_schema import SCHEMA

from remediate.model import Finding, Outcome
from remediate.script.scan.github import workflow_commands
from remediate.script.scan.judge import Judged, Spot
from remediate.script.scan.sarif import sarif
from remediate.script.subject import ScriptSubject

PAGES = ScriptSubject().explanations()
LINE = re.compile(r"::(error|warning|notice) file=([^:,\r\n]*),line=(\d+),title=(SCR\d{3})::([^\r\n]*)")


def spot(
    code: str = "SCR001", outcome: Outcome = Outcome.DIFFERS, *, name: str = "a.py", place: str = "3", text: str = "bad"
) -> Spot:
    target = f"{name}:{place}"
    return Spot(int(place.rpartition(":")[2]), Finding(code, "script", target, outcome, f"{target}: {text}"))


def judged(*spots: Spot, name: str = "a.py") -> Judged:
    return Judged(f"/r/{name}", name, True, spots)


def validate(document: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(document)


def test_sarif_is_valid_and_names_rules_levels_and_lines() -> None:
    advice = msgspec.structs.replace(spot("SCR013").finding, is_advice=True)
    items = [
        judged(spot("SCR006"), Spot(9, advice)),
        judged(spot("SCR000", Outcome.UNKNOWN, name="ü 1.py"), name="ü 1.py"),
    ]
    document = sarif(items, PAGES, "1.2")
    validate(document)
    (run,) = document["runs"]
    results = run["results"]
    assert [item["level"] for item in results] == ["error", "note", "warning"]
    assert [run["tool"]["driver"]["rules"][item["ruleIndex"]]["id"] for item in results] == [
        "SCR006",
        "SCR013",
        "SCR000",
    ]
    places = [item["locations"][0]["physicalLocation"] for item in results]
    assert [place["region"]["startLine"] for place in places] == [3, 9, 3]
    assert places[2]["artifactLocation"] == {"uri": "%C3%BC%201.py", "uriBaseId": "SRCROOT"}


def test_sarif_of_nothing_is_valid() -> None:
    validate(sarif([], PAGES, "1.2"))


def test_a_file_elsewhere_has_a_whole_address() -> None:
    place = sarif([judged(spot(), name="/r/a b.py")], PAGES, "1")["runs"][0]["results"][0]["locations"][0]
    assert place["physicalLocation"]["artifactLocation"] == {"uri": "file:///r/a%20b.py"}


def test_a_notebooks_cell_is_said_in_the_message() -> None:
    item = judged(spot(name="n.ipynb", place="cell 4:2"), name="n.ipynb")
    assert workflow_commands([item]) == "::error file=n.ipynb,line=2,title=SCR001::cell 4, line 2: bad\n"


@given(name=st.text(min_size=1).filter(lambda text: "/" not in text), text=st.text(), reason=st.text())
@pytest.mark.property
def test_nothing_breaks_out_of_its_line(name: str, text: str, reason: str) -> None:
    finding = msgspec.structs.replace(spot(name=name, text=text).finding, reason=reason)
    output = workflow_commands([judged(Spot(3, finding), name=name)])
    assert output.count("\n") == 1
    match = LINE.fullmatch(output.removesuffix("\n"))
    assert match is not None
    assert unquote(match[2].encode("utf-8", "surrogatepass").decode("latin-1"), "latin-1") == name.encode(
        "utf-8", "surrogatepass"
    ).decode("latin-1")
    document = sarif([judged(Spot(3, finding), name=name)], PAGES, "1")
    assert msgspec.json.decode(msgspec.json.encode(document)) == document


@given(st.text(min_size=1))
@pytest.mark.property
def test_an_address_comes_back(name: str) -> None:
    address = sarif([judged(spot(), name=name)], PAGES, "1")["runs"][0]["results"][0]["locations"][0]
    uri = address["physicalLocation"]["artifactLocation"]["uri"]
    assert unquote(uri.removeprefix("file://")) == name
