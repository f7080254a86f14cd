"""Wrong inputs to the public functions of a workspace, its sessions, registry, hooks and bus: a clear error at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from opencode_jupyter import Tool, Workspace
from opencode_jupyter.core.errors import InvalidArgumentsError, ToolError, UnknownOptionError
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
DEFINED = {"description": "d", "parameters": {"type": "object"}, "execute": print}


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({})


CASES: list[tuple[Callable[[Workspace], Any], str]] = [
    (lambda ws: Workspace(5), "directory must be a path, not 5"),  # type: ignore[arg-type]
    (lambda ws: Workspace(ws.directory, {}, 5), "data_dir must be a path, not 5"),  # type: ignore[arg-type]
    (lambda ws: Workspace(ws.directory, approve="once"), "approve must be a function"),  # type: ignore[arg-type]
    (lambda ws: Workspace(ws.directory, answer=[]), "answer must be a function"),  # type: ignore[arg-type]
    (lambda ws: ws.call("read", filePath="a.py"), r"no option 'filePath'. Pass the arguments of a tool as a dict"),
    (lambda ws: ws.call_sync("read", filePath="a.py"), "no option 'filePath'"),
    (lambda ws: ws.dry_run("read", timout=3), "no option 'timout'. Did you mean timeout"),
    (lambda ws: ws.call("read", {}, extra=5), "extra must be a dict, not 5"),
    (lambda ws: ws.call("read", {}, on_update=5), "on_update must be a function, not 5"),
    (lambda ws: ws.map(["x"], modle="x"), r"map\(\) has no option 'modle'. Did you mean model"),
    (lambda ws: ws.evaluate([], [], modle="x"), r"evaluate\(\) has no option 'modle'"),
    (lambda ws: ws.sessions.prompt("x", modle="x"), r"prompt\(\) has no option 'modle'. Did you mean model"),
    (lambda ws: ws.sessions.prompt("x", tools={"bash": "no"}), r"tools\['bash'\] must be True or False, not 'no'"),
    (lambda ws: ws.sessions.prompt("x", tools=[5]), "each name in tools= must be a tool's id, not 5"),  # type: ignore[list-item]
    (lambda ws: ws.sessions.default.revert(0, file=False), r"revert\(\) has no option 'file'. Did you mean files"),
    (lambda ws: ws.sessions.create(5), "title must be a text, not 5"),  # type: ignore[arg-type]
    (lambda ws: ws.sessions.create("x", parent_id=ws.sessions.default), "parent_id must be a session's id"),  # type: ignore[arg-type]
    (lambda ws: ws.sessions.create("x", permission={"bash": "deny"}), "permission must be a list of rules"),  # type: ignore[arg-type]
    (lambda ws: ws.sessions.add("ses_x"), "session must be a Session"),  # type: ignore[arg-type]
    (lambda ws: ws.sessions.save("ses_x"), "session must be a Session"),  # type: ignore[arg-type]
    (lambda ws: ws.save_rules(5, ["x"]), "permission must be the key of a rule"),  # type: ignore[arg-type]
    (lambda ws: ws.save_rules("bash", 5), "patterns must be a list of texts"),  # type: ignore[arg-type]
    (lambda ws: ws.allow_in_project("bash", [5]), "patterns must be a list of texts"),  # type: ignore[list-item]
    (lambda ws: ws.forget_rule("bash"), "rule must be a Rule"),  # type: ignore[arg-type]
    (lambda ws: ws.change_directory(5), "directory must be a path, not 5"),  # type: ignore[arg-type]
    (lambda ws: ws.relative(None), "path must be a path, not None"),  # type: ignore[arg-type]
    (lambda ws: ws.contains(5), "path must be a path, not 5"),  # type: ignore[arg-type]
    (lambda ws: ws.registry.tools(5), "model must be a name"),  # type: ignore[arg-type]
    (lambda ws: ws.registry.tools(agent=5), "no agent 5"),  # type: ignore[arg-type]
    (lambda ws: ws.registry.described("read"), r"names must be a list of names, such as \['read'\]"),
    (lambda ws: ws.registry.described([5]), "each of the names must be a tool's name, not 5"),  # type: ignore[list-item]
    (lambda ws: ws.hooks.add("tool.execute.before", 5), "fn must be a function, not 5"),  # type: ignore[arg-type]
    (lambda ws: ws.hooks.add("tool.execute.before", print, 5), "owner must be the name of a plugin"),  # type: ignore[arg-type]
    (lambda ws: ws.bus.subscribe("*", None), "fn must be a function, not None"),  # type: ignore[arg-type]
    (lambda ws: Tool.define("x", DEFINED, grup="files"), r"Tool.define\(\) has no option 'grup'. Did you mean group"),
    (lambda ws: Tool.define("x", DEFINED, manifest={}), "manifest of the tool x must be a Manifest"),
    (lambda ws: Tool.define("x", DEFINED, runs_in="x"), "runs_in of the tool x must be 'engine' or 'kernel'"),
]


@pytest.mark.parametrize(("use", "message"), CASES, ids=[message for _, message in CASES])
async def test_a_wrong_input_is_refused(ws: Workspace, use: Callable[[Workspace], Any], message: str) -> None:
    async def run() -> None:
        outcome = use(ws)
        if inspect.isawaitable(outcome):
            await outcome

    with pytest.raises(ToolError, match=message):
        await run()


async def test_an_unknown_option_is_a_type_error_too(ws: Workspace) -> None:
    with pytest.raises(TypeError):
        ws.start("read", filePath="a.py")
    assert issubclass(UnknownOptionError, InvalidArgumentsError)
    assert ws.abort(["no id"]) is False  # type: ignore[arg-type]


async def test_the_options_of_a_call_still_work(ws: Workspace) -> None:
    parts: list[Any] = []
    await ws.call("glob", {"pattern": "*"}, call_id="call_mine", extra={}, on_update=parts.append)
    assert parts and parts[-1].call_id == "call_mine"
    assert ws.registry.get("glob") is not None and [d.action for d in await ws.dry_run("glob", {"pattern": "*"})]
