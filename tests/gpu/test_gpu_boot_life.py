"""The life of the boot unit below a staging root: installed, run after a reboot, taken away, each undone again.

systemctl is the genuine one where it is installed, and a script with its answers everywhere.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from gpu.support import alter, copy_board

from remediate.effects import Completed
from remediate.errors import ApplyError, EditedSinceError, NeedsRootError
from remediate.files import plan_edit
from remediate.gpu.board import Board
from remediate.gpu.boot import effects, places
from remediate.gpu.boot.operations import BootFile, UnitSwitch
from remediate.gpu.boot.settings import BootSettings, encode_settings
from remediate.model import Request, State, Unknown, UnknownKind
from remediate.observation import observe as real_observe
from remediate.profile.schema import GpuWish, Profile
from remediate.runs import boot
from remediate.runs.store import Store
from remediate.subject import Context

PROFILE = """
schema_version = 1
name = "ours"
[gpu]
power_limit_w = 250
persistence_mode = true
survive_reboot = {wish}
"""
FAKE_SYSTEMCTL = """#!/bin/sh
# The part of systemctl(1) of systemd 252 that works on a root folder.
root=${1#--root=}
units=$root/etc/systemd/system
link=$units/multi-user.target.wants/$3
case $2 in
enable) mkdir -p "${link%/*}" && ln -s "/etc/systemd/system/$3" "$link" ;;
disable) rm -f "$link" ;;
is-enabled)
    if [ ! -e "$units/$3" ]; then echo "Failed to get unit file state for $3: No such file or directory" >&2; exit 1; fi
    if [ -L "$link" ]; then echo enabled; else echo disabled; exit 1; fi
    ;;
