from __future__ import annotations

import subprocess
from pathlib import Path

import jinja2
import pytest

from remediate.model import Change, Risk
from remediate.rendering import comment_text, render_template
from remediate.resources import data_folder

HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "line\ntouch pwned\n",
    "return\rtouch pwned",
    "{{ 7 * 7 }}{% for x in y %}",
    "\x1b[31m\x00",
    "EOF\ntouch pwned",
    "\u2028touch pwned",
)


def change(text: str, argument: str) -> Change:
    return Change(
        "gpu:x:power_limit",
        "gpu",
        ("GPU003",),
        text,
        text,
        text,
        text,
        text,
        (Risk.ROOT,),
        {},
        None,
        command=("printf", "%s", argument),
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_values_come_out_as_data(tmp_path: Path, text: str) -> None:
    argument = text.replace("\x00", "")
    script = tmp_path / "commands.sh"
    script.write_bytes(render_template("gpu-commands.sh.j2", changes=[change(text, argument)], withheld=[]))
    done = subprocess.run(["sh", str(script)], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == argument.encode()
    assert [path.name for path in tmp_path.iterdir()] == ["commands.sh"]


def test_what_is_undefined_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        render_template("gpu-commands.sh.j2", changes=[])


def test_a_comment_stays_on_its_line() -> None:
    assert comment_text("a\nb\r\u2029c") == "a b  c"


def test_the_templates_are_found() -> None:
    assert (data_folder("templates") / "gpu-commands.sh.j2").is_file()
