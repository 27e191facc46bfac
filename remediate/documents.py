"""Facts and plans as JSON documents: written deterministically, read strictly."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from remediate.effects import sha256
from remediate.errors import DocumentError
from remediate.model import SCHEMA_VERSION, Change, Facts, Finding, Plan
from remediate.registry import subjects

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
R = TypeVar("R", bound=msgspec.Struct)


class PlanFile(msgspec.Struct, frozen=True):
    """The envelope of a saved plan. `digest` is the SHA-256 of the plan's canonical JSON; a plan edited by hand no
    longer matches it and is refused.
    """

    schema_version: int
    kind: str
    digest: str
    plan: Any


def encode(record: msgspec.Struct) -> bytes:
    """Indented JSON with a last newline, fields in the order of declaration."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def encode_plan(plan: Plan) -> bytes:
    """A plan file's bytes."""
    return encode(PlanFile(SCHEMA_VERSION, "remediate-plan", _digest(msgspec.to_builtins(plan)), plan))


class FindingsFile(msgspec.Struct, frozen=True):
    """What `verify --json` prints."""

    schema_version: int
    kind: str
    profile_name: str
    in_agreement: bool
    differences: int
    unknowns: int
    findings: tuple[Finding, ...]


def encode_findings(plan: Plan) -> bytes:
    """A plan's findings as a document, with the counts that a script decides by."""
    differences, unknowns = len(plan.differences), len(plan.unknowns)
    agreed = not differences and not unknowns
    return encode(
        FindingsFile(
            SCHEMA_VERSION, "remediate-findings", plan.profile_name, agreed, differences, unknowns, plan.findings
        )
    )


def decode_facts(content: bytes, place: str) -> Facts:
    """Read a facts document.

    Raises:
        DocumentError: not JSON, not facts, or of another schema version.
    """
    document = _parse(content, place, "facts", "remediate facts -o FILE")
    _check_version(document, place, "facts")
    facts: Facts = _convert(document, Facts, place)
    known = {subject.name: subject for subject in subjects()}
    sections = {}
    for name, section in facts.sections.items():
        if name not in known:
            raise DocumentError(f"facts `{place}` speak of a subject `{name}`", cause=f"known are: {', '.join(known)}")
        sections[name] = _convert(section, known[name].facts_type, place)
    return msgspec.structs.replace(facts, sections=sections)


def decode_plan(content: bytes, place: str) -> Plan:
    """Read a plan file and check that nobody edited it.

    Raises:
        DocumentError: not JSON, not a plan, of another schema version, or edited.
    """
    document = _parse(content, place, "plan", "remediate plan -o FILE")
    _check_version(document, place, "plan")
    envelope: PlanFile = _convert(document, PlanFile, place)
    if _digest(envelope.plan) != envelope.digest:
        raise DocumentError(
            f"plan `{place}` was edited after it was made",
            cause="its content does not match its digest, so it is not what was shown and agreed to",
            hint="make a new one with `remediate plan -o FILE`; change the profile to get another plan",
        )
    plan: Plan = _convert(envelope.plan, Plan, place)
    return msgspec.structs.replace(plan, changes=tuple(_with_operation(change, place) for change in plan.changes))


def read_document(path: Path) -> bytes:
    """The bytes of a facts or plan file.

    Raises:
        DocumentError: it can't be read, or is too large to be one.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise DocumentError(f"`{path}` can't be read", cause=str(error.strerror), hint="check the path") from error
    if len(content) > MAX_DOCUMENT_BYTES:
        raise DocumentError(f"`{path}` is larger than 64 MiB", cause="a facts or plan document is far smaller")
    return content


def _with_operation(change: Change, place: str) -> Change:
    operation_type = {subject.name: subject.operation_type for subject in subjects()}.get(change.subject)
    if operation_type is None:
        raise DocumentError(f"plan `{place}` has a change of an unknown subject `{change.subject}`")
    return msgspec.structs.replace(change, operation=_convert(change.operation, operation_type, place))


def _digest(builtins: Any) -> str:
    return sha256(msgspec.json.encode(builtins, order="deterministic"))


def _parse(content: bytes, place: str, kind: str, how: str) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DocumentError(f"{kind} `{place}` is not JSON", cause=str(error), hint=f"make it with `{how}`") from error
    if not isinstance(document, dict):
        raise DocumentError(
            f"`{place}` is not a {kind} document", cause="it is no JSON object", hint=f"make it with `{how}`"
        )
    return document


def _check_version(document: dict[str, Any], place: str, kind: str) -> None:
    version = document.get("schema_version")
    if version != SCHEMA_VERSION:
        raise DocumentError(
            f"{kind} `{place}` has schema version {version}",
            cause=f"this program reads version {SCHEMA_VERSION}",
            hint="make it anew with this version of the program, or read it with the version that made it",
        )


def _convert(document: Any, record: Any, place: str) -> Any:
    try:
        return msgspec.convert(document, record)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DocumentError(f"`{place}` is not a valid document", cause=str(error)) from error
