"""Rendering the templates of `templates/`: Jinja, strict about what is undefined, and with values as data.

A value never becomes part of a template. What goes into a shell script goes through the filters `command` or `comment`,
which quote it or keep it on its comment line, whatever it holds; what goes into a Python script through `python`.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import Any

from remediate.resources import data_folder


def render_template(name: str, **values: Any) -> bytes:
    """The template `name` with `values`, as UTF-8 with Unix line ends.

    Raises:
        jinja2.UndefinedError: the template asks for a value that was not given; a defect.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_folder("templates")),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - the output is shell and text, which HTML escapes would spoil
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"command": command_line, "comment": comment_text, "python": python_literal}
    return environment.get_template(name).render(**values).encode("utf-8", "backslashreplace")


def command_line(argv: Sequence[str]) -> str:
    """An argument list as one line that a POSIX shell reads back as the same list."""
    return shlex.join(argv)


def comment_text(text: str) -> str:
    """Text for one comment line: line breaks and other characters that do not print become blanks."""
    return "".join(character if character.isprintable() else " " for character in text)


def python_literal(value: Any) -> str:
    """A text, number, list or table as the Python expression that gives the same value again.

    Several items stand on lines of their own. Texts are in double quotes where that needs no more escapes; characters
    that do not print, bidirectional overrides among them, are escaped.

    Raises:
        TypeError: it is something else, or holds something else; a defect.
    """
    if isinstance(value, dict):
        items = [f"{python_literal(key)}: {_indented(item)}" for key, item in value.items()]
        return _in_brackets("{", items, "}")
    if isinstance(value, list | tuple):
        return _in_brackets("[", [_indented(item) for item in value], "]")
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError(f"{value} has no literal")
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} is no plain value")
    quoted = repr(value)
    return quoted if '"' in value or "'" in value else f'"{quoted[1:-1]}"'


def _indented(value: Any) -> str:
    return python_literal(value).replace("\n", "\n    ")


def _in_brackets(opening: str, items: list[str], closing: str) -> str:
    if not items:
        return opening + closing
    return "\n".join([opening, *(f"    {item}," for item in items), closing])
