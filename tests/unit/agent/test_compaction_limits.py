"""When a conversation is too long, and which old outputs are dropped: the arithmetic."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter import Attachment, Workspace
from opencode_jupyter.agent.compaction import overflows, prune, usable_tokens
from opencode_jupyter.agent.compaction.limits import KEPT_TOKENS, LEAST_FREED, estimate, estimate_turns
from opencode_jupyter.agent.conversation import CLEARED, Conversation
from opencode_jupyter.agent.events import Usage
from opencode_jupyter.agent.model import ModelInfo
from opencode_jupyter.agent.turns import MediaPiece, ResultPiece, TextPiece, Turn
from opencode_jupyter.core import ids
from opencode_jupyter.core.call_state import Completed, Failed, ToolPart
from opencode_jupyter.core.messages import Message, assistant_message, new_part, user_message
from tests.support.workspaces import OpenWorkspace

MODEL = {"providerID": "fake", "modelID": "m"}


def info(context: int, output: int = 0) -> ModelInfo:
    return ModelInfo("fake", "m", context=context, output=output)


@pytest.mark.parametrize(
    ("context", "output", "config", "room"),
    [
        (200_000, 64_000, {}, 168_000),
        (200_000, 8_192, {}, 191_808),
        (200_000, 0, {}, 168_000),
        (200_000, 64_000, {"reserved": 10_000}, 190_000),
        (200_000, 64_000, {"reserved": 0}, 200_000),
        (200_000, 64_000, {"reserved": "many"}, 168_000),
        (8_000, 0, {}, 4_000),
        (8_000, 8_000, {"reserved": 9_000}, 4_000),
        (0, 0, {}, 0),
    ],
)
def test_how_much_may_be_used(context: int, output: int, config: dict[str, Any], room: int) -> None:
    assert usable_tokens(info(context, output), {"compaction": config}) == room


def test_when_it_overflows() -> None:
    model = info(100_000, 10_000)
    assert not overflows(Usage(60_000, 10_000, 0, 20_000, 0), model, {})
    assert overflows(Usage(60_000, 10_000, 0, 20_000, 1), model, {})
    assert overflows(Usage(total=90_001), model, {})
    assert not overflows(Usage(total=999_999), model, {"compaction": {"auto": False}})
    assert overflows(Usage(total=999_999), model, {"compaction": {"auto": True}})
    assert not overflows(Usage(total=999_999), info(0), {})


def test_estimates() -> None:
    assert estimate("x" * 400) == 100
    turn = Turn("user", (TextPiece("x" * 40), MediaPiece("image/png", "A" * 9_999)))
    assert estimate_turns([turn]) == 10 + 1_600


@given(
    context=st.integers(1, 2_000_000),
    output=st.integers(0, 500_000),
    reserved=st.none() | st.integers(-10, 3_000_000),
    used=st.integers(0, 3_000_000),
)
def test_bounds(context: int, output: int, reserved: int | None, used: int) -> None:
    config = {"compaction": {} if reserved is None else {"reserved": reserved}}
    room = usable_tokens(info(context, output), config)
    assert context / 2 <= room <= context
    assert overflows(Usage(total=used + 1), info(context, output), config) == (used + 1 > room)
    if used > context:
        assert overflows(Usage(used), info(context, output), config)


# ---------------------------------------------------------------------- old outputs


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({})


def turn(conversation: Conversation, *outputs: int, tool: str = "read", **info: Any) -> Message:
    """A user's message and an answer whose calls gave so many tokens."""
    session = conversation.session
    user = user_message(session.id, "build", MODEL)
    user.parts.append(new_part(user, "text", text="go"))
    conversation.add(user)
    message = assistant_message(session.id, user.id, "build", MODEL, cwd="/", root="/", finish="stop", **info)
    for tokens in outputs:
        state = Completed({}, 1, 2, "t", "x" * 4 * tokens, {})
        id = ids.create("part")
        message.parts.append(ToolPart(id, session.id, message.id, f"call_{id}", tool, state))
    return conversation.add(message)


def dropped(message: Message) -> list[bool]:
    return [isinstance(part.state, Completed) and part.state.compacted is not None for part in message.calls]


