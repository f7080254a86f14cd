"""A conversation becomes a summary and goes on from it; what of it the model that summarises is told."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter import Workspace
from opencode_jupyter.agent import retry
from opencode_jupyter.agent.compaction import compact
from opencode_jupyter.agent.compaction.limits import estimate_turns
from opencode_jupyter.agent.compaction.summary import CONTINUE, LEVELS, render_transcript, shortened
from opencode_jupyter.agent.conversation import SUMMARY_QUESTION
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.events import Usage
from opencode_jupyter.agent.model import Cost, Request
from opencode_jupyter.agent.turns import CallPiece, MediaPiece, ReasoningPiece, ResultPiece, TextPiece, Turn
from opencode_jupyter.core.errors import ToolError
from tests.support.agents import QUIET
from tests.support.fake_model import FakeModel
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio

READ = [["read", {"filePath": "a.txt"}]]
FULL = Usage(95_000, 100)
OVERFLOW = ModelError("too long", "overflow", provider="fake", status=400, body="prompt is too long")


def words(turns: Any) -> list[tuple[str, str]]:
    return [(turn.role, " ".join(p.text for p in turn.pieces if isinstance(p, TextPiece)).strip()) for turn in turns]


def request_text(request: Request) -> str:
    return "\n".join(text for _, text in words(request.turns))


async def test_a_full_window_is_summarised_and_the_work_goes_on(open_workspace: OpenWorkspace) -> None:
    model = FakeModel(
        [
            {"text": "I look.", "calls": READ, "usage": FULL},
            {"reasoning": "Hm.", "text": "The summary.", "usage": Usage(50, 7)},
            {"text": "All done."},
        ],
        context=100_000,
        output=10_000,
        cost=Cost(input=1, output=1),
    )
    compacted: list[Any] = []
    changes: list[tuple[str, Any]] = []
    ws = await open_workspace(files={"a.txt": "hello\n"})
    ws.bus.subscribe("session.compacted", lambda event: compacted.append(event["properties"]))
    run = ws.sessions.prompt("look at it", model=model)
    run.on_change = lambda run, kind, value: changes.append((kind, run.status if kind == "status" else value))
    answer = await run
    session = answer.session
    kept = [message.to_wire() for message in session.messages]
    await ws.store.flush()  # type: ignore[union-attr]
    again = await (await open_workspace()).sessions.open(session.id)
    assert [message.to_wire() for message in again.messages] == kept
    assert answer.text.strip() == "All done."
    assert answer.steps == 2
    assert compacted == [{"sessionID": session.id}]

    summary_request = model.requests[1]
    assert summary_request.agent == "compaction"
    assert summary_request.system == (ws.agents["compaction"].prompt,)
    assert list(summary_request.tools) == []
    assert not any(isinstance(p, (CallPiece, ResultPiece)) for turn in summary_request.turns for p in turn.pieces)
    assert [role for role, _ in words(summary_request.turns)] == ["user", "assistant", "user"]
    assert '[called read with {"filePath": "a.txt"}]' in request_text(summary_request)
    assert "hello" in request_text(summary_request)
    assert words(model.requests[2].turns) == [
        ("user", SUMMARY_QUESTION),
        ("assistant", "The summary."),
        ("user", CONTINUE),
    ]

    first, _, question, summary, onward, last = kept
    assert question["parts"][0]["type"] == "compaction"
    assert question["parts"][0]["auto"] is True
    info = summary["info"]
    assert (info["summary"], info["agent"], info["mode"], info["finish"]) == (True, "compaction", "compaction", "stop")
    assert info["parentID"] == question["info"]["id"]
    assert info["tokens"]["input"] == 50
    assert [part["type"] for part in summary["parts"]] == ["reasoning", "text", "step-finish"]
    assert onward["parts"][0]["synthetic"] is True
    assert last["info"]["parentID"] == onward["info"]["id"]
    assert answer.messages[0].to_wire()["info"]["id"] == first["info"]["id"]
    assert answer.usage.whole == 95_100 + 57 + 320
    assert answer.cost == pytest.approx((95_100 + 57 + 320) / 1e6)
    assert session.extra["tokens"]["input"] == 95_000 + 50 + 300
    assert ("status", "compacting") in changes
    assert "".join(value[1] for kind, value in changes if kind == "delta" and value[0]["messageID"] == info["id"]) == (
        "Hm.The summary. "
    )


async def test_it_can_be_switched_off(open_workspace: OpenWorkspace) -> None:
    model = FakeModel([{"calls": READ, "usage": FULL}, {"text": "Done."}], context=100_000)
    ws = await open_workspace({**QUIET, "compaction": {"auto": False}}, files={"a.txt": "x"})
    answer = await ws.sessions.prompt("go", model=model)
    assert [message.role for message in answer.session.messages] == ["user", "assistant", "assistant"]


async def filled(ws: Workspace, model: FakeModel) -> Any:
    """A session with one prompt and its answer."""
    return (await ws.sessions.prompt("first", model=model)).session


async def test_what_the_provider_refuses_is_said_again_after_the_summary(workspace: Workspace) -> None:
    model = FakeModel([{"text": "One."}, {"error": OVERFLOW}, {"text": "The summary."}, {"text": "Two."}])
    session = await filled(workspace, model)
    answer = await session.prompt("second")
    assert answer.text.strip() == "Two."
    assert "second" not in request_text(model.requests[2])
    assert words(model.requests[3].turns) == [
        ("user", SUMMARY_QUESTION),
        ("assistant", "The summary."),
        ("user", "second"),
    ]
    assert [message.text.strip() for message in session.messages if message.role == "user"] == [
        "first",
        "second",
        "",
        "",
    ]


async def test_in_the_midst_of_the_work_nothing_is_said_again(open_workspace: OpenWorkspace) -> None:
    turns = [{"text": "I look.", "calls": READ}, {"error": OVERFLOW}, {"text": "The summary."}, {"text": "Done."}]
    model = FakeModel(turns)
    ws = await open_workspace(files={"a.txt": "hello"})
    answer = await ws.sessions.prompt("look", model=model)
    assert answer.text.strip() == "Done."
    assert words(model.requests[3].turns)[-1] == ("user", CONTINUE)


async def test_less_is_told_until_it_fits(open_workspace: OpenWorkspace) -> None:
    def says(request: Request) -> dict[str, Any]:
        if request.agent != "compaction":
            return {"text": "Done."} if len(model.requests) > 3 else {"calls": READ * 3, "usage": FULL}
        return {"error": OVERFLOW} if len(request_text(request)) > 6_000 else {"text": "Short."}

    model = FakeModel(says, context=100_000)
    ws = await open_workspace(files={"a.txt": "\n".join(f"line {i} {'x' * 60}" for i in range(300))})
    answer = await ws.sessions.prompt("look", model=model)
    lengths = [len(request_text(request)) for request in model.requests if request.agent == "compaction"]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] <= 6_000
    assert 1 < len(lengths) < 5
    assert "characters omitted" in request_text(model.requests[-2])
    assert any(message.info.get("summary") for message in answer.session.messages)


async def test_what_cannot_fit_is_not_even_sent(open_workspace: OpenWorkspace) -> None:
    model = FakeModel(
        lambda r: (
            {"text": "The summary."}
            if r.agent == "compaction"
            else {"calls": READ * 4, "usage": Usage(1_950)}
            if len(model.requests) == 1
            else {"text": "Done."}
        ),
        context=2_000,
        output=100,
    )
    ws = await open_workspace(files={"a.txt": "x" * 1900 + "\n" + "y" * 1900})
    await ws.sessions.prompt("look", model=model)
    (summary,) = [request for request in model.requests if request.agent == "compaction"]
    assert len(request_text(summary)) / 4 < 1_900


async def test_a_summary_that_does_not_fit_at_all_leaves_no_trace(workspace: Workspace) -> None:
    model = FakeModel(lambda r: {"error": OVERFLOW} if len(model.requests) > 1 else {"text": "One."})
    session = await filled(workspace, model)
    with pytest.raises(ModelError, match="does not fit into the window of fake:m even after a summary") as caught:
        await session.prompt("second")
    assert caught.value.kind == "overflow"
    assert "larger window" in str(caught.value)
    assert [message.text.strip() for message in session.messages] == ["first", "One.", "second"]
    await workspace.store.flush()  # type: ignore[union-attr]
    assert len(await workspace.store.messages(session.id)) == 3  # type: ignore[union-attr]


async def test_no_summary_after_a_summary_for_ever(workspace: Workspace) -> None:
    model = FakeModel(
        lambda r: (
            {"text": "The summary."}
            if r.agent == "compaction"
            else {"error": OVERFLOW}
            if len(model.requests) > 1
            else {"text": "One."}
        )
    )
    session = await filled(workspace, model)
    for _ in range(2):
        with pytest.raises(ModelError) as caught:
            await session.prompt("more")
        assert caught.value.kind == "overflow"
    # once for each prompt: what could not be answered is cut in the next summary, so a session is never stuck for good
    assert [request.agent for request in model.requests] == ["build", *["build", "compaction", "build"] * 2]


async def test_a_window_that_is_full_from_the_start(open_workspace: OpenWorkspace) -> None:
    """The system prompt and the tools alone take more than what may be used: a summary at every step would not help."""
    model = FakeModel(
        lambda r: (
            {"text": "The summary."}
            if r.agent == "compaction"
            else {"text": "Done."}
            if len(model.requests) > 8
            else {"calls": READ, "usage": FULL}
        ),
        context=100_000,
    )
    ws = await open_workspace(files={"a.txt": "x"})
    answer = await ws.sessions.prompt("go", model=model)
    steps = [request.agent for request in model.requests]
    assert all(steps[i : i + 2] != ["compaction", "compaction"] for i in range(len(steps)))
    assert steps.count("compaction") <= steps.count("build") / 1.5
    assert any("almost no context left" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        ({"text": ""}, "protocol"),
        ({"text": "No.", "finish": "content-filter"}, "refused"),
        ({"error": ModelError("no credit", "quota", retryable=False)}, "quota"),
        ({"text": "Half", "cut": ModelError("broken", "bad_request")}, "bad_request"),
        ({"error": RuntimeError("what a library raises")}, "other"),
    ],
)
async def test_a_summary_that_fails(workspace: Workspace, turn: dict[str, Any], kind: str) -> None:
    model = FakeModel([{"text": "One."}, {"error": OVERFLOW}, turn])
    session = await filled(workspace, model)
    with pytest.raises(ModelError) as caught:
        await session.prompt("second")
    assert caught.value.kind == kind
    assert "must be summarised to continue, but fake:m gave no summary: " in str(caught.value)
    assert [message.text.strip() for message in session.messages] == ["first", "One.", "second"]
    model.turns = lambda request: {"text": "Two."}
    assert (await session.prompt("third")).text.strip() == "Two."


async def test_it_is_asked_again_after_errors_that_go_away(
    open_workspace: OpenWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.01)
    busy = ModelError("busy", "overloaded", status=529)
    turns = [{"text": "One."}, {"error": OVERFLOW}, {"error": busy}, {"text": "Ha", "cut": busy}]
    model = FakeModel([*turns, {"text": "The summary."}, {"text": "Two."}])
    statuses: list[str] = []
    ws = await open_workspace()
    session = await filled(ws, model)
    run = session.prompt("second")
    run.on_change = lambda run, kind, value: statuses.append(run.status) if kind == "status" else None
    await run
    (summary,) = [message for message in session.messages if message.info.get("summary")]
    assert summary.text.strip() == "The summary."
    assert statuses.count("retrying") == 2
    assert run.retry is None


async def test_a_stop_while_it_summarises_leaves_no_trace(workspace: Workspace) -> None:
    model = FakeModel([{"text": "One."}, {"error": OVERFLOW}, {"text": "Half of", "hang": "text"}, {"text": "Three."}])
    session = await filled(workspace, model)
    run = session.prompt("second")
    task = asyncio.ensure_future(run.run())
    await asyncio.wait_for(model.hanging.wait(), 10)
    assert run.status == "compacting"
    run.abort()
    with pytest.raises(ToolError):
        await task
    assert model.closed == 1
    assert [message.text.strip() for message in session.messages] == ["first", "One.", "second"]
    assert (await session.prompt("third")).text.strip() == "Three."


async def test_the_agents_own_model_and_the_plugins_words(workspace: Workspace) -> None:
    model = FakeModel([{"text": "One."}, {"error": OVERFLOW}, {"text": "The summary."}, {"text": "Two."}])

    def compacting(arguments: dict[str, Any], output: dict[str, Any]) -> None:
        assert arguments["sessionID"] == session.id
        output["prompt"] = "Say it in one line."
        output["context"].append("The user likes tabs.")

    workspace.hooks.add("experimental.session.compacting", compacting)
    del workspace.agents["compaction"]  # switched off in the configuration
    session = await filled(workspace, model)
    await session.prompt("second")
    assert request_text(model.requests[2]).endswith("Say it in one line.\n\nThe user likes tabs.")
    assert list(model.requests[2].system) == []


async def test_a_summary_that_a_person_asks_for(workspace: Workspace) -> None:
    model = FakeModel([{"text": "One."}, {"text": "The summary."}, {"text": "Two."}])
    run = workspace.sessions.prompt("first", model=model)
    session = (await run).session
    await compact(run, auto=False)
    assert session.messages[-1].info["summary"] is True
    assert "first" in request_text(model.requests[1])
    await session.prompt("second")
    assert words(model.requests[2].turns) == [
        ("user", SUMMARY_QUESTION),
        ("assistant", "The summary."),
        ("user", "second"),
    ]


async def test_a_second_summary_begins_with_the_first(open_workspace: OpenWorkspace) -> None:
    model = FakeModel(
        [
            {"text": "One."},
            {"error": OVERFLOW},
            {"text": "First summary."},
            {"calls": READ},
            {"error": OVERFLOW},
            {"text": "Second summary."},
            {"text": "Two."},
        ]
    )
    ws = await open_workspace(files={"a.txt": "x"})
    session = await filled(ws, model)
    await session.prompt("second")
    summary = model.requests[5]
    assert words(summary.turns)[:2] == [("user", SUMMARY_QUESTION), ("assistant", "First summary.")]
    assert "One." not in request_text(summary)
    assert words(model.requests[6].turns)[1] == ("assistant", "Second summary.")


async def test_pictures_are_named(open_workspace: OpenWorkspace, tmp_path: Path) -> None:
    model = FakeModel([{"text": "One."}, {"error": OVERFLOW}, {"text": "The summary."}, {"text": "Two."}])
    (tmp_path / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(8))
    ws = await open_workspace()
    session = (await ws.sessions.prompt("first", model=model, files=[tmp_path / "p.png"])).session
    await session.prompt("second", files=[tmp_path / "p.png"])
    assert "[picture p.png]" in request_text(model.requests[2])
    last = model.requests[3].turns[-1]
    assert isinstance(last, Turn)
    assert "second" in words([last])[0][1]
    assert "[image/png: p.png, omitted to save space]" in words([last])[0][1]


def text_of(turn: Turn) -> str:
    return " ".join(piece.text for piece in turn.pieces if isinstance(piece, TextPiece))


def conversation(steps: int, size: int = 3_000) -> list[Turn]:
    turns = [Turn("user", (TextPiece("the request"),))]
    for i in range(steps):
        call = CallPiece(f"c{i}", "read", {"filePath": f"f{i}.py"})
        turns.append(Turn("assistant", (ReasoningPiece("hm"), TextPiece(f"step {i}"), call)))
        turns.append(Turn("tool", (ResultPiece(f"c{i}", "read", "r" * size),)))
    return turns


def test_everything_becomes_words() -> None:
    picture = MediaPiece("image/png", "AAAA", "plot.png")
    document = MediaPiece("application/pdf", "AAAA")
    turns = [
        Turn("user", (TextPiece("look"), picture)),
        Turn("assistant", (ReasoningPiece("secret thought"), TextPiece("I look."), CallPiece("1", "read", {"n": "é"}))),
        Turn("tool", (ResultPiece("1", "read", "inside", (document,)), ResultPiece("2", "bash", "no", failed=True))),
        Turn("user", (TextPiece("and?"),)),
    ]
    rendered = render_transcript(turns, LEVELS[0])
    assert [turn.role for turn in rendered] == ["user", "assistant", "user"]
    assert text_of(rendered[0]) == "look\n\n[picture plot.png]"
    assert text_of(rendered[1]) == 'I look.\n\n[called read with {"n": "é"}]'
    assert text_of(rendered[2]) == "[read gave] inside [document application/pdf]\n\n[bash failed] no\n\nand?"


def test_the_first_prompt_and_the_last_summary_are_always_told() -> None:
    turns = conversation(40)
    question = Turn("user", (TextPiece(SUMMARY_QUESTION),), purpose="summary")
    summarised = [question, Turn("assistant", (TextPiece("what was"),)), *turns]
    for level in LEVELS:
        assert text_of(render_transcript(turns, level)[0]).startswith("the request")
        assert [text_of(turn) for turn in render_transcript(summarised, level)[:2]] == [SUMMARY_QUESTION, "what was"]
        assert "r" * 50 in text_of(render_transcript(turns, level)[-1])
    assert "turns were omitted here" in text_of(render_transcript(turns, LEVELS[4])[0])
    assert render_transcript([], LEVELS[0]) == []


def test_each_level_tells_less() -> None:
    sizes = [estimate_turns(render_transcript(conversation(200, 20_000), level)) for level in LEVELS]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 400_000
    assert sizes[-1] < 200


@given(st.text(max_size=400), st.integers(0, 500))
def test_a_cut_keeps_the_beginning_and_says_how_much_is_gone(given_text: str, limit: int) -> None:
    short = shortened(given_text, limit)
    if len(given_text) <= limit:
        assert short == given_text
        return
    assert f"[... {len(given_text) - limit:,} characters omitted ...]" in short
    assert short.startswith(given_text[: limit - limit // 4])
    assert len(short) <= limit + 60


PIECES = st.one_of(
    st.builds(TextPiece, st.text(max_size=20)),
    st.builds(CallPiece, st.just("1"), st.just("t"), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)),
    st.builds(ResultPiece, st.just("1"), st.just("t"), st.text(max_size=20)),
    st.builds(ReasoningPiece, st.text(max_size=5)),
)
TURNS = st.lists(
    st.builds(Turn, st.sampled_from(["user", "assistant", "tool"]), st.lists(PIECES, max_size=3).map(tuple))
)


@given(TURNS, st.sampled_from(LEVELS))
def test_roles_take_turns(turns: list[Any], level: Any) -> None:
    rendered = render_transcript(turns, level)
    assert all(a.role != b.role for a, b in itertools.pairwise(rendered))
    assert all(turn.role in ("user", "assistant") and text_of(turn) for turn in rendered)
