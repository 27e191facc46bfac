"""The pages behind the findings' codes, of all subjects."""

from __future__ import annotations

from remediate.errors import UsageError
from remediate.model import Explanation
from remediate.registry import subjects


def all_explanations() -> tuple[Explanation, ...]:
    """All pages, sorted by code."""
    pages = (page for subject in subjects() for page in subject.explanations().values())
    return tuple(sorted(pages, key=lambda page: page.code))


def explanation_of(code: str) -> Explanation:
    """The page of one code; upper and lower case are the same.

    Raises:
        UsageError: there is no such code.
    """
    pages = {page.code: page for page in all_explanations()}
    found = pages.get(code.upper())
    if found is None:
        raise UsageError(f"there is no code `{code}`", hint=f"known are: {', '.join(pages)}")
    return found
