"""The pages of the rules in the documentation are those that the rules and their samples give."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_pages_are_current() -> None:
    command = [sys.executable, str(ROOT / "tools" / "write_rule_pages.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, f"run tools/write_rule_pages.py\n{done.stderr}"


def test_every_page_stands_in_the_index() -> None:
    index = (ROOT / "docs" / "script-rules.md").read_text()
    for page in (ROOT / "docs" / "rules").glob("SCR*.md"):
        assert f"(rules/{page.name})" in index
