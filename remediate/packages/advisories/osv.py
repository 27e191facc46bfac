"""Asking OSV (https://google.github.io/osv.dev/api/): one question for all versions, then each advisory once.

OSV answers with nothing for a name that it does not know, as for a version without advisories; a private distribution
therefore looks clean to it. The package index tells them apart (`remediate.packages.advisories.index`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from remediate.packages.advisories.check import Answer, Candidate
from remediate.packages.advisories.records import Advisory, Kind, Severity, Sure
from remediate.packages.advisories.web import Unreachable, request_json
from remediate.packages.names import canonical

URL = "https://api.osv.dev"
_BATCH = 500
"""OSV takes 1000 in one question."""
_PAGES = 20
_EFFECT = 160
_SEVERITIES = {
    "CRITICAL": Severity.CRITICAL,
    "HIGH": Severity.HIGH,
    "MODERATE": Severity.MEDIUM,
    "MEDIUM": Severity.MEDIUM,
    "LOW": Severity.LOW,
}


class _Package(msgspec.Struct, frozen=True):
    name: str = ""
    ecosystem: str = ""


class _Range(msgspec.Struct, frozen=True):
    type: str = ""
    events: tuple[dict[str, str], ...] = ()


class _Affected(msgspec.Struct, frozen=True):
    package: _Package = _Package()
    ranges: tuple[_Range, ...] = ()


class _Record(msgspec.Struct, frozen=True):
    """The fields of an OSV record (schema 1.7) that are used."""

    id: str
    aliases: tuple[str, ...] = ()
    summary: str = ""
    details: str = ""
    withdrawn: str = ""
    affected: tuple[_Affected, ...] = ()
    database_specific: dict[str, Any] = {}


def ask(candidates: Iterable[Candidate], today: str, url: str = URL) -> dict[str, Answer]:
    """An answer for each candidate that can be asked about, by its key.

    Args:
        today: date for the source's name.
        url: of the service, without a path.
    """
    source = f"OSV, {today}"
    asked = [candidate for candidate in candidates if not candidate.obstacle]
    answers: dict[str, Answer] = {}
    records: dict[str, Advisory | Unreachable | None] = {}
    for start in range(0, len(asked), _BATCH):
        batch = asked[start : start + _BATCH]
        try:
            numbers = _numbers(batch, url)
        except Unreachable as error:
            answers |= {candidate.key: Answer(source, unchecked=f"OSV: {error}") for candidate in batch}
            continue
        for candidate, found in zip(batch, numbers, strict=True):
            answers[candidate.key] = _answer(candidate, found, records, source, url)
    return answers


def _numbers(batch: Sequence[Candidate], url: str) -> list[list[str]]:
    """The numbers of each candidate's advisories, all pages of them. Raises `Unreachable`."""
    found: list[list[str]] = [[] for _ in batch]
    open_ones: dict[int, str] = dict.fromkeys(range(len(batch)), "")
    for _ in range(_PAGES):
        if not open_ones:
            return found
        order = list(open_ones)
        queries = [_query(batch[index], open_ones[index]) for index in order]
        results = _results(request_json(f"{url.rstrip('/')}/v1/querybatch", {"queries": queries}), len(order))
        open_ones = {}
        for index, result in zip(order, results, strict=True):
            found[index] += [str(entry["id"]) for entry in result.get("vulns") or ()]
            if result.get("next_page_token"):
                open_ones[index] = str(result["next_page_token"])
    raise Unreachable("the answer has no end")


def _query(candidate: Candidate, page: str) -> dict[str, Any]:
    query: dict[str, Any] = {"package": {"name": candidate.name, "ecosystem": "PyPI"}, "version": candidate.version}
    return {**query, "page_token": page} if page else query


def _results(document: Any, count: int) -> list[Mapping[str, Any]]:
    """As many results as questions, or it is no answer: a missing one must not pass for "nothing known"."""
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, list) or len(results) != count:
        raise Unreachable("the answer has not one result for each question")
    if not all(isinstance(item, dict) and _are_numbered(item.get("vulns") or ()) for item in results):
        raise Unreachable("the answer is not as OSV documents it")
    return results


def _are_numbered(entries: Any) -> bool:
    return isinstance(entries, list | tuple) and all(isinstance(entry, dict) and entry.get("id") for entry in entries)


def _answer(
    candidate: Candidate,
    numbers: Iterable[str],
    records: dict[str, Advisory | Unreachable | None],
    source: str,
    url: str,
) -> Answer:
    """An advisory whose text could not be had is one all the same."""
    found: list[Advisory] = []
    for number in numbers:
        key = f"{candidate.name} {number}"
        if key not in records:
            records[key] = _fetch(number, candidate, url)
        record = records[key]
        if isinstance(record, Unreachable):
            found.append(_bare(number, candidate, f"its text could not be had ({record})"))
        elif record is not None:
            found.append(record)
    return Answer(source, tuple(found))


def _fetch(number: str, candidate: Candidate, url: str) -> Advisory | Unreachable | None:
    from urllib.parse import quote

    try:
        document = request_json(f"{url.rstrip('/')}/v1/vulns/{quote(number, safe='')}")
        record = msgspec.convert(document, _Record)
    except Unreachable as error:
        return error
    except msgspec.ValidationError as error:
        return Unreachable(f"it is not as OSV documents it: {error}")
    return None if record.withdrawn else to_advisory(record, candidate)


def to_advisory(record: _Record, candidate: Candidate) -> Advisory:
    """An OSV record as one of ours; a CVE number goes before the database's own."""
    numbers = (record.id, *record.aliases)
    chosen = next((number for number in numbers if number.startswith("CVE-")), record.id)
    text = record.summary or record.details.strip().partition("\n")[0] or "no summary is given"
    rating = record.database_specific.get("severity")
    return Advisory(
        id=chosen,
        aliases=tuple(dict.fromkeys(number for number in numbers if number != chosen)),
        distribution=candidate.name,
        kind=Kind.VULNERABILITY,
        severity=_SEVERITIES.get(rating, Severity.UNKNOWN) if isinstance(rating, str) else Severity.UNKNOWN,
        affected=(f"=={candidate.version}",),
        fixed=_fixed(record, candidate),
        effect=text if len(text) <= _EFFECT else f"{text[: _EFFECT - 1]}…",
        source=f"OSV {record.id}",
        sure=Sure.ADVISORY,
    )


def _bare(number: str, candidate: Candidate, note: str) -> Advisory:
    return Advisory(
        id=number,
        distribution=candidate.name,
        kind=Kind.VULNERABILITY,
        affected=(f"=={candidate.version}",),
        effect="affects this version",
        note=note,
        source="OSV",
        sure=Sure.REPORTED,
    )


def _fixed(record: _Record, candidate: Candidate) -> str:
    """The lowest fixed version above the candidate's; empty where there is none."""
    return lowest_above(candidate.version, _fixed_versions(record, candidate.name))


def _fixed_versions(record: _Record, name: str) -> Iterator[str]:
    for affected in record.affected:
        if affected.package.ecosystem == "PyPI" and canonical(affected.package.name) == name:
            for entry in affected.ranges:
                yield from (event["fixed"] for event in entry.events if entry.type == "ECOSYSTEM" and "fixed" in event)


def lowest_above(version: str, candidates: Iterable[str]) -> str:
    """The lowest of the versions that is above `version`; empty for none. What is no version is passed over."""
    from packaging.version import InvalidVersion, Version

    above = []
    for text in candidates:
        try:
            if Version(text) > Version(version):
                above.append(Version(text))
        except InvalidVersion:
            continue
    return str(min(above)) if above else ""
