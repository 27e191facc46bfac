"""The shipped data of known regressions and vulnerabilities, and what it says of versions and profiles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from packages.packages_records import dist, facts_of, findings_of, profile_of, propose
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from remediate.errors import ProfileError
from remediate.model import Outcome
from remediate.packages.advisories.costs import costs_of
from remediate.packages.advisories.judge import pin_costs
from remediate.packages.advisories.records import Advisory, Kind, Severity, Sure, gravest_first, known_of, shipped
from remediate.packages.names import canonical
from remediate.profile.load import load_profile, shipped_names
from remediate.profile.schema import Pin


def ids(name: str, version: str, kind: Kind = Kind.VULNERABILITY) -> set[str]:
    return {found.id for found in known_of(name, version) if found.kind is kind}


@pytest.mark.parametrize(
    "advisory", shipped().advisories, ids=lambda advisory: f"{advisory.distribution}-{advisory.id}"
)
def test_every_record_is_whole(advisory: Advisory) -> None:
    assert advisory.distribution == canonical(advisory.distribution)
    assert advisory.affected
    assert advisory.effect
    assert advisory.source
    for specifier in advisory.affected:
        SpecifierSet(specifier)
    if advisory.fixed:
        Version(advisory.fixed)
        assert not advisory.affects(advisory.fixed)


def test_no_number_is_there_twice() -> None:
    names = [name for found in shipped().advisories for name in (found.id, *found.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "version", "number", "is_affected"),
    [
        ("torch", "2.5.1", "CVE-2025-32434", True),
        ("torch", "2.5.1+cu121", "CVE-2025-32434", True),
        ("torch", "2.6.0", "CVE-2025-32434", False),
        ("torch", "2.6.0a0+git1", "CVE-2025-32434", True),
        ("torch", "nonsense", "CVE-2025-32434", False),
        ("transformers", "5.3.0.dev0", "CVE-2026-4372", True),
        ("transformers", "4.55.0.dev0", "CVE-2026-4372", False),
        ("torch", "2.9.1", "CVE-2026-24747", True),
        ("torch", "2.10.0", "CVE-2026-24747", False),
        ("torch", "2.10.0", "CVE-2026-4538", True),
        ("torch", "2.11.0", "CVE-2026-4538", False),
        ("torch", "2.12.1", "CVE-2025-3000", True),
        ("torch", "2.13.0", "CVE-2025-3000", False),
        ("transformers", "4.36.2", "CVE-2023-7018", False),
        ("transformers", "4.55.4", "CVE-2026-4372", False),
        ("transformers", "4.56.0", "CVE-2026-4372", True),
        ("transformers", "5.3.0", "CVE-2026-4372", False),
        ("transformers", "5.0.0rc2", "CVE-2026-1839", True),
        ("transformers", "5.0.0", "CVE-2026-1839", False),
        ("protobuf", "5.29.5", "CVE-2026-0994", True),
        ("protobuf", "5.29.6", "CVE-2026-0994", False),
        ("protobuf", "6.33.4", "CVE-2026-0994", True),
        ("protobuf", "6.33.5", "CVE-2026-0994", False),
    ],
)
def test_ranges(name: str, version: str, number: str, is_affected: bool) -> None:
    assert (number in ids(name, version)) is is_affected


def test_the_reports_claim_is_marked_and_not_counted() -> None:
    (claim,) = [found for found in known_of("torch", "2.2.0") if found.kind is Kind.CLAIM]
    assert (claim.id, claim.sure) == ("incident-cuda-reinit", Sure.UNVERIFIED)
    finding = findings_of(facts_of(dist("torch", "2.2.0")), profile_of())["PKG020:torch"]
    assert f"{len(ids('torch', '2.2.0'))} published vulnerabilities" in finding.summary
    assert "1 claim that could not be verified" in finding.summary
    assert "re-initialisation bug, as the incident report says (unverified)" in finding.evidence[-1]
    assert ids("torch", "2.2.0") < ids("torch", "2.1.2")


def test_gravest_first() -> None:
    def advisory(number: str, **more: Any) -> Advisory:
        base = {"kind": Kind.VULNERABILITY, "sure": Sure.REPORTED, **more}
        return Advisory(number, "torch", affected=("<2",), effect="e", source="s", **base)

    rows = [
        advisory("claim", kind=Kind.CLAIM),
        advisory("regression", kind=Kind.REGRESSION, severity=Severity.CRITICAL),
        advisory("unrated"),
        advisory("high", severity=Severity.HIGH),
        advisory("critical, hearsay", severity=Severity.CRITICAL),
        advisory("critical, read", severity=Severity.CRITICAL, sure=Sure.ADVISORY),
    ]
    assert [found.id for found in gravest_first(rows)] == [
        "critical, read",
        "critical, hearsay",
        "high",
        "unrated",
        "regression",
        "claim",
    ]


def test_installed_versions_are_advice_and_never_fail_a_verify() -> None:
    found = findings_of(facts_of(dist("torch", "2.5.1"), dist("numpy", "2.0.0")), profile_of())
    finding = found["PKG020:torch"]
    assert (finding.outcome, finding.is_advice) == (Outcome.DIFFERS, True)
    assert "CVE-2025-32434" in finding.evidence[0]
    assert finding.wanted == ">=2.13.0"
    assert "PKG020:numpy" not in found
    assert "PKG020:torch" not in findings_of(facts_of(dist("torch", "2.14.1")), profile_of())


def test_costs_of_the_incident_profile_come_from_the_data() -> None:
    profile = load_profile("incident-a100").profile
    costs = costs_of(profile)
    torch, transformers = (next(line for line in costs if line.startswith(name)) for name in ("torch", "transformers"))
    assert f"{len(ids('torch', '2.1.2'))} published vulnerabilities" in torch
    assert f"{len(ids('transformers', '4.36.2'))} published vulnerabilities" in transformers
    here = {(name, number) for name, pin in profile.packages.items() for number in ids(name, pin.version)}
    there = {
        (name, number)
        for name, pin in load_profile("current").profile.packages.items()
        for number in ids(name, pin.version)
    }
    assert f"leaves {len(here - there)} of {len(here)} behind where the driver is >=580" in costs[-1]
    assert all(number in costs[-1] for _, number in there)
    assert len(here) > 10 * len(here & there)


def test_the_page_counts_as_the_data_does() -> None:
    text = " ".join((Path(__file__).parents[2] / "docs" / "advisories.md").read_text().split())
    torch, transformers = len(ids("torch", "2.1.2")), len(ids("transformers", "4.36.2"))
    assert f"{torch} published vulnerabilities of torch 2.1.2 and {transformers} of transformers 4.36.2" in text
    unverified = [
        found
        for name, version in (("torch", "2.1.2"), ("transformers", "4.36.2"))
        for found in known_of(name, version)
        if found.sure is Sure.UNVERIFIED
    ]
    assert f"({len(unverified)} of them not verified)" in text
    left = next(line for line in costs_of(load_profile("incident-a100").profile) if "behind where" in line)
    assert re.search(r"leaves (\d+ of \d+) behind", left)[1] in text  # type: ignore[index]


def test_no_profile_counts_by_hand() -> None:
    for name in shipped_names():
        assert not any("advisories" in cost or "CVE" in cost for cost in load_profile(name).profile.costs)


def test_a_plan_tells_the_costs_of_what_it_leads_to() -> None:
    loose = profile_of(torch=Pin(version="2.13.0", accept=">=2.11"))
    assert propose(facts_of(), loose).costs == ()
    (kept,) = propose(facts_of(dist("torch", "2.11.0")), loose).costs
    assert "CVE-2025-3000" in kept
    assert propose(facts_of(dist("torch", "2.5.1")), loose).costs == ()


def test_a_successor_that_leaves_nothing_behind_is_not_named() -> None:
    same = profile_of(torch=Pin(version="2.1.2"))
    assert not any("behind where" in line or "profile `p`" in line for line in pin_costs(same, {"torch": "2.1.2"}))


def test_a_successor_must_be_shipped(tmp_path: Any) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('schema_version = 1\nname = "mine"\nsuccessor = "nowhere"\n')
    with pytest.raises(ProfileError, match="nowhere"):
        load_profile(str(path))
    path.write_text('schema_version = 1\nname = "mine"\nsuccessor = "current"\n')
    assert load_profile(str(path)).profile.successor == "current"


def test_the_data_is_read_strictly() -> None:
    document = msgspec.to_builtins(shipped())
    document["advisories"][0]["severety"] = "high"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(document, type(shipped()))
