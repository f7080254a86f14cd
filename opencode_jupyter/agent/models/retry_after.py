"""When a provider wants to be asked again."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

_SECONDS = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*s?\s*$")


def retry_after(headers: Mapping[str, str], body: Any = None) -> float | None:
    """Seconds from now; None if neither the headers nor the body say it.

    Args:
        headers: of the response. ``retry-after-ms`` in milliseconds; ``retry-after`` in seconds or as an HTTP date.
        body: the decoded JSON; Google puts ``{"@type": ".../google.rpc.RetryInfo", "retryDelay": "43s"}`` in there.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after")
    seconds = _number(said)
    if seconds is not None:
        return seconds
    if said:
        try:
            when = parsedate_to_datetime(said)
        except ValueError:
            when = None
        if when is not None:
            if when.tzinfo is None:
                when = when.replace(tzinfo=UTC)
            return max(0.0, when.timestamp() - time.time())
    for detail in details(body):
        delay = _number(detail.get("retryDelay"))
        if delay is not None:
            return delay
    return None


def details(body: Any) -> Iterator[Mapping[str, Any]]:
    """The entries of Google's ``error.details``."""
    error = body.get("error") if isinstance(body, Mapping) else None
    found = error.get("details") if isinstance(error, Mapping) else None
    for one in found if isinstance(found, list) else ():
        if isinstance(one, Mapping):
            yield one


def _number(text: Any) -> float | None:
    found = _SECONDS.match(str(text)) if text is not None else None
    return float(found.group(1)) if found else None
