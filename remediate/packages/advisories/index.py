"""Asking the package index's JSON API ("/pypi/NAME/VERSION/json" in its documentation): one question for each version.

An index without that API, as most mirrors are, answers 404 for everything; that is no answer, and never "none known".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from remediate.packages.advisories.check import Answer, Candidate
from remediate.packages.advisories.osv import lowest_above
from remediate.packages.advisories.records import Advisory, Kind, Sure
from remediate.packages.advisories.web import Unreachable, request_json

_NOT_FOUND = 404
_EFFECT = 160


class _Record(msgspec.Struct, frozen=True):
    """One of `vulnerabilities`, its used fields."""

    id: str
    aliases: tuple[str, ...] = ()
    summary: str | None = None
    details: str | None = None
    fixed_in: tuple[str, ...] = ()
    withdrawn: str | None = None


class _Document(msgspec.Struct, frozen=True):
    """`vulnerabilities` is required: an index that leaves it out does not know them."""

    vulnerabilities: tuple[_Record, ...]


def ask(candidates: Iterable[Candidate], today: str, url: str) -> dict[str, Answer]:
    """An answer for each candidate that can be asked about, by its key.

    After three failures in a row that are not about one distribution the rest is not asked.
    """
    source = f"package index, {today}"
    answers: dict[str, Answer] = {}
    failures, last = 0, ""
    for candidate in candidates:
        if candidate.obstacle:
            continue
        if failures >= 3:  # noqa: PLR2004 (as the docstring says)
            answers[candidate.key] = Answer(source, unchecked=last)
            continue
        try:
            answers[candidate.key] = Answer(source, _ask(candidate, url))
            failures = 0
        except Unreachable as error:
            is_unknown = error.status == _NOT_FOUND
            failures = 0 if is_unknown else failures + 1
            last = "the package index does not know this version" if is_unknown else f"package index: {error}"
            answers[candidate.key] = Answer(source, unchecked=last)
    return answers


def _ask(candidate: Candidate, url: str) -> tuple[Advisory, ...]:
    from urllib.parse import quote

    place = f"{url.rstrip('/')}/pypi/{quote(candidate.name, safe='')}/{quote(candidate.version, safe='')}/json"
    document: Any = request_json(place)
    try:
        records = msgspec.convert(document, _Document).vulnerabilities
    except msgspec.ValidationError as error:
        raise Unreachable(f"it is not as the JSON API documents it: {error}") from error
    return tuple(_to_advisory(record, candidate) for record in records if not record.withdrawn)


def _to_advisory(record: _Record, candidate: Candidate) -> Advisory:
    numbers = (record.id, *record.aliases)
    chosen = next((number for number in numbers if number.startswith("CVE-")), record.id)
    text = record.summary or (record.details or "").strip().partition("\n")[0] or "no summary is given"
    return Advisory(
        id=chosen,
        aliases=tuple(dict.fromkeys(number for number in numbers if number != chosen)),
        distribution=candidate.name,
        kind=Kind.VULNERABILITY,
        affected=(f"=={candidate.version}",),
        fixed=lowest_above(candidate.version, record.fixed_in),
        effect=text if len(text) <= _EFFECT else f"{text[: _EFFECT - 1]}…",
        source=f"package index {record.id}",
        sure=Sure.ADVISORY,
    )
