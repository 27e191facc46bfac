"""`remediate.toml`, or `[tool.remediate]` in pyproject.toml: what a sandbox folder says about itself."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from remediate.errors import ConfigError
from remediate.model import Choice, Request
from remediate.profile.check import check_document
from remediate.profile.lines import key_lines, line_of
from remediate.subject import Settings


class ConfigFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys of the file. Paths are relative to its folder."""

    profile: str | None = None
    python: str | None = None
    script: str | tuple[str, ...] = ()
    requirements: str | None = None
    gpu: str | tuple[str, ...] = ()
    """UUIDs or indices."""
    board: str | None = None
    """A simulated board, by name or path."""
    index_url: str | None = None
    find_links: str | tuple[str, ...] = ()
    no_index: bool = False
    installer: Literal["pip", "uv"] | None = None
    ignore: Mapping[str, str] = {}
    """Finding code to the reason for leaving it out."""


class Config(msgspec.Struct, frozen=True):
    """What was found.

    Attributes:
        file: the checked keys; all defaults where there is no file.
        place: the file, or None.
    """

    file: ConfigFile
    place: Path | None

    @property
    def settings(self) -> Settings:
        """The part that the subjects use."""
        return Settings(
            index_url=self.file.index_url,
            find_links=tuple(self._path(link) for link in _many(self.file.find_links)),
            no_index=self.file.no_index,
            ignore=self.file.ignore,
        )

    @property
    def choices(self) -> tuple[Choice, ...]:
        """That the file was read, for the person."""
        if self.place is None:
            return ()
        return (Choice("configuration", str(self.place), "it stands in the folder"),)

    def fill(self, request: Request) -> Request:
        """Put what the file says where the command line said nothing."""
        return msgspec.structs.replace(
            request,
            python=request.python or self._optional_path(self.file.python),
            scripts=request.scripts or tuple(self._path(script) for script in _many(self.file.script)),
            requirements=request.requirements or self._optional_path(self.file.requirements),
            gpus=request.gpus or _many(self.file.gpu),
            board=request.board or self._named(self.file.board),
            install=msgspec.structs.replace(
                request.install, installer=request.install.installer or self.file.installer or ""
            ),
        )

    @property
    def profile(self) -> str | None:
        """Name, or path made absolute."""
        return self._named(self.file.profile)

    def _named(self, name: str | None) -> str | None:
        """A name as it is, a path made absolute."""
        is_path = name is not None and ("/" in name or name.endswith((".toml", ".json")))
        return self._path(name) if name is not None and is_path else name

    def _optional_path(self, path: str | None) -> str | None:
        return None if path is None else self._path(path)

    def _path(self, path: str) -> str:
        return path if self.place is None or "://" in path else str(self.place.parent / path)


def load_config(folder: Path) -> Config:
    """The folder's configuration; defaults where there is none.

    Raises:
        ConfigError: a file is there and can't be used; all its problems are named.
    """
    own = folder / "remediate.toml"
    if own.exists():
        return Config(_check(_read(own), own, ""), own)
    project = folder / "pyproject.toml"
    if project.exists() and "tool.remediate" in _text(project):
        table = _read(project).get("tool", {}).get("remediate")
        if table is not None:
            return Config(_check(table, project, "tool.remediate."), project)
    return Config(ConfigFile(), None)


def _check(table: Mapping[str, Any], path: Path, prefix: str) -> ConfigFile:
    problems = check_document(table, ConfigFile)
    if not problems:
        return msgspec.convert(table, ConfigFile)
    lines = key_lines(_text(path))
    described = []
    for problem in problems:
        number = line_of(lines, f"{prefix}{problem.path}")
        described.append(f"line {number}: {problem.path}: {problem.message}")
    raise ConfigError(
        f"`{path}` can't be used", cause="\n         ".join(described), hint="docs/configuration.md lists every key"
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"`{path}` is not TOML", cause=str(error)) from error


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"`{path}` can't be read", cause=str(error)) from error


def _many(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value
