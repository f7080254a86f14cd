"""The bus: subscribers, waiting for them, and what happens when one fails."""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path
from typing import Any

import pytest

import opencode_jupyter
from opencode_jupyter.core.errors import InvalidArgumentsError
from opencode_jupyter.core.events import EVENTS, Bus
from opencode_jupyter.core.hooks import HOOKS, Hooks


@pytest.mark.anyio
async def test_publish_reaches_sync_async_and_star_subscribers() -> None:
    bus, events = Bus(), []

    async def later(event: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        events.append("async")

    assert not bus.has_subscribers("test.x")
    bus.subscribe("test.x", lambda e: events.append(e["properties"]["n"]))
    bus.subscribe("*", lambda e: events.append(e["type"]))
    end = bus.subscribe("test.x", later)
    await bus.publish_and_wait("test.x", {"n": 1})
    assert events == [1, "test.x", "async"] or events == [1, "async", "test.x"]
    end()
    bus.publish("test.x", {"n": 2})
    assert events[-2:] == [2, "test.x"]
    bus.publish("test.y", {})
    assert events[-1] == "test.y"


@pytest.mark.anyio
async def test_a_failing_subscriber_is_logged_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bus, events = Bus(), []

    def bad(event: dict[str, Any]) -> None:
        raise ValueError("bad")

    async def worse(event: dict[str, Any]) -> None:
        raise ValueError("worse")

    bus.subscribe("test.x", bad)
    bus.subscribe("test.x", worse)
    bus.subscribe("test.x", lambda e: events.append(1))
    with caplog.at_level(logging.ERROR):
        await bus.publish_and_wait("test.x", {})
    assert events == [1]
    assert len(caplog.records) == 2


@pytest.mark.anyio
async def test_hooks_run_in_order_on_one_output() -> None:
    hooks = Hooks()

    async def second(hook_input: Any, output: dict[str, Any]) -> None:
        output["n"] *= 10

    remove = hooks.add("test.h", lambda hook_input, output: output.update(n=output["n"] + 1))
    hooks.add("test.h", second)
    assert await hooks.trigger("test.h", {}, {"n": 1}) == {"n": 20}
    remove()
    assert await hooks.trigger("test.h", {}, {"n": 1}) == {"n": 10}
    assert not hooks.has_hooks("test.other")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("tool.execute.befor", "tool.execute.before"),
        ("tools.execute.after", "tool.execute.after"),
        ("tool_execute_before", "tool.execute.before"),
        ("permission.asks", "permission.ask"),
        ("before", "Known hooks: tool.execute.before"),
        ("tool.finished", "There is no hook"),
        ("", "Known hooks"),
        (None, "must be a string"),
    ],
)
def test_a_misspelled_hook_is_refused(name: str, meant: str) -> None:
    hooks = Hooks()
    with pytest.raises(InvalidArgumentsError, match=re.escape(meant)):
        hooks.add(name, lambda hook_input, output: None)
    assert not hooks.has_hooks(name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("message.part.update", "message.part.updated"),
        ("mesage.updated", "message.updated"),
        ("permissions.asked", "permission.asked"),
        ("session_idle", "session.idle"),
        ("message.*", "There is no event"),
        ("**", "Known events: permission.asked"),
        (7, "must be a string"),
    ],
)
def test_a_misspelled_event_is_refused(name: str, meant: str) -> None:
    bus = Bus()
    with pytest.raises(InvalidArgumentsError, match=re.escape(meant)):
        bus.subscribe(name, lambda event: None)
    assert not bus.has_subscribers(name)


def test_known_names_and_names_of_plugins_are_accepted() -> None:
    bus, hooks, events = Bus(), Hooks(), []
    for event in (*EVENTS, "*", "house.opened"):
        bus.subscribe(event, lambda event: events.append(event["type"]))
    for name in (*HOOKS, "house.before"):
        hooks.add(name, lambda hook_input, output: None)
        assert hooks.has_hooks(name)
    bus.publish("house.opened", {})
    assert events == ["house.opened", "house.opened"]


def test_the_package_publishes_only_known_events() -> None:
    """What the source publishes by a literal name is in the list that subscribers are checked against."""
    root = Path(opencode_jupyter.__file__).parent
    pattern = re.compile(r"""(?:publish|publish_and_wait)\(\s*"([a-z.]+)\"""")
    published = {name for path in root.rglob("*.py") for name in pattern.findall(path.read_text("utf-8"))}
    assert len(published) > 10
    assert published <= set(EVENTS)
