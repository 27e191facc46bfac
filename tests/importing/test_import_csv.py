"""`--query-gpu` CSV: former names, units or none, header or none, samples over time, error tokens."""

from __future__ import annotations

import pytest
from importing.support import HEAD, UUID, only, read

from remediate.errors import DocumentError
from remediate.gpu.reports import read_reports
from remediate.model import Unknown, UnknownKind
from remediate.reports import NOT_IN_REPORT, Report

OTHER = "GPU-00000000-4a5b-4c6d-8e7f-0123456789ab"
FIELDS = "index, uuid, name, power.limit, enforced.power.limit, clocks.max.sm, temperature.memory, mig.mode.current"
UNITS = FIELDS.replace("limit", "limit [W]").replace("max.sm", "max.sm [MHz]")


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (UNITS, f"3, {UUID}, NVIDIA A10G, 250.00 W, 240.00 W, 1710 MHz, N/A, [N/A]"),
        (UNITS, f"3, {UUID}, NVIDIA A10G, 250.00, 240.00, 1710, N/A, [N/A]"),
        (FIELDS, f"3, {UUID}, NVIDIA A10G, 250.00, 240.00, 1710, N/A, [N/A]"),
        (UNITS.replace(", ", ","), f"3,{UUID},NVIDIA A10G,250.00 W,240.00 W,1710 MHz,N/A,[Not Supported]"),
        (
            UNITS.replace("uuid", "gpu_uuid")
            .replace(" name", " gpu_name")
            .replace("power.limit [W], enforced.power.limit", "gpu.power.requested_limit [W], gpu.power.current_limit"),
            f"3, {UUID}, NVIDIA A10G, 250.00 W, 240.00 W, 1710 MHz, N/A, [N/A]",
        ),
    ],
    ids=["units", "header units only", "no units", "no blanks", "other names"],
)
def test_forms_of_one_csv(header: str, row: str) -> None:
    device = only(f"{header}\n{row}\n")
    assert (device.index, device.uuid, device.name) == (3, UUID, "NVIDIA A10G")
    assert (device.power.limit_w, device.power.enforced_w, device.max_clocks.sm_mhz) == (250, 240, 1710)
    for reading in (device.temperature.memory_c, device.mig_current):
        assert isinstance(reading, Unknown)
        assert reading.kind is UnknownKind.NOT_SUPPORTED
    assert device.power.min_w == NOT_IN_REPORT


@pytest.mark.parametrize("name", ["clocks_throttle_reasons", "clocks_event_reasons"])
def test_former_names_of_the_reasons(name: str) -> None:
    assert only(f"uuid, {name}.active\n{UUID}, 0x0000000000000024\n").events.active == 0x24
    header = f"uuid, {name}.sw_power_cap, {name}.hw_slowdown, {name}.sw_thermal_slowdown"
    assert only(f"{header}\n{UUID}, Active, Not Active, Not Active\n").events.active == 0x4


def test_a_wrong_unit_is_no_number() -> None:
    assert isinstance(only(f"uuid, power.limit [mW]\n{UUID}, 250000\n").power.limit_w, Unknown)


def test_without_a_header_the_command_above_names_the_columns() -> None:
    text = f"$ nvidia-smi --query-gpu=uuid,power.limit --format=csv,noheader\n{UUID}, 250.00 W\n"
    assert only(text).power.limit_w == 250


def test_without_a_header_the_user_names_the_columns() -> None:
    row = f"{UUID}, 250.00\n"
    assert read_reports([Report("plain.csv", row)]) is None
    assert only(row, csv_fields=("uuid", "power.limit")).power.limit_w == 250


def test_one_column() -> None:
    assert only("name\nNVIDIA A10G\n").name == "NVIDIA A10G"
    assert read_reports([Report("prose", "I set the name\nname\nof it\n")]) is None


def test_samples_over_time_give_the_last_of_each_gpu() -> None:
    rows = "".join(f"{uuid}, {draw}.00 W\n" for draw in (10, 20) for uuid in (UUID, OTHER))
    facts = read(f"uuid, power.draw [W]\n{rows}")
    assert [(device.uuid, device.power.draw_w) for device in facts.devices] == [(UUID, 20), (OTHER, 20)]


def test_rows_that_nothing_tells_apart() -> None:
    header = "timestamp, name, power.draw [W]\n"
    together = "".join(f"2026/07/14 09:00:44.{ms}, NVIDIA A10G, {w}.00 W\n" for ms, w in (("100", 10), ("130", 20)))
    assert [device.power.draw_w for device in read(header + together).devices] == [10, 20]
    with pytest.raises(DocumentError, match="none of its columns tells the GPU"):
        read(header + together.replace("44.130", "49.130"))


def test_a_list_of_processes_is_no_list_of_gpus() -> None:
    text = f"gpu_name, gpu_uuid, pid, used_gpu_memory [MiB]\nNVIDIA A10G, {UUID}, 17, 100 MiB\n"
    assert read_reports([Report("apps.csv", text)]) is None


def test_the_csv_fills_in_what_the_text_lacks() -> None:
    device = only(
        HEAD,
        "uuid, compute_cap, clocks.applications.graphics [MHz]\n"
        f"{UUID}, 8.6, [Requested functionality has been deprecated]\n",
    )
    assert (device.name, device.compute_capability) == ("NVIDIA A10G", "8.6")
    assert isinstance(device.application_clocks.graphics_mhz, Unknown)
    assert device.application_clocks.graphics_mhz.kind is UnknownKind.DEPRECATED


def test_every_cell_an_error() -> None:
    device = only(
        f"uuid, power.limit [W], clocks.max.sm [MHz], pstate\n{UUID}, [GPU is lost], [GPU is lost], [Unknown Error]\n"
    )
    assert isinstance(device.power.limit_w, Unknown)
    assert device.power.limit_w.kind is UnknownKind.LOST
    assert isinstance(device.performance_state, Unknown)
