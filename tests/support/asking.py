"""What the tests of the permission service share: a service, asks on it, and a log of its events."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from opencode_jupyter.core.events import Bus
from opencode_jupyter.core.permission import (
    Decision,
    PermissionQuery,
    PermissionRequest,
    PermissionService,
    Rule,
    from_config,
)

pytestmark = pytest.mark.anyio

ASK = from_config({"*": "ask"}, "opencode.json")
S1, S2 = "ses_one", "ses_two"


class Log:
    """Everything the bus said, in order, with what was pending at that moment."""

    def __init__(self, service: PermissionService) -> None:
        self.entries: list[tuple[str, str, str]] = []
        self.pending_then: list[list[str]] = []
        self.threads: list[int] = []

        def note(event: dict[str, Any]) -> None:
            p = event["properties"]
            self.entries.append((event["type"].split(".")[1], p.get("requestID") or p["id"], p.get("reply", "")))
            self.pending_then.append([r.id for r in service.pending()])
            self.threads.append(threading.get_ident())

        service.bus.subscribe("*", note)


@pytest.fixture
def service() -> PermissionService:
    return PermissionService(Bus())


def start(
    service: PermissionService,
    *patterns: str,
    session: str = S1,
    permission: str = "bash",
    ruleset: list[Rule] | None = None,
    **more: Any,
) -> asyncio.Task[Decision]:
    return asyncio.create_task(
        service.ask(
            PermissionQuery(
                session_id=session,
                permission=permission,
                patterns=list(patterns),
                ruleset=ASK if ruleset is None else ruleset,
                **more,
            )
        )
    )


async def until(condition: Callable[[], object]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it did not happen")


async def waiting(service: PermissionService, count: int) -> list[PermissionRequest]:
    await until(lambda: len(service.pending()) == count)
    return service.pending()
