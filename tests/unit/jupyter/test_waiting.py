"""A waiting cell serves jobs, wakes for endings at once, and turns an interrupt into an abort."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import signal
import threading

import pytest

from opencode_jupyter.jupyter.kernel.waiting import Waiter, in_cell_task


def later(seconds: float, fn: object, *args: object) -> None:
    timer = threading.Timer(seconds, fn, args)  # type: ignore[arg-type]
    timer.daemon = True
    timer.start()


def test_blocking_wait_gives_the_result_at_once() -> None:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    later(0.12, future.set_result, 7)
    assert Waiter(lambda reason: None).wait(future) == 7


def test_jobs_run_on_the_waiting_thread() -> None:
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    waiter = Waiter(lambda reason: None)
    threads: list[int] = []

    def work() -> None:
        threads.append(waiter.submit(threading.get_ident).result(1))
        future.set_result(None)

    threading.Thread(target=work).start()
    waiter.wait(future)
    assert threads == [threading.get_ident()]


def test_a_job_submitted_just_before_the_end_still_runs() -> None:
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    waiter = Waiter(lambda reason: None)
    job = waiter.submit(lambda: "done")
    future.set_result(None)
    waiter.wait(future)
    assert job.result(0) == "done"
    with pytest.raises(RuntimeError, match="no longer waits"):
        waiter.submit(lambda: None).result(0)


def test_interrupt_aborts_and_raises() -> None:
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    reasons: list[str] = []

    def abort(reason: str) -> None:
        reasons.append(reason)
        later(0.1, future.set_exception, RuntimeError("stopped"))

    later(0.1, os.kill, os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        Waiter(abort).wait(future)
    assert reasons == ["interrupted"]


@pytest.mark.anyio
async def test_await_serves_jobs_and_ends_at_once() -> None:
    future: concurrent.futures.Future[str] = concurrent.futures.Future()
    waiter = Waiter(lambda reason: None)
    me = threading.get_ident()

    def work() -> None:
        assert waiter.submit(threading.get_ident).result(1) == me
        future.set_result("ok")

    threading.Thread(target=work).start()
    assert await waiter.wait_async(future) == "ok"


@pytest.mark.anyio
async def test_cancelling_a_users_task_aborts_and_stays_a_cancellation() -> None:
    future: concurrent.futures.Future[str] = concurrent.futures.Future()
    reasons: list[str] = []

    def abort(reason: str) -> None:
        reasons.append(reason)
        future.set_exception(RuntimeError("stopped"))

    task = asyncio.create_task(Waiter(abort).wait_async(future))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reasons == ["interrupted"]


@pytest.mark.anyio
async def test_only_a_cells_own_task_counts_as_the_cell() -> None:
    async def run_cell_async() -> bool:
        return in_cell_task()

    assert not in_cell_task()
    assert await asyncio.create_task(run_cell_async())
