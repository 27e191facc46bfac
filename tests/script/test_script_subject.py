"""The script subject on real files: search, named scripts, findings, one change a file, performing and undoing it."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from script.samples import GOOD, HEAD, INCIDENT_WISH, OLD

from remediate.errors import EditedSinceError, ScriptError
from remediate.model import Facts, Finding, Host, Outcome, Request, Risk, State
from remediate.profile.schema import Pin, Profile
from remediate.script.facts import ScriptFacts
from remediate.script.subject import ScriptSubject
from remediate.subject import Context, Ledger, Proposal, Settings, Situation, Subject

INCIDENT = Path(__file__).parents[1] / "cases" / "incident"
SUBJECT = ScriptSubject()
PROFILE = Profile(schema_version=1, name="p", script=INCIDENT_WISH, packages={"accelerate": Pin(version="0.25.0")})


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    folder = tmp_path / "sandbox"
    folder.mkdir()
    shutil.copy(INCIDENT / "before.py", folder / "infer.py")
    return folder


def observe(folder: Path, *scripts: str) -> Facts:
    request = Request(folder=str(folder), scripts=scripts)
    observed = SUBJECT.observe(request, Settings(), Ledger())
    host = Host("Linux", "x86_64", "boot", False)
    facts = Facts(1, "0", "now", request, host, observed.choices, {"script": observed.facts})
    section = msgspec.json.decode(msgspec.json.encode(observed.facts), type=ScriptFacts)
    assert section == observed.facts, "facts survive the document"
    return facts


def situation(facts: Facts, **ignore: str) -> Situation:
    return Situation(facts, PROFILE, Settings(ignore=ignore), OLD)


def plan(facts: Facts, **ignore: str) -> tuple[list[Finding], Proposal]:
    where = situation(facts, **ignore)
    findings = list(SUBJECT.compare(where))
    return findings, SUBJECT.propose(where, findings)


def context(folder: Path) -> Context:
    run = folder.parent / "run"
    run.mkdir(exist_ok=True)
    return Context(run, ".tmp-1", Request(str(folder)))


def names(facts: Facts) -> list[str]:
    return [Path(file.path).name for file in facts.sections["script"].files]


def test_it_is_a_subject() -> None:
    subject: Subject = SUBJECT
    assert (subject.name, subject.title) == ("script", "Script")
    assert sorted(subject.explanations()) == [f"SCR{number:03}" for number in range(17)]


# --- search


def test_the_search_finds_what_loads_a_model_and_says_so(sandbox: Path) -> None:
    (sandbox / "helpers.py").write_text("import os\n")
    (sandbox / "mentions.py").write_text("# transformers has from_pretrained\n")
    (sandbox / "broken.py").write_text("from transformers import A\nA.from_pretrained(\n")
    for skipped in ("tests", ".hidden", "node_modules", "env1", "deep/er"):
        (sandbox / skipped).mkdir(parents=True)
        (sandbox / skipped / "infer2.py").write_text(GOOD)
    (sandbox / "env1" / "pyvenv.cfg").write_text("")
    (sandbox / "src").mkdir()
    (sandbox / "src" / "serve.py").write_text(GOOD)
    (sandbox / "huge.py").write_bytes(GOOD.encode() + b"#" * 1_200_000)
    facts = observe(sandbox)
    assert names(facts) == ["broken.py", "infer.py", "serve.py"]
    (choice,) = facts.choices
    assert choice.chosen == "broken.py, infer.py, src/serve.py"
    assert "6 Python files" in choice.because
    findings, proposal = plan(facts)
    broken = next(finding for finding in findings if finding.target == "broken.py:2")
    assert (broken.code, broken.outcome, broken.is_advice) == ("SCR000", Outcome.UNKNOWN, False)
    assert [change.target for change in proposal.changes] == ["infer.py", "src/serve.py"]


def test_a_folder_without_scripts_is_fine(tmp_path: Path) -> None:
    facts = observe(tmp_path)
    assert names(facts) == []
    assert plan(facts) == ([], Proposal())
    assert SUBJECT.announce(facts, PROFILE) == {}
    assert SUBJECT.describe(facts) == (("scripts", "none that loads a model"),)


def test_the_search_stops_somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remediate.script.observe.MAX_FILES_SEARCHED", 3)
    for number in range(5):
        (tmp_path / f"s{number}.py").write_text(GOOD)
    facts = observe(tmp_path)
    assert len(names(facts)) == 3
    assert "stopped" in facts.choices[0].because


def test_odd_entries_of_a_folder_do_no_harm(sandbox: Path) -> None:
    (sandbox / "dangling.py").symlink_to(sandbox / "nowhere")
    (sandbox / "loop").symlink_to(sandbox)
    (sandbox / "folder.py").mkdir()
    os.mkfifo(sandbox / "pipe.py")
    (sandbox / "(Clone) 00 über.py").write_text(GOOD)
    assert names(observe(sandbox)) == ["(Clone) 00 über.py", "infer.py"]


# --- named scripts

BAD = {
    "missing": (None, "No such file"),
    "not Python": (b"hello world, this is prose\n", "does not parse"),
    "binary": (b"\x7fELF\0\0", "NUL"),
    "not UTF-8": ("x = 'é'\n".encode("latin-1"), "utf-8"),
    "unknown encoding": (b"# coding: klingon\n", "unknown encoding"),
    "too large": (b"x = 1\n" * 300_000, "larger than"),
    "too deep": (b"x = " + b"-" * 100_000 + b"1\n", ""),
}


@pytest.mark.parametrize("name", BAD)
def test_a_named_script_that_is_none_is_one_clear_error(name: str, tmp_path: Path) -> None:
    content, cause = BAD[name]
    path = tmp_path / "infer.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ScriptError) as caught:
        observe(tmp_path, str(path))
    assert str(path) in caught.value.what
    assert cause in caught.value.cause
    assert caught.value.hint
    assert caught.value.exit_code == 2


def test_a_named_script_that_is_no_file_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    for path in (tmp_path, tmp_path / "pipe.py"):
        with pytest.raises(ScriptError, match="can't be read"):
            observe(tmp_path, str(path))


def test_a_named_script_without_a_load_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "tool.py"
    path.write_text("print(1)\n")
    ((finding,), proposal) = plan(observe(tmp_path, str(path), str(path)))
    assert (finding.code, finding.outcome, finding.is_advice) == ("SCR000", Outcome.SAME, True)
    assert proposal == Proposal()


# --- the plan


def test_the_incident_becomes_one_change(sandbox: Path) -> None:
    facts = observe(sandbox)
    findings, proposal = plan(facts)
    assert [(f.target, f.code) for f in findings if f.outcome is Outcome.DIFFERS and not f.is_advice] == [
        ("infer.py:7", "SCR002"),
        ("infer.py:10", "SCR003"),
        ("infer.py:5", "SCR004"),
        ("infer.py:5", "SCR006"),
        ("infer.py:2", "SCR009"),
    ], "by what they cost"
    assert all(finding.summary.startswith(finding.target) for finding in findings)
    (change,) = proposal.changes
    path = str(sandbox / "infer.py")
    assert change.id == f"script:{path}"
    assert change.codes == ("SCR002", "SCR003", "SCR004", "SCR006", "SCR009")
    assert change.risks == (Risk.SAFE,)
    assert dict(change.depends_on) == {f"{path}/sha256": SUBJECT.read(facts, f"{path}/sha256")}
    assert [item.target for item in change.items] == ["infer.py:2", "infer.py:5", "infer.py:5", "infer.py:7"]
    assert '+model = LlamaForCausalLM.from_pretrained("meta-llama/7B", device_map="cuda"' in change.diff
    assert [(artifact.name, artifact.content) for artifact in proposal.artifacts] == [
        ("infer.py", change.operation.content)
    ]
    assert proposal.withheld == ()
    assert SUBJECT.read(facts, "/gone.py/sha256") == ""


def test_ignored_codes_are_not_edited(sandbox: Path) -> None:
    _, proposal = plan(observe(sandbox), SCR002="ours", SCR009="ours")
    (change,) = proposal.changes
    assert b"torch.compile(model)" in change.operation.content
    assert b"cuda.init" not in change.operation.content


def test_scripts_of_the_same_name_get_artifacts_of_their_own(sandbox: Path) -> None:
    (sandbox / "src").mkdir()
    shutil.copy(sandbox / "infer.py", sandbox / "src" / "infer.py")
    _, proposal = plan(observe(sandbox))
    assert [artifact.name for artifact in proposal.artifacts] == ["infer.py", "src-infer.py"]


@pytest.mark.parametrize("is_there", [True, False])
def test_facts_of_another_host_or_time_change_nothing(sandbox: Path, is_there: bool) -> None:
    """Where the facts don't hold the script because it holds a secret."""
    with (sandbox / "infer.py").open("a") as script:
        script.write('HF_TOKEN = "not-for-others"\n')
    facts = observe(sandbox)
    if is_there:
        (sandbox / "infer.py").write_text(GOOD)
    else:
        (sandbox / "infer.py").unlink()
    findings, proposal = plan(facts)
    assert len(findings) > 5, "the comparison needs the facts alone"
    assert proposal.changes == ()
    (held,) = proposal.withheld
    assert ("changed since" if is_there else "on this machine") in held.because


