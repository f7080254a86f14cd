"""Titles of sessions: the first line, and what a small model makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter import Workspace
from opencode_jupyter.agent import models
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.title import MAX_CHARS, TitleWriter, first_line, title
from tests.support.fake_model import FakeModel


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fix it", "fix it"),
        ("\n\n  Fix   the plot\nand then", "Fix the plot"),
        (
            "Please make the area of the circle exact, and add a test",
            "Please make the area of the circle exact, and add",
        ),
        ("a" * 60, "a" * 50),
        ("x" * 50, "x" * 50),
        (f"{'x' * 50} y", "x" * 50),
        (f"{'x' * 48}, yes", "x" * 48),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_the_first_line(text: str, expected: str) -> None:
    assert first_line(text) == expected


@given(st.text(max_size=200))
def test_a_title_is_short_and_one_line(text: str) -> None:
    title_line = first_line(text)
    assert len(title_line) <= MAX_CHARS
    assert title_line == " ".join(title_line.split())
    assert "\n" not in title_line


async def made(tmp_path: Path, model: FakeModel | None, monkeypatch: pytest.MonkeyPatch, rename: str = "") -> Any:
    async def resolve(workspace: Workspace, name: str) -> FakeModel:
        assert name == "fake/small"
        assert model is not None
        return model

    monkeypatch.setattr(models, "resolve", resolve)
    config = {"small_model": "fake/small"} if model is not None else {}
    async with Workspace(tmp_path, config, tmp_path / "data", store=False) as ws:
        session = ws.sessions.create()
        session.title = await title(ws, session, "make a plot\nplease")
        assert session.title == "make a plot"
        if rename:
            session.title = rename
        await ws.service(TitleWriter).settled()
        return session


@pytest.mark.anyio
async def test_no_request_without_a_small_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await made(tmp_path, None, monkeypatch)).title == "make a plot"


@pytest.mark.anyio
async def test_a_small_model_is_asked_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = FakeModel([{"text": '<think>hm hm</think> "Plot of the data"'}])
    session = await made(tmp_path, model, monkeypatch)
    assert session.title == "Plot of the data"
    (request,) = model.requests
    assert request.agent == "title"
    assert request.temperature == 0.5
    assert "make a plot" in request.turns[0].pieces[0].text  # type: ignore[union-attr]
    assert list(request.tools) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    "turn", [{"error": ModelError("no", "auth")}, {"text": ""}, {"text": "<think>only"}, {"error": ValueError("x")}]
)
async def test_a_title_is_not_worth_a_failure(
    tmp_path: Path, turn: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await made(tmp_path, FakeModel([turn]), monkeypatch)).title == "make a plot"


@pytest.mark.anyio
async def test_a_title_that_somebody_gave_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await made(tmp_path, FakeModel([{"text": "Other"}]), monkeypatch, rename="Mine")).title == "Mine"


@pytest.mark.anyio
async def test_closing_does_not_wait_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = FakeModel([{"text": "x", "hang": "text"}])

    async def resolve(workspace: Workspace, name: str) -> FakeModel:
        return model

    monkeypatch.setattr(models, "resolve", resolve)
    async with Workspace(tmp_path, {"small_model": "fake/small"}, tmp_path / "data", store=False) as ws:
        await title(ws, ws.sessions.create(), "make a plot")
        await model.hanging.wait()
    assert model.closed == 1
