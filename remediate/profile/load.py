"""Read profile files, follow `extends`, and report all problems of a file together."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from remediate.errors import ProfileError
from remediate.profile.check import Problem, check_document
from remediate.profile.lines import key_lines, line_of
from remediate.profile.rules import check_rules
from remediate.profile.schema import EXCLUSIVE_GPU_WISHES, Profile
from remediate.resources import data_folder

MAX_PROFILE_BYTES = 1024 * 1024
_REPLACED_WHOLE = ("match", "corrections", "costs", "gpu_for")


class ResolvedProfile(msgspec.Struct, frozen=True):
    """A profile after `extends`.

    Attributes:
        profile: the checked record.
        origins: dotted path of each value to the name of the profile it comes from.
        chain: names from the profile itself to its last ancestor.
        sha256: of the resolved values, independent of layout and comments.
        lock_stems: where locks may lie, the profile's own first: `locks/NAME` beside each file of the chain.
    """

    profile: Profile
    origins: Mapping[str, str]
    chain: tuple[str, ...]
    sha256: str
    lock_stems: tuple[str, ...] = ()


def shipped_names() -> tuple[str, ...]:
    """Names of the profiles that come with the program, sorted."""
    return tuple(sorted(path.stem for path in data_folder("profiles").glob("*.toml")))


def load_profile(name_or_path: str) -> ResolvedProfile:
    """Load a shipped profile by name, a file by path, or standard input by `-`.

    Anything with a path separator or ending in `.toml` is a path. `extends` names a shipped profile, or a file
    relative to the one that names it.

    Raises:
        ProfileError: not found, unreadable, not TOML, in a cycle, or with problems, all of which it holds.
    """
    text, place = _read(name_or_path, None)
    chain, places, merged, origins = _resolve(text, place)
    problems = _missing(merged)
    if problems:
        raise _problem_error(place, problems, key_lines(text))
    profile = msgspec.convert(merged, Profile, strict=False)
    stems = tuple(str(lock_folder(place) / name) for name, place in zip(chain, places, strict=True))
    return ResolvedProfile(profile, origins, tuple(chain), _digest(profile), stems)


def lock_folder(place: str) -> Path:
    """Where the locks of a profile file lie: beside it."""
    return Path(place).absolute().parent / "locks"


def _digest(profile: Profile) -> str:
    from remediate.effects import sha256

    return sha256(msgspec.json.encode(profile, order="deterministic"))


def _resolve(text: str, place: str) -> tuple[list[str], list[str], dict[str, Any], dict[str, str]]:
    document = _parse(text, place)
    chain, layers, places = [document["name"]], [document], [place]
    while (parent := layers[-1].get("extends")) is not None:
        parent_text, parent_place = _read(parent, places[-1])
        if parent_place in places:
            names = " -> ".join([*chain, parent])
            raise ProfileError(
                f"profile `{chain[0]}` extends itself", cause=names, hint="take one `extends` out of the cycle"
            )
        layer = _parse(parent_text, parent_place)
        chain.append(layer["name"])
        layers.append(layer)
        places.append(parent_place)
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, layer in zip(reversed(chain), reversed(layers), strict=True):
        inherited = {key: value for key, value in layer.items() if key != "extends" or layer is layers[0]}
        _merge(merged, inherited, name, origins, "")
    return chain, places, merged, origins


def _merge(into: dict[str, Any], layer: Mapping[str, Any], name: str, origins: dict[str, str], prefix: str) -> None:
    for key, value in layer.items():
        path = f"{prefix}{key}"
        if prefix == "gpu.":
            _drop_rivals(into, key, origins)
        if isinstance(value, Mapping) and path not in _REPLACED_WHOLE:
            child = into.setdefault(key, {})
            _merge(child, value, name, origins, f"{path}.")
        else:
            into[key] = value
            origins[path] = name


def _drop_rivals(gpu: dict[str, Any], key: str, origins: dict[str, str]) -> None:
    """A child that says `power_limit_w` replaces its parent's `power_limit`, which can't stand beside it."""
    for group in EXCLUSIVE_GPU_WISHES:
        if key in group:
            for rival in group:
                if rival != key and gpu.pop(rival, None) is not None:
                    origins.pop(f"gpu.{rival}", None)


def _missing(merged: Mapping[str, Any]) -> list[Problem]:
    return [
        Problem(f"packages.{name}.version", "missing; a pin needs an exact version")
        for name, pin in merged.get("packages", {}).items()
        if "version" not in pin
    ] + _check_successor(merged.get("successor"))


def _check_successor(successor: str | None) -> list[Problem]:
    """Only a shipped profile can be one: a plan that names a file of another host promises what nobody can load."""
    if successor is None or successor in shipped_names():
        return []
    return [Problem("successor", f"there is no shipped profile `{successor}`; they are {', '.join(shipped_names())}")]


def _parse(text: str, place: str) -> dict[str, Any]:
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ProfileError(f"profile `{place}` is not TOML", cause=str(error), hint="see docs/profiles.md") from error
    problems = check_document(document, Profile)
    problems += check_rules(_without(document, {problem.path for problem in problems}, ""))
    if problems:
        raise _problem_error(place, problems, key_lines(text))
    return document


def _without(value: Any, paths: set[str], prefix: str) -> Any:
    """A copy of the document without what is broken, so that the further rules can look at the rest."""
    if isinstance(value, Mapping):
        kept = {key: item for key, item in value.items() if f"{prefix}{key}" not in paths}
        return {key: _without(item, paths, f"{prefix}{key}.") for key, item in kept.items()}
    if isinstance(value, list):
        return [_without(item, paths, f"{prefix}{index}.") for index, item in enumerate(value)]
    return value


def _problem_error(place: str, problems: list[Problem], lines: dict[str, int]) -> ProfileError:
    count = len(problems)
    return ProfileError(
        f"profile `{place}` has {count} problem{'s' if count > 1 else ''}",
        problems=tuple(sorted(_problem_lines(problems, lines), key=_line_number)),
        hint="correct the file, then run `remediate profiles validate FILE`; docs/profiles.md lists every key",
    )


def _problem_lines(problems: list[Problem], lines: dict[str, int]) -> Iterator[str]:
    for problem in problems:
        number = line_of(lines, problem.path)
        yield f"line {number}: {problem.path}: {problem.message}" if number else f"{problem.path}: {problem.message}"


def _line_number(text: str) -> int:
    head = text.split(":", 1)[0]
    return int(head.removeprefix("line ")) if head.startswith("line ") else 0


def _read(name_or_path: str, named_by: str | None) -> tuple[str, str]:
    """Text and place of a profile; `named_by` is the place of the profile whose `extends` names it."""
    if name_or_path == "-" and named_by is None:
        return _decode(sys.stdin.buffer.read(MAX_PROFILE_BYTES + 1), "standard input"), "standard input"
    path = _locate(name_or_path, named_by)
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_PROFILE_BYTES + 1)
    except OSError as error:
        raise _not_found(name_or_path, path, error, named_by) from error
    return _decode(content, str(path)), str(path)


def _locate(name_or_path: str, named_by: str | None) -> Path:
    if "/" not in name_or_path and not name_or_path.endswith(".toml"):
        return data_folder("profiles") / f"{name_or_path}.toml"
    base = Path(named_by).parent if named_by and named_by != "standard input" else Path()
    return (base / name_or_path).resolve()


def _decode(content: bytes, place: str) -> str:
    if len(content) > MAX_PROFILE_BYTES:
        raise ProfileError(f"profile `{place}` is larger than 1 MiB", cause="a profile is a short text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProfileError(
            f"profile `{place}` is not text",
            cause=f"byte {error.start} is not UTF-8",
            hint="give a TOML file; see docs/profiles.md",
        ) from error
    if "\0" in text:
        raise ProfileError(f"profile `{place}` is not text", cause="it holds NUL bytes", hint="give a TOML file")
    return text


def _not_found(name_or_path: str, path: Path, error: OSError, named_by: str | None) -> ProfileError:
    by = f" (named by `extends` in `{named_by}`)" if named_by else ""
    if path.parent == data_folder("profiles") and isinstance(error, FileNotFoundError):
        import difflib

        near = difflib.get_close_matches(name_or_path, shipped_names(), n=1)
        hint = f"did you mean `{near[0]}`? " if near else ""
        return ProfileError(
            f"there is no profile `{name_or_path}`{by}",
            cause=f"shipped are: {', '.join(shipped_names())}",
            hint=f"{hint}a file is named by its path, as `./{name_or_path}.toml`",
        )
    return ProfileError(
        f"profile `{name_or_path}`{by} can't be read", cause=f"{path}: {error.strerror}", hint="check the path"
    )
