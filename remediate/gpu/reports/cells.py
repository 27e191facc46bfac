"""Cells of nvidia-smi's output. A cell is a number only where it parses as one; else it is `Unknown` with its text.

nvidia-smi prints one token per NVML code, in brackets in a CSV and plain in `-q` (binaries 535.261.03 and 555.58.02
over chosen return codes); `temperature.memory` is bare in a CSV too (driver 610.57.04).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from remediate.gpu.numbers import COMPUTE_MODES, VGPU_GUEST, VIRTUALIZATION_MODES
from remediate.gpu.nvml import unknown_for
from remediate.gpu.read_device import ZERO_LIMIT
from remediate.model import Reading, Unknown, UnknownKind

Reader: TypeAlias = Callable[[str, bool], Reading[Any]]
"""Text of a cell, and whether a number must carry its unit (`-q` and XML do, a CSV with `nounits` does not)."""

_CODES = {
    "invalid argument": 2,
    "n/a": 3,
    "not supported": 3,
    "insufficient permissions": 4,
    "not found": 6,
    "function not found": 13,
    "gpu is lost": 15,
    "gpu requires reset": 16,
    "gpu access blocked by the operating system": 17,
    "driver/library version mismatch": 18,
    "in use by another client": 19,
    "no data": 21,
    "invalid frequency": 24,
    "requested functionality has been deprecated": 26,
    "system is not in ready state": 27,
    "unknown error": 999,
    "err!": 999,
}
_CODE = re.compile(r"unknown return value: (\d{1,4})")
_NUMBER = re.compile(r"(-?\d{1,15}(?:\.\d{1,6})?)(?: ?([A-Za-z%]+))?", re.ASCII)
_MASK = re.compile(r"0x[0-9a-f]{1,16}", re.IGNORECASE | re.ASCII)
_VERSION = re.compile(r"[0-9]{1,6}\.[0-9]{1,6}", re.ASCII)
_DRIVER = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6}){1,3}", re.ASCII)
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_PCI = re.compile(r"([0-9A-F]{4,8}):([0-9A-F]{2}):([0-9A-F]{2})\.([0-9A-F])", re.ASCII)
_STATE = re.compile(r"P(1[0-5]|[0-9])", re.ASCII)
_MAX_SHOWN = 80
_EMPTY = Unknown(UnknownKind.NOT_READ, "the report leaves it empty")
_MAX_WATTS = 1e6
_EXACT = 2**53
"""Whole numbers above it are not exact in every reader of JSON."""


def unknown_cell(cell: str) -> Unknown:
    """What a cell that is no value says."""
    text = _bare(cell)
    if not text:
        return _EMPTY
    coded = _CODE.fullmatch(text.casefold())
    code = int(coded[1]) if coded else _CODES.get(text.casefold())
    if code is not None:
        return unknown_for(code)
    kind = UnknownKind.NOT_SUPPORTED if text.casefold().startswith("not available") else UnknownKind.FAILED
    return Unknown(kind, f"the report says `{text[:_MAX_SHOWN]}`")


def text(cell: str, _unit: bool = False) -> Reading[str]:
    """A name. Tokens that stand for an error are none."""
    bare = _bare(cell)
    is_token = bare.casefold() in _CODES or _CODE.fullmatch(bare.casefold()) is not None
    return unknown_cell(cell) if is_token or not bare or bare != cell.strip() else bare


def architecture(cell: str, _unit: bool = False) -> Reading[str]:
    """A name; nvidia-smi prints `Unknown` where it is older than the board, as 535.261.03 is for Blackwell."""
    return unknown_cell(cell) if _bare(cell).casefold() == "unknown" else text(cell)


def watts(cell: str, needs_unit: bool) -> Reading[float]:
    """Power in W."""
    value = _number(cell, "W", needs_unit)
    return value if isinstance(value, Unknown) or 0 <= value <= _MAX_WATTS else unknown_cell(cell)


def limit(cell: str, needs_unit: bool) -> Reading[float]:
    """A power limit in W; 0 is none."""
    value = watts(cell, needs_unit)
    return ZERO_LIMIT if value == 0 else value


def whole(unit: str, *, signed: bool = False) -> Reader:
    """Reader of whole numbers with that unit."""

    def read(cell: str, needs_unit: bool) -> Reading[int]:
        value = _number(cell, unit, needs_unit)
        if isinstance(value, Unknown):
            return value
        fits = value.is_integer() and abs(value) <= _EXACT and (signed or value >= 0)
        return int(value) if fits else unknown_cell(cell)

    return read


def flag(cell: str, _unit: bool = False) -> Reading[bool]:
    """`Enabled` or `Disabled`."""
    known = {"enabled": True, "disabled": False, "on": True, "off": False}
    value = known.get(cell.strip().casefold())
    return unknown_cell(cell) if value is None else value


def compute_mode(cell: str, _unit: bool = False) -> Reading[str]:
    """In the words of NVML's facts: `exclusive process`. The summary table writes `E. Process`."""
    return _word(cell.replace("_", " ").replace("E. ", "exclusive "), {mode: mode for mode in COMPUTE_MODES.values()})


