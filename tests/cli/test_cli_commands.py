"""Only the command that is asked for is registered, and it is the same as among all."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from remediate.cli import make_app
from remediate.cli.commands import ENTRIES, Entry, entries_for


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_command_alone_is_as_among_all(entry: Entry) -> None:
    name = entry.name
    alone = CliRunner().invoke(make_app(entries_for([name, "--help"])), [name, "--help"])
    among = CliRunner().invoke(make_app(), [name, "--help"])
    assert alone.exit_code == 0
    assert alone.output == among.output


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version", "plan"], ["plann"]])
def test_all_commands_where_none_is_named(arguments: list[str]) -> None:
    assert entries_for(arguments) == ENTRIES


def test_all_commands_for_the_shells_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(entries_for(["plan"])) == 1
    monkeypatch.setenv("_REMEDIATE_COMPLETE", "complete_bash")
    assert entries_for(["plan"]) == ENTRIES
