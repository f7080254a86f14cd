"""What plugins give: each hook with OpenCode's payloads, tools in every form, and words for who refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from opencode_jupyter import PermissionDeniedError, PermissionRejectedError, ToolError
from opencode_jupyter.core.errors import HookRefusedError, PermissionHookError
from opencode_jupyter.jupyter.cards.call_json import card_part
from tests.support.plugin_folders import PluginFolders, plugins_of, recorded, recording_code, running

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------------- tool.execute.before and after


@pytest.mark.parametrize("form", ["dict", "object"])
async def test_before_and_after_see_and_change_a_call(plugin_folders: PluginFolders, form: str) -> None:
    record = plugin_folders.root / "seen"
    plugin_folders.write(plugin_folders.project / "a.txt", "hello")
    code = """
__all__ = ["plugin"]
def before(input, output):
    recording_code("before", input, output)
    output["args"]["filePath"] = "a.txt"
def after(input, output):
    recording_code("after", input, list(output))
    output["title"], output["output"] = "another title", output["output"].upper()
    output["metadata"]["by"] = "plugin"
class Hooks:
    def tool_execute_before(self, input, output): before(input, output)
    async def tool_execute_after(self, input, output): after(input, output)
async def plugin(input):
    return """
    made = {"dict": '{"tool.execute.before": before, "tool.execute.after": after}', "object": "Hooks()"}
    plugin_folders.write(plugin_folders.own / "plugin" / "p.py", recording_code(record) + code + made[form])
    async with plugin_folders.open() as ws:
        result = await ws.call("read", {"filePath": "b.txt"})
        assert running(ws) == ["p"]
    assert (result.title, result.metadata["by"]) == ("another title", "plugin")
    assert "HELLO" in result.output
    (_, first, before), (_, second, after) = recorded(record)
    assert set(first) == {"tool", "sessionID", "callID"}
    assert first["tool"] == "read"
    assert before == {"args": {"filePath": "b.txt"}}
    assert second == {**first, "args": {"filePath": "a.txt"}}
    assert {"title", "output", "metadata"} <= set(after)


async def test_hooks_run_in_the_order_of_the_plugins_on_one_output(plugin_folders: PluginFolders) -> None:
    for name in ("a", "b", "c"):
        plugin_folders.mine(
            name,
            f"""
            def plugin(input):
                def before(input, output): output["args"]["path"] += "{name}"
                return {{"tool.execute.before": before}}
            """,
        )
    async with plugin_folders.open() as ws:
        with pytest.raises(FileNotFoundError, match="xabc"):
            await ws.call("list", {"path": "x"})


async def test_a_refusal_names_the_plugin_and_the_hook(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine(
        "acme",
        """
        def plugin(input):
            def before(input, output):
                if input["tool"] == "bash":
                    raise PermissionError("no shell on Sundays")
                if input["tool"] == "glob":
                    output["nothing"]["here"]
            def after(input, output):
                raise RuntimeError("that was too much")
            return {"tool.execute.before": before, "tool.execute.after": after}
        """,
    )
    parts: list[Any] = []
    async with plugin_folders.open() as ws:
        calls = [
            ws.start(name, arguments)
            for name, arguments in (
                ("bash", {"command": "echo no", "description": "d"}),
                ("glob", {"pattern": "*"}),
                ("list", {}),
            )
        ]
        for call in calls:
            with pytest.raises(HookRefusedError) as caught:
                await call.run()
            parts.append((call.part, caught.value))
    (bash, refused), (glob, broken), (late, ended) = parts
    assert bash.state.error == "Refused by the hook tool.execute.before of the plugin acme: no shell on Sundays"
    assert isinstance(refused.__cause__, PermissionError)
    assert (refused.plugin, refused.hook, bash.outcome) == ("acme", "tool.execute.before", "refused by a hook")
    shown = card_part(bash)
    assert (shown["ui"]["outcome"], shown["state"]["error"]) == ("refused by a hook", bash.state.error)
    assert glob.state.error.endswith("of the plugin acme: KeyError: 'nothing'")
    assert isinstance(broken.__cause__, KeyError)
    assert late.state.error == "Ended by the hook tool.execute.after of the plugin acme: that was too much"
    assert (ended.hook, late.outcome) == ("tool.execute.after", "failed")


async def test_a_users_own_hook_still_raises_what_it_raises(plugin_folders: PluginFolders) -> None:
    def before(input: dict[str, Any], output: dict[str, Any]) -> None:
        raise PermissionError("mine")

    async with plugin_folders.open() as ws:
        ws.hooks.add("tool.execute.before", before)
        with pytest.raises(PermissionError, match="mine"):
            await ws.call("list", {})


async def test_a_slow_sync_hook_holds_up_nothing_but_its_call(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine(
        "slow",
        """
        import threading
        opened = threading.Event()
        def plugin(input):
            def before(input, output):
                if input["tool"] == "list" and not opened.wait(20):
                    raise RuntimeError("the loop stood still")
                opened.set()
            return {"tool.execute.before": before}
        """,
    )
    async with plugin_folders.open() as ws:
        await asyncio.gather(ws.call("list", {}), ws.call("glob", {"pattern": "*"}))


async def test_a_hook_that_never_ends_can_be_stopped(plugin_folders: PluginFolders) -> None:
    released = plugin_folders.root / "released"
    plugin_folders.mine(
        "stuck",
        f"""
        import os, time
        def wait(input, output):
            while not os.path.exists({str(released)!r}):
                time.sleep(0.01)
        def plugin(input):
            return {{"tool.execute.before": wait}}
        """,
    )
    async with plugin_folders.open() as ws:
        await ws.registry.prepare()
        with pytest.raises(ToolError, match="longer than its limit"):
            await ws.call("list", {}, timeout=0.3)
        released.touch()


async def test_a_hook_can_not_end_the_process(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine(
        "leaver",
        """
        import sys
        def plugin(input):
            async def after(input, output): sys.exit(4)
            return {"tool.execute.before": lambda input, output: sys.exit(3), "tool.execute.after": after}
        """,
    )
    async with plugin_folders.open() as ws:
        with pytest.raises(HookRefusedError, match="SystemExit: 3"):
            await ws.call("list", {})


# ---------------------------------------------------------------------- tool.definition


async def test_a_definition_is_changed_and_a_failing_hook_takes_no_tool_away(plugin_folders: PluginFolders) -> None:
    record = plugin_folders.root / "seen"
    code = (
        recording_code(record)
        + """
