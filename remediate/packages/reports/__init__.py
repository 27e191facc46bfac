"""Packages facts from lists that somebody has already: `pip freeze`, `pip list`, torch's report on its environment."""

from __future__ import annotations

import re
from collections.abc import Sequence

from remediate.errors import DocumentError
from remediate.model import Reading, Unknown, UnknownKind
from remediate.packages.facts import DistributionFacts, ListingFacts, PackagesFacts, TorchBuild
from remediate.packages.reports.collected import find_collected
from remediate.packages.reports.found import Found
from remediate.packages.reports.freeze import find_freeze
from remediate.packages.reports.listed import find_list
from remediate.reports import NOT_IN_REPORT, Readout, Report

_LOCAL_CUDA = re.compile(r"\+cu(\d{2,3})$", re.ASCII)
_NO_BUILD = Unknown(UnknownKind.NOT_READ, "the version does not name the build")


def read_reports(reports: Sequence[Report]) -> Readout | None:
    """Packages facts from all lists in the reports; None where there are none.

    Raises:
        DocumentError: two lists give one distribution different versions, so that they are of different environments.
    """
    lists = [found for report in reports for found in _find(report)]
    if not lists:
        return None
    kinds: dict[str, tuple[str, ...]] = {}
    for found in lists:
        kinds[found.name] = (*kinds.get(found.name, ()), found.kind)
    return Readout(_join(lists), kinds)


def _find(report: Report) -> list[Found]:
    readers = (find_collected, find_list, find_freeze)
    return [found for read in readers if (found := read(report.text, report.name)) is not None]


def _join(lists: Sequence[Found]) -> PackagesFacts:
    distributions: dict[str, tuple[DistributionFacts, Found]] = {}
    for found in lists:
        for entry in found.distributions:
            known = distributions.setdefault(entry.name, (entry, found))
            _check_same(known, (entry, found))
            if isinstance(known[0].version, Unknown) or _is_more_exact(entry, known[0]):
                distributions[entry.name] = (entry, found)
    complete = [found for found in lists if found.is_complete]
    left_out = set.intersection(*(set(found.left_out) for found in complete)) if complete else set[str]()
    entries = tuple(entry for _, (entry, _) in sorted(distributions.items()))
    python: Reading[str] = next((found.python for found in lists if found.python is not None), NOT_IN_REPORT)
    source = ", ".join(dict.fromkeys(found.source for found in lists))
    return PackagesFacts(
        target=None,
        target_unknown=NOT_IN_REPORT,
        distributions=entries,
        torch_build=next((found.build for found in lists if found.build), None) or _build(entries, source),
        pip=NOT_IN_REPORT,
        tool_pip=NOT_IN_REPORT,
        listing=ListingFacts(source, bool(complete), tuple(sorted(left_out)), python),
    )


def _check_same(known: tuple[DistributionFacts, Found], other: tuple[DistributionFacts, Found]) -> None:
    """Versions are the same but for a local part, which some lists leave out.

    Raises:
        DocumentError: they differ.
    """
    here, there = known[0].version, other[0].version
    if isinstance(here, Unknown) or isinstance(there, Unknown) or _public(here) == _public(there):
        return
    raise DocumentError(
        f"the reports are of different environments: {known[0].name} is {here} and {there}",
        cause=f"{known[1].source}, and {other[1].source}",
        hint="import the reports of one environment, taken at one time",
    )


def _is_more_exact(entry: DistributionFacts, known: DistributionFacts) -> bool:
    """`2.1.2+cu121` says more than `2.1.2`."""
    return isinstance(entry.version, str) and "+" in entry.version and "+" not in str(known.version)


def _public(version: str) -> str:
    return version.partition("+")[0]


def _build(entries: Sequence[DistributionFacts], source: str) -> TorchBuild | None:
    """From the local part of torch's version, as its own index gives it (`2.1.2+cu121`, `2.1.2+cpu`)."""
    torch = next((entry for entry in entries if entry.name == "torch"), None)
    if torch is None:
        return None
    version = torch.version if isinstance(torch.version, str) else ""
    cuda = _LOCAL_CUDA.search(version)
    if cuda:
        return TorchBuild(source, torch.version, f"{cuda[1][:-1]}.{cuda[1][-1]}")
    return TorchBuild(source, torch.version, None if version.endswith("+cpu") else _NO_BUILD)
