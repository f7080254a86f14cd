"""Many runs on Dask's workers: a worker killed on the way, asks, keys, errors, stopping, evaluations."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster
from pydantic import BaseModel

from opencode_jupyter import Workspace
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.batch import Case, WorkerLostError, command, files_equal
from opencode_jupyter.core.errors import InvalidArgumentsError, ToolError, ToolTimeoutError

pytestmark = pytest.mark.anyio

SCRIPT = r"""
import re
from opencode_jupyter.agent.scripted import call, failure, say

speed = 0


def script(prompt):
    n = re.search(r"\d+", prompt.text)
    if prompt.text.startswith("write"):
        yield call("write", filePath=f"out/{n[0]}.txt", content=f"number {n[0]}")
        yield f"wrote {n[0]}"
    elif prompt.text.startswith("count"):
        yield call("StructuredOutput", n=int(n[0]))
    else:
        yield say(error=failure("bad_request", message="no such thing", times=9))
"""
KEY = "sk-test-0123456789abcdef"


@pytest.fixture(scope="module")
def processes() -> Iterator[Client]:
    """Four workers, each a process of its own."""
    main = sys.modules["__main__"]
    if not hasattr(main, "__spec__"):
        main.__spec__ = None  # a test worker's has none, and multiprocessing asks for it when it starts a process
    # A busy machine may take its time to start a worker that takes a killed one's place.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "120s"}),
        LocalCluster(
            n_workers=4, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as made,
        Client(made) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two workers in this process: quick to start, and as far away as far as runs can tell."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=2, processes=False, dashboard_address=":0", silence_logs=50
        ) as made,
        Client(made) as client,
    ):
        yield client


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return f"scripted:{path}"


@pytest.fixture
async def ws(tmp_path: Path) -> AsyncIterator[Workspace]:
    folder = tmp_path / "project"
    folder.mkdir()
    async with Workspace(folder, {"permission": "allow", "snapshot": False}, data_dir=tmp_path / "data") as made:
        yield made


async def test_200_runs_and_a_worker_killed_on_the_way(ws: Workspace, processes: Client, script: str) -> None:
    many = ws.map([f"write {i}" for i in range(200)], model=script, client=processes)
    came: Counter[int] = Counter()
    killed = ""
    async for outcome in many:
        came[outcome.index] += 1
        if came.total() == 40:
            killed, pid = next(iter((await asyncio.to_thread(processes.run, os.getpid)).items()))
            os.kill(pid, signal.SIGKILL)
    results = many.results
    assert killed
    assert [outcome.error for outcome in results if outcome.error] == []
    assert came == Counter(range(200)), "200 results, none twice"
    assert results.texts == [f"wrote {i}" for i in range(200)]
    written = {path.name: path.read_text() for path in (ws.directory / "out").iterdir()}
    assert written == {f"{i}.txt": f"number {i}" for i in range(200)}
    assert len({outcome.worker for outcome in results}) >= 3, "the others go on; a new one may come too late"
    lost = [outcome for outcome in results if outcome.attempts > 1]
    assert all(loss.worker == killed for outcome in lost for loss in outcome.lost)
    # whole sessions came back, and are kept here
    assert ws.store is not None
    sessions = {outcome.session for outcome in results}
    assert len(sessions) == 200
    assert {info["id"] for info in await ws.store.sessions()} == sessions
    last = results[199]
    assert [message.role for message in last.answer.messages] == ["user", "assistant", "assistant"]
    assert [call.tool for call in last.answer.calls] == ["write"]
    assert [part["type"] for part in await ws.store.parts(last.session)].count("tool") == 1
    assert (last.steps, last.calls, last.ended) == (2, 1, "done")


async def test_a_lost_attempt_says_what_it_had_begun(ws: Workspace, processes: Client) -> None:
    first = {"command": "test -e tried || { touch tried; sleep 60; }; echo done", "description": "once"}
    many = ws.map([("bash", first)], client=processes)

    async def kill() -> None:
        while not (ws.directory / "tried").exists():
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)
        processing = await asyncio.to_thread(processes.processing)
        address = next(worker for worker, keys in processing.items() if keys)
        os.kill((await asyncio.to_thread(processes.run, os.getpid))[address], signal.SIGKILL)

    killing = asyncio.create_task(kill())
    results = await many
    await killing
    assert results[0].text.strip() == "done"
    assert results[0].attempts == 2
    assert [call.startswith("bash test -e tried") for call in results[0].lost[0].calls] == [True]
    assert results[0].worker != results[0].lost[0].worker


async def test_a_run_that_ends_every_worker_is_given_up(ws: Workspace, processes: Client) -> None:
    def deadly() -> str:
        time.sleep(0.2)  # the word that it has begun is on its way
        os.kill(os.getpid(), signal.SIGKILL)
        return "never"

    def allow(failures: int) -> None:
        def setting(dask_scheduler: Any = None) -> None:
            dask_scheduler.allowed_failures = failures

        processes.run_on_scheduler(setting)

    ws.registry.register(deadly)
    await asyncio.to_thread(allow, 0)
    try:
        results = await ws.map([("deadly", {}), ("list", {})], client=processes, concurrency=1)
    finally:
        await asyncio.to_thread(allow, 3)
    assert isinstance(results[0].error, WorkerLostError)
    assert results[0].attempts == 1
    assert results[0].lost[0].calls == ["deadly"]
    assert results[1].error is None


async def test_asks_come_back(tmp_path: Path, client: Client, script: str) -> None:
    own_requests: list[Any] = []

    def approve(request: Any) -> str:
        own_requests.append(request)
        return "once"

    config = {"permission": {"edit": "ask"}, "snapshot": False}
    async with Workspace(tmp_path, config, data_dir=tmp_path / "d", approve=approve) as ws:
        requests: list[Any] = []

        async def mine(request: Any) -> Any:
            requests.append(request)
            await asyncio.sleep(0.1)
            return ("reject", "not this one") if "1.txt" in str(request.patterns) else "once"

        results = await ws.map(["write 0", "write 1"], model=script, client=client, on_ask=mine)
        assert {tuple(request.patterns) for request in requests} == {("out/0.txt",), ("out/1.txt",)}
        assert (tmp_path / "out" / "0.txt").exists()
        assert not (tmp_path / "out" / "1.txt").exists()
        assert "not this one" in results[1].answer.calls[0].state.error
        assert not own_requests
        assert not ws.permissions.pending()


async def test_asks_reach_the_workspaces_own_approver(tmp_path: Path, client: Client, script: str) -> None:
    requests: list[Any] = []

    def approve(request: Any) -> str:
        requests.append(request)
        return "always"

    config = {"permission": {"edit": "ask"}, "snapshot": False}
    async with Workspace(tmp_path, config, data_dir=tmp_path / "d", approve=approve) as ws:
        nobody = await ws.map(["write 7"], model=script, client=client, on_ask="reject")
        assert "denies every permission request" in nobody[0].answer.calls[0].state.error
        assert not requests
        results = await ws.map([f"write {i}" for i in range(6)], model=script, client=client, concurrency=1)
        assert not results.errors
        assert len(requests) == 1, "allowed for the session: of all runs"
        assert requests[0].permission == "edit"


async def test_the_scheduler_keeps_no_key_in_graph_plugins_events_or_log(
    tmp_path: Path, client: Client, script: str
) -> None:
    config = {
        "permission": "allow",
        "provider": {"mine": {"options": {"apiKey": KEY, "baseURL": "http://127.0.0.1:9"}}},
    }

    def key_ends_with(ctx: Any) -> str:
        return str(ctx.workspace.config.data["provider"]["mine"]["options"]["apiKey"][-4:])

    def scheduler_text(dask_scheduler: Any = None) -> list[str]:
        tasks = [repr(vars(t) if hasattr(t, "__dict__") else t.run_spec) for t in dask_scheduler.tasks.values()]
        states = [repr(getattr(t, "run_spec", "")) for t in dask_scheduler.tasks.values()]
        plugins = repr(list(dask_scheduler.worker_plugins.values()))
        return [
            *tasks,
            *states,
            plugins,
            repr(dask_scheduler.get_events()),
            repr(dask_scheduler.get_logs()),
        ]

    from opencode_jupyter import ToolContext

    key_ends_with.__annotations__["ctx"] = ToolContext
    async with Workspace(tmp_path, config, data_dir=tmp_path / "d", store=False) as ws:
        ws.registry.register(key_ends_with)
        looked: list[str] = []
        many = ws.map([("key_ends_with", {})] * 6 + ["write 1", "fail"], model=script, client=client)
        async for outcome in many:
            looked += await asyncio.to_thread(client.run_on_scheduler, scheduler_text)
            if outcome.index < 6:
                assert outcome.text == KEY[-4:], "the worker has the key"
        looked += await asyncio.to_thread(client.run_on_scheduler, scheduler_text)
        logs = await asyncio.to_thread(client.get_worker_logs)
        assert any(many.settings.batch in text for text in looked), "the look sees the batch"
        assert KEY not in repr(logs)
        assert not any(KEY in text for text in looked)


async def test_errors_are_what_they_were(ws: Workspace, client: Client, script: str) -> None:
    results = await ws.map(
        [
            "fail",
            ("read", {}),
            {"tool": "bash", "arguments": {"command": "sleep 30", "description": "x"}, "timeout": 0.3},
            {"text": "write 1", "model": "scripted:/none.yaml"},
        ],
        model=script,
        client=client,
    )
    kinds = [ModelError, InvalidArgumentsError, ToolTimeoutError, ModelError]
    assert [type(outcome.error) for outcome in results] == kinds
    assert isinstance(results[0].error, ModelError)
    assert results[0].error.kind == "bad_request"
    assert "no such thing" in str(results[0].error)
    assert results[0].session in {session.id for session in ws.sessions.list()}
    again = await results.retry()
    assert len(again.errors) == 4


class Counted(BaseModel):
    n: int


async def test_values_in_a_form(ws: Workspace, client: Client, script: str) -> None:
    results = await ws.map(["count 1", "count 2"], model=script, format=Counted, client=client)
    assert [outcome.error for outcome in results] == [None, None]
    assert results.values == [Counted(n=1), Counted(n=2)]


async def test_a_cancel_ends_the_runs_on_the_workers(ws: Workspace, client: Client) -> None:
    calls = [("bash", {"command": f"echo $$ > {i}.pid; exec sleep 60", "description": "wait"}) for i in range(4)]
    many = ws.map(calls * 2, client=client)
    task = asyncio.ensure_future(_all(many))
    pids = [ws.directory / f"{i}.pid" for i in range(4)]
    deadline = time.monotonic() + 30
    while sum(p.exists() and bool(p.read_text().strip()) for p in pids) < 2:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.2)
    assert not [p for p in pids if p.exists() and Path(f"/proc/{p.read_text().strip()}").exists()]
    after = await ws.map([("list", {})], client=client)
    assert after[0].error is None, "the workers are free again"


async def test_an_async_client(ws: Workspace, client: Client, script: str) -> None:
    async with Client(client.scheduler.address, asynchronous=True) as mine:
        results = await ws.map(["write 1", ("list", {})], model=script, client=mine)
        assert not results.errors
        assert results[0].text == "wrote 1"


async def _all(many: Any) -> Any:
    return await many


async def test_an_evaluation_scored_on_the_workers(ws: Workspace, client: Client, script: str) -> None:
    def where(case: Case, answer: Any, workspace: Workspace) -> dict[str, bool]:
        return {"apart": workspace.directory != here}

    here = ws.directory
    cases = [Case(f"write {i}", {f"out/{i}.txt": f"number {i}"}, {"old.txt": "old"}) for i in range(4)]
    evaluation = await ws.evaluate(
        cases, [files_equal, command("test -e old.txt"), where], model=script, client=client, n=2
    )
    assert not evaluation.errors
    assert [row["scores"] for row in evaluation.rows] == [{"files_equal": 1.0, "command": 1.0, "where.apart": 1.0}] * 8
    assert list(ws.directory.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"client": "tcp://127.0.0.1:1"}, TypeError, "takes a distributed.Client"),
        ({"model": object()}, TypeError, "given by name"),
    ],
)
async def test_what_does_not_go(
    ws: Workspace, client: Client, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await ws.map(["a"], **{"client": client, **options})


async def test_a_tool_that_cannot_be_sent(ws: Workspace, client: Client) -> None:
    import threading

    lock = threading.Lock()

    def held() -> str:
        with lock:
            return "held"

    ws.registry.register(held)
    with pytest.raises(ToolError, match="the registered tool held can't be sent"):
        await ws.map([("held", {})], client=client)
