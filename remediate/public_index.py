"""Where the public package index is, as pip knows it: one place to change, and no address of our own."""

from __future__ import annotations


def simple_url() -> str:
    """The simple repository API (PEP 503)."""
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url)


def json_url() -> str:
    """The root of the JSON API, without a slash at the end."""
    from pip._internal.models.index import PyPI

    return str(PyPI.url).rstrip("/")


def hosts() -> frozenset[str]:
    """Host names of the index, of its test instance, and of the store that their files come from."""
    from pip._internal.models.index import PyPI, TestPyPI

    return frozenset({PyPI.netloc, TestPyPI.netloc, PyPI.file_storage_domain})
