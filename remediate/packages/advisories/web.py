"""JSON over HTTP for the advisory databases: one bounded request, one kind of failure."""

from __future__ import annotations

from typing import Any

import msgspec

_LIMIT = 64 * 1024 * 1024
_AGENT = "remediate (advisories)"


class Unreachable(Exception):  # noqa: N818 (it is an answer that did not come, told as a value further up)
    """There is no usable answer. `status` is the HTTP status where there was one."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


def request_json(url: str, body: Any = None, *, timeout_s: float = 20.0) -> Any:
    """The document behind a URL; with a body it is posted as JSON. Proxies of the environment are used.

    Raises:
        Unreachable: the URL is not HTTP, the server can't be reached, answers with an error, too much, or no JSON.
    """
    import http.client
    import urllib.error
    import urllib.request

    if not url.startswith(("http://", "https://")):
        raise Unreachable(f"`{url}` is no HTTP address")
    content = None if body is None else msgspec.json.encode(body)
    headers = {"User-Agent": _AGENT, "Accept": "application/json", "Content-Type": "application/json"}
    try:
        request = urllib.request.Request(url, data=content, headers=headers)  # noqa: S310 (the scheme is checked above)
        with urllib.request.urlopen(request, timeout=timeout_s) as response:  # noqa: S310
            answer = response.read(_LIMIT + 1)
            missing = response.length or 0
    except urllib.error.HTTPError as error:
        error.close()
        raise Unreachable(f"HTTP status {error.code}", error.code) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise Unreachable(str(reason) or type(error).__name__) from error
    if len(answer) > _LIMIT:
        raise Unreachable("the answer is too large")
    if missing:
        raise Unreachable(f"the connection ended {missing} bytes before the answer did")
    try:
        return msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreachable("the answer is not JSON") from error
