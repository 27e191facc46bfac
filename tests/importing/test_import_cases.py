"""Small cases, each from something that was met: odd cells, cut and masked texts, other forms."""

from __future__ import annotations

import pytest
from importing.support import COLLECTED, HEAD, UUID, only, read

from remediate.errors import DocumentError
from remediate.gpu.reports import read_reports
from remediate.model import Unknown, UnknownKind
from remediate.reports import NOT_IN_REPORT, Report

POWER = """    GPU Power Readings
        Average Power Draw                             : N/A
        Instantaneous Power Draw                       : 97.75 W
        Current Power Limit                            : 240.00 W
        Requested Power Limit                          : 250.00 W
        Default Power Limit                            : 300.00 W
        Min Power Limit                                : 100.00 W
        Max Power Limit                                : 300.00 W
    Module Power Readings
        Current Power Limit                            : 999.00 W
        Requested Power Limit                          : N/A
"""


def test_current_is_what_is_enforced_and_the_module_does_not_count() -> None:
    power = only(HEAD + POWER).power
    assert (power.limit_w, power.enforced_w, power.draw_w) == (250, 240, 97.75)
    assert only(HEAD + POWER).module_power is None


def test_a_grace_module_has_its_own_power() -> None:
    text = HEAD + POWER.replace(
        "Requested Power Limit                          : N/A", "Requested Power Limit : 900.00 W"
    )
    module = only(text).module_power
    assert module is not None
    assert (module.limit_w, module.enforced_w, module.default_w) == (900, 999, NOT_IN_REPORT)


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("N/A", UnknownKind.NOT_SUPPORTED),
        ("[N/A]", UnknownKind.NOT_SUPPORTED),
        ("[Not Supported]", UnknownKind.NOT_SUPPORTED),
        ("Requested functionality has been deprecated", UnknownKind.DEPRECATED),
        ("[Insufficient Permissions]", UnknownKind.NO_PERMISSION),
        ("GPU is lost", UnknownKind.LOST),
        ("[GPU requires reset]", UnknownKind.LOST),
        ("Unknown Error", UnknownKind.FAILED),
        ("ERR!", UnknownKind.FAILED),
        ("[unknown return value: 28]", UnknownKind.FAILED),
        ("250", UnknownKind.FAILED),
        ("250 MHz", UnknownKind.FAILED),
        ("250,00 W", UnknownKind.FAILED),
        ("1e3 W", UnknownKind.FAILED),
        ("-5.00 W", UnknownKind.FAILED),
        ("99999999.00 W", UnknownKind.FAILED),
        ("nan W", UnknownKind.FAILED),
        ("٣٠٠ W", UnknownKind.FAILED),
        ("0.00 W", UnknownKind.FAILED),
    ],
)
def test_a_cell_is_a_number_only_if_it_is_one(cell: str, kind: UnknownKind) -> None:
    limit = only(HEAD + POWER.replace("250.00 W", cell)).power.limit_w
    assert isinstance(limit, Unknown)
    assert limit.kind is kind


def test_an_unknown_token_is_told_as_it_stands() -> None:
    limit = only(HEAD + POWER.replace("250.00 W", "Flux Capacitor")).power.limit_w
    assert limit == Unknown(UnknownKind.FAILED, "the report says `Flux Capacitor`")


def test_without_its_indentation_a_text_gives_no_numbers() -> None:
    flattened = "\n".join(line.strip() for line in (HEAD + POWER).splitlines())
    facts = read(flattened)
    assert facts.driver_version == "550.54.14"
    assert all(device.power.limit_w == NOT_IN_REPORT for device in facts.devices)


@pytest.mark.parametrize("length", range(1, 60))
def test_a_text_that_was_cut_gives_no_wrong_number(length: int) -> None:
    whole = HEAD + POWER.partition("    Module")[0]
    power = only(whole[:-length]).power
    assert power.max_w in (300, NOT_IN_REPORT) or isinstance(power.max_w, Unknown)
    assert power.min_w in (100, NOT_IN_REPORT) or isinstance(power.min_w, Unknown)


def test_a_cut_pid_is_none() -> None:
    text = HEAD + "    Processes\n        Process ID : 123456\n            Type : C\n        Process ID : 98"
    processes = only(text).processes
    assert not isinstance(processes, Unknown)
    assert [process.pid for process in processes] == [123456]


