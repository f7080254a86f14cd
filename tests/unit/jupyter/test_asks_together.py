"""Several asks at once: what each card says of the others, and of the call that it waits for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.core.call import Call
from opencode_jupyter.core.errors import PermissionCorrectedError, ToolAbortedError
from opencode_jupyter.jupyter.cards.call_json import card_part
from opencode_jupyter.jupyter.cards.wording import decision_words, state_words
from opencode_jupyter.jupyter.kernel.approvals import Broker
from tests.support.shells import Shell
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
SOON = 5.0


@pytest.fixture
async def workspace(open_workspace: OpenWorkspace, tmp_path: Path) -> Workspace:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one two three\n")
    config = {"permission": {"*": "allow", "edit": "ask"}}
    ws = await open_workspace(config, directory=tmp_path / "work", store=False)
    ws.bus.subscribe("permission.asked", lambda event: None)
    return ws


async def until(true: Callable[[], Any]) -> None:
    with anyio.fail_after(SOON):
        while not true():
            await asyncio.sleep(0.005)


def edit(workspace: Workspace, old: str, new: str, **options: Any) -> Call:
    arguments = {"filePath": "a.txt", "oldString": old, "newString": new}
    return workspace.start("edit", arguments, by="user", **options)


def state_text(call: Call) -> str:
    return state_words(card_part(call.part, live=True))[1]


async def test_a_call_says_that_another_one_changes_its_file_first(workspace: Workspace) -> None:
    await workspace.call("read", {"filePath": "a.txt"})
    calls = [edit(workspace, "one", "1"), edit(workspace, "two", "2", timeout=1), edit(workspace, "three", "3")]
    tasks = [asyncio.create_task(calls[0].run())]
    await until(workspace.permissions.pending)
    for call in calls[1:]:
        tasks.append(asyncio.create_task(call.run()))
        await until(lambda call=call: state_text(call) not in ("pending", "running"))
    assert [state_text(call) for call in calls] == ["running", *["waiting for another change of a.txt"] * 2]
    await asyncio.sleep(1.2)  # the second one's limit stands still: a person takes the time
    for call in calls:
        await until(workspace.permissions.pending)
        (request,) = workspace.permissions.pending()
        assert request.tool is not None
        assert request.tool["callID"] == call.part.call_id, "in the order in which they came"
        assert state_text(call) == "running"
        workspace.permissions.reply(request.id, "once")
    await asyncio.gather(*tasks)
    assert (workspace.directory / "a.txt").read_text() == "1 2 3\n"
    assert not workspace.files.held(workspace.directory / "a.txt")
    assert all("waitingFor" not in (call.part.state.to_wire().get("metadata") or {}) for call in calls)


async def test_a_call_that_waits_for_another_can_be_stopped_and_leaves_the_file_free(workspace: Workspace) -> None:
    await workspace.call("read", {"filePath": "a.txt"})
    first, second = edit(workspace, "one", "1"), edit(workspace, "two", "2")
    tasks = [asyncio.create_task(first.run())]
    await until(workspace.permissions.pending)
    tasks.append(asyncio.create_task(second.run()))
    await until(lambda: state_text(second).startswith("waiting for another"))
    second.abort()
    with pytest.raises(ToolAbortedError):
        await tasks[1]
    assert state_words(card_part(second.part))[1] == "stopped"
    (request,) = workspace.permissions.pending()
    workspace.permissions.reply(request.id, "once")
    await tasks[0]
    assert not workspace.files.held(workspace.directory / "a.txt")


async def test_a_dry_run_waits_for_no_other_call(workspace: Workspace) -> None:
    await workspace.call("read", {"filePath": "a.txt"})
    first = edit(workspace, "one", "1")
    task = asyncio.create_task(first.run())
    await until(workspace.permissions.pending)
    arguments = {"filePath": "a.txt", "oldString": "two", "newString": "2"}
    with anyio.fail_after(SOON):
        (decision,) = await workspace.dry_run("edit", arguments)
    assert decision.action == "ask"
    first.abort()
    with pytest.raises(ToolAbortedError):
        await task


class Shown:
    """What the broker needs of a card; keeps the positions it was given."""

    def __init__(self, call: Call) -> None:
        self.call, self.key, self.comm_id, self.can_live = call, call.part.call_id, call.part.call_id, True
        self.hello_after: float | None = 0.0
        self.run = None
        self.places: list[tuple[int, int]] = []
        """Of every update: which of how many its ask is."""

    def set_requests(self, requests: dict[str, list[Any]]) -> None:
        self.places += [view.position for views in requests.values() for view in views]


def test_every_card_counts_the_asks_that_wait_now(ip: Shell) -> None:
    notebook = ip.notebook
    workspace = notebook.workspace
    notebook.broker.close()
    broker = Broker(workspace, [], lambda card: True)

    def begin(number: int) -> tuple[Shown, Any]:
        Path(f"{number}.env").write_text("A=1")
        call: Call = notebook.on_engine(lambda: workspace.start("read", {"filePath": f"{number}.env"}, by="user"))
        card = Shown(call)
        broker.attach(card)  # type: ignore[arg-type]
        return card, notebook.engine.submit(call.run())

    def wait(true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SOON
        while not true():
            assert time.monotonic() < deadline, [card.places for card in cards]
            time.sleep(0.005)

    cards: list[Shown] = []
    futures = []
    for number in range(3):
        card, future = begin(number)
        cards.append(card)
        futures.append(future)
        wait(lambda: len(broker.pending()) == len(cards))
    wait(lambda: [card.places[-1:] for card in cards] == [[(1, 3)], [(2, 3)], [(3, 3)]])
    workspace.permissions.reply(broker.pending()[0].id, "once", by="card")
    futures[0].result(SOON)
    wait(lambda: [card.places[-1:] for card in cards[1:]] == [[(1, 2)], [(2, 2)]])
    workspace.permissions.reply(broker.pending()[1].id, "once", by="card")
    wait(lambda: cards[1].places[-1] == (1, 1))
    workspace.permissions.reply(broker.pending()[0].id, "once", by="card")
    for future in futures:
        future.result(SOON)
    broker.close()


def test_requests_are_counted_in_the_order_of_their_cards(ip: Shell) -> None:
    workspace = ip.notebook.workspace
    ip.notebook.broker.close()
    broker = Broker(workspace, [], lambda card: True)
    calls: list[Call] = []
    for number in range(2):
        Path(f"{number}.env").write_text("A=1")
        arguments = {"filePath": f"{number}.env"}
        calls.append(ip.notebook.on_engine(lambda arguments=arguments: workspace.start("read", arguments, by="user")))
        broker.attach(Shown(calls[-1]))  # type: ignore[arg-type]
    futures = []
    for call in reversed(calls):  # the later call is the first that asks
        futures.append(ip.notebook.engine.submit(call.run()))
        deadline = time.monotonic() + SOON
        while len(broker.pending()) < len(futures):
            assert time.monotonic() < deadline
            time.sleep(0.005)
    assert [request.call_id for request in broker.pending()] == [call.part.call_id for call in calls]
    for request in broker.pending():
        workspace.permissions.reply(request.id, "once", by="card")
    for future in futures:
        future.result(SOON)


class Fallback:
    """Where an ask goes that nobody saw."""

    name = "fallback"

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, request: Any) -> bool:
        self.opened.append(request.id)
        return True

    def close(self, request: Any) -> None:
        pass


@pytest.mark.parametrize("is_known", [True, False])
def test_an_ask_that_a_page_knows_of_opens_no_input_box_while_its_card_is_drawn(
    ip: Shell, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opencode_jupyter.jupyter.kernel.approvals.PANEL_WAIT", 0.5 if is_known else 60)
    notebook, fallback = ip.notebook, Fallback()
    workspace = notebook.workspace
    notebook.broker.close()
    notebook.broker = Broker(workspace, [fallback], lambda card: True, lambda: 0.5)
    Path("a.env").write_text("A=1")
    call: Call = notebook.on_engine(lambda: workspace.start("read", {"filePath": "a.env"}, by="user"))
    card = Shown(call)
    card.hello_after = None
    notebook.broker.attach(card)  # type: ignore[arg-type]
    began = time.monotonic()
    future = notebook.engine.submit(call.run())
    while not notebook.broker.pending():
        assert time.monotonic() - began < SOON
        time.sleep(0.002)
    if is_known:
        assert len(notebook.panel.on_message({"kind": "panel", "what": "asks"})["asks"]) == 1
    while not fallback.opened:
        assert time.monotonic() - began < SOON
        time.sleep(0.005)
    assert not is_known or time.monotonic() - began > 0.9
    workspace.permissions.reply(notebook.broker.pending()[0].id, "once", by="card")
    future.result(SOON)


async def test_requests_of_one_permission_each_record_their_own_decision(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace({"permission": {"bash": "ask"}}, store=False)
    ws.bus.subscribe("permission.asked", lambda event: None)
    calls = [ws.start("bash", {"command": f"echo {name}", "description": "d"}) for name in ("one", "two")]
    tasks = [asyncio.create_task(call.run()) for call in calls]
    await until(lambda: len(ws.permissions.pending()) == 2)
    by_call = {(request.tool or {})["callID"]: request for request in ws.permissions.pending()}
    first, second = (by_call[call.part.call_id] for call in calls)
    ws.permissions.reply(first.id, ("reject", "use printf"), by="card")
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(errors[0], PermissionCorrectedError) and errors[0].decision is calls[0].part.decisions[0]
    decided = [[(d.request_id, d.reply, d.message, d.together) for d in call.part.decisions] for call in calls]
    assert decided == [[(first.id, "reject", "use printf", False)], [(second.id, "reject", None, True)]]
    decision_texts = [decision_words(card_part(call.part)) for call in calls]
    assert decision_texts == [["denied by you: “use printf”"], ["denied by you (together with another request)"]]
