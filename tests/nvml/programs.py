"""The two programs that the tests run as nvidia-smi: the genuine one where it was fetched, and the stand-in."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FETCHED = ROOT / ".cache" / "nvidia-smi" / "nvidia-smi"
"""Where `./dev smi` puts it."""
NAMES = [pytest.param("genuine", marks=pytest.mark.slow), "fake"]


def install(name: str, folder: Path) -> Path:
    """A folder for PATH with that program in it as `nvidia-smi`. Skips where the genuine one is not at hand."""
    folder.mkdir(exist_ok=True)
    place = folder / "nvidia-smi"
    if name == "genuine":
        genuine = Path(os.environ.get("REMEDIATE_TEST_SMI", str(FETCHED)))
        if not genuine.is_file():
            pytest.skip("needs the genuine nvidia-smi 535: `./dev smi` fetches it, or name it in REMEDIATE_TEST_SMI")
        place.symlink_to(genuine)
        return folder
    fake = Path(__file__).parent / "fake_smi.py"
    # -S and -I leave out what costs most of a start: site-packages and the user's environment.
    place.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S {shlex.quote(str(fake))} "$@"\n', "utf-8")
    place.chmod(0o755)
    return folder
