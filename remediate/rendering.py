"""Rendering the templates of `templates/`: Jinja, strict about what is undefined, and with values as data.

A value never becomes part of a template. What goes into a shell script goes through the filters `command` or `comment`,
which quote it or keep it on its comment line, whatever it holds.
"""

from __future__ import annotations

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
    environment.filters |= {"command": command_line, "comment": comment_text}
    return environment.get_template(name).render(**values).encode("utf-8", "backslashreplace")


def command_line(argv: Sequence[str]) -> str:
    """An argument list as one line that a POSIX shell reads back as the same list."""
    return shlex.join(argv)


def comment_text(text: str) -> str:
    """Text for one comment line: line breaks and other characters that do not print become blanks."""
    return "".join(character if character.isprintable() else " " for character in text)
