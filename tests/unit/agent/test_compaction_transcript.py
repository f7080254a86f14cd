"""How a conversation is told to the model that summarises it."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.agent.compaction.limits import estimate, estimate_turns
from opencode_jupyter.agent.compaction.transcript import LEVELS, render_transcript, shortened
from opencode_jupyter.agent.history import SUMMARY_QUESTION
from opencode_jupyter.agent.turns import CallPiece, MediaPiece, ReasoningPiece, ResultPiece, TextPiece, Turn


def text(turn: Turn) -> str:
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
    assert text(rendered[0]) == "look\n\n[picture plot.png]"
    assert text(rendered[1]) == 'I look.\n\n[called read with {"n": "é"}]'
    assert text(rendered[2]) == "[read gave] inside [document application/pdf]\n\n[bash failed] no\n\nand?"


def test_the_first_prompt_and_the_last_summary_are_always_told() -> None:
    turns = conversation(40)
    question = Turn("user", (TextPiece(SUMMARY_QUESTION),), purpose="summary")
    summarised = [question, Turn("assistant", (TextPiece("what was"),)), *turns]
    for level in LEVELS:
        assert text(render_transcript(turns, level)[0]).startswith("the request")
        assert [text(turn) for turn in render_transcript(summarised, level)[:2]] == [SUMMARY_QUESTION, "what was"]
        assert "r" * 50 in text(render_transcript(turns, level)[-1])
    assert "turns were omitted here" in text(render_transcript(turns, LEVELS[4])[0])
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
    assert all(turn.role in ("user", "assistant") and text(turn) for turn in rendered)


def test_estimates() -> None:
    assert estimate("x" * 400) == 100
    turn = Turn("user", (TextPiece("x" * 40), MediaPiece("image/png", "A" * 9_999)))
    assert estimate_turns([turn]) == 10 + 1_600
