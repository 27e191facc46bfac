"""Bytes of a report to text, whatever shell wrote it."""

from __future__ import annotations

from pathlib import Path

from remediate.errors import DocumentError

MAX_BYTES = 16 * 1024 * 1024
"""nvidia-smi prints some 30 KiB for a GPU; a bug report with a log may have megabytes."""
_STDIN = "-"


def read_text(place: str) -> tuple[str, str]:
    """Name and text of a file, or of standard input for `-`.

    Raises:
        DocumentError: it can't be read, is too large, or is no text.
    """
    name = "standard input" if place == _STDIN else Path(place).name
    return name, decode(_read(place), place)


def decode(content: bytes, place: str) -> str:
    r"""The text, with `\n` at the end of lines. UTF-8, or UTF-16 as PowerShell's `>` writes it.

    Raises:
        DocumentError: it is too large, or no text.
    """
    if len(content) > MAX_BYTES:
        raise DocumentError(f"`{place}` is larger than 16 MiB", cause="a report is far smaller")
    is_wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    # A name in another encoding, as in a process list, must not cost the rest: it is shown as U+FFFD.
    text = content.decode("utf-16" if is_wide else "utf-8-sig", "replace")
    if "\0" in text:
        raise DocumentError(
            f"`{place}` is no text",
            cause="it holds zero bytes",
            hint="import what nvidia-smi, pip or torch printed; unpack an archive first",
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read(place: str) -> bytes:
    if place == _STDIN:
        import sys

        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with Path(place).open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise DocumentError(f"`{place}` can't be read", cause=str(cause), hint="check the path") from error
