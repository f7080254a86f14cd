"""The bus: subscribers, waiting for them, and what happens when one fails."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from opencode_jupyter.core.events import Bus
from opencode_jupyter.core.hooks import Hooks


@pytest.mark.anyio
async def test_publish_reaches_sync_async_and_star_subscribers() -> None:
    bus, seen = Bus(), []

    async def later(event: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        seen.append("async")

    assert not bus.wanted("x")
    bus.subscribe("x", lambda e: seen.append(e["properties"]["n"]))
    bus.subscribe("*", lambda e: seen.append(e["type"]))
    end = bus.subscribe("x", later)
    await bus.publish_and_wait("x", {"n": 1})
    assert seen == [1, "x", "async"] or seen == [1, "async", "x"]
    end()
    bus.publish("x", {"n": 2})
    assert seen[-2:] == [2, "x"]
    bus.publish("y", {})
    assert seen[-1] == "y"


@pytest.mark.anyio
async def test_a_failing_subscriber_is_logged_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bus, seen = Bus(), []

    def bad(event: dict[str, Any]) -> None:
        raise ValueError("bad")

    async def worse(event: dict[str, Any]) -> None:
        raise ValueError("worse")

    bus.subscribe("x", bad)
    bus.subscribe("x", worse)
    bus.subscribe("x", lambda e: seen.append(1))
    with caplog.at_level(logging.ERROR):
        await bus.publish_and_wait("x", {})
    assert seen == [1]
    assert len(caplog.records) == 2


@pytest.mark.anyio
async def test_hooks_run_in_order_on_one_output() -> None:
    hooks = Hooks()

    async def second(given: Any, output: dict[str, Any]) -> None:
        output["n"] *= 10

    remove = hooks.add("h", lambda given, output: output.update(n=output["n"] + 1))
    hooks.add("h", second)
    assert await hooks.trigger("h", {}, {"n": 1}) == {"n": 20}
    remove()
    assert await hooks.trigger("h", {}, {"n": 1}) == {"n": 10}
    assert not hooks.wanted("other")
