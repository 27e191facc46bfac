"""`remediate facts import`, `plan --facts` on what it makes, and `--redact`; the command line as a user has it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from importing.renderer import as_text, as_xml
from importing.support import BOARDS, COLLECTED, FREEZE, HEAD, UUID, board_facts

import remediate
from remediate.api import plan
from remediate.cli import main
from remediate.documents import decode_facts, encode
from remediate.errors import DocumentError, ProfileError
from remediate.gpu.facts import GpuFacts
from remediate.importing import import_reports, redact
from remediate.model import Choice, Facts, Host, Outcome, Request
from remediate.profile.load import shipped_names
from remediate.public_index import simple_url


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    def run_cli(*arguments: str) -> Ended:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["remediate", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Ended(int(ended.value.code or 0), out, err)

    return run_cli


def write(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return [str(folder / name) for name in texts]


def test_a_bug_report_becomes_a_plan(run: Run, tmp_path: Path) -> None:
    a100 = next(path for path in BOARDS if "incident" in path.stem)
    facts = board_facts(a100)
    env = COLLECTED.replace("numpy==1.26.4", "numpy==2.0.1").replace("535.129.03", str(facts.driver_version))
    files = write(tmp_path, smi=as_text(facts, 535), freeze=FREEZE, env=env)
    made = run("facts", "import", *files, "-o", "ticket.json")
    assert (made.code, made.err) == (0, "")
    assert "nvidia-smi -q (nothing was looked at on this machine)" in " ".join(made.out.split())
    shown = run("plan", "--facts", "ticket.json", "--profile", "incident-a100")
    assert shown.code == 0
    text = " ".join(shown.out.split())
    assert "~ transformers is 4.38.0, wanted is 4.36.2 PKG001" in text
    assert "this plan is made from a report, and the environment was not looked at" in text
    assert "from: a report; apply compares it with the machine first" in text
    assert "requirements" not in text
    document = json.loads(run("plan", "--facts", "ticket.json", "--profile", "incident-a100", "--json").out)
    assert document["plan"]["reports"] == [
        "smi: nvidia-smi -q",
        "freeze: pip freeze",
        "env: torch.utils.collect_env",
    ]


def test_absent_and_unknown_stay_apart(tmp_path: Path) -> None:
    outcomes = {}
    for name, text in (("freeze", FREEZE.replace("accelerate==0.25.0\n", "")), ("env", COLLECTED)):
        made = remediate.import_reports(write(tmp_path, **{name: text}))
        findings = remediate.plan(made, "incident-a100").findings
        outcomes[name] = next(found.outcome for found in findings if found.target == "accelerate")
    assert outcomes == {"freeze": Outcome.DIFFERS, "env": Outcome.UNKNOWN}


@pytest.mark.parametrize("profile", [None, *shipped_names()])
@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_plan_works_on_every_board_and_profile(path: Path, profile: str | None, tmp_path: Path) -> None:
    facts = board_facts(path)
    if not facts.devices or facts.devices[0].lost:
        pytest.skip("nvidia-smi prints nothing of it")
    made = import_reports(write(tmp_path, q=as_text(facts, 580), x=as_xml(facts, 580))).facts
    again = decode_facts(encode(made), "f.json")
    assert again == made
    try:
        result = plan(again, profile)
    except ProfileError:
        assert profile is None
        return
    assert result.reports == ("q: nvidia-smi -q", "x: nvidia-smi -q -x")
    assert all("not in this report" not in change.before + change.after for change in result.changes)


def test_what_is_not_in_the_report_is_counted_and_not_listed(run: Run, tmp_path: Path) -> None:
    ended = run("facts", "import", *write(tmp_path, env=COLLECTED))
    assert "GPU 0 name: NVIDIA A100-SXM4-40GB" in ended.out
    assert "power limit" not in ended.out
    assert "more are not in this report." in ended.out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not recognised"),
        (b"hello\n", "is not recognised"),
        (b"\x00\x01\x02", "is no text"),
        (b"\x1f\x8b\x08\x00", "is no text"),
        (b"x" * (16 * 1024 * 1024 + 1), "is larger than 16 MiB"),
        (b'{"schema_version": 1}', "is a document of remediate already"),
    ],
)
def test_what_is_no_report(run: Run, tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(content)
    ended = run("facts", "import", "file")
    assert ended.code == 2
    assert ended.out == ""
    assert message in ended.err
    assert "hint:" in ended.err or "larger" in message


def test_a_missing_file_and_no_file(run: Run) -> None:
    assert "can't be read" in run("facts", "import", "absent").err
    assert run("facts", "import").code == 2


def test_one_file_that_is_nothing_beside_one_that_is_something(run: Run, tmp_path: Path) -> None:
    write(tmp_path, smi=HEAD, notes="just words\n")
    ended = run("facts", "import", "smi", "notes")
    assert (ended.code, ended.out) == (2, "")
    assert "`notes` is not recognised" in ended.err


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_encodings_of_shells(tmp_path: Path, encoding: str, end: str) -> None:
    (tmp_path / "smi.txt").write_bytes(HEAD.replace("\n", end).encode(encoding))
    gpu = import_reports([str(tmp_path / "smi.txt")]).facts.sections["gpu"]
    assert (gpu.driver_version, gpu.devices[0].uuid) == ("550.54.14", UUID)


def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write(tmp_path, smi=HEAD)
    with (tmp_path / "smi").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        ended = run("facts", "import", "-", "--json")
    assert json.loads(ended.out)["reports"] == ["standard input: nvidia-smi -q"]


def test_columns_from_the_command_line(run: Run, tmp_path: Path) -> None:
    write(tmp_path, bare=f"{UUID}, 250.00\n")
    assert "name its columns with --query-gpu" in run("facts", "import", "bare").err
    ended = run("facts", "import", "bare", "--query-gpu", "uuid,power.limit", "--json")
    assert json.loads(ended.out)["sections"]["gpu"]["devices"][0]["power"]["limit_w"] == 250


@pytest.mark.parametrize("option", [("--redact",), ("--json",), ("--only", "gpu")])
def test_an_option_before_the_subcommand_is_not_lost_in_silence(
    run: Run, tmp_path: Path, option: tuple[str, ...]
) -> None:
    ended = run("facts", *option, "import", *write(tmp_path, smi=HEAD))
    assert (ended.code, ended.out) == (2, "")
    assert f"`{option[0]}` stands before `import`" in ended.err


def test_facts_without_a_subcommand_still_looks_at_the_machine(run: Run) -> None:
    ended = run("facts", "--board", "h200", "--only", "gpu", "--json")
    document = json.loads(ended.out)
    assert document["reports"] == []
    assert document["sections"]["gpu"]["devices"][0]["name"] == "NVIDIA H200"


seeds = [
    HEAD.encode(),
    FREEZE.encode(),
    COLLECTED.encode(),
    b"uuid, power.limit [W]\n" + UUID.encode() + b", 250.00 W\n",
]
seeds += [as_xml(board_facts(path), 580).encode() for path in BOARDS[:1]]


@st.composite
def mangled(draw: st.DrawFn) -> bytes:
    """A real report with parts cut, doubled, swapped or replaced."""
    content = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 400)))
        content[start:end] = draw(st.one_of(st.binary(max_size=20), st.just(bytes(content[end : end + 300]))))
    return bytes(content)


@pytest.mark.property
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=400), mangled()))
@example(content=b"<nvidia_smi_log>" + b"<gpu>" * 40)
@example(content=b"=NVSMI LOG=\nGPU 0000:00:00.0\n" + b"  " * 4000 + b"a : b")
def test_any_bytes_are_recognised_or_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "any"
    file.write_bytes(content)
    try:
        made = import_reports([str(file)]).facts
    except DocumentError:
        return
    assert decode_facts(encode(made), "f.json") == made
    plan(made, "incident-a100")


HOSTILE = {
    "empty lines": "\n" * 400_000 + "x",
    "blanks": " " * 400_000 + "x",
    "blanks behind a key": "Is debug build:\nNvidia driver version:" + " " * 400_000 + "x",
    "roots": "<nvidia_smi_log>" * 40_000,
    "logs": "=NVSMI LOG=\nGPU 00000000:00:00.0\n    Clocks\n        SM : 1 MHz\n" * 10_000,
    "long keys": "=NVSMI LOG=\nGPU 00000000:00:00.0\n    " + "k" * 400_000 + "\n" + "        a : b\n" * 10_000,
    "headers": "name, uuid\na, b\n" * 40_000,
    "backslashes": "uuid, name\n" + UUID + ", " + "\\" * 50_000 + "\n",
    "commas": "," * 400_000,
    "dashes": "Package Version\n" + "-" * 400_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_texts_that_would_take_for_ever_with_a_careless_pattern(text: str, tmp_path: Path) -> None:
    try:
        redact(import_reports(write(tmp_path, hostile=text)).facts)
    except DocumentError as error:
        assert "hostile" in error.what  # noqa: PT017 (either outcome is right)


def test_more_gpus_than_a_machine_has(tmp_path: Path) -> None:
    rows = "".join(f"GPU-5f1c2d3e-4a5b-4c6d-8e7f-{index:012x}, NVIDIA A10G\n" for index in range(2000))
    with pytest.raises(DocumentError, match="more than 1024 GPUs"):
        import_reports(write(tmp_path, many="uuid, name\n" + rows))


def test_redaction_keeps_gpus_apart_and_names_no_one(run: Run, tmp_path: Path) -> None:
    second = UUID.replace("5f1c", "6a2b")
    block = HEAD.partition("GPU 00000000")[2].replace(UUID, second).replace("0C:00.0", "0D:00.0")
    process = "    Processes\n        Process ID : 17\n            Type : C\n            Name : /home/alice/run.py\n"
    text = (
        HEAD.replace("GPUs                                          : 1", "GPUs : 2") + process + "GPU 00000000" + block
    )
    write(tmp_path, **{"alices-box.txt": text})
    ended = run("facts", "import", "alices-box.txt", "--redact", "--json")
    devices = json.loads(ended.out)["sections"]["gpu"]["devices"]
    assert len({device["uuid"] for device in devices}) == 2
    assert devices[0]["processes"][0]["name"] == "/home/user1/run.py"
    assert not any(name in ended.out for name in (UUID, second, "alice"))
    assert ended.err.startswith("Replaced: 1 file name, 2 UUIDs, 1 user name.")
    again = decode_facts(ended.out.encode(), "f.json")
    assert redact(again).facts == again


def test_redaction_of_a_folder_with_scripts_still_plans(run: Run, tmp_path: Path) -> None:
    script = (
        "from transformers import AutoModelForCausalLM\n"
        'PATH = "/home/alice/model"  # http://alice:pw@git.corp.example/x\n'
        "def handle(request):\n    model = AutoModelForCausalLM.from_pretrained(PATH)\n"
        "    return model.generate(request)\n"
    )
    requirements = "--index-url https://a:b@pip.corp.example/simple\ntorch\n"
    write(tmp_path, **{"serve.py": script, "requirements.txt": requirements})
    ended = run("facts", "--only", "script,packages", "--redact", "-o", "facts.json")
    assert ended.code == 0
    content = (tmp_path / "facts.json").read_text()
    decoded = decode_facts(content.encode(), "facts.json")
    held = content + "".join(str(file.content) for file in decoded.sections["script"].files if file.content is not None)
    for secret in ("alice", "corp.example", "pw@", "a:b@"):
        assert secret not in held
    assert "user name" in ended.err
    shown = run("plan", "--facts", "facts.json", "--profile", "current", "--only", "script")
    assert shown.code == 0
    assert "SCR001" in shown.out


def test_redaction_of_hosts_boot_and_urls() -> None:
    boot = "0a1b2c3d-0000-4000-8000-0123456789ab"
    text = f"see gpu-node-17, gpu-node-17.corp.example and my-gpu-node-17b; {simple_url()} https://git.corp.example/x"
    choice = Choice("facts", text, "/srv/gpu-node-17/run")
    facts = Facts(1, "0", "", Request("/home/bob/x"), Host("", "", boot, is_root=False), (choice,), {"gpu": GpuFacts()})
    result = redact(facts, hosts=("gpu-node-17.corp.example",))
    (clean,) = result.facts.choices
    assert clean.chosen.count("gpu-node-17") == 1
    assert "my-gpu-node-17b" in clean.chosen
    assert simple_url() in clean.chosen
    assert "corp.example" not in clean.chosen + clean.because
    assert result.facts.host.boot_id != boot
    assert result.facts.request.folder == "/home/u1x/x"
    assert result.replaced == {"UUID": 1, "user name": 1, "host name": 3}


@pytest.mark.property
@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("ab/home\\Users:.@-_ \n0GPU"), max_size=60), st.text("abc", min_size=1, max_size=12))
def test_redaction_keeps_positions_and_hides_the_user(text: str, user: str) -> None:
    whole = f"{text} /home/{user}/x {text}"
    facts = Facts(1, "0", "", Request("/"), Host("", "", whole, is_root=False), (), {"gpu": GpuFacts()})
    clean = redact(facts).facts
    assert isinstance(clean.host.boot_id, str)
    assert len(clean.host.boot_id) == len(whole)
    assert f"/home/{user}/" not in clean.host.boot_id
    assert redact(clean).facts == clean
