"""The part of the SARIF 2.1.0 schema (OASIS) that `remediate` writes, stricter: nothing else may be there."""

from __future__ import annotations

from typing import Any


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required.split(),
        "additionalProperties": False,
        "properties": properties,
    }


_TEXT = {"type": "string", "minLength": 1}
_MESSAGE = _object("text", text=_TEXT)
_RULE = _object("id shortDescription", id=_TEXT, shortDescription=_MESSAGE, fullDescription=_MESSAGE, help=_MESSAGE)
_ARTIFACT = _object("uri", uri={"type": "string", "format": "uri-reference"}, uriBaseId={"const": "SRCROOT"})
_REGION = _object("startLine", startLine={"type": "integer", "minimum": 1})
_PLACE = _object("artifactLocation region", artifactLocation=_ARTIFACT, region=_REGION)
_RESULT = _object(
    "ruleId ruleIndex level message locations",
    ruleId=_TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level={"enum": ["none", "note", "warning", "error"]},
    message=_MESSAGE,
    locations={"type": "array", "minItems": 1, "items": _object("physicalLocation", physicalLocation=_PLACE)},
)
_DRIVER = _object(
    "name version rules",
    name=_TEXT,
    version=_TEXT,
    rules={"type": "array", "uniqueItems": True, "items": _RULE},
)
_RUN = _object(
    "tool results",
    tool=_object("driver", driver=_DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    originalUriBaseIds=_object("SRCROOT", SRCROOT=_object("description", description=_MESSAGE)),
    results={"type": "array", "items": _RESULT},
)
SCHEMA = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    **_object(
        "$schema version runs",
        **{"$schema": {"type": "string"}, "version": {"const": "2.1.0"}, "runs": {"type": "array", "items": _RUN}},
    ),
}