def virtualization(cell: str, _unit: bool = False) -> Reading[str]:
    """In the words of NVML's facts."""
    words = {mode: mode for mode in VIRTUALIZATION_MODES.values()}
    words |= {"vgpu": VGPU_GUEST, "passthrough": "pass-through", "host vgpu": "vgpu host", "host vsga": "vsga host"}
    return _word(cell, words)


def performance_state(cell: str, _unit: bool = False) -> Reading[int]:
    """`P8` is 8."""
    found = _STATE.fullmatch(cell.strip())
    return int(found[1]) if found else unknown_cell(cell)


def version(cell: str, _unit: bool = False) -> Reading[str]:
    """`8.0`, `13.3`; what a newer driver adds in brackets is left out (610: `[Deprecated; …]`)."""
    return _first_word(cell, _VERSION)


def driver_version(cell: str, _unit: bool = False) -> Reading[str]:
    """`580.159.04`; left out as in `version`."""
    return _first_word(cell, _DRIVER)


def uuid(cell: str, _unit: bool = False) -> Reading[str]:
    """A whole UUID: a masked or shortened one names no GPU."""
    return cell.strip() if _UUID.fullmatch(cell.strip()) else unknown_cell(cell)


def pci_bus_id(cell: str, _unit: bool = False) -> Reading[str]:
    """Normalised as NVML writes it, the domain with 8 digits."""
    found = _PCI.fullmatch(cell.strip().upper())
    return f"{found[1]:0>8}:{found[2]}:{found[3]}.{found[4]}" if found else unknown_cell(cell)


def mask(cell: str, _unit: bool = False) -> Reading[int]:
    """`0x0000000000000004` is 4."""
    return int(cell.strip(), 16) if _MASK.fullmatch(cell.strip()) else unknown_cell(cell)


def _number(cell: str, unit: str, needs_unit: bool) -> Reading[float]:
    found = _NUMBER.fullmatch(cell.strip())
    if found is None or (found[2] or "") not in ({unit} if needs_unit else {unit, ""}):
        return unknown_cell(cell)
    return float(found[1])


def _word(cell: str, words: Mapping[str, str]) -> Reading[str]:
    return words.get(cell.strip().casefold()) or unknown_cell(cell)


def _first_word(cell: str, pattern: re.Pattern[str]) -> Reading[str]:
    first = cell.split(maxsplit=1)
    return first[0] if first and pattern.fullmatch(first[0]) else unknown_cell(cell)


def _bare(cell: str) -> str:
    stripped = cell.strip()
    return stripped[1:-1].strip() if stripped.startswith("[") and stripped.endswith("]") else stripped
