"""Builds the mock libnvidia-ml.so.1 and puts it in the place of the real one, in this process or for a child."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from remediate.gpu.nvml import load_pynvml

SOURCES = Path(__file__).parent / "mock"
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler to build the mock libnvidia-ml.so.1")


def build(folder: Path) -> Path:
    """Compile the library into `folder`; a child process finds it there by LD_LIBRARY_PATH."""
    assert COMPILER is not None
    library = folder / "libnvidia-ml.so.1"
    # The short name inside the file is what a program asks for, so that it is found once it is loaded.
    flags = ["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run([COMPILER, *flags, "-o", str(library), *map(str, sorted(SOURCES.glob("*.c")))], check=True)
    return library


def use_in_process(library: Path, board: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the genuine package `pynvml` of this process call the mock library, until the test ends."""
    pynvml = load_pynvml()
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(library)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    monkeypatch.setenv("MOCK_NVML_BOARD", str(board))


def environment(library: Path, board: Path) -> dict[str, str]:
    """Variables with which a child process uses the mock library."""
    return {"LD_LIBRARY_PATH": str(library.parent), "MOCK_NVML_BOARD": str(board)}
