"""Hooks that are not about one call: ``event`` and ``config``."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import PermissionDeniedError
from opencode_jupyter.core.config import Config
from opencode_jupyter.core.config.load import amended
from tests.support.plugin_folders import PluginFolders, plugins_of, recorded, recording_code, running

# ---------------------------------------------------------------------- event


async def events_until(path: Path, event: str) -> list[Any]:
    """What was recorded, once `event` is among it."""
    async with asyncio.timeout(20):
        while event not in [record[0]["event"]["type"] for record in recorded(path)]:
            await asyncio.sleep(0.01)
    return [record[0]["event"] for record in recorded(path)]


@pytest.mark.anyio
@pytest.mark.parametrize("colour", ["def", "async def"])
async def test_an_event_hook_hears_every_event_in_order(plugin_folders: PluginFolders, colour: str) -> None:
    record = plugin_folders.root / "seen"
    code = f"""
__all__ = ["plugin"]
def plugin(input):
    {colour} event(input): recording_code(input)
    return {{"event": event}}
"""
    plugin_folders.write(plugin_folders.own / "plugin" / "ear.py", recording_code(record) + code)
    async with plugin_folders.open() as ws:
        await ws.call("list", {})
        ws.bus.publish("todo.updated", {"sessionID": "s", "todos": []})
        events = await events_until(record, "todo.updated")
        updates = [event["properties"]["part"] for event in events if event["type"] == "message.part.updated"]
        statuses = [part["state"]["status"] for part in updates if part["tool"] == "list"]
        assert statuses[-2:] == ["running", "completed"]
        assert events[-1] == {"type": "todo.updated", "properties": {"sessionID": "s", "todos": []}}
    if colour == "def":
        await events_until(record, "server.instance.disposed")


@pytest.mark.anyio
async def test_a_failing_event_hook_is_logged_and_ends_nothing(
    plugin_folders: PluginFolders, caplog: pytest.LogCaptureFixture
) -> None:
    plugin_folders.mine(
        "deaf",
        """
        def one(input):
            def event(input): raise ValueError("too loud")
            return {"event": event}
        def two(input):
            async def event(input): raise ValueError("far too loud")
            return {"event": event}
        """,
    )
    with caplog.at_level(logging.ERROR):
        async with plugin_folders.open() as ws:
            await ws.call("list", {})
            async with asyncio.timeout(20):
                while "far too loud" not in caplog.text or "ValueError: too loud" not in caplog.text:
                    await asyncio.sleep(0.01)
    assert "the event hook of the plugin deaf failed at " in caplog.text


@pytest.mark.anyio
async def test_a_stuck_event_hook_holds_nobody_up(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine(
        "stuck",
        """
        import threading
        def plugin(input): return {"event": lambda input: threading.Event().wait()}
        """,
    )
    async with plugin_folders.open() as ws:
        for pattern in ("*.a", "*.b"):
            await ws.call("glob", {"pattern": pattern})
    with plugin_folders.open() as ws:  # closed without a loop: an event all the same
        ws.call_sync("list", {})


# ---------------------------------------------------------------------- config


@pytest.mark.anyio
async def test_a_config_hook_changes_rules_and_agents_for_the_first_call_already(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine(
        "strict",
        """
        def plugin(input):
            def config(config):
                assert config["username"] == "me"
                config.setdefault("permission", {})["bash"] = {"*": "deny"}
                config["agent"] = {"mine": {"description": "from a plugin", "mode": "primary"}}
                config["share"] = 5
            return {"config": config}
        """,
    )
    plugin_folders.config(username="me", permission={"edit": "deny"})
    async with plugin_folders.open() as ws:
        call = ws.start("bash", {"command": "echo no", "description": "d"})
        with pytest.raises(PermissionDeniedError) as caught:
            await call.run()
        assert ("bash", "*", "deny", "plugin strict") in [
            (r.permission, r.pattern, r.action, r.origin) for r in caught.value.rules
        ]
        assert ws.agents["mine"].description == "from a plugin"
        assert ws.config.origin("permission", "bash", "*") == "plugin strict"
        assert ws.config.origin("permission", "edit") == "opencode.json"
        assert any("share" in str(warning) and "plugin strict" in str(warning) for warning in ws.config.warnings)
        with pytest.raises(PermissionDeniedError):
            await ws.call("write", {"filePath": "a", "content": "b"})

    async with plugin_folders.open() as ws:
        await ws.call("list", {}, agent="mine")  # an agent that only the plugin knows

        plugin_folders.config(username="me", permission={"edit": "allow"})
        ws.reload_config()
        await ws.call("write", {"filePath": "a", "content": "b"})
        with pytest.raises(PermissionDeniedError):  # the hook was run on the new config too
            await ws.call("bash", {"command": "echo no", "description": "d"})

        (plugin_folders.own / "plugin" / "strict.py").unlink()
        assert "no" in (await ws.call("bash", {"command": "echo no", "description": "d"})).output
        assert "mine" not in ws.agents


@pytest.mark.anyio
async def test_config_hooks_that_fail_or_hang_are_passed_over(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine(
        "a",
        """
        def plugin(input):
            def config(config):
                config["username"] = "half done"
                raise KeyError("x")
            return {"config": config}
        """,
    )
    plugin_folders.mine(
        "b",
        """
        import asyncio
        async def plugin(input):
            async def config(config): await asyncio.Event().wait()
            return {"config": config}
        """,
    )
    plugin_folders.mine(
        "c",
        "def plugin(input): return {'config': lambda config: config.update(username=config.get('username', 'c'))}\n",
    )
    async with plugin_folders.open() as ws:
        plugins_of(ws).limit = 1
        await ws.registry.prepare()
        assert ws.config.get("username") == "c"
        assert running(ws) == ["a", "b", "c"]
        assert sum("its config hook failed" in row["advice"] for row in plugins_of(ws).describe()) == 2


def test_an_amended_config_keeps_the_first_and_says_who_changed_what() -> None:
    first = Config(data={"tools": {"bash": False}, "permission": {"bash": "deny", "edit": {"a": "ask"}}, "model": "m"})
    first.permission_rules = first.rules("permission")
    changed = {"tools": {"bash": True, "read": False}, "permission": {"edit": {"a": "ask", "b": "odd"}}, "share": 3}
    second = amended(first, changed, "plugin p")
    assert first.data["permission"] == {"bash": "deny", "edit": {"a": "ask"}}
    assert second.data == {
        "tools": {"bash": True, "read": False},
        "permission": {"edit": {"a": "ask", "b": "ask"}, "bash": "allow", "read": "deny"},
    }
    assert [(r.permission, r.pattern, r.action, r.origin) for r in second.permission_rules] == [
        ("edit", "a", "ask", ""),
        ("edit", "b", "ask", "plugin p"),
        ("bash", "*", "allow", "plugin p"),
        ("read", "*", "deny", "plugin p"),
    ]
    assert {warning.key for warning in second.warnings} == {"permission.edit.b", "share"}
    assert {warning.path for warning in second.warnings} == {"plugin p"}
