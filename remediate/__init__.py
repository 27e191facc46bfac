"""Plan, apply, verify and undo the repair of a GPU sandbox that serves a language model."""

from remediate._version import __version__

__all__ = ["__version__"]
