"""Board files and the state beside them: where they are, and reading them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from remediate.effects import read_bytes
from remediate.errors import DocumentError
from remediate.gpu.board.physics import Physics
from remediate.gpu.board.simulate import Hidden
from remediate.gpu.facts import GpuFacts
from remediate.model import Unknown

_SHIPPED = Path(__file__).resolve().parent.parent / "boards"
_MAX_BYTES = 16 * 1024 * 1024


class BoardFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A board file's content. A bare GPU section or a whole facts document is read as one, too."""

    gpu: GpuFacts
    source: str = ""
    """Where the values come from."""
    assumed: tuple[str, ...] = ()
    """Readings that no source gives, in words."""
    root: bool = True
    """Whether nvidia-smi has the rights to change settings."""
    physics: Physics = Physics()
    is_recording: bool = False
    """The file says nothing of physics, so that nothing is known of how the board goes on."""


class BoardState(msgspec.Struct, frozen=True):
    """What differs from the board file by now. `board_sha256` ties it to one content of that file."""

    board_sha256: str
    facts: GpuFacts
    hidden: dict[int, Hidden]
    elapsed_s: float = 0.0


def shipped_boards() -> tuple[str, ...]:
    """Names of the boards that come with the program."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.json")))


def board_content(name: str) -> bytes:
    """The file of a board that comes with the program, to make a copy of.

    Raises:
        DocumentError: there is no such board.
    """
    return read_file(locate(name)[0])


def locate(place: str) -> tuple[Path, Path]:
    """Board file and state file. A shipped board's state goes to the user's state folder, not beside the program.

    Raises:
        DocumentError: there is no such board.
    """
    path = Path(place)
    if place in shipped_boards():
        return _SHIPPED / f"{place}.json", _state_folder() / f"{place}.state.json"
    if not path.is_file():
        raise DocumentError(
            f"there is no board `{place}`",
            cause="it is neither a file nor one of the boards that come with the program",
            hint=f"these come with it: {', '.join(shipped_boards())}",
        )
    return path, path.with_name(f"{path.name}.state.json")


def _state_folder() -> Path:
    """`boards` in the state folder, which docs/configuration.md describes."""
    explicit = os.environ.get("REMEDIATE_STATE_DIR")
    if explicit:
        return Path(explicit) / "boards"
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "remediate" / "boards"


def read_file(path: Path) -> bytes:
    """A board file's bytes.

    Raises:
        DocumentError: it can't be read, or is too large to be one.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise DocumentError(f"board `{path}` can't be read", cause=str(error.strerror)) from error
    if len(content) > _MAX_BYTES:
        raise DocumentError(f"board `{path}` is larger than 16 MiB", cause="a board file is far smaller")
    return content


def parse(content: bytes, place: str) -> BoardFile:
    """A board file's content, its devices numbered from 0.

    Raises:
        DocumentError: it is not JSON, or not a board.
    """
    try:
        document = msgspec.json.decode(content)
        file = msgspec.convert(_as_board(document), BoardFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DocumentError(
            f"board `{place}` can't be used",
            cause=str(error),
            hint="a board file is what `remediate facts --json -o FILE` writes, with or without `physics` beside it",
        ) from error
    has_physics = isinstance(document, dict) and "physics" in document
    return msgspec.structs.replace(file, gpu=_renumbered(file.gpu), is_recording=not has_physics)


def _as_board(document: Any) -> Any:
    """The three accepted forms as one."""
    if isinstance(document, dict) and isinstance(document.get("sections"), dict):
        return {"gpu": document["sections"].get("gpu"), "source": "recorded facts"}
    if isinstance(document, dict) and "devices" in document:
        return {"gpu": document, "source": "recorded facts"}
    return document


def _renumbered(facts: GpuFacts) -> GpuFacts:
    """A recording of some of a host's GPUs makes a board with just those."""
    devices = tuple(msgspec.structs.replace(device, index=index) for index, device in enumerate(facts.devices))
    count = len(devices) if devices or not isinstance(facts.device_count, Unknown) else facts.device_count
    return msgspec.structs.replace(facts, devices=devices, device_count=count)


def read_state(path: Path, digest: str) -> BoardState | None:
    """The state; None where there is none, or it belongs to another content of the board file.

    Raises:
        DocumentError: it is damaged.
    """
    content = read_bytes(path)
    if content is None:
        return None
    try:
        state = msgspec.json.decode(content, type=BoardState)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DocumentError(
            f"the board's state `{path}` is damaged", cause=str(error), hint="delete it to start afresh"
        ) from error
    return state if state.board_sha256 == digest else None