@pytest.mark.parametrize("masked", ["GPU-00000000-0000-0000-0000-000000000000", "GPU-xxxxxxxx", "GPU-5f1c2d3e", "N/A"])
def test_a_masked_or_short_uuid_names_no_gpu(masked: str) -> None:
    assert isinstance(only(HEAD.replace(UUID, masked)).uuid, Unknown)


def test_two_gpus_under_one_mask_stay_two() -> None:
    one = HEAD.replace(UUID, "GPU-00000000-0000-0000-0000-000000000000")
    second = one.partition("GPU 00000000")[2].replace(":0C:00.0", ":0D:00.0")
    facts = read(one.replace("GPUs                                          : 1", "GPUs : 2") + "GPU 00000000" + second)
    assert [(device.index, device.pci_bus_id) for device in facts.devices] == [
        (0, "00000000:0C:00.0"),
        (1, "00000000:0D:00.0"),
    ]


def test_the_last_of_several_samples_counts() -> None:
    later = (HEAD + POWER).replace("97.75 W", "120.00 W")
    assert only(HEAD + POWER + later).power.draw_w == 120


def test_a_log_in_the_middle_of_a_bug_report() -> None:
    before, after = (
        "### What happened\nslow : very\n```\n$ nvidia-smi -q\n",
        "```\n\nGPU clocks are low\n    Clocks : odd\n",
    )
    text = before + HEAD + POWER + after
    assert only(text).power.limit_w == 250


def test_a_log_that_is_indented_as_a_whole() -> None:
    text = "".join(f"    {line}" for line in (HEAD + POWER).splitlines(keepends=True))
    assert only(text).power.limit_w == 250
    assert read(text).driver_version == "550.54.14"


def test_the_longest_key_of_610_has_no_blank_before_its_colon() -> None:
    text = HEAD + "    Temperature\n        Memory Max Operating T.Limit Temp Specification: 0 C\n"
    assert only(text).temperature.memory_max_margin_c == 0


def test_mig_devices_do_not_lend_their_memory() -> None:
    mig = """    MIG Mode
        Current                                        : Enabled
        Pending                                        : Enabled
    MIG Device
        Index                                          : 0
        FB Memory Usage
            Total                                      : 4864 MiB
            Used                                       : 3 MiB
    FB Memory Usage
        Total                                          : 40960 MiB
        Used                                           : 1 MiB
"""
    device = only(HEAD + mig)
    assert (device.mig_current, device.memory.total_mib, device.memory.used_mib) == (True, 40960, 1)


def test_deprecated_driver_lines_of_610() -> None:
    head = HEAD.replace("550.54.14", "610.43.02 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]")
    assert read(head).driver_version == "610.43.02"
    only_new = head.replace("Driver Version  ", "KMD Version     ")
    assert read(only_new).driver_version == "610.43.02"


def test_supported_clocks_as_text() -> None:
    text = (
        HEAD
        + "    Supported Clocks\n        Memory : 6251 MHz\n"
        + "            Graphics : 1710 MHz\n            Graphics : 1695 MHz\n"
    )
    tables = only(text + "        Memory : 405 MHz\n            Graphics : 420 MHz\n").supported_clocks
    assert not isinstance(tables, Unknown)
    assert [(table.memory_mhz, table.graphics_mhz) for table in tables] == [(6251, (1710, 1695)), (405, (420,))]


def test_some_reasons_only_are_no_mask_unless_one_is_active() -> None:
    block = "    Clocks Throttle Reasons\n        HW Slowdown : {}\n"
    assert isinstance(only(HEAD + block.format("Not Active")).events.active, Unknown)
    assert only(HEAD + block.format("Active")).events.active == 0x8


