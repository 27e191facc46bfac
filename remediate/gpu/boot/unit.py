"""The text of the boot unit, and the way back from its `ExecStart` to an argument list."""

from __future__ import annotations

import re
from collections.abc import Sequence

from remediate.effects import sha256
from remediate.gpu.boot.places import SETTINGS_PATH, TARGET
from remediate.resources import data_folder

MARK = "# Written by remediate"
"""First words of a unit that this program wrote. Without them the unit is somebody else's and is left alone."""
DRIVER_WAIT_S = 120
"""How long a boot waits for the driver: it is loaded by udev at about the same time, and initialising a GPU takes 1 to
3 s, more than 10 s on old boxes (dmlc/cxxnet#108)."""
_START_LIMIT_S = 600
_TEMPLATE = "remediate-gpu.service.j2"
_VALUES = {
    "mark": MARK,
    "settings": SETTINGS_PATH,
    "wait_s": DRIVER_WAIT_S,
    "limit_s": _START_LIMIT_S,
    "target": TARGET,
}
_CHECK = "# Check: "
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+\Z")
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s"\\]+)')
_HEX_DIGITS = 2


def boot_command(program: Sequence[str], state_dir: str) -> tuple[str, ...]:
    """What the unit runs: this program, the settings file, and the state folder with the ledger of locks."""
    state = ("--state-dir", state_dir) if state_dir else ()
    return (*program, "gpu-boot", "--file", SETTINGS_PATH, *state)


def render_unit(command: Sequence[str]) -> str:
    """The unit that runs `command` once at boot, after nvidia-persistenced where that is there.

    Its last line is a digest, so that `is_current` needs not render it: Jinja costs a third of a plan.
    """
    from remediate.rendering import render_template

    text = render_template(_TEMPLATE, command=quote_command(command), **_VALUES).decode("utf-8")
    return f"{text}{_CHECK}{_digest(text)}\n"


def is_current(unit: str) -> bool:
    """Whether this version would write the unit just so, for the command that it holds."""
    text, _, digest = unit.rpartition(_CHECK)
    return digest == f"{_digest(text)}\n"


def _digest(text: str) -> str:
    template = (data_folder("templates") / _TEMPLATE).read_bytes()
    return sha256(template + repr(_VALUES).encode() + text.encode("utf-8", "backslashreplace"))


def quote_command(command: Sequence[str]) -> str:
    """An argument list as systemd reads it back (systemd.service(5), Command lines; systemd.unit(5), Specifiers)."""
    return " ".join(_quote(word) for word in command)


def _quote(word: str) -> str:
    escaped = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN.match(word) and "$" not in word:
        return escaped
    return '"' + "".join(_escape(character) for character in escaped) + '"'


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def command_of(unit: str) -> tuple[str, ...]:
    """The argument list of a unit that this program wrote; empty where there is none or somebody changed its form."""
    lines = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    if len(lines) != 1:
        return ()
    text = lines[0].removeprefix("ExecStart=")
    words = tuple(_plain(quoted, bare) for quoted, bare in _WORD.findall(text))
    return words if quote_command(words) == text else ()


def _plain(quoted: str, bare: str) -> str:
    raw = re.sub(rb"\\(x[0-9a-f]{2}|.)", _unescape, (quoted or bare).encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape").replace("$$", "$").replace("%%", "%")


def _unescape(match: re.Match[bytes]) -> bytes:
    escape = match[1]
    return bytes((int(escape[1:], 16),)) if len(escape) > _HEX_DIGITS else escape