__all__ = ["plugin"]
def plugin(input):
    def definition(input, output):
        recording_code(input, list(output))
        if input["toolID"] == "glob":
            raise ValueError("no glob")
        output["description"] += " (in this house)"
    return {"tool.definition": definition}
"""
    )
    plugin_folders.write(plugin_folders.own / "plugin" / "words.py", code)
    async with plugin_folders.open() as ws:
        tools = {tool.id: tool for tool in await ws.registry.tools("p:m", "build")}
        assert tools["read"].description.endswith(" (in this house)")
        assert not tools["glob"].description.endswith(" (in this house)")
        assert any(
            "its hook tool.definition failed: ValueError: no glob" in row["advice"] for row in plugins_of(ws).describe()
        )
    assert [{"toolID": "read"}, ["description", "parameters"]] in recorded(record)


# ---------------------------------------------------------------------- permission.ask

ASKING = {"permission": {"edit": {"*": "ask", "never.txt": "deny"}}}


def decider(plugin_folders: PluginFolders, name: str, status: str) -> None:
    plugin_folders.mine(
        name,
        f"""
        def plugin(input):
            async def ask(input, output):
                assert set(input) >= {{"id", "sessionID", "permission", "patterns", "metadata", "always", "tool"}}
                assert output["status"] in ("ask", "allow", "deny")
                output["status"] = {status!r}
            return {{"permission.ask": ask}}
        """,
    )


async def test_a_plugin_allows_what_a_rule_asks_for(plugin_folders: PluginFolders) -> None:
    decider(plugin_folders, "yes", "allow")
    async with plugin_folders.open(config=ASKING) as ws:
        call = ws.start("write", {"filePath": "a.txt", "content": "x"})
        await call.run()
        decision = next(d for d in call.part.decisions if d.permission == "edit")
        assert (decision.action, decision.reply, decision.by) == ("allow", "once", "plugin yes")
        assert decision.rules[0].action == "ask"
        assert decision in ws.permissions.history
        shown = card_part(call.part)["ui"]["decisions"]
        assert any(row["by"] == "plugin yes" for row in shown)
        with pytest.raises(PermissionDeniedError):  # what a rule denies stays denied
            await ws.call("write", {"filePath": "never.txt", "content": "x"})
    assert (plugin_folders.project / "a.txt").read_text() == "x"
    assert not (plugin_folders.project / "never.txt").exists()


async def test_a_plugin_denies_what_a_rule_asks_for_and_is_not_asked_for_the_rest(
    plugin_folders: PluginFolders,
) -> None:
    decider(plugin_folders, "no", "deny")

    def approve(request: Any) -> str:
        raise AssertionError("a person was asked")

    async with plugin_folders.open(config=ASKING, approve=approve) as ws:
        call = ws.start("write", {"filePath": "a.txt", "content": "x"})
        with pytest.raises(PermissionRejectedError) as caught:
            await call.run()
        assert isinstance(caught.value, PermissionHookError)
        assert str(caught.value) == "Refused by the hook permission.ask of the plugin no."
        assert call.part.outcome == "refused by a hook"
        assert [(d.action, d.by) for d in call.part.decisions if d.permission == "edit"] == [("deny", "plugin no")]
        await ws.call("list", {})  # allowed by a rule


async def test_the_last_plugin_to_change_the_answer_decides_and_ask_leaves_it_to_a_person(
    plugin_folders: PluginFolders,
) -> None:
    decider(plugin_folders, "a", "deny")
    decider(plugin_folders, "b", "allow")
    requests: list[Any] = []

    def approve(request: Any) -> str:
        requests.append(request)
        return "once"

    async with plugin_folders.open(config=ASKING, approve=approve) as ws:
        call = ws.start("write", {"filePath": "a.txt", "content": "x"})
        await call.run()
        assert call.part.decisions[-1].by == "plugin b"
        assert not requests
        decider(plugin_folders, "c", "ask")
        call = ws.start("write", {"filePath": "a.txt", "content": "y"})
        await call.run()
        assert len(requests) == 1
        assert call.part.decisions[-1].by == "approve"


async def test_a_failing_permission_hook_refuses(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine(
        "bad", "def plugin(input):\n    def ask(input, output): 1 / 0\n    return {'permission.ask': ask}\n"
    )
    async with plugin_folders.open(config=ASKING, approve=lambda request: "once") as ws:
        with pytest.raises(HookRefusedError, match=r"hook permission.ask of the plugin bad: ZeroDivisionError"):
            await ws.call("write", {"filePath": "a.txt", "content": "x"})
    assert not (plugin_folders.project / "a.txt").exists()


async def test_no_plugin_answers_whether_code_is_trusted(plugin_folders: PluginFolders) -> None:
    decider(plugin_folders, "yes", "allow")
    permissions: list[str] = []

    def approve(request: Any) -> str:
        permissions.append(request.permission)
        return "reject"

    async with plugin_folders.open(approve=approve) as ws:
        await ws.registry.prepare()
        call = ws.start("list", {})
        with pytest.raises(PermissionRejectedError):
            await call.ask_trust("trust", "some file", {})
    assert permissions == ["trust"]