def test_accelerate_is_asked_for_where_a_device_map_is_or_will_be(sandbox: Path) -> None:
    path = str(sandbox / "infer.py")
    facts = observe(sandbox)
    without = msgspec.structs.replace(PROFILE, packages={})
    assert SUBJECT.announce(facts, PROFILE)["script:needs_accelerate"] == path
    assert "script:needs_accelerate" not in SUBJECT.announce(facts, without)
    (sandbox / "infer.py").write_bytes((INCIDENT / "after.py").read_bytes())
    assert SUBJECT.announce(observe(sandbox), without)["script:needs_accelerate"] == path


@pytest.mark.parametrize(("tokenizer", "is_slow"), [("LlamaTokenizer", True), ("AutoTokenizer", False)])
def test_sentencepiece_is_asked_for_where_a_tokenizer_reads_through_it(
    sandbox: Path, tokenizer: str, is_slow: bool
) -> None:
    script = sandbox / "infer.py"
    script.write_text(script.read_text().replace("LlamaTokenizer", tokenizer))
    announced = SUBJECT.announce(observe(sandbox), PROFILE)
    assert announced.get("script:needs_sentencepiece") == (str(script) if is_slow else None)


def test_the_facts_are_described(sandbox: Path) -> None:
    rows = SUBJECT.describe(observe(sandbox))
    assert rows[0] == ("script", "infer.py (utf-8, LF, 466 bytes)")
    assert rows[1] == ("load", 'line 5: LlamaForCausalLM "meta-llama/7B", at module level; not placed; no dtype')
    assert rows[2] == ("compile", "line 7: torch.compile(model) (never run)")


