"""What an edit changed in a notebook, for a person to read."""

from __future__ import annotations

from remediate.script.notebook.document import read_cells


def diff_notebooks(name: str, before: bytes, after: bytes) -> str:
    """Unified diffs of the code cells that differ, each headed `a/NAME cell 3`. Both are readable notebooks."""
    import difflib

    pieces = []
    for old, new in zip(_texts(before).items(), _texts(after).items(), strict=True):
        if old != new:
            head = f"{name} cell {old[0]}"
            lines = difflib.unified_diff(_lines(old[1]), _lines(new[1]), f"a/{head}", f"b/{head}")
            pieces += [line if line.endswith("\n") else line + "\n" for line in lines]
    return "".join(pieces)


def _texts(raw: bytes) -> dict[int, str]:
    return {cell.number: cell.text for cell in read_cells(raw.decode("utf-8-sig"))}


def _lines(text: str) -> list[str]:
    """Lines without a word on a missing last line end: the last line of a cell has none."""
    lines = text.split("\n")
    return [line + "\n" for line in (lines if lines[-1] else lines[:-1])]
