"""Asks across threads, ends of a wait, and approvers."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from opencode_jupyter.core.errors import (
    PermissionCorrectedError,
    PermissionRejectedError,
)
from opencode_jupyter.core.events import Bus
from opencode_jupyter.core.permission import (
    Decision,
    PermissionQuery,
    PermissionRequest,
    PermissionService,
    from_config,
)
from tests.support.asking import ASK, S1, S2, Log, start, until, waiting

pytestmark = pytest.mark.anyio

# ---- threads


async def test_reply_from_another_thread(service: PermissionService) -> None:
    log = Log(service)
    task = start(service, "x")
    [request] = await waiting(service, 1)
    assert await asyncio.to_thread(service.reply, request.id, "once") is True
    assert (await asyncio.wait_for(task, 2)).reply == "once"
    assert set(log.threads) == {threading.get_ident()}


async def test_the_first_of_many_threads_wins(service: PermissionService) -> None:
    for _ in range(30):
        task = start(service, "x")
        [request] = await waiting(service, 1)
        barrier = threading.Barrier(4)

        def answer(reply: Any, request: PermissionRequest = request, barrier: threading.Barrier = barrier) -> bool:
            barrier.wait(5)
            return service.reply(request.id, reply)

        replies = ["once", "reject", "once", ("reject", "no")]
        won = await asyncio.gather(*(asyncio.to_thread(answer, reply) for reply in replies))
        assert sum(won) == 1
        expected = replies[won.index(True)]
        [outcome] = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(outcome, Decision) == (expected == "once")
        assert isinstance(outcome, PermissionCorrectedError) == isinstance(expected, tuple)


async def test_cascade_to_a_loop_of_another_thread(service: PermissionService) -> None:
    outcome: list[object] = []

    def elsewhere() -> None:
        try:
            outcome.append(
                asyncio.run(
                    service.ask(PermissionQuery(session_id=S1, permission="bash", patterns=["git b"], ruleset=ASK))
                )
            )
        except Exception as e:
            outcome.append(e)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    await waiting(service, 1)
    task = start(service, "git a", always=["git *"])
    requests = await waiting(service, 2)
    service.reply(requests[1].id, "always")
    await task
    await asyncio.to_thread(thread.join, 5)
    assert isinstance(outcome[0], Decision) and outcome[0].reply == "always"


def test_a_loop_that_was_closed_while_an_ask_waits_harms_nobody(service: PermissionService) -> None:
    loop = asyncio.new_event_loop()
    task = loop.create_task(service.ask(PermissionQuery(session_id=S1, permission="x", patterns=["y"], ruleset=ASK)))
    loop.run_until_complete(asyncio.sleep(0.01))
    [request] = service.pending()
    loop.close()
    assert service.reply(request.id, "once") is True
    assert service.pending() == [] and len(service.history) == 1
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is meant to be left behind


# ---- ending a wait


async def test_a_cancelled_call_takes_its_request_back(service: PermissionService) -> None:
    log = Log(service)
    task = start(service, "x")
    second_task = start(service, "y")
    request, second = await waiting(service, 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log.entries[-1] == ("replied", request.id, "reject")
    assert [r.id for r in service.pending()] == [second.id]  # no cascade: nobody refused anything
    assert (service.history[-1].action, service.history[-1].by) == ("deny", "cancelled")
    assert service.reply(request.id, "once") is False
    service.reply(second.id, "once")
    await second_task


async def test_reject_all_of_a_session(service: PermissionService) -> None:
    first, second = start(service, "a"), start(service, "b", session=S2)
    await waiting(service, 2)
    assert service.reject_all("stopped by hand", session_id=S1) == 1
    with pytest.raises(PermissionRejectedError, match="stopped by hand"):
        await first
    assert service.reject_all() == 1 and service.reject_all() == 0
    with pytest.raises(PermissionRejectedError, match="The user rejected permission"):
        await second


async def test_close_rejects_now_and_later(service: PermissionService) -> None:
    task = start(service, "a")
    await waiting(service, 1)
    await asyncio.to_thread(service.close)
    with pytest.raises(PermissionRejectedError, match="closed"):
        await task
    with pytest.raises(PermissionRejectedError, match="closed"):
        await start(service, "b")
    assert (await start(service, "b", ruleset=from_config("allow"))).action == "allow"
    assert service.pending() == []


# ---- approve


async def test_approve_plain_and_async() -> None:
    requests: list[PermissionRequest] = []

    async def slowly(request: PermissionRequest) -> Any:
        await asyncio.sleep(0.01)
        return ("reject", "not today")

    def always(request: PermissionRequest) -> Any:
        requests.append(request)
        return "always"

    service = PermissionService(Bus(), always)
    log = Log(service)
    decision = await service.ask(
        PermissionQuery(session_id=S1, permission="bash", patterns=["x"], always=["*"], ruleset=ASK)
    )
    assert (decision.reply, decision.by) == ("always", "approve")
    assert [e[0] for e in log.entries] == ["asked", "replied"]
    assert len(requests) == 1
    await service.ask(PermissionQuery(session_id=S1, permission="bash", patterns=["y"], ruleset=ASK))
    assert len(requests) == 1

    service = PermissionService(Bus(), slowly)
    with pytest.raises(PermissionCorrectedError, match="not today"):
        await service.ask(PermissionQuery(session_id=S1, permission="bash", patterns=["x"], ruleset=ASK))


async def test_a_reply_from_elsewhere_outruns_approve() -> None:
    ended: list[str] = []

    async def never(request: PermissionRequest) -> Any:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(request.id)

    service = PermissionService(Bus(), never)
    task = start(service, "x")
    [request] = await waiting(service, 1)
    await asyncio.sleep(0.01)
    service.reply(request.id, "once", by="card")
    assert (await asyncio.wait_for(task, 2)).by == "card"
    await until(lambda: ended == [request.id])


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("bad", ["yes", None, RuntimeError("the approver broke")])
async def test_an_approver_that_fails_ends_the_ask(asynchronous: bool, bad: Any) -> None:
    def approve(request: PermissionRequest) -> Any:
        if isinstance(bad, Exception):
            raise bad
        return bad

    async def approve_later(request: PermissionRequest) -> Any:
        await asyncio.sleep(0)
        return approve(request)

    service = PermissionService(Bus(), approve_later if asynchronous else approve)
    log = Log(service)
    with pytest.raises((ValueError, RuntimeError), match=r'"once", "always", "reject"|the approver broke'):
        await asyncio.wait_for(start(service, "x"), 2)
    assert service.pending() == []
    assert log.entries[-1][0::2] == ("replied", "reject")
    assert service.history[-1].action == "deny"


async def test_thousands_at_once(service: PermissionService) -> None:
    tasks = [start(service, f"c{i}", session=f"ses_{i}") for i in range(2000)]
    for request in await waiting(service, 2000):
        service.reply(request.id, "once")
    assert len(await asyncio.gather(*tasks)) == 2000
    assert len(service.history) == 2000


async def test_where_nobody_hears_of_an_ask_the_log_says_how_it_goes_on(
    service: PermissionService, caplog: pytest.LogCaptureFixture
) -> None:
    task = start(service, "x")
    [request] = await waiting(service, 1)
    assert f"permissions.reply('{request.id}', ...)" in caplog.text
    service.reply(request.id, "once")
    await task
    caplog.clear()
    Log(service)  # somebody listens
    task = start(service, "x")
    [request] = await waiting(service, 1)
    assert not caplog.text
    service.reply(request.id, "once")
    await task