@pytest.mark.parametrize(
    ("architecture", "device_id", "capability"),
    [
        ("Hopper", "0x233510DE", "9.0"),
        ("Ampere", "0x20B010DE", "8.0"),
        ("Ampere", "0x223710DE", "8.6"),
        ("Blackwell", "0x290110DE", "10.0"),
        ("Blackwell", "0x2BB410DE", "12.0"),
        ("Blackwell", "0x234110DE", None),
        ("Ampere", "N/A", None),
        ("Maxwell", "0x13BA10DE", None),
    ],
)
def test_the_capability_follows_where_it_is_the_only_one(
    architecture: str, device_id: str, capability: str | None
) -> None:
    text = f"{HEAD}    Product Architecture : {architecture}\n    PCI\n        Device Id : {device_id}\n"
    assert only(text).compute_capability == (capability or NOT_IN_REPORT)


def test_an_entity_bomb_is_refused() -> None:
    bomb = (
        '<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]>'
        "<nvidia_smi_log><driver_version>&b;</driver_version></nvidia_smi_log>"
    )
    with pytest.raises(DocumentError, match="XML entity"):
        read_reports([Report("bomb.xml", bomb)])


def test_xml_that_is_nested_without_end_is_refused() -> None:
    with pytest.raises(DocumentError, match="nested too deep"):
        read_reports([Report("deep.xml", "<nvidia_smi_log>" + "<a>" * 100_000)])


def test_an_xml_that_breaks_off_gives_what_was_closed() -> None:
    xml = (
        "<nvidia_smi_log><driver_version>550.54.14</driver_version><attached_gpus>1</attached_gpus>"
        f'<gpu id="00000000:0C:00.0"><uuid>{UUID}</uuid><gpu_power_readings><min_power_limit>100.00 W</min_power_limit>'
        "<max_power_limit>300.0"
    )
    readout = read_reports([Report("cut.xml", xml)])
    assert readout is not None
    assert readout.notes == ("cut.xml: nvidia-smi -q -x breaks off before its end",)
    assert (only(xml).power.min_w, only(xml).power.max_w) == (100, NOT_IN_REPORT)


@pytest.mark.parametrize(
    ("message", "kind", "words"),
    [
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure",
            UnknownKind.FAILED,
            "not loaded",
        ),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please", UnknownKind.FAILED, "libnvidia-ml"),
        (
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.163",
            UnknownKind.FAILED,
            "different versions",
        ),
    ],
)
def test_the_messages_of_a_driver_that_does_not_answer(message: str, kind: UnknownKind, words: str) -> None:
    driver = read(message).driver_version
    assert isinstance(driver, Unknown)
    assert driver.kind is kind
    assert words in driver.reason


@pytest.mark.parametrize("name", ["0000:02:00.0", "00000000:02:00.0"])
def test_a_lost_gpu_beside_a_good_one(name: str) -> None:
    message = (
        f"Unable to determine the device handle for GPU {name}: GPU is lost.  Reboot the system to recover this GPU\n"
    )
    good, lost = sorted(read(HEAD + POWER, message).devices, key=lambda device: device.lost is not None)
    assert good.power.limit_w == 250
    assert lost.lost is not None
    assert lost.lost.kind is UnknownKind.LOST
    assert lost.pci_bus_id == "00000000:02:00.0"


def test_reports_of_two_drivers_are_refused() -> None:
    with pytest.raises(DocumentError, match=r"different drivers: 550.54.14 and 535.161.08"):
        read(HEAD, HEAD.replace("550.54.14", "535.161.08"))


@pytest.mark.parametrize(
    ("kernel", "platform"),
    [
        ("Linux-5.15.153.1-microsoft-standard-WSL2-x86_64-with-glibc2.35", "wsl2"),
        ("Linux-5.15.148-tegra-aarch64-with-glibc2.35", "jetson"),
        ("Linux-5.15.0-91-generic-x86_64-with-glibc2.35", NOT_IN_REPORT),
    ],
)
def test_the_kernel_in_torchs_report_tells_the_platform(kernel: str, platform: object) -> None:
    text = COLLECTED.replace("Linux-5.15.0-91-generic-x86_64-with-glibc2.35", kernel)
    facts = read(text)
    assert facts.platform == platform
    assert [device.name for device in facts.devices] == ["NVIDIA A100-SXM4-40GB"] * 2
    assert (facts.driver_version, facts.cuda_driver_version) == ("535.129.03", NOT_IN_REPORT)


def test_prose_with_versions_is_no_report_of_torch() -> None:
    assert read_reports([Report("README", "Python version: 3.10.9\nPyTorch version: 2.1.2\n")]) is None
