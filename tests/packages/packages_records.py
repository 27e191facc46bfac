"""Facts records of an imagined environment in `/e`, and the packages subject's answers to them: no process, no file."""

from __future__ import annotations

from typing import Any

from remediate.model import SCHEMA_VERSION, Change, Facts, Finding, Host, Request
from remediate.packages.compare import compare_packages
from remediate.packages.facts import (
    DistributionFacts,
    PackagesFacts,
    RequirementsFileFacts,
    TargetFacts,
    TorchBuild,
)
from remediate.packages.install import Install
from remediate.packages.subject import PackagesSubject
from remediate.profile.schema import InstallSource, Pin, Profile
from remediate.subject import Proposal, Settings, Situation

SITE = "/e/lib/python3.11/site-packages"
TARGET = TargetFacts(
    python="/e/bin/python",
    version="3.11.7",
    implementation="cpython",
    prefix="/e",
    base_prefix="/usr",
    search_path=(SITE,),
    purelib=SITE,
    platlib=SITE,
    scripts="/e/bin",
    user_site=None,
    system="linux",
    machine="x86_64",
    cache_tag="cpython-311",
    libc="glibc 2.36",
    externally_managed=False,
    is_writable=True,
)
TORCH = Pin(version="2.1.2", cuda="12.1", reason="the report's")


def dist(name: str, version: str, **more: Any) -> DistributionFacts:
    return DistributionFacts(name, name, version, f"{SITE}/{name}-{version}.dist-info", "pip", **more)


def facts_of(
    *distributions: DistributionFacts,
    target: TargetFacts | None = TARGET,
    requirements: bytes | None = None,
    cuda: str | None = "12.1",
    **more: Any,
) -> PackagesFacts:
    has_torch = any(item.name == "torch" for item in distributions)
    build = TorchBuild(f"{SITE}/torch/version.py", "2.1.2", cuda) if has_torch else None
    files = () if requirements is None else (RequirementsFileFacts("/s/requirements.txt", requirements, ""),)
    settings = {"torch_build": build, "requirements": files, "pip": "24.0", **more}
    return PackagesFacts(target, distributions=distributions, **settings)


def profile_of(python: str = "", install: InstallSource | None = None, **pins: Pin) -> Profile:
    packages = {name.replace("_", "-"): pin for name, pin in pins.items()}
    source = install or InstallSource()
    return Profile(schema_version=1, name="p", packages=packages, python=python, install=source)


def findings_of(facts: PackagesFacts, profile: Profile, **announced: str) -> dict[str, Finding]:
    keys = {key.replace("__", ":"): value for key, value in announced.items()}
    return {f"{item.code}:{item.target}": item for item in compare_packages(facts, profile, keys)}


def document(facts: PackagesFacts) -> Facts:
    host = Host("Linux", "x86_64", "b", False)
    return Facts(SCHEMA_VERSION, "0", "now", Request("/s"), host, (), {"packages": facts})


def propose(facts: PackagesFacts, profile: Profile, settings: Settings | None = None, **announced: str) -> Proposal:
    keys = {key.replace("__", ":"): value for key, value in announced.items()}
    situation = Situation(document(facts), profile, settings or Settings(), keys)
    subject = PackagesSubject()
    return subject.propose(situation, subject.compare(situation))


def change(proposal: Proposal, start: str) -> Change:
    return next(item for item in proposal.changes if item.id.startswith(start))


def install_of(proposal: Proposal) -> Install:
    operation = change(proposal, "packages:install").operation
    assert isinstance(operation, Install)
    return operation
