"""The subjects, in the order in which they are observed, shown and applied: packages, script, GPU.

A further subject is a folder that implements `remediate.subject.Subject`, and one line here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from remediate.errors import UsageError
from remediate.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remediate.model import Facts, Finding
    from remediate.profile.schema import Profile
    from remediate.reports import ReportReader


@cache
def subjects() -> tuple[Subject, ...]:
    """All subjects. The order is that of applying: what a later one needs comes before it."""
    return _load()


def _load() -> tuple[Subject, ...]:
    from remediate.gpu.subject import GpuSubject
    from remediate.packages.subject import PackagesSubject
    from remediate.script.subject import ScriptSubject

    return (PackagesSubject(), ScriptSubject(), GpuSubject())


def report_readers() -> dict[str, ReportReader]:
    """How reports are read, by the name of the subject whose facts they give. Not every subject can."""
    from remediate.gpu.reports import read_reports as read_gpu
    from remediate.packages.reports import read_reports as read_packages

    return {"packages": read_packages, "gpu": read_gpu}


def trials() -> dict[str, Callable[[Facts, Profile], Sequence[Finding]]]:
    """How a subject is tried out on this host, by its name. Not every subject can be."""
    from remediate.packages.trial import try_out

    return {"packages": try_out}


def select_subjects(names: Iterable[str]) -> tuple[Subject, ...]:
    """The named subjects in registry order; all of them for no names.

    Raises:
        UsageError: a name is not known.
    """
    wanted = tuple(names)
    known = {subject.name: subject for subject in subjects()}
    for name in wanted:
        if name not in known:
            raise UsageError(f"there is no subject `{name}`", hint=f"known are: {', '.join(known)}")
    return tuple(subject for subject in known.values() if not wanted or subject.name in wanted)


def subject_named(name: str) -> Subject:
    """The subject with that name.

    Raises:
        UsageError: a name is not known.
    """
    (subject,) = select_subjects((name,))
    return subject
