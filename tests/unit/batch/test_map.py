"""Many runs at once in this process: results in order, failures kept, time limits, asks, stopping."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.model import Request
from opencode_jupyter.agent.scripted import ScriptedModel, call, say
from opencode_jupyter.batch import Progress, RunTimeoutError
from opencode_jupyter.core.errors import PermissionCorrectedError, ToolAbortedError, ToolError
from tests.support.saying import Said, Saying, prompt_of, results_of, slow
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({"permission": "allow", "snapshot": False})


def writes(request: Request) -> Any:
    """Writes a file named by the last word of the prompt, then says so."""
    word = prompt_of(request).split()[-1]
    if not results_of(request):
        return [("write", {"filePath": f"{word}.txt", "content": word})]
    return f"wrote {word}"


async def test_prompts_and_calls_in_the_order_of_their_requests(ws: Workspace) -> None:
    async def say(request: Request) -> Said:
        await asyncio.sleep(0.02 if "3" in prompt_of(request) else 0.0)  # the later ones end first
        return writes(request)

    (ws.directory / "seen.txt").write_text("what is there\n")
    requests = [*(f"write {i}" for i in range(10)), ("read", {"filePath": "seen.txt"})]
    results = await ws.map([*requests, {"tool": "read", "arguments": {"filePath": "none.txt"}}], model=Saying(say))
    assert results.texts[:10] == [f"wrote {i}" for i in range(10)]
    assert sorted(p.name for p in ws.directory.glob("?.txt")) == [f"{i}.txt" for i in range(10)]
    assert [outcome.index for outcome in results] == list(range(12))
    assert "what is there" in results[10].text
    assert results[10].result is not None
    assert [outcome.index for outcome in results.errors] == [11]
    assert "not found" in str(results[11].error).lower()
    assert len({outcome.session for outcome in results}) == 12, "each has a session of its own"
    first = results[0]
    assert (first.steps, first.calls, first.tokens, first.cost, first.ended) == (
        2,
        1,
        220,
        pytest.approx(240e-6),
        "done",
    )
    session = await ws.sessions.open(first.session)
    assert session.title == "write 0"
    assert [message.role for message in session.messages] == ["user", "assistant", "assistant"]


async def test_the_table(ws: Workspace) -> None:
    results = await ws.map(["write a", ("read", {"filePath": "none"})], model=Saying(writes), concurrency=1)
    df = results.df
    assert list(df.columns) == [
        *("request", "text", "value", "steps", "calls", "tokens", "cost", "seconds"),
        *("error", "session", "attempts"),
    ]
    assert df.loc[0, "text"] == "wrote a"
    assert "not found" in df.loc[1, "error"].lower()
    assert results.cost == pytest.approx(240e-6)
    assert repr(results) == "<2 results: 1 done, 1 failed, $0.0002>"


async def test_no_more_at_once_than_wanted(ws: Workspace) -> None:
    model = Saying(lambda request: slow(0.02, "said"))
    await ws.map(["ask"] * 12, model=model, concurrency=3)
    assert model.most_at_once == 3


async def test_outcomes_come_as_they_are_done_and_progress_is_told(ws: Workspace) -> None:
    waits = {"slow": 0.3, "quick": 0.0, "middle": 0.1}
    reported: list[tuple[int, int]] = []
    model = Saying(lambda request: slow(waits[prompt_of(request)], prompt_of(request)))
    many = ws.map(list(waits), model=model, on_progress=lambda p: reported.append((p.done, p.total)))
    assert [outcome.text async for outcome in many] == ["quick", "middle", "slow"]
    assert many.results.texts == ["slow", "quick", "middle"]
    assert await many == many.results
    assert reported == [(0, 3), (1, 3), (2, 3), (3, 3)]
    with pytest.raises(ToolError, match="already started"):
        async for _ in many:
            pass


def test_progress_as_a_line() -> None:
    assert str(Progress(4, 2, 1, 0.01, 3.0)) == "████████████░░░░░░░░░░░░ 2 of 4, 1 failed, $0.0100, 3 s"


async def test_the_failed_ones_again(ws: Workspace) -> None:
    broken = {"two"}

    def say(request: Request) -> str:
        if prompt_of(request) in broken:
            raise ModelError("no such thing", "bad_request")
        return prompt_of(request)

    model = Saying(say)
    results = await ws.map(["one", "two", "three"], model=model)
    assert isinstance(results[1].error, ModelError)
    broken.clear()
    count = model.asked
    again = await results.retry()
    assert again.texts == ["one", "two", "three"]
    assert not again.errors
    assert model.asked == count + 1
    with pytest.raises(ToolError, match="retry"):
        results.errors.retry()


async def test_the_first_error_ends_all(ws: Workspace) -> None:
    def say(request: Request) -> Any:
        if prompt_of(request) == "bad":
            raise ModelError("no", "bad_request")
        return slow(30, "late")

    many = ws.map(["wait", "bad", "wait"], model=Saying(say), on_error="raise")
    with pytest.raises(ModelError, match="no"):
        await many
    assert [outcome.index for outcome in many.results] == [1]


async def test_a_limit_of_time(ws: Workspace) -> None:
    results = await ws.map(
        [
            {"text": "slow", "timeout": 0.3},
            "quick",
            {"tool": "bash", "arguments": {"command": "sleep 30"}, "timeout": 0.3},
        ],
        model=Saying(lambda request: slow(30 if prompt_of(request) == "slow" else 0, "said")),
    )
    assert isinstance(results[0].error, RunTimeoutError)
    assert results[1].text == "said"
    assert "limit" in str(results[2].error) or "invalid" in str(results[2].error)


async def test_waiting_for_a_person_does_not_count(ws: Workspace) -> None:
    async def later(request: Any) -> str:
        await asyncio.sleep(2.5)
        return "once"

    ws.rules.append(_ask("edit"))
    results = await ws.map(["write a"], model=Saying(writes), timeout=2, on_ask=later)
    assert results[0].error is None
    assert (ws.directory / "a.txt").exists()


def _ask(permission: str) -> Any:
    from opencode_jupyter.core.permission import Rule

    return Rule(permission, "*", "ask", "test")


async def test_who_answers_asks(open_workspace: OpenWorkspace, project: Path) -> None:
    answered: list[str] = []

    def here(request: Any) -> str:
        answered.append(f"workspace {request.permission}")
        return "once"

    def mine(request: Any) -> Any:
        answered.append(f"mine {request.permission}")
        return ("reject", "not today")

    ws = await open_workspace({"permission": {"edit": "ask"}}, approve=here)
    await ws.map(["write a"], model=Saying(writes))
    results = await ws.map(["write b"], model=Saying(writes), on_ask=mine)
    assert [call.state.status for call in results[0].answer.calls] == ["error"]
    assert "not today" in results[0].answer.calls[0].state.error
    results = await ws.map(
        ["write c", ("write", {"filePath": "f", "content": "f"})], model=Saying(writes), on_ask="reject"
    )
    assert answered == ["workspace edit", "mine edit"]
    assert isinstance(results[1].error, PermissionCorrectedError)
    assert "denies every permission request" in str(results[1].error)
    await ws.call("write", {"filePath": "e", "content": "e"})  # the workspace is as it was
    assert answered[2:] == ["workspace edit"]
    assert ws.permissions.approve is here
    assert not any((project / name).exists() for name in ("b.txt", "c.txt", "f"))


async def test_a_cancel_ends_all_with_their_processes(ws: Workspace, tmp_path: Path) -> None:
    calls = [("bash", {"command": f"echo $$ > {i}.pid; exec sleep 60", "description": "wait"}) for i in range(4)]
    prompts = ["say something"] * 4
    many = ws.map([*calls, *prompts], model=Saying(lambda request: slow(60, "late")), concurrency=8)
    task = asyncio.ensure_future(_all(many))
    pids = [ws.directory / f"{i}.pid" for i in range(4)]
    deadline = time.monotonic() + 20
    while not all(p.exists() and p.read_text().strip() for p in pids):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not [p for p in pids if Path(f"/proc/{p.read_text().strip()}").exists()]
    assert ws.calls == {}
    assert all(session.run is None for session in ws.sessions.list())


async def _all(many: Any) -> Any:
    return await many


async def test_abort_from_another_thread(ws: Workspace) -> None:
    many = ws.map(["quick", "slow", "slow"], model=Saying(lambda r: slow(0 if prompt_of(r) == "quick" else 60, "said")))
    timer = threading.Timer(0.5, many.abort)
    timer.start()
    with pytest.raises(ToolAbortedError, match="stopped"):
        await many
    assert [outcome.text for outcome in many.results] == ["said"]


async def test_leaving_the_loop_early_ends_the_rest(ws: Workspace) -> None:
    model = Saying(lambda request: slow(0 if prompt_of(request) == "quick" else 60, "said"))
    async for outcome in ws.map(["quick", "slow"], model=model):
        assert outcome.text == "said"
        break
    deadline = time.monotonic() + 2
    while any(session.run is not None for session in ws.sessions.list()):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def test_a_value_in_a_form(ws: Workspace) -> None:
    def say(request: Request) -> Any:
        tool = next(tool.name for tool in request.tools if "tructured" in tool.name)
        return [(tool, {"n": int(prompt_of(request))})]

    form = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    results = await ws.map(["1", "2"], model=Saying(say), format=form)
    assert results.values == [{"n": 1}, {"n": 2}]


async def test_too_many_requests_hold_back_the_others(ws: Workspace) -> None:
    times: list[float] = []
    failed = []

    def say(request: Request) -> str:
        times.append(time.monotonic())
        if not failed:
            failed.append(True)
            raise ModelError("slow down", "rate_limit", retry_after=0.6)
        return "said"

    results = await ws.map(["a", "b", "c"], model=Saying(say), concurrency=1)
    assert not results.errors
    first, *rest = times
    assert min(rest) - first >= 0.55
    results = await ws.map(["a", "b"], model=Saying(say))
    assert not results.errors


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ("a text", "a list of requests"),
        ([1], "request 0 is 1"),
        ([{"text": "a", "colour": 1}], "request 0 has colour"),
        ([{"model": "x"}], "needs either 'text'"),
        (["ok", " "], "request 1 has no text"),
        ([("read", "a.txt")], "the arguments of read must be a dict"),
    ],
)
async def test_what_is_no_request(ws: Workspace, requests: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ws.map(requests)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency=0"),
        ({"on_error": "x"}, "on_error"),
        ({"on_ask": 3}, "on_ask"),
        ({"isolate": "x"}, "isolate"),
    ],
)
async def test_what_options_do_not_take(ws: Workspace, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ws.map(["a"], **options)


async def test_nothing_to_do(ws: Workspace) -> None:
    results = await ws.map([])
    assert list(results) == []
    assert results.df.empty


async def test_a_folder_of_its_own_config(ws: Workspace, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "note.txt").write_text("from the other\n")
    (other / "opencode.json").write_text('{"permission": {"bash": "deny"}}')
    requests = [
        {"tool": "read", "arguments": {"filePath": "note.txt"}, "directory": str(other)},
        {"tool": "read", "arguments": {"filePath": "x"}, "directory": str(tmp_path / "none")},
    ]
    results = await ws.map(requests)
    assert "from the other" in results[0].text
    assert results[0].directory == str(other)
    assert isinstance(results[1].error, NotADirectoryError)


def test_a_workspace_that_lives_on_another_loop(tmp_path: Path) -> None:
    """As in a notebook: runs and asks on the engine's loop, outcomes and progress on the cell's."""
    engine = asyncio.new_event_loop()
    thread = threading.Thread(target=engine.run_forever, daemon=True)
    thread.start()
    threads: set[str] = set()

    def say(request: Request) -> Any:
        threads.add(threading.current_thread().name)
        return writes(request)

    async def opened() -> Workspace:
        return await Workspace(tmp_path, {"permission": "allow"}, data_dir=tmp_path / "d", store=False).__aenter__()

    ws = asyncio.run_coroutine_threadsafe(opened(), engine).result(10)
    reported: set[int] = set()

    async def cell() -> Any:
        return await ws.map(
            ["write 1", "write 2"], model=Saying(say), on_progress=lambda p: reported.add(threading.get_ident())
        )

    try:
        results = asyncio.run(cell())
        assert results.texts == ["wrote 1", "wrote 2"]
        assert threads == {thread.name}
        assert reported == {threading.get_ident()}
    finally:
        asyncio.run_coroutine_threadsafe(ws.aclose(), engine).result(10)
        engine.call_soon_threadsafe(engine.stop)
        thread.join(5)
        engine.close()


@pytest.mark.anyio
async def test_a_run_that_repeats_itself_is_refused_where_nobody_can_decide(
    open_workspace: OpenWorkspace, project: Path
) -> None:
    (project / "a.txt").write_text("x\n")
    model = ScriptedModel([say(call("read", filePath="a.txt"))] * 4, speed=0)
    ws = await open_workspace({}, store=False)
    with anyio.fail_after(20):
        results = await ws.map(["read it"], model=model)
    answer = results[0].answer
    assert answer is not None
    assert [row["state"] for row in answer.calls.records] == ["completed", "completed", "error"]
    assert "nobody can decide" in str(answer.calls.records[-1])
