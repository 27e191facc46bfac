"""Facts from outputs of nvidia-smi: every driver's form, every odd cell, and nothing that is not in the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing.renderer import as_text, as_xml
from importing.support import BOARDS, board_facts, flat, only, read, said

from remediate.gpu.facts import Device, GpuFacts, Memory, Power, Process, Temperature
from remediate.model import Unknown, UnknownKind
from remediate.reports import NOT_IN_REPORT

DRIVERS = (470, 535, 580, 610)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_text_and_xml_of_every_board_say_what_the_board_says(path: Path, driver: int) -> None:
    facts = board_facts(path)
    if not facts.devices or facts.devices[0].lost:
        pytest.skip("nvidia-smi prints nothing of it")
    text, xml = read(as_text(facts, driver)), read(as_xml(facts, driver))
    assert text.driver_version == xml.driver_version == facts.driver_version
    assert text.cuda_driver_version == xml.cuda_driver_version == facts.cuda_driver_version
    for one, other, real in zip(text.devices, xml.devices, facts.devices, strict=True):
        truth = flat(real)
        for device in (one, other):
            wrong = {
                place: (reading, truth[place])
                for place, reading in said(device).items()
                if place not in ("processes", "module_power") and truth[place] != reading
            }
            assert wrong == {}
        lists = {"supported_clocks"}
        assert {k: v for k, v in flat(one).items() if k not in lists} == {
            k: v for k, v in flat(other).items() if k not in lists
        }
        if not isinstance(real.supported_clocks, Unknown):
            assert other.supported_clocks == real.supported_clocks
        assert len(said(one)) > 30


amounts = st.one_of(
    st.integers(1, 100_000),
    st.sampled_from([UnknownKind.NOT_SUPPORTED, UnknownKind.DEPRECATED, UnknownKind.NO_PERMISSION, UnknownKind.LOST]),
).map(lambda value: Unknown(value, "") if isinstance(value, UnknownKind) else value)
watts = amounts.map(lambda value: value if isinstance(value, Unknown) else value / 100)
degrees = st.one_of(st.integers(-40, 130), amounts)
processes = st.lists(
    st.builds(
        Process,
        st.integers(1, 4_000_000),
        st.sampled_from(["compute", "graphics"]),
        amounts,
        st.sampled_from(
            ["python3", "/usr/bin/X : 0", "C:\\Program Files\\a b.exe", "[Not Found]x", "GPU 00000000:01:00.0"]
        ),
        st.just(NOT_IN_REPORT),
    ),
    max_size=3,
    unique_by=lambda process: (process.pid, process.kind),
).map(lambda found: tuple(sorted(found, key=lambda process: (process.pid, process.kind))))


@st.composite
def devices(draw: st.DrawFn) -> Device:
    """A device with any mixture of values and failures."""
    has_margins = draw(st.booleans())
    heat = {name: draw(degrees) for name in ("gpu_c", "memory_c", "margin_c")}
    for name in ("shutdown", "slowdown", "max_operating", "memory_max"):
        heat[f"{name}_margin_c" if has_margins else f"{name}_c"] = draw(st.integers(-40, 130))
    return Device(
        index=0,
        uuid="GPU-5f1c2d3e-0000-4000-8000-" + draw(st.text("0123456789abcdef", min_size=12, max_size=12)),
        name=draw(st.sampled_from(["NVIDIA H200", "Tesla V100-SXM2-16GB", "NVIDIA GeForce RTX 4090"])),
        pci_bus_id="0000000F:01:00.0",
        power=Power(*(draw(watts) for _ in range(6))),
        memory=Memory(*(draw(amounts) for _ in range(3))),
        temperature=Temperature(**heat),
        processes=draw(processes),
    )


@pytest.mark.property
@settings(max_examples=60, deadline=None)
@given(devices(), st.sampled_from(DRIVERS))
def test_text_and_xml_agree_on_any_device(device: Device, driver: int) -> None:
    # What the device itself leaves unread is printed as an error.
    printed = msgspec.convert(_without_gaps(msgspec.to_builtins(device)), Device)
    facts = GpuFacts(driver_version=f"{driver}.10", cuda_driver_version="12.4", devices=(printed,))
    one, other = only(as_text(facts, driver)), only(as_xml(facts, driver))
    assert flat(one) == flat(other)
    truth = flat(printed)
    for place, reading in said(one).items():
        if place.startswith(("power.", "memory.", "temperature.", "uuid", "name", "pci")):
            assert reading == truth[place], place
    assert flat(one)["processes"] == flat(printed)["processes"]


def _without_gaps(value: Any) -> Any:
    if isinstance(value, dict) and value.get("unknown") == "not read":
        return {"unknown": "not supported", "reason": "x"} if value["reason"] != NOT_IN_REPORT.reason else value
    if isinstance(value, dict):
        return {key: _without_gaps(item) for key, item in value.items()}
    return [_without_gaps(item) for item in value] if isinstance(value, list) else value
