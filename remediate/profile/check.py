"""Check a TOML document against a record type and collect every problem, with a suggestion for misspelt keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
import msgspec.inspect

_SHOWN_CHARACTERS = 60


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong.

    Attributes:
        path: dotted path, as `packages.torch.version`.
        message: what is wrong, without the path.
    """

    path: str
    message: str


def check_document(document: Mapping[str, Any], record: type[msgspec.Struct]) -> list[Problem]:
    """Every unknown key and every value of a wrong type, in document order. Missing keys are not looked for."""
    return list(_check_struct(document, _type_info(record), ""))


@cache
def _type_info(record: type[msgspec.Struct]) -> Any:
    return msgspec.inspect.type_info(record)


def _check_struct(document: Mapping[str, Any], info: Any, prefix: str) -> Iterator[Problem]:
    fields = {field.encode_name: field.type for field in info.fields}
    for key, value in document.items():
        path = f"{prefix}{key}"
        if key not in fields:
            yield Problem(path, _unknown_key(key, fields))
        else:
            yield from _check_value(value, fields[key], path)


def _check_value(value: Any, info: Any, path: str) -> Iterator[Problem]:
    kind = msgspec.inspect
    if isinstance(info, kind.StructType) and isinstance(value, Mapping):
        yield from _check_struct(value, info, f"{path}.")
    elif isinstance(info, kind.DictType) and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _check_value(item, info.value_type, f"{path}.{key}")
    elif isinstance(info, kind.VarTupleType) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _check_value(item, info.item_type, f"{path}.{index}")
    else:
        yield from _check_leaf(value, info, path)


def _check_leaf(value: Any, info: Any, path: str) -> Iterator[Problem]:
    options = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    if not any(_fits(value, option) for option in options):
        wanted = " or ".join(name for name in (_type_name(option) for option in options) if name)
        yield Problem(path, f"expected {wanted}, got {_show(value)}")


def _fits(value: Any, info: Any) -> bool:
    kind = msgspec.inspect
    if isinstance(info, kind.LiteralType):
        return value in info.values
    if isinstance(info, kind.StrType):
        return isinstance(value, str)
    if isinstance(info, kind.BoolType):
        return isinstance(value, bool)
    if isinstance(info, kind.IntType):
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(info, kind.FloatType):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return False


def _type_name(info: Any) -> str:
    kind = msgspec.inspect
    if isinstance(info, kind.LiteralType):
        return ", ".join(f'"{value}"' for value in info.values)
    names = {
        kind.StrType: "text",
        kind.BoolType: "true or false",
        kind.IntType: "a whole number",
        kind.FloatType: "a number",
        kind.StructType: "a table",
        kind.DictType: "a table",
        kind.VarTupleType: "a list",
    }
    return next((name for info_type, name in names.items() if isinstance(info, info_type)), "")


def _show(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 3]}..."


def _unknown_key(key: str, fields: Mapping[str, Any]) -> str:
    import difflib

    near = difflib.get_close_matches(key, fields, n=1, cutoff=0.6)
    if near:
        return f"unknown key `{key}`; did you mean `{near[0]}`?"
    return f"unknown key `{key}`; known here: {', '.join(sorted(fields))}"