@pytest.mark.anyio
async def test_old_outputs_are_dropped(ws: Workspace) -> None:
    session = ws.sessions.create("one")
    conversation = Conversation(ws, session)
    old = turn(conversation, 15_000, 15_000, 30_000)
    turn(conversation, 50_000)
    turn(conversation, 50_000)
    events: list[str] = []
    ws.bus.subscribe("message.part.updated", lambda event: events.append(event["properties"]["part"]["id"]))
    first = conversation.turns()
    assert prune(conversation) == 15_000 + 15_000
    assert dropped(old) == [True, True, False]
    assert events == [part.id for part in old.calls[1::-1]]
    later = conversation.turns()
    (result, *_) = [piece for turn in later for piece in turn.pieces if isinstance(piece, ResultPiece)]
    assert result.text == CLEARED
    assert later[-1] is first[-1], "what did not change is not made again"
    assert prune(conversation) == 0
    assert ws.store is not None
    await ws.store.flush()
    kept = [part for part in await ws.store.parts(session.id) if part["type"] == "tool"]
    assert [("compacted" in part["state"]["time"]) for part in kept] == [True, True, False, False, False]
    assert all(len(part["state"]["output"]) > 4 for part in kept), "the session keeps what was dropped"


@pytest.mark.anyio
async def test_what_is_never_dropped(ws: Workspace) -> None:
    conversation = Conversation(ws, ws.sessions.create("one"))
    skill = turn(conversation, 100_000, tool="skill")
    turn(conversation, KEPT_TOKENS)
    turn(conversation)
    turn(conversation)
    assert prune(conversation) == 0
    assert dropped(skill) == [False]


@pytest.mark.anyio
async def test_the_last_two_turns_stay(ws: Workspace) -> None:
    conversation = Conversation(ws, ws.sessions.create("one"))
    turn(conversation, 90_000)
    turn(conversation, 90_000)
    assert prune(conversation) == 0
    turn(conversation)
    assert prune(conversation) == 90_000


@pytest.mark.anyio
async def test_nothing_before_a_summary_or_an_earlier_drop(ws: Workspace) -> None:
    conversation = Conversation(ws, ws.sessions.create("one"))
    turn(conversation, 90_000)
    turn(conversation, summary=True)
    turn(conversation, 1_000)
    turn(conversation)
    turn(conversation)
    assert prune(conversation) == 0


@pytest.mark.anyio
async def test_pictures_count_and_failed_calls_do_not(ws: Workspace) -> None:
    conversation = Conversation(ws, ws.sessions.create("one"))
    old = turn(conversation, *[10] * 40)
    pictures = [Attachment("image/png", "data:image/png;base64,AAAA")]
    for part in old.calls:
        part.state = Completed({}, 1, 2, "t", "", {}, pictures)
    failed = turn(conversation, 10)
    failed.calls[0].state = Failed({}, 1, 2, "e" * 999_999)
    turn(conversation)
    turn(conversation)
    assert prune(conversation) == 15 * 1_600
    assert dropped(old) == [True] * 15 + [False] * 25


@pytest.mark.anyio
async def test_it_can_be_switched_off(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace({"compaction": {"prune": False}}, store=False)
    conversation = Conversation(ws, ws.sessions.create("one"))
    for _ in range(4):
        turn(conversation, 100_000)
    assert prune(conversation) == 0


@given(turns=st.lists(st.lists(st.integers(0, 30_000), max_size=4), max_size=8))
def test_what_is_dropped_adds_up(turns: list[list[int]]) -> None:
    ws = Workspace(".", {}, "/nonexistent-data", store=False)
    conversation = Conversation(ws, ws.sessions.create("one"))
    made = [turn(conversation, *outputs) for outputs in turns]
    freed = prune(conversation)
    flags = [dropped(message) for message in made]
    sizes = [size for outputs in turns for size in outputs]
    is_dropped = [flag for row in flags for flag in row]
    assert freed == sum(size for size, flag in zip(sizes, is_dropped, strict=True) if flag)
    assert freed == 0 or freed >= LEAST_FREED
    assert not any(flag for row in flags[-2:] for flag in row)
    assert is_dropped == sorted(is_dropped, reverse=True), "the oldest go first"
    looked_at = sum(size for outputs in turns[:-2] for size in outputs)
    if freed:
        newest = next(i for i in range(len(sizes) - 1, -1, -1) if is_dropped[i])
        later = sizes[newest : len([s for row in turns[:-2] for s in row])]
        assert sum(later) > KEPT_TOKENS, "what stays is the newest, as much as fits"
        assert looked_at - freed <= KEPT_TOKENS
    ws.close()
