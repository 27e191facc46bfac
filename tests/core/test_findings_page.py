"""docs/findings.md says what `remediate explain` says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_current() -> None:
    spec = importlib.util.spec_from_file_location("write_findings", ROOT / "tools" / "write_findings.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.TARGET.read_text("utf-8") == tool.render(), "run `./dev docs`"
