"""Wishes for particular GPUs: which table fits which device, and what is left of `[gpu]` under it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from gpu.support import alter, shipped_device, shipped_facts, write_board

from remediate.errors import ProfileError
from remediate.gpu.settings import judge
from remediate.gpu.wishes import wish_for
from remediate.model import Unknown, UnknownKind
from remediate.profile.load import load_profile
from remediate.profile.schema import GpuFor, GpuWish

UUID = str(shipped_device().uuid)
EVERYWHERE = GpuWish(
    power_limit_w=250, sm_clock="max", persistence_mode=True, why={"clocks": "speed", "power_limit": "a"}
)


@pytest.mark.parametrize(
    ("table", "fits"),
    [
        ({"uuid": (UUID,)}, True),
        ({"uuid": (UUID.upper(),)}, True),
        ({"uuid": (UUID[:12],)}, False),
        ({"pci": ("0000:07:00.0",)}, True),
        ({"pci": ("00000000:07:00.0",)}, True),
        ({"pci": ("07:00.0",)}, True),
        ({"pci": ("7:0",)}, True),
        ({"pci": ("0001:07:00.0",)}, False),
        ({"pci": ("0000:08:00.0", "0000:07:00.0")}, True),
        ({"name": ("NVIDIA A100*",)}, True),
        ({"name": ("NVIDIA L4", "*A100*")}, True),
        ({"name": ("nvidia a100*",)}, False),
        # A glob for the L4 is not one for the L40S: it fits whole names.
        ({"name": ("NVIDIA A1",)}, False),
        ({"name": ("NVIDIA A100*",), "pci": ("0000:08:00.0",)}, False),
        ({"name": ("NVIDIA A100*",), "uuid": (UUID,)}, True),
    ],
)
def test_a_table_fits_by_all_its_conditions(table: dict[str, Any], fits: bool) -> None:
    device = alter(shipped_device(), pci_bus_id="00000000:07:00.0")
    found = wish_for(device, EVERYWHERE, (GpuFor(**table, power_limit_w=300),))
    assert found.power_limit_w == (300 if fits else 250)


def test_what_can_not_be_read_fits_no_condition() -> None:
    gone = Unknown(UnknownKind.FAILED, "not read")
    device = alter(shipped_device(), uuid=gone, pci_bus_id=gone, name=gone)
    for table in ({"uuid": (UUID,)}, {"pci": ("07:00.0",)}, {"name": ("*",)}):
        assert wish_for(device, EVERYWHERE, (GpuFor(**table, power_limit_w=300),)) == EVERYWHERE  # type: ignore[arg-type]


def test_keys_are_laid_over_each_other_and_replace_their_rivals() -> None:
    tables = (
        GpuFor(name=("*",), power_limit="max", why={"power_limit": "b"}),
        GpuFor(name=("*",), sm_clock_mhz=1200, compute_mode="exclusive_process"),
        GpuFor(name=("none",), sm_clock_mhz=300),
    )
    assert wish_for(shipped_device(), EVERYWHERE, tables) == GpuWish(
        power_limit="max",
        sm_clock_mhz=1200,
        persistence_mode=True,
        compute_mode="exclusive_process",
        why={"clocks": "speed", "power_limit": "b"},
    )


def test_a_gpu_that_is_left_alone_has_no_wishes() -> None:
    assert wish_for(shipped_device(), EVERYWHERE, (GpuFor(name=("*",), leave_alone=True),)) == GpuWish()


def test_each_of_two_models_gets_its_own_commands_by_its_own_uuid() -> None:
    one, other = shipped_device("l4"), alter(shipped_device("rtx-3090"), index=1)
    facts = alter(shipped_facts("l4"), devices=(one, other), device_count=2)
    tables = (GpuFor(name=("NVIDIA L4",), power_limit_w=60), GpuFor(uuid=(str(other.uuid),), power_limit_fraction=0.8))
    commands = [item.operation.argv for item in judge(facts, GpuWish(), False, tables) if item.operation]
    assert commands == [
        ("nvidia-smi", "-i", one.uuid, "-pl", "60"),
        ("nvidia-smi", "-i", other.uuid, "-pl", "300"),
    ]


def test_the_reason_is_the_one_of_the_table() -> None:
    tables = (GpuFor(name=("*",), power_limit_w=200, why={"power_limit": "this slot is hot"}),)
    reasons = {item.why: item.reason for item in judge(shipped_facts(), EVERYWHERE, False, tables) if item.why}
    assert reasons == {"persistence_mode": "", "power_limit": "this slot is hot", "clocks": "speed"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[gpu_for]]\npower_limit_w = 200", "names no GPU"),
        ("[[gpu_for]]\nname = []\npower_limit_w = 200", "names no GPU"),
        ("[[gpu_for]]\nname = 'NVIDIA L4'", "expected a list"),
        ("[[gpu_for]]\npci = ['7']", "is not a PCI address"),
        ("[[gpu_for]]\nname = ['*']\npower_limt_w = 3", "did you mean `power_limit_w`?"),
        ("[[gpu_for]]\nname = ['*']\npower_limit = 'max'\npower_limit_w = 3", "can't stand beside"),
        ("[gpu]\nsm_clock_fraction = 1.5", "at most 1"),
        ("[gpu]\nsm_clock_mhz = 900\nsm_clock_min_mhz = 1200", "is 1200, above `gpu.sm_clock_mhz`"),
        ("[gpu]\npower_limit_w = inf", "below 1000000"),
        ("[gpu]\npower_limit_w = nan", "above 0"),
        ("[gpu]\ncompute_mode = 'exclusive_thread'", "expected"),
    ],
)
def test_a_profile_with_a_wrong_wish_is_refused_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(f'schema_version = 1\nname = "p"\n{text}\n')
    with pytest.raises(ProfileError) as caught:
        load_profile(str(path))
    assert problem in "\n".join(caught.value.problems)
    assert "line " in caught.value.problems[0]


def test_the_tables_of_a_child_replace_those_of_its_parent(tmp_path: Path) -> None:
    for name, extends, watts in (("a", "", 100), ("b", 'extends = "a.toml"', 200)):
        text = f'schema_version = 1\nname = "{name}"\n{extends}\n[[gpu_for]]\nname = ["*"]\npower_limit_w = {watts}\n'
        (tmp_path / f"{name}.toml").write_text(text)
    assert [table.power_limit_w for table in load_profile(str(tmp_path / "b.toml")).profile.gpu_for] == [200]


def test_the_boards_file_holds_two_devices(tmp_path: Path) -> None:
    """A host of two models as one board file, for the tests that run commands."""
    facts = alter(shipped_facts("l4"), devices=(shipped_device("l4"), alter(shipped_device(), index=1)), device_count=2)
    assert msgspec.json.decode(Path(write_board(tmp_path, facts)).read_bytes())["gpu"]["device_count"] == 2
