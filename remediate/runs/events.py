"""What applying tells as it goes on; the command line prints it, tests record it."""

from __future__ import annotations

from typing import Protocol

from remediate.model import Change, Performed


class Events(Protocol):
    """Receives the steps of a run. Every method may do nothing."""

    def starting(self, change: Change) -> None:
        """The change's intent is on disk and its effect comes next."""
        ...

    def finished(self, change: Change, performed: Performed) -> None:
        """The change was made (or undone) and read back."""
        ...

    def progress(self, line: str) -> None:
        """Something that takes long says how far it is."""
        ...


class Silent:
    """Events that nobody listens to."""

    def starting(self, change: Change) -> None:
        """Do nothing."""

    def finished(self, change: Change, performed: Performed) -> None:
        """Do nothing."""

    def progress(self, line: str) -> None:
        """Do nothing."""
