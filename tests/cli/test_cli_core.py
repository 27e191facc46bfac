"""The command line over a subject that edits files: output, exit codes, what goes to which stream."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from fakes import FolderSubject

from remediate.cli import main
from remediate.runs.store import Store


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> Run:
    def run_cli(*arguments: str) -> Ended:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["remediate", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Ended(int(ended.value.code or 0), out, err)

    return run_cli


def test_plan_shows_everything_and_changes_nothing(run: Run, subject: FolderSubject, folder: Path) -> None:
    ended = run("plan", "--profile", "base")
    assert ended.code == 0
    assert ended.err == ""
    assert "~ file a" in ended.out
    assert "Changes, in this order (3)" in ended.out
    assert "-old a" in ended.out
    assert "+new a" in ended.out
    assert "Nothing was changed" in ended.out
    assert (folder / "a").read_bytes() == b"old a\r\n"
    assert not Store().root.joinpath("runs").exists()


def test_check_tells_by_its_exit_code(run: Run, subject: FolderSubject, folder: Path) -> None:
    assert run("plan", "--profile", "base", "--check").code == 3
    assert run("verify", "--profile", "base").code == 3
    assert run("apply", "--profile", "base", "--yes").code == 0
    assert run("plan", "--profile", "base", "--check").code == 0
    ended = run("verify", "--profile", "base")
    assert (ended.code, ended.err) == (0, "")
    assert "In agreement with profile `base`." in ended.out


def test_json_is_one_document_with_every_command(run: Run, subject: FolderSubject, tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    for arguments in (
        ("plan", "--profile", "base", "--json"),
        ("plan", "--profile", "base", "--json", "--check"),
        ("verify", "--profile", "base", "--json"),
        ("facts", "--json", "-o", str(facts)),
        ("plan", "--profile", "base", "--facts", str(facts), "--json"),
        ("history", "--json"),
    ):
        ended = run(*arguments)
        assert json.loads(ended.out)["schema_version"] == 1, arguments
        assert ended.err == ""


def test_a_saved_plan_is_shown_and_applied_as_those_bytes(
    run: Run, subject: FolderSubject, folder: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "plan.json"
    first = run("plan", "--profile", "base", "-o", str(saved))
    shown = run("show", str(saved))
    assert shown.out.splitlines()[:20] == first.out.splitlines()[:20]
    subject.wanted["a"] = b"something else\n"
    assert run("apply", str(saved), "--yes").code == 0
    assert (folder / "a").read_bytes() == b"new a\n"
    again = run("apply", str(saved), "--yes")
    assert again.code == 0
    assert "Nothing to do" in again.out


def test_without_a_terminal_and_without_yes_nothing_is_done(run: Run, subject: FolderSubject, folder: Path) -> None:
    ended = run("apply", "--profile", "base")
    assert ended.code == 2
    assert ended.err.startswith("error: nothing was changed")
    assert "  hint: add `--yes`" in ended.err
    assert (folder / "a").read_bytes() == b"old a\r\n"


def test_a_dry_run_runs_no_writer(run: Run, subject: FolderSubject, folder: Path) -> None:
    ended = run("apply", "--profile", "base", "--dry-run")
    assert ended.code == 0
    assert "would set file a: old a" in ended.out
    assert subject.performed == []
    assert not Store().root.exists()


def test_rollback_and_history(run: Run, subject: FolderSubject, folder: Path) -> None:
    assert "No runs yet" in run("history").out
    run("apply", "--profile", "base", "--yes")
    assert "applied" in run("history").out
    ended = run("rollback", "--yes")
    assert ended.code == 0
    assert "Run 000001 is undone." in ended.out
    assert (folder / "a").read_bytes() == b"old a\r\n"
    assert not (folder / "new").exists()
    assert "rolled back" in run("history").out
    assert run("rollback", "--yes").code == 2
    assert run("rollback", "7", "--yes").code == 2


def test_a_failure_says_what_was_and_was_not_done(run: Run, subject: FolderSubject) -> None:
    subject.fail_on = "b"
    ended = run("apply", "--profile", "base", "--yes")
    assert ended.code == 1
    assert ended.err == "error: b refuses\n  cause: the test says so\n"
    assert "+ done: file a" in ended.out
    assert "- not done: file b" in ended.out
    assert "- not done: file new" in ended.out
    assert "remediate rollback" in ended.out


def test_needs_root_prints_the_lines_and_exits_4(
    run: Run, use_subjects: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_subjects(FolderSubject({"a": b"new\n"}, root=True))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    ended = run("apply", "--profile", "base", "--yes")
    assert ended.code == 4
    assert "sudo remediate apply" in ended.out


def test_an_interrupted_run_is_told_and_finished(
    run: Run, subject: FolderSubject, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from remediate.runs.journal import Run as JournalRun

    original = JournalRun.append

    def die(self: JournalRun, kind: str, change_id: str = "", **values: object) -> None:
        if kind == "done" and change_id == "folder:b":
            raise KeyboardInterrupt
        original(self, kind, change_id, **values)  # type: ignore[arg-type]  # the real one takes the same

    with monkeypatch.context() as patch:
        patch.setattr(JournalRun, "append", die)
        assert run("apply", "--profile", "base", "--yes").code == 130
    ended = run("apply", "--profile", "base", "--yes")
    assert ended.code == 0
    assert "Run 000001 of" in ended.out
    assert "was interrupted" in ended.out
    assert "Run 000001 is finished." in ended.out
    assert (folder / "new").exists()
    assert run("rollback", "--yes").code == 0
    assert (folder / "b").read_bytes() == b"old b"


def test_out_dir_holds_the_rendered_files_and_nothing_else_is_touched(
    run: Run, subject: FolderSubject, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run("plan", "--profile", "base", "--out-dir", str(out)).code == 0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == subject.wanted
    assert (folder / "b").read_bytes() == b"old b"


def test_text_from_outside_is_never_obeyed_by_the_terminal(
    run: Run, use_subjects: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "\x1b[31mred\x1b]0;title\x07 \u202eoverride"
    use_subjects(FolderSubject({"a": evil.encode()}))
    monkeypatch.setenv("NO_COLOR", "1")
    ended = run("plan", "--profile", "base")
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out
    assert "\\x1b[31mred" in ended.out
    assert "\\u202e" in ended.out


def test_colour_only_where_it_is_wanted(run: Run, subject: FolderSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in run("plan", "--profile", "base").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run("plan", "--profile", "base").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run("plan", "--profile", "base").out


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (("plan", "--profile", "no-such"), 2, "there is no profile `no-such`"),
        (("plan", "--only", "weather"), 2, "there is no subject `weather`"),
        (("plan", "--facts", "absent.json"), 2, "`absent.json` can't be read"),
        (("show", "absent.json"), 2, "`absent.json` can't be read"),
        (("explain", "ABC999"), 2, "there is no code `ABC999`"),
        (("plan", "--profile", "base", "-o", "absent/plan.json"), 1, "could not be written"),
    ],
)
def test_one_clear_error(run: Run, subject: FolderSubject, arguments: tuple[str, ...], code: int, what: str) -> None:
    ended = run(*arguments)
    assert ended.code == code
    assert ended.err.startswith("error: ")
    assert what in ended.err
    assert "Traceback" not in ended.err


def test_a_defect_is_no_traceback(
    run: Run, subject: FolderSubject, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(FolderSubject, "compare", broken)
    ended = run("plan", "--profile", "base")
    assert ended.code == 1
    assert "error: something unforeseen happened: ZeroDivisionError: oops" in ended.err
    assert "REMEDIATE_TRACEBACK=1" in ended.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profil = 'x'\n", "line 1: profil: unknown key `profil`; did you mean `profile`?"),
        ("\ngpu = 3\n", "line 2: gpu: expected text or a list, got 3"),
        ("= broken", "is not TOML"),
    ],
)
def test_a_broken_configuration(run: Run, subject: FolderSubject, folder: Path, text: str, message: str) -> None:
    (folder / "remediate.toml").write_text(text)
    ended = run("plan")
    assert ended.code == 2
    assert message in ended.err


def test_the_configuration_names_profile_and_ignores(run: Run, subject: FolderSubject, folder: Path) -> None:
    (folder / "pyproject.toml").write_text(
        '[tool.remediate]\nprofile = "base"\n[tool.remediate.ignore]\nFIL001 = "known and wanted"\n'
    )
    ended = run("plan", "--check")
    assert ended.code == 0
    assert "Nothing to do" in ended.out
    assert "pyproject.toml" in ended.out


@pytest.mark.parametrize(
    "command",
    ["plan", "apply", "verify", "rollback", "history", "facts", "show", "explain", "profiles", "demo"],
)
def test_help_can_be_learned_from(run: Run, command: str) -> None:
    ended = run(command, "--help")
    assert ended.code == 0
    assert ended.out.startswith("Usage: ") or "Usage: " in ended.out
    assert len(ended.out.splitlines()) >= 8


def test_an_edited_plan_file(run: Run, subject: FolderSubject, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    run("plan", "--profile", "base", "-o", str(saved))
    saved.write_text(saved.read_text().replace("file a", "file z", 1))
    ended = run("apply", str(saved), "--yes")
    assert ended.code == 2
    assert "edited after it was made" in ended.err


def test_the_lock_is_held(run: Run, subject: FolderSubject) -> None:
    with Store().lock():
        ended = run("apply", "--profile", "base", "--yes")
    assert ended.code == 1
    assert "another run is going on" in ended.err


def test_a_stale_plan_exits_3(run: Run, subject: FolderSubject, folder: Path, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    run("plan", "--profile", "base", "-o", str(saved))
    (folder / "b").write_bytes(b"moved")
    ended = run("apply", str(saved), "--yes")
    assert ended.code == 3
    assert "the plan is stale" in ended.err
    assert "folder b: was" in ended.err


def test_only_takes_a_list(run: Run, use_subjects: Callable[..., None], folder: Path) -> None:
    use_subjects(FolderSubject({"a": b"1"}, name="one"), FolderSubject({"b": b"2"}, name="two"))
    ended = run("apply", "--profile", "base", "--only", "two", "--yes")
    assert ended.code == 0
    assert ((folder / "a").read_bytes(), (folder / "b").read_bytes()) == (b"old a\r\n", b"2")


def test_version(run: Run) -> None:
    assert run("--version").out.startswith("remediate ")