# --- performing


def test_perform_and_undo_keep_the_mode_and_bring_back_every_byte(sandbox: Path) -> None:
    path = sandbox / "infer.py"
    path.chmod(0o750)
    before = path.read_bytes()
    (change,) = plan(observe(sandbox))[1].changes
    where = context(sandbox)
    prepared: Any = SUBJECT.prepare(change.operation, where)
    assert SUBJECT.state(change.operation, where) is State.BEFORE
    assert SUBJECT.perform(change.operation, prepared, where).changed
    assert SUBJECT.state(change.operation, where) is State.AFTER
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert not SUBJECT.perform(change.operation, prepared, where).changed
    findings, proposal = plan(observe(sandbox))
    assert proposal.changes == ()
    assert not [finding for finding in findings if finding.outcome is not Outcome.SAME and not finding.is_advice]
    assert SUBJECT.undo(change.operation, prepared, where).changed
    assert path.read_bytes() == before
    assert SUBJECT.remember(change.operation, True) == {}


def test_a_script_that_was_edited_after_the_plan_is_left_alone(sandbox: Path) -> None:
    (change,) = plan(observe(sandbox))[1].changes
    where = context(sandbox)
    prepared: Any = SUBJECT.prepare(change.operation, where)
    (sandbox / "infer.py").write_text(HEAD)
    with pytest.raises(EditedSinceError):
        SUBJECT.perform(change.operation, prepared, where)
    assert (sandbox / "infer.py").read_text() == HEAD
