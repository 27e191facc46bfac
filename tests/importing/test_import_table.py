"""The table of plain nvidia-smi in its three layouts, and what is not taken from it."""

from __future__ import annotations

import pytest
from importing.support import HEAD, only, read

from remediate.model import Unknown, UnknownKind
from remediate.reports import NOT_IN_REPORT

NEW = """
Wed Jun 24 10:17:56 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.14              Driver Version: 550.54.14      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A10G                    On  |   00000000:0C:00.0 Off |                    0 |
|  0%   32C    P8             21W /  150W |       1MiB /  23028MiB |      7%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA GeForce RTX 2080 ...    Off |   00000000:0D:00.0 Off |                  N/A |
| ERR!  ERR! ERR!            N/A /  N/A   |    3MiB /  8192MiB     |     N/A   E. Process |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
| Processes:                                                                              |
|    0   N/A  N/A            2140      C   python                                 12MiB   |
+-----------------------------------------------------------------------------------------+
"""
OLD = """+-----------------------------------------------------------------------------+
| NVIDIA-SMI 460.32.03    Driver Version: 460.32.03    CUDA Version: 11.2     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
|===============================+======================+======================|
|   0  A100-SXM4-40GB      Off  | 00000001:00:00.0 Off |                    0 |
| N/A   41C    P0    55W / 400W |      0MiB / 40536MiB |      0%      Default |
|                               |                      |             Disabled |
+-------------------------------+----------------------+----------------------+
"""


def test_the_present_layout() -> None:
    facts = read(NEW)
    first, second = facts.devices
    assert (facts.driver_version, facts.cuda_driver_version) == ("550.54.14", "12.4")
    assert (first.index, first.name, first.pci_bus_id) == (0, "NVIDIA A10G", "00000000:0C:00.0")
    assert (first.persistence_mode, second.persistence_mode) == (True, False)
    assert (first.temperature.gpu_c, first.performance_state, first.utilization_percent) == (32, 8, 7)
    assert (first.memory.used_mib, first.memory.total_mib, second.memory.total_mib) == (1, 23028, 8192)
    assert (first.compute_mode, second.compute_mode) == ("default", "exclusive process")


def test_what_the_table_does_not_say() -> None:
    first, second = read(NEW).devices
    assert isinstance(second.name, Unknown)
    assert second.temperature.gpu_c == NOT_IN_REPORT
    assert isinstance(second.utilization_percent, Unknown)
    assert second.utilization_percent.kind is UnknownKind.NOT_SUPPORTED
    # It does not tell which of the limits it shows, nor the names of all processes.
    assert first.power.limit_w == first.power.enforced_w == first.processes == NOT_IN_REPORT


def test_the_layout_before_2021_and_that_of_610() -> None:
    device = only(OLD)
    assert (device.name, device.pci_bus_id, device.temperature.gpu_c) == ("A100-SXM4-40GB", "00000001:00:00.0", 41)
    head = "| NVIDIA-SMI 610.62                 KMD Version: 610.62        CUDA UMD Version: 13.3     |"
    rows = NEW.partition("12.4     |\n")[2].replace("Persistence-M", "Driver-Model ").replace(" On ", "WDDM")
    facts = read(f"{head}\n{rows}")
    assert (facts.driver_version, facts.cuda_driver_version) == ("610.62", "13.3")
    assert facts.devices[0].persistence_mode == NOT_IN_REPORT


@pytest.mark.parametrize("order", [0, 1])
def test_a_log_goes_before_the_table_whatever_comes_first(order: int) -> None:
    log = HEAD.replace("NVIDIA A10G", "NVIDIA A10G of the log")
    texts = (NEW, log) if order else (log, NEW)
    facts = read(*texts)
    assert [device.index for device in facts.devices] == [0, 1]
    assert facts.devices[0].name == "NVIDIA A10G of the log"
    assert facts.devices[0].temperature.gpu_c == 32
