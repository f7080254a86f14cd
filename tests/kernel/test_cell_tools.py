"""Tools that a cell defines: streams on cards, made anew by running the cell again; a model's calls by other code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kernel import acts
from tests.support.kernels import Kernel

STREAMS = {
    "def": "def counts(ctx):\n    yield 'one\\n'\n    yield 'two\\n'\n    ctx.abort.wait(30)\n    yield 'too late'",
    "async def": (
        "async def counts():\n    yield 'one\\n'\n    yield 'two\\n'\n    await asyncio.sleep(30)\n    yield 'too late'"
    ),
}


@pytest.fixture(autouse=True)
def _loaded(shared_kernel: Kernel) -> None:
    imports = "import json\nfrom opencode_jupyter import Tool, ToolResult, tool"
    acts.prepare_once(shared_kernel, imports, "ws = current().workspace")


def output(part: dict[str, Any]) -> str:
    """What a card shows of the output so far."""
    return str(part["ui"].get("tail", ""))


@pytest.mark.parametrize("colour", list(STREAMS))
def test_pieces_show_while_the_tool_runs_and_stay_when_it_is_stopped(shared_kernel: Kernel, colour: str) -> None:
    shared_kernel.run(f"@tool\n{STREAMS[colour]}").check()
    cell = shared_kernel.submit("%tool counts")

    def shown() -> list[dict[str, Any]]:
        return [part for part in acts.displayed(shared_kernel) if output(part) == "one\ntwo\n"]

    shared_kernel.pump(lambda: bool(shown()) or cell.done, 10, lambda: f"its pieces; {shared_kernel.states()}")
    [part] = shown()
    acts.see(shared_kernel, part)
    acts.click(shared_kernel, part, "stop")
    shared_kernel.finish(cell)
    assert cell.error is not None and "ToolAbortedError" in cell.error
    assert output(shared_kernel.cards()[-1]) == "one\ntwo\n"


def test_running_the_cell_again_replaces_the_tool(shared_kernel: Kernel) -> None:
    shared_kernel.run("@tool\ndef again(n: int = 1):\n    yield 'first '\n    return ToolResult('a title')").check()
    shared_kernel.run("r = %tool again").check()
    assert shared_kernel.run("print(r.title, r.output)").stdout == "a title first \n"
    shared_kernel.run("@tool\nasync def again(word: str) -> str:\n    return word * 2").check()
    shared_kernel.run("r = %tool again ab").check()
    assert shared_kernel.run("print(r.output)").stdout == "abab\n"
    assert shared_kernel.run("print((await ws.registry.ids()).count('again'))").stdout == "1\n"


def test_a_tool_that_describes_itself_to_each_agent(shared_kernel: Kernel) -> None:
    shared_kernel.run(
        "from pydantic import BaseModel\nfrom typing import Literal\n"
        "class Args(BaseModel):\n    kind: Literal['warm', 'cold']\n"
        "async def init(ctx):\n"
        "    return {'description': f'for {ctx.agent.name}', 'parameters': Args,\n"
        "            'execute': lambda args, call: f'{args.kind} {call.agent}'}\n"
        "_ = Tool.define('dynamic', init)"
    ).check()
    shared_kernel.run("r = %tool dynamic cold").check()
    assert shared_kernel.run("print(r.output)").stdout == "cold build\n"
    assert "for build" in (shared_kernel.run("%tool dynamic?").check().result or "")
    assert "for plan" in (shared_kernel.run("%tool --agent plan --help dynamic").check().result or "")
    reply = shared_kernel.request("shell", "complete_request", {"code": "%tool dynamic kind=", "cursor_pos": 19})
    assert reply["matches"] == ["warm", "cold"]


def calls(*arguments: dict[str, Any]) -> str:
    items = [
        {"type": "tool_use", "id": f"t{i}", "name": "read", "input": given} for i, given in enumerate(arguments, 1)
    ]
    return f"m = await ws.tools.run_anthropic(json.loads({json.dumps(items)!r}))"


def test_a_models_calls_have_cards_that_ask(shared_kernel: Kernel) -> None:
    cell = shared_kernel.submit(calls({"filePath": ".env"}, {"filePath": "gone.txt"}))
    [part] = acts.asking(shared_kernel, cell=cell)
    acts.see(shared_kernel, part)
    acts.click(shared_kernel, part, "once")
    shared_kernel.finish(cell).check()
    said = shared_kernel.run("for r in m[0]['content']: print(r.get('is_error', False), 'A=1' in r['content'])").stdout
    assert said == "False True\nTrue False\n"
    acts.settled(shared_kernel)


def test_an_interrupt_ends_a_models_call(shared_kernel: Kernel) -> None:
    cell = shared_kernel.submit(calls({"filePath": ".env"}))
    acts.asking(shared_kernel, cell=cell)
    shared_kernel.interrupt()
    shared_kernel.finish(cell, 10)
    assert cell.error is not None and "KeyboardInterrupt" in cell.error
    acts.settled(shared_kernel)
