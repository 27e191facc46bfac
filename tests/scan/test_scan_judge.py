"""Judging files: a broken one is a finding, many are judged side by side, and what comes out is in order."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from script.notebooks import ASK, IMPORTS, LOAD, code, notebook
from script.samples import INCIDENT_WISH, OLD

from remediate.model import Host, Outcome
from remediate.profile.schema import Profile
from remediate.script.scan import judge as judging
from remediate.script.scan import many
from remediate.script.scan.judge import Judged, Task, judge
from remediate.script.scan.many import judge_all
from remediate.subject import Settings

INCIDENT = (Path(__file__).parents[1] / "cases" / "incident" / "before.py").read_bytes()
NEVER_CLOSED = b"from transformers import pipeline\npipe = pipeline(\n"


def task(folder: Path, **ignore: str) -> Task:
    profile = Profile(schema_version=1, name="p", script=INCIDENT_WISH)
    return Task(str(folder), profile, OLD, Settings(ignore=ignore), Host("Linux", "x86_64", "b", False))


def judged(folder: Path, name: str, content: bytes, **ignore: str) -> Judged:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return judge(str(path), task(folder, **ignore))


def test_a_script_gets_findings_and_one_change(tmp_path: Path) -> None:
    item = judged(tmp_path, "sub/infer.py", INCIDENT)
    assert item.is_script
    assert item.name == "sub/infer.py"
    assert {"SCR002", "SCR004", "SCR006"} <= {spot.finding.code for spot in item.spots}
    assert all(spot.finding.outcome is not Outcome.SAME for spot in item.spots)
    assert all(spot.finding.target == f"sub/infer.py:{spot.line}" for spot in item.spots)
    (change,) = item.changes
    assert change.target == "sub/infer.py"


def test_ignored_codes_are_neither_said_nor_patched(tmp_path: Path) -> None:
    item = judged(tmp_path, "infer.py", INCIDENT, SCR002="not now")
    assert "SCR002" not in {spot.finding.code for spot in item.spots}
    assert b"torch.compile" in item.changes[0].operation.content


def test_a_file_that_is_no_script_leaves_no_trace(tmp_path: Path) -> None:
    assert judged(tmp_path, "a.py", b"x = 1\n").spots == ()
    tokenizer = b"from transformers import AutoTokenizer\nAutoTokenizer.from_pretrained('m')\n"
    assert judged(tmp_path, "b.py", tokenizer).spots == ()


def test_a_notebook_names_the_cell_and_the_line_of_its_file(tmp_path: Path) -> None:
    raw = notebook(code(IMPORTS), code(LOAD.replace(', device_map="cuda"', "")), code(ASK))
    item = judged(tmp_path, "n.ipynb", raw)
    spot = next(spot for spot in item.spots if spot.finding.code == "SCR004")
    assert spot.finding.target == "n.ipynb:cell 2:2"
    assert "AutoModelForCausalLM" in raw.decode().splitlines()[spot.line - 1]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.py", NEVER_CLOSED, "it does not parse: '(' was never closed"),
        ("a.py", NEVER_CLOSED + b"\0", "it holds NUL bytes"),
        ("a.py", NEVER_CLOSED + b"# \xff", "it is not utf-8"),
        ("a.py", b"# transformers pipeline(\n" + b"x = 1\n" * 60_000, "it is larger than 256 KiB"),
        ("a.py", b"# transformers pipeline(\nx = " + b"(" * 90_000, "too many nested parentheses"),
        ("a.py", b"# transformers pipeline(\nx = " + b"-" * 200_000 + b"1", "nested too deeply"),
        ("a.py", b"# transformers pipeline(\nx = a" + b".b" * 90_000, "nested too deeply"),
        ("a.ipynb", b"transformers pipeline(", "it is not JSON"),
    ],
)
def test_a_broken_file_is_a_finding(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    item = judged(tmp_path, name, content)
    (spot,) = item.spots
    assert (spot.finding.code, spot.finding.outcome) == ("SCR000", Outcome.UNKNOWN)
    assert why in spot.finding.summary
    assert item.changes == ()


def test_what_cannot_be_opened_is_a_finding(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "gone.py").symlink_to("nothing")
    (tmp_path / "folder.py").mkdir()
    odd = os.fsdecode(b"odd\xff.py")
    (tmp_path / odd).write_bytes(INCIDENT)
    paths = [str(tmp_path / name) for name in ("pipe.py", "gone.py", "folder.py", odd)]
    found = {item.name: item.spots[0].finding.summary for item in judge_all(paths, task(tmp_path))}
    assert found["pipe.py"].endswith("it is not a regular file")
    assert found["gone.py"].endswith("No such file or directory")
    assert "folder.py:1: not judged: " in found["folder.py"]
    assert found["odd\\xff.py"].endswith("its name is not UTF-8")


def test_a_large_file_is_told_where_it_was_named(tmp_path: Path) -> None:
    path = tmp_path / "large.py"
    path.write_bytes(INCIDENT + b"# x\n" * 70_000)
    assert judge_all([str(path)], task(tmp_path)) == []
    (item,) = judge_all([str(path)], task(tmp_path), named={str(path)})
    assert "larger than 256 KiB" in item.spots[0].finding.summary


def test_a_defect_is_a_finding_and_not_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Judged:
        raise KeyError("oops")

    monkeypatch.setattr(judging, "_judge", fail)
    (spot,) = judged(tmp_path, "infer.py", INCIDENT).spots
    assert "a defect in remediate: KeyError: 'oops'" in spot.finding.summary


def tree(folder: Path, count: int) -> list[str]:
    paths = [folder / f"{number:03}.py" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_bytes(INCIDENT if number % 3 else b"x = 1\n")
    return [str(path) for path in paths]


def test_side_by_side_says_the_same_as_one_after_the_other(tmp_path: Path) -> None:
    paths = tree(tmp_path, 40)
    told: list[tuple[int, int, str]] = []
    alone = judge_all(paths, task(tmp_path), jobs=1)
    together = judge_all(paths, task(tmp_path), jobs=3, watch=lambda *all_: told.append(all_))
    assert together == alone
    assert [item.name for item in together] == [f"{number:03}.py" for number in range(40) if number % 3]
    assert (40, 40, "looked at") in told
    assert told[-1] == (26, 26, "judged")


def test_a_process_that_dies_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = tree(tmp_path, 30)
    deadly = paths[10]

    def judge_or_die(path: str, what: Task) -> Judged:
        if path == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return judge(path, what)

    monkeypatch.setattr(many, "judge", judge_or_die)
    found = {item.path: item for item in judge_all(paths, task(tmp_path), jobs=2)}
    assert len(found) == 20
    assert "the process that read it died" in found[deadly].spots[0].finding.summary
    assert all(item.is_script for path, item in found.items() if path != deadly)
