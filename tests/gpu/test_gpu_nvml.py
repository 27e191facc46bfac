"""NVML's errors as readings, and the ways in which opening it fails."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from remediate.gpu.nvml import ask, ask_first, code_for, hint_for, open_nvml, unknown_for
from remediate.model import Unknown, UnknownKind

CODES = sorted(
    {value for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_") and isinstance(value, int)}
)
nvml_error: Any = pynvml.NVMLError
KINDS = {
    3: UnknownKind.NOT_SUPPORTED,
    4: UnknownKind.NO_PERMISSION,
    9: UnknownKind.FAILED,
    13: UnknownKind.NOT_SUPPORTED,
    15: UnknownKind.LOST,
    16: UnknownKind.LOST,
    17: UnknownKind.NO_PERMISSION,
    22: UnknownKind.NOT_SUPPORTED,
    25: UnknownKind.NOT_SUPPORTED,
    26: UnknownKind.DEPRECATED,
    999: UnknownKind.FAILED,
}


def raising(error: Any, **more: Any) -> Any:
    """A module whose one function raises."""

    def call(*arguments: Any) -> None:
        raise error

    return SimpleNamespace(
        NVMLError=pynvml.NVMLError,
        NVMLLibraryMismatchError=pynvml.NVMLLibraryMismatchError,
        nvmlDeviceGetName=call,
        **more,
    )


@pytest.mark.parametrize("code", CODES)
def test_every_error_class_of_the_package_becomes_a_reading(code: int) -> None:
    error = nvml_error(code)
    assert type(error) is not pynvml.NVMLError
    reading = ask(raising(error), "nvmlDeviceGetName", 0)
    assert reading == unknown_for(code)
    assert reading.kind is KINDS.get(code, reading.kind)
    assert "error " + str(code) not in reading.reason, "a code of the package without a meaning of its own"


@pytest.mark.parametrize("code", CODES)
def test_the_code_behind_a_reading_is_found_again(code: int) -> None:
    assert code_for(unknown_for(code)) == code


def test_reasons_are_distinct() -> None:
    assert len({unknown_for(code).reason for code in CODES}) == len(CODES)


def test_a_code_of_a_newer_driver_is_named_by_number() -> None:
    assert unknown_for(4711) == Unknown(UnknownKind.FAILED, "the driver reports NVML error 4711")


def test_a_foreign_reason_falls_back_to_the_code_of_its_kind() -> None:
    assert code_for(Unknown(UnknownKind.NO_PERMISSION, "somebody's own words")) == 4


def test_library_mismatch_is_no_nvml_error_and_means_a_missing_function() -> None:
    assert not issubclass(pynvml.NVMLLibraryMismatchError, pynvml.NVMLError)
    error = pynvml.NVMLLibraryMismatchError("unversioned")
    assert ask(raising(error), "nvmlDeviceGetName", 0) == unknown_for(13)


def test_a_function_that_the_package_lacks_is_not_supported() -> None:
    reading = ask(raising(ValueError()), "nvmlDeviceGetSomethingNew", 0)
    assert reading.kind is UnknownKind.NOT_SUPPORTED
    assert "nvidia-ml-py" in reading.reason


def test_defects_of_the_program_pass_through() -> None:
    with pytest.raises(ZeroDivisionError):
        ask(raising(ZeroDivisionError()), "nvmlDeviceGetName", 0)


def test_text_that_is_not_utf8_is_a_failed_reading() -> None:
    error = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    assert ask(raising(error), "nvmlDeviceGetName", 0).kind is UnknownKind.FAILED


@pytest.mark.parametrize(
    ("first_error", "expected"),
    [
        (13, "old"),
        (3, unknown_for(3)),
        (4, unknown_for(4)),
    ],
)
def test_the_older_name_is_asked_only_where_the_newer_one_is_missing(first_error: int, expected: Any) -> None:
    nvml = raising(nvml_error(first_error), nvmlOld=lambda handle: "old")
    assert ask_first(nvml, ("nvmlDeviceGetName", "nvmlOld"), 0) == expected


@pytest.mark.parametrize("code", [4, 9, 12, 18, 999])
def test_a_failed_initialisation_says_why_and_what_to_do(code: int) -> None:
    def refuse() -> None:
        raise nvml_error(code)

    module = SimpleNamespace(
        NVMLError=pynvml.NVMLError, NVMLLibraryMismatchError=pynvml.NVMLLibraryMismatchError, nvmlInit=refuse
    )
    with open_nvml(module) as opened:
        assert opened == unknown_for(code)
    assert hint_for(unknown_for(code))


def test_a_package_that_is_missing_is_a_reading_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with open_nvml() as opened:
        assert isinstance(opened, Unknown)
    assert "nvidia-ml-py" in hint_for(opened)


def test_nvml_is_shut_down_after_an_exception() -> None:
    calls: list[str] = []
    module = SimpleNamespace(
        NVMLError=pynvml.NVMLError,
        NVMLLibraryMismatchError=pynvml.NVMLLibraryMismatchError,
        nvmlInit=lambda: calls.append("init"),
        nvmlShutdown=lambda: calls.append("shutdown"),
    )
    with pytest.raises(KeyError), open_nvml(module):
        raise KeyError
    assert calls == ["init", "shutdown"]