*) exit 1 ;;
esac
"""
SWITCH = UnitSwitch(
    places.UNIT,
    True,
    ("systemctl", "enable", places.UNIT),
    ("systemctl", "disable", places.UNIT),
    ("systemctl", "is-enabled", places.UNIT),
)


class Sandbox:
    """A folder with a board, a profile, a staging root, and the commands."""

    def __init__(self, folder: Path, path: str) -> None:
        self.folder = folder
        self.board = copy_board(folder)
        self.root = folder / "root"
        (self.root / "etc").mkdir(parents=True)
        self.path = path
        self.wish("true")

    def wish(self, wish: str) -> None:
        (self.folder / "ours.toml").write_text(PROFILE.format(wish=wish))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        state = {"REMEDIATE_STATE_DIR": str(self.folder / "state"), "REMEDIATE_SYSTEM_ROOT": str(self.root)}
        return subprocess.run(
            [sys.executable, "-m", "remediate", *arguments],
            cwd=self.folder,
            env={**os.environ, **state, "PATH": self.path},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )

    def with_profile(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(command, "--only", "gpu", "-p", "ours.toml", "--board", self.board, *arguments)

    def apply(self) -> None:
        done = self.with_profile("apply", "--yes", "--allow-disruption")
        assert done.returncode == 0, done.stdout + done.stderr

    def boot(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        settings = str(self.root / "etc/remediate/gpu.json")
        return self.run("gpu-boot", "--file", settings, "--board", self.board, "--wait", "0", *arguments)

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir())

    def limit_w(self) -> object:
        return Board.load(self.board).facts.devices[0].power.limit_w

    def reboot(self) -> None:
        board = Board.load(self.board)
        board.reboot()
        board.save()


INSTALLED = [
    "etc/remediate/gpu.json",
    "etc/systemd/system/multi-user.target.wants/remediate-gpu.service",
    "etc/systemd/system/remediate-gpu.service",
]


@pytest.fixture(params=["genuine", "fake"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    if request.param == "genuine":
        if not shutil.which("systemctl"):
            pytest.skip("systemctl is not installed (Debian: systemd)")
        return Sandbox(tmp_path, os.environ["PATH"])
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "systemctl").write_text(FAKE_SYSTEMCTL)
    (programs / "systemctl").chmod(0o755)
    return Sandbox(tmp_path, f"{programs}:{os.environ['PATH']}")


def test_installed_and_undone(sandbox: Sandbox) -> None:
    sandbox.apply()
    assert sandbox.files() == INSTALLED
    assert (sandbox.root / "etc/remediate/gpu.json").stat().st_mode & 0o777 == 0o644
    assert sandbox.with_profile("verify").returncode == 0
    again = sandbox.with_profile("apply", "--yes", "--allow-disruption")
    assert "Nothing to do" in again.stdout
    assert sandbox.run("rollback", "--yes").returncode == 0
    assert sandbox.files() == []
    assert [path.name for path in sandbox.root.iterdir()] == ["etc"]
    assert sandbox.limit_w() == 400


def test_a_reboot_is_survived(sandbox: Sandbox) -> None:
    sandbox.apply()
    sandbox.reboot()
    assert sandbox.limit_w() == 400
    dry = sandbox.boot("--dry-run")
    assert dry.returncode == 3
    assert "would set power limit of GPU 0: 400 W -> 250 W" in dry.stdout
    assert sandbox.limit_w() == 400
    booted = sandbox.boot()
    assert booted.returncode == 0, booted.stdout + booted.stderr
    assert "power limit of GPU 0: 250 W, read back" in booted.stdout
    assert sandbox.limit_w() == 250
    again = sandbox.boot()
    assert again.returncode == 0
    assert "read back" not in again.stdout
    assert sandbox.with_profile("verify").returncode == 0


def test_the_profile_no_longer_wants_it(sandbox: Sandbox) -> None:
    sandbox.apply()
    sandbox.wish("false")
    assert sandbox.with_profile("verify").returncode == 3
    sandbox.apply()
    assert sandbox.files() == []
    assert not (sandbox.root / "etc/remediate").exists()
    assert sandbox.with_profile("verify").returncode == 0
    assert sandbox.run("rollback", "--yes").returncode == 0
    assert sandbox.files() == INSTALLED


def test_an_edited_unit_is_told_and_not_overwritten_by_a_rollback(sandbox: Sandbox) -> None:
    sandbox.apply()
    unit = sandbox.root / "etc/systemd/system/remediate-gpu.service"
    unit.write_text(unit.read_text() + "# a note\n")
    verified = sandbox.with_profile("verify")
    assert verified.returncode == 3
    assert "the unit is not as this version writes it" in " ".join(verified.stdout.split())
    assert sandbox.run("rollback", "--yes").returncode == 1
    assert unit.read_text().endswith("# a note\n")
    sandbox.apply()
    assert not unit.read_text().endswith("# a note\n")
    assert sandbox.run("rollback", "--yes").returncode == 0
    assert unit.read_text().endswith("# a note\n")


def test_boot_tells_what_it_can_not_do(sandbox: Sandbox) -> None:
    sandbox.apply()
    board = Path(sandbox.board)
    document = json.loads(board.read_text())
    board.write_text(json.dumps({**document, "root": False}))
    refused = sandbox.boot()
    assert refused.returncode == 4
    assert "Insufficient Permissions" in refused.stderr
    (sandbox.root / "etc/remediate/gpu.json").write_text("{}")
    assert sandbox.boot().returncode == 2
    (sandbox.root / "etc/remediate/gpu.json").unlink()
    assert sandbox.boot().returncode == 2


def test_one_lost_gpu_does_not_keep_the_others_from_being_set(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, os.environ["PATH"])
    document = json.loads(Path(sandbox.board).read_text())
    good = document["gpu"]["devices"][0]
    lost = {"index": 0, "lost": {"unknown": "lost", "reason": "the GPU is lost"}}
    document["gpu"] |= {"devices": [lost, {**good, "index": 1}], "device_count": 2}
    Path(sandbox.board).write_text(json.dumps(document))
    settings = sandbox.root / "etc/remediate/gpu.json"
    settings.parent.mkdir()

    settings.write_text(encode_settings(Profile(schema_version=1, name="ours", gpu=GpuWish(power_limit_w=250))))
    booted = sandbox.boot()
    assert booted.returncode == 4
    assert Board.load(sandbox.board).facts.devices[1].power.limit_w == 250


def test_locks_that_a_boot_sets_are_known_afterwards(tmp_path: Path) -> None:
    """No driver call reads a lock back, and the ledger of the former boot is void; so the boot writes its own."""
    sandbox = Sandbox(tmp_path, os.environ["PATH"])
    sandbox.board = copy_board(tmp_path, "rtx-3090")
    profile = PROFILE.format(wish="false").replace("power_limit_w = 250", "sm_clock_mhz = 1500")
    (tmp_path / "ours.toml").write_text(profile)
    settings = sandbox.root / "etc/remediate/gpu.json"
    settings.parent.mkdir()
    wish = GpuWish(sm_clock_mhz=1500, persistence_mode=True)
    settings.write_text(encode_settings(Profile(schema_version=1, name="ours", gpu=wish)))
    booted = sandbox.boot()
    assert booted.returncode == 0, booted.stdout + booted.stderr
    assert "locked graphics clocks of GPU 0" in booted.stdout
    ledger = json.loads((tmp_path / "state/ledger.json").read_text())
    assert [(entry["value"], entry["run"]) for entry in ledger["entries"].values()] == [("210,1500", "boot")]
    assert "read back" not in sandbox.boot().stdout
    settings.unlink()
    assert sandbox.with_profile("verify").returncode == 0


class Script:
    """A runner that answers each systemctl verb with what it is told to."""

    def __init__(self, **answers: tuple[int, str]) -> None:
        self.answers = answers
        self.calls: list[str] = []

    def __call__(self, argv: Sequence[str], **options: object) -> Completed:
        verb = argv[1].replace("-", "_")
        self.calls.append(argv[1])
        if verb not in self.answers:
            raise ApplyError("`systemctl` was not found")
        code, text = self.answers[verb]
        return Completed(tuple(argv), code, text, "")


def context(folder: Path, runner: Script) -> Context:
    return Context(folder, ".tmp", Request(folder="/sandbox"), runner=runner, is_root=True)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("enabled\n", State.AFTER),
        ("disabled\n", State.BEFORE),
        ("not-found\n", State.BEFORE),
        ("masked\n", State.OTHER),
    ],
)
def test_the_switch_is_read_with_systemctl(tmp_path: Path, answer: str, expected: State) -> None:
    assert effects.state(SWITCH, context(tmp_path, Script(is_enabled=(0, answer)))) is expected


def test_without_systemctl_the_switch_is_unknown(tmp_path: Path) -> None:
    assert effects.state(SWITCH, context(tmp_path, Script())) is State.UNKNOWN


def test_success_is_believed_only_when_it_is_read_back(tmp_path: Path) -> None:
    with pytest.raises(ApplyError, match="was not enabled"):
        effects.perform(SWITCH, {}, context(tmp_path, Script(is_enabled=(1, "disabled"), enable=(0, ""))))


def test_a_refusal_by_systemd_is_about_rights(tmp_path: Path) -> None:
    script = Script(is_enabled=(1, "disabled"), enable=(1, "Failed to enable unit: Access denied"))
    with pytest.raises(NeedsRootError):
        effects.perform(SWITCH, {}, context(tmp_path, script))


def test_a_unit_that_somebody_masked_is_not_touched(tmp_path: Path) -> None:
    with pytest.raises(EditedSinceError):
        effects.undo(SWITCH, {}, context(tmp_path, Script(is_enabled=(1, "masked"))))


def test_systemd_is_told_after_a_unit_was_written_and_after_it_is_gone_again(tmp_path: Path) -> None:
    path = tmp_path / "units" / places.UNIT
    operation = BootFile(plan_edit(path, None, b"[Unit]\n", 0o644), ("systemctl", "daemon-reload"))
    script = Script(daemon_reload=(0, ""))
    prepared = effects.prepare(operation, context(tmp_path, script))
    effects.perform(operation, prepared, context(tmp_path, script))
    assert path.read_bytes() == b"[Unit]\n"
    effects.undo(operation, prepared, context(tmp_path, script))
    assert not path.parent.exists()
    assert script.calls == ["daemon-reload", "daemon-reload"]


def test_waiting_for_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver is not there, then shows no GPU, then one: the plan is made then, and not before."""

    missing = Unknown(UnknownKind.FAILED, "the driver is not loaded")
    answers = [{"driver_version": missing, "devices": ()}, {"devices": (), "device_count": 0}, {}]
    naps: list[float] = []
    said: list[str] = []

    def observe(request: Request, *rest: object) -> object:
        facts = real_observe(request)
        answer = answers[0] if len(answers) == 1 else answers.pop(0)
        return msgspec.structs.replace(facts, sections={"gpu": alter(facts.sections["gpu"], **answer)})

    monkeypatch.setattr(boot, "observe", observe)
    profile = Profile(schema_version=1, name="ours", gpu=GpuWish(power_limit_w=250))
    settings = BootSettings(schema_version=1, kind="remediate-gpu-settings", profile=profile)
    pacing = boot.Pacing(wait_s=60, sleep=naps.append, clock=lambda: sum(naps))
    plan = boot.plan_for_boot(settings, Store(tmp_path), board=copy_board(tmp_path), pacing=pacing, say=said.append)
    assert [change.after for change in plan.changes] == ["250 W"]
    assert len(naps) == 2
    assert "the driver is not loaded" in said[0]
    assert "no GPU" in said[1]


def test_the_wait_ends_and_the_plan_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    naps: list[float] = []
    document = json.loads(Path(copy_board(tmp_path)).read_text())
    document["gpu"] |= {"devices": [], "device_count": 0}
    board = tmp_path / "empty.json"
    board.write_text(json.dumps(document))
    profile = Profile(schema_version=1, name="ours", gpu=GpuWish(power_limit_w=250))
    settings = BootSettings(schema_version=1, kind="remediate-gpu-settings", profile=profile)
    pacing = boot.Pacing(wait_s=10, sleep=naps.append, clock=lambda: sum(naps))
    plan = boot.plan_for_boot(settings, Store(tmp_path), board=str(board), pacing=pacing)
    assert sum(naps) == 10
    assert plan.changes == ()
    assert [finding.code for finding in plan.unknowns] == ["GPU001"]
