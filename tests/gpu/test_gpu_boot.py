"""The boot unit as values: what is found, what is proposed, how the unit's text and the settings file read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediate.errors import DocumentError
from remediate.gpu.boot import places
from remediate.gpu.boot import unit as unit_module
from remediate.gpu.boot.facts import BootFacts
from remediate.gpu.boot.judge import wanted_unit
from remediate.gpu.boot.observe import distrust, read_boot
from remediate.gpu.boot.operations import BootFile, UnitSwitch
from remediate.gpu.boot.propose import boot_findings, boot_proposal
from remediate.gpu.boot.settings import decode_settings, encode_settings
from remediate.gpu.boot.unit import MARK, command_of, is_current, quote_command, render_unit
from remediate.model import Finding, Outcome, Risk, Unknown, UnknownKind
from remediate.profile.schema import GpuWish, Profile

COMMAND = ("/opt/remediate/bin/python", "-m", "remediate", "gpu-boot", "--file", places.SETTINGS_PATH)
WANTED = Profile(schema_version=1, name="ours", gpu=GpuWish(power_limit_w=250, survive_reboot=True))
UNWANTED = Profile(schema_version=1, name="ours", gpu=GpuWish(power_limit_w=250, survive_reboot=False))
SILENT = Profile(schema_version=1, name="ours", gpu=GpuWish(power_limit_w=250))
BARE = BootFacts(systemd=True, unit="", is_enabled=False, settings="", command=COMMAND)
INSTALLED = msgspec.structs.replace(
    BARE, unit=render_unit(COMMAND), unit_command=COMMAND, is_enabled=True, settings=encode_settings(WANTED)
)


def having(facts: BootFacts, **changes: Any) -> BootFacts:
    return msgspec.structs.replace(facts, **changes)


def found(facts: BootFacts, profile: Profile = WANTED) -> Finding:
    (finding,) = boot_findings(facts, profile, ())
    return finding


def steps(facts: BootFacts, profile: Profile = WANTED) -> list[str]:
    return [change.id.removeprefix("gpu:boot:") for change in boot_proposal(facts, profile, ()).changes]


def test_nothing_is_said_where_the_profile_is_silent_and_nothing_is_installed() -> None:
    assert boot_findings(BARE, SILENT, ()) == ()
    assert steps(BARE, SILENT) == []


def test_an_installed_unit_that_the_profile_is_silent_about_is_advice() -> None:
    assert found(INSTALLED, SILENT).is_advice
    assert steps(INSTALLED, SILENT) == []


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (INSTALLED, []),
        (BARE, ["settings", "unit", "enabled"]),
        (having(INSTALLED, is_enabled=False), ["enabled"]),
        (having(INSTALLED, settings="{}"), ["settings"]),
        (having(INSTALLED, unit=f"{MARK}, long ago\n", unit_command=()), ["unit"]),
        (having(INSTALLED, unit=str(INSTALLED.unit).replace("Type=oneshot", "Type=simple")), ["unit"]),
        (having(INSTALLED, unit=render_unit(("/gone", "-m", "remediate")), unit_command=()), ["unit"]),
    ],
)
def test_only_what_is_missing_is_done(facts: BootFacts, expected: list[str]) -> None:
    assert steps(facts) == expected
    assert found(facts).outcome is (Outcome.DIFFERS if expected else Outcome.SAME)


def test_a_unit_with_another_install_of_this_program_is_current() -> None:
    """Root installed it with root's program; an ordinary user's `verify` must agree."""
    root = ("/opt/other/bin/python", *COMMAND[1:], "--state-dir", "/var/lib/remediate")
    facts = having(INSTALLED, unit=render_unit(root), unit_command=root)
    assert found(facts).outcome is Outcome.SAME


def test_another_wish_makes_the_file_outdated() -> None:
    other = Profile(schema_version=1, name="ours", gpu=GpuWish(power_limit_w=300, survive_reboot=True))
    assert steps(INSTALLED, other) == ["settings"]
    assert "other wishes" in found(INSTALLED, other).summary


@pytest.mark.parametrize(
    ("facts", "because"),
    [
        (having(BARE, unit="[Service]\nExecStart=/usr/local/bin/set-clocks\n"), "a unit of that name is there already"),
        (having(BARE, is_masked=True), "somebody masked"),
        (having(BARE, packaged="/usr/lib/systemd/system/remediate-gpu.service"), "brings a unit of that name"),
        (having(BARE, distrust="`/home/a/venv` belongs to user 1000"), "belongs to user 1000"),
    ],
)
def test_what_is_somebody_elses_is_left_to_a_person(facts: BootFacts, because: str) -> None:
    proposal = boot_proposal(facts, WANTED, ())
    assert proposal.changes == ()
    (withheld,) = proposal.withheld
    assert because in withheld.because
    assert withheld.enable
    assert found(facts).outcome is Outcome.DIFFERS


def test_a_program_that_others_can_change_matters_only_when_the_unit_is_written() -> None:
    assert steps(having(INSTALLED, distrust="somebody", is_enabled=False)) == ["enabled"]


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        (having(BARE, systemd=False), Outcome.UNSUPPORTED),
        (having(BARE, systemd=Unknown(UnknownKind.NOT_SUPPORTED, "no systemctl")), Outcome.UNSUPPORTED),
        (having(BARE, settings=Unknown(UnknownKind.NO_PERMISSION, "denied")), Outcome.UNKNOWN),
        (BootFacts(), Outcome.UNKNOWN),
    ],
)
def test_what_can_not_be_told_or_done_changes_nothing(facts: BootFacts, outcome: Outcome) -> None:
    assert found(facts).outcome is outcome
    assert boot_proposal(facts, WANTED, ()).changes == ()


def test_uninstalling_goes_the_other_way_round() -> None:
    assert steps(INSTALLED, UNWANTED) == ["enabled", "unit", "settings"]
    assert steps(having(INSTALLED, is_enabled=False), UNWANTED) == ["unit", "settings"]
    assert steps(BARE, UNWANTED) == []
    assert found(BARE, UNWANTED).outcome is Outcome.SAME


def test_uninstalling_leaves_a_foreign_unit_alone() -> None:
    foreign = having(BARE, unit="[Unit]\n", is_enabled=True)
    assert steps(foreign, UNWANTED) == []
    assert "somebody else" in found(foreign, UNWANTED).evidence[0]


def test_the_machine_itself_needs_root_and_a_reload_and_a_staging_root_neither() -> None:
    settings, unit, switch = boot_proposal(BARE, WANTED, ()).changes
    assert all(Risk.ROOT in change.risks for change in (settings, unit, switch))
    assert isinstance(unit.operation, BootFile)
    assert unit.operation.reload == ("systemctl", "daemon-reload")
    assert switch.command == ("systemctl", "enable", places.UNIT)
    staged = boot_proposal(having(BARE, root="/image"), WANTED, ()).changes
    assert not any(Risk.ROOT in change.risks for change in staged)
    assert [getattr(change.operation, "reload", ()) for change in staged] == [(), (), ()]
    assert isinstance(staged[2].operation, UnitSwitch)
    assert staged[2].operation.argv == ("systemctl", "--root=/image", "enable", places.UNIT)


def test_files_for_people_come_along_only_where_something_is_installed() -> None:
    assert [artifact.name for artifact in boot_proposal(BARE, WANTED, ()).artifacts] == [places.UNIT, "gpu.json"]
    assert boot_proposal(INSTALLED, WANTED, ()).artifacts == ()


def test_the_settings_file_holds_wishes_and_reads_back() -> None:
    text = encode_settings(WANTED, ("GPU-b", "GPU-a"))
    settings = decode_settings(text.encode(), "gpu.json")
    assert settings.gpus == ("GPU-a", "GPU-b")
    assert settings.profile == Profile(schema_version=1, name="ours", gpu=GpuWish(power_limit_w=250))
    assert "survive" not in text
    assert "null" not in text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"\xff",
        b'{"schema_version": 2, "kind": "remediate-gpu-settings", "profile": {"schema_version": 1, "name": "a"}}',
        b'{"schema_version": 1, "kind": "else", "profile": {"schema_version": 1, "name": "a"}}',
        encode_settings(WANTED).replace("power_limit_w", "power_limit_kw").encode(),
        b"[" * 100_000,
    ],
)
def test_a_damaged_settings_file_is_refused(content: bytes) -> None:
    with pytest.raises(DocumentError):
        decode_settings(content, "gpu.json")


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
RAW = st.binary(max_size=12).map(lambda raw: raw.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
WORDS = TEXT | RAW
"""What an argument can be: bytes without NUL, which Python decodes in this way."""


@pytest.mark.property
@given(st.lists(WORDS, max_size=5))
def test_any_argument_list_is_read_back_from_the_unit(words: list[str]) -> None:
    command = ("/usr/bin/python3", *words)
    unit = render_unit(command)
    assert command_of(unit) == command
    assert unit.count("\nExecStart=") == 1


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("/opt/a b/python", '"/opt/a b/python"'),
        ("50%", "50%%"),
        ("$HOME", '"$$HOME"'),
        ('say "so"', '"say \\"so\\""'),
        ("two\nlines", '"two\\x0alines"'),
        ("", '""'),
        ("a;b", '"a;b"'),
    ],
)
def test_words_are_quoted_as_systemd_reads_them(word: str, quoted: str) -> None:
    """systemd.service(5), Command lines, and systemd.unit(5), Specifiers and Quoting."""
    assert quote_command((word,)) == quoted


def test_a_unit_of_another_form_has_no_command() -> None:
    assert command_of("[Service]\nExecStart='/bin/true'\n") == ()
    assert command_of("[Service]\nExecStart=/bin/a\nExecStart=/bin/b\n") == ()
    assert command_of("") == ()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed (Debian: systemd)")
@pytest.mark.parametrize("program", ["/bin/true", "/bin/sh"])
def test_systemd_accepts_the_unit(tmp_path: Path, program: str) -> None:
    unit = tmp_path / places.UNIT
    unit.write_text(render_unit((program, "-m", "a b", "50%", "$HOME", 'say "so"', "two\nlines")))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert places.UNIT not in done.stderr


def test_the_unit_is_ordered_after_the_daemon_and_runs_once() -> None:
    lines = render_unit(COMMAND).splitlines()
    assert lines[0].startswith(MARK)
    assert "Type=oneshot" in lines
    assert "RemainAfterExit=yes" in lines
    assert "Wants=nvidia-persistenced.service" in lines
    assert any(line.startswith("After=nvidia-persistenced.service") for line in lines)
    assert f"ExecStart={' '.join(COMMAND)}" in lines


def test_a_staging_root_is_read_from_its_files(tmp_path: Path) -> None:
    bare = read_boot("/state", str(tmp_path))
    assert (bare.unit, bare.settings, bare.is_enabled, bare.is_masked) == ("", "", False, False)
    assert bare.command[-1] == "/state"
    unit = tmp_path / "etc/systemd/system" / places.UNIT
    unit.parent.mkdir(parents=True)
    unit.write_text(wanted_unit(bare))
    link = tmp_path / places.LINK_PATH.lstrip("/")
    link.parent.mkdir()
    link.symlink_to(places.UNIT_PATH)
    (unit.parent / f"{places.UNIT}.d").mkdir()
    (unit.parent / f"{places.UNIT}.d/early.conf").write_text("[Unit]\n")
    present = read_boot("/other-state", str(tmp_path))
    assert present.unit_command == bare.command
    assert present.is_enabled is True
    assert present.drop_ins == ("early.conf",)
    unit.unlink()
    unit.symlink_to("/dev/null")
    assert read_boot("", str(tmp_path)).is_masked


def test_an_unreadable_file_is_unknown(tmp_path: Path) -> None:
    (tmp_path / places.SETTINGS_PATH.lstrip("/")).mkdir(parents=True)
    settings = read_boot("", str(tmp_path)).settings
    assert isinstance(settings, Unknown)
    assert found(having(BARE, settings=settings)).outcome is Outcome.UNKNOWN


def test_a_program_below_a_folder_that_others_can_write_is_not_trusted(tmp_path: Path) -> None:
    program = tmp_path / "open" / "python"
    program.parent.mkdir()
    program.touch()
    program.parent.chmod(0o777)
    reason = distrust(str(program))
    assert str(tmp_path) in reason or "belongs to user" in reason
    assert distrust("/bin/sh") == ""
    assert "can't be looked at" in distrust("/bin/no-such-program")


def test_a_unit_of_this_version_is_known_without_rendering_it(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = render_unit(COMMAND)
    assert is_current(unit)
    assert not is_current(unit.replace("oneshot", "simple"))
    assert not is_current(unit + "# a note\n")
    assert not is_current("")
    monkeypatch.setitem(unit_module._VALUES, "wait_s", 1)
    assert not is_current(unit)
