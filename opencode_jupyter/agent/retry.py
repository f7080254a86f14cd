"""Retries: when a request is repeated after an error that may go away, and the wait before it.

OpenCode waits 2 s, 4 s, 8 s, ... (at most 30 s) unless the provider gives a time, without end; here there is
an end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..core.call_state import now_ms
from .errors import ModelError

if TYPE_CHECKING:
    from .run import Run

FIRST_WAIT = 2.0
"""Seconds before the second try."""
LONGEST_WAIT = 30.0
"""Seconds between two tries, where the provider gave no time."""
LONGEST_REQUESTED_WAIT = 600.0
"""Seconds a provider may ask for; beyond, the run ends with an error."""
TRIES = 6
"""Attempts for one step, in total."""
TRIES_WITHOUT_ANSWER = {"network": 3, "timeout": 3}
"""The same where nobody answered at all: a wrong address stays wrong."""


def wait_before(error: ModelError, attempt: int) -> float | None:
    """Seconds to wait before a model is asked again; None if it should not be.

    `attempt` counts how many times it was asked, this time included.
    """
    if not error.retryable or attempt >= TRIES_WITHOUT_ANSWER.get(error.kind, TRIES):
        return None
    if error.retry_after is not None:
        return max(0.0, error.retry_after) if error.retry_after <= LONGEST_REQUESTED_WAIT else None
    wait: float = FIRST_WAIT * 2 ** (attempt - 1)
    return min(wait, LONGEST_WAIT)


async def pause(run: Run, error: ModelError, attempt: int, seconds: float) -> None:
    """Wait before a model is asked again, and show that as the run's status."""
    status = run.status
    run.retry = {"attempt": attempt, "message": str(error), "next": now_ms() + round(seconds * 1000)}
    run.set_status("retrying")
    await asyncio.sleep(seconds)
    run.retry = None
    run.set_status(status)
