"""A run's card as JSON, text and HTML: brought up to date by pieces, bounded when saved, hostile words as text."""

from __future__ import annotations

import asyncio
import json
import re
import time
from typing import Any, cast

import pytest

from opencode_jupyter import Attachment, ToolContext, ToolResult, Workspace, tool
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.jupyter.cards.markdown import markdown
from opencode_jupyter.jupyter.cards.run_card import RunCard
from opencode_jupyter.jupyter.cards.run_json import RunItems, javascript_length, with_children
from opencode_jupyter.jupyter.cards.run_mimebundle import (
    PLAIN_LINES,
    lost_bundle,
    plain_text,
    saved_run,
    settled_bundle,
)
from opencode_jupyter.jupyter.cards.saved_json import RUN_MIME
from opencode_jupyter.jupyter.cards.wording import dollars, end_of, tokens
from tests.support.contract import check
from tests.support.fake_model import FakeModel
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


class Page:
    """What a page makes of the updates; see ``labextension/src/run/runView.ts``."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []

    def take(self, changes: dict[str, Any], head: dict[str, Any]) -> None:
        check(update={"kind": "run", "head": head, **changes})
        for index, item in changes.get("items", ()):
            assert index <= len(self.items)
            self.items[index : index + 1] = [item]
        for index, offset, text in changes.get("deltas", ()):
            assert javascript_length(self.items[index]["text"]) == offset
            self.items[index] = {**self.items[index], "text": self.items[index]["text"] + text}


def card_of(run: Any) -> RunCard:
    return RunCard(run, None, on_message=lambda *arguments: None, live=False)


async def test_pieces_add_up_to_the_whole(open_workspace: OpenWorkspace) -> None:
    turns = [
        {"reasoning": "Hm 🤔.", "text": "I look 🤔 at it, in a few words.", "calls": [["read", {"filePath": "a.txt"}]]},
        {"text": "gone", "cut": ModelError("it broke off", "cut", retry_after=0.01)},
        {"calls": [["write", {"filePath": "b.txt", "content": "x\n" * 400}], ["nothing", {}]]},
        {"text": "Done."},
    ]
    page = Page()
    workspace = await open_workspace(files={"a.txt": "hello\n"})
    run = workspace.sessions.prompt("go", model=FakeModel(turns))
    card = card_of(run)
    work = asyncio.ensure_future(run.run())
    while not work.done():
        page.take(json.loads(json.dumps(card.items.changes({}))), card.head())
        await asyncio.sleep(0.001)
    answer = await work
    page.take(card.items.changes({}), card.head())
    assert card.items.changes({}) == {}, "what was sent is not sent again"
    assert page.items == card.items.all_items({}, live=True)
    check(run=card.json(live=True), whole={"kind": "whole", "run": card.json(live=False)})
    before = page.items[:3]
    run.notes.append("the replay differs")
    card.items.on_change(run, "status", None)
    card.items.on_change(run, "dropped", {run.messages[1].id})
    page.take(card.items.changes({}), card.head())
    assert page.items == card.items.all_items({}, live=True)
    assert page.items.pop()["text"] == "the replay differs"
    assert [item["kind"] for item in page.items[:3]] == ["gone"] * 3, "a message that was taken back"
    page.items[:3] = before
    kinds = [item["kind"] for item in page.items]
    assert kinds == ["reasoning", "text", "call", "gone", "call", "call", "text"]
    assert page.items[1]["text"].strip() == "I look 🤔 at it, in a few words."
    assert [item["part"]["tool"] for item in page.items if item["kind"] == "call"] == ["read", "write", "nothing"]
    assert answer.text.strip() == "Done."


async def test_a_finished_call_is_sent_once(open_workspace: OpenWorkspace) -> None:
    call_ids: list[str] = []
    turns = [{"calls": [["read", {"filePath": "a.txt"}]]} for _ in range(5)] + [{"text": "Done."}]
    workspace = await open_workspace(files={"a.txt": "hello\n"})
    run = workspace.sessions.prompt("go", model=FakeModel(turns))
    card = card_of(run)
    work = asyncio.ensure_future(run.run())
    while not work.done():
        await asyncio.sleep(0.002)
        for _, item in card.items.changes({}).get("items", ()):
            if item["kind"] == "call" and item["part"]["state"]["status"] == "completed":
                call_ids.append(item["id"])
    await work
    call_ids += [item["id"] for _, item in card.items.changes({}).get("items", ()) if item["kind"] == "call"]
    assert len(call_ids) == len(set(call_ids)) == 5


async def test_requests_that_wait_side_by_side_are_one_wait(open_workspace: OpenWorkspace) -> None:
    calls = [["bash", {"command": f"echo {name}", "description": "d"}] for name in ("one", "two")]
    workspace = await open_workspace({"permission": {"bash": "ask"}})
    run = workspace.sessions.prompt("go", model=FakeModel([{"calls": calls}, {"text": "ok"}]))
    card = card_of(run)
    work = asyncio.ensure_future(run.run())
    async with asyncio.timeout(10):
        while len(workspace.permissions.pending()) < 2:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    for request in workspace.permissions.pending():
        workspace.permissions.reply(request.id, "once")
    await work
    waited = [call.part.waited * 1000 for call in run.calls]
    assert max(waited) <= card.head()["waited"] + 1
    assert card.head()["waited"] < sum(waited) - 200


async def test_live_output_goes_as_its_end(workspace: Workspace) -> None:
    goes_on, tails = asyncio.Event(), []

    @tool
    async def chatty(ctx: ToolContext) -> str:
        """Says much."""
        for n in range(200):
            ctx.metadata(metadata={"output": "line\n" * n, "lines": n})
            await asyncio.sleep(0.002)
        await goes_on.wait()
        return "over"

    workspace.registry.register(chatty)
    run = workspace.sessions.prompt("go", model=FakeModel([{"calls": [["chatty", {}]]}, {"text": "ok"}]))
    card = card_of(run)
    work = asyncio.ensure_future(run.run())
    deadline = time.monotonic() + 10
    while not any(tail["text"].count("line") >= 15 for tail in tails):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
        tails += [tail for _, tail in card.items.changes({}).get("tails", ())]
    assert max(len(json.dumps(tail)) for tail in tails) < 2_000
    goes_on.set()
    await work


def run_json(items: list[dict[str, Any]], **head: Any) -> dict[str, Any]:
    return {
        "v": 1, "id": "run_1", "sessionID": "ses_1", "title": "T", "agent": "build", "model": "openai:gpt-5",
        "status": "done", "step": 2, "tokens": 1234, "started": 1_000, "ended": 3_500, "items": items,
        **head,
    }  # fmt: skip


def text(content: str, kind: str = "text") -> dict[str, Any]:
    return {"kind": kind, "id": content[:9], "text": content, "done": True}


def call(n: int, output: str = "out", outcome: str = "completed", parent: str = "", **state: Any) -> dict[str, Any]:
    status = "completed" if outcome == "completed" else "error"
    call_state = {
        "status": status,
        "input": {"filePath": f"f{n}"},
        "output": output,
        "time": {"start": 1, "end": 3},
        **state,
    }
    ui = {"label": f"f{n}", "by": "model", "waited": 0, "decisions": [], "outcome": outcome}
    part = {
        "v": 1,
        "id": f"p{n}",
        "callID": f"c{n}",
        "sessionID": "s",
        "messageID": "m",
        "tool": "read",
        "state": call_state,
        "ui": ui,
    }
    return {"kind": "call", "id": f"c{n}", "part": part, **({"parent": parent} if parent else {})}


async def test_the_story_in_text() -> None:
    run = run_json(
        [
            text("think about it\nmore", "reasoning"), text("I *look*.\n\nAt all."), call(1),
            call(2, outcome="denied by you", error="The user said: no"), call(3, parent="c1"),
            text("Summed up", "note"),
        ],
        status="rejected", end=end_of("rejected", "rejected", None, None), cost=0.0123, mode="bypass",
    )  # fmt: skip
    assert plain_text(run).split("\n") == [
        "⊘ build · openai:gpt-5, bypass (denied, 2 steps, 1.2k tokens, $0.0123, 2.5 s)",
        "· Thought: think about it …",
        "",
        "I *look*.",
        "",
        "At all.",
        "",
        "✓ read f1 (2 ms)",
        "  ✓ read f3 (2 ms)",
        "⊘ read f2 (denied by you)",
        "    The user said: no",
        "· Summed up",
        "The run ended because a call was denied. Continue with another %%agent that says what to do instead.",
    ]


async def test_words() -> None:
    assert [tokens(n) for n in (1, 999, 1_000, 99_960, 1_500_000)] == [
        "1 token", "999 tokens", "1.0k tokens", "100k tokens", "1.5M tokens",
    ]  # fmt: skip
    assert [dollars(c) for c in (None, 0.0, 0.00123, 1.2)] == ["", "", "$0.0012", "$1.20"]
    assert end_of("done", "done", None, None) is None
    assert "--max-steps" in (end_of("done", "max-steps", None, None) or {})["text"]
    assert end_of("failed", "", ModelError("no key", "auth"), None) == {
        "tone": "err",
        "text": "no key",
        "advice": "The request is kept in the session; when the problem is fixed, send it again with another %%agent.",
    }


@pytest.mark.timeout(60)
async def test_200_calls_are_bounded() -> None:
    picture = {"mime": "image/png", "url": "data:image/png;base64," + "A" * 1_000_000}
    items = [call(n, "x" * 60_000, attachments=[picture]) for n in range(200)] + [text("The end.")]
    data, _ = settled_bundle(run_json(items))
    assert len(data["text/plain"].split("\n")) <= PLAIN_LINES
    assert data["text/plain"].endswith("The end.")
    assert "more lines" in data["text/plain"]
    assert len(data["text/html"]) < 14_000_000
    assert len(json.dumps(data[RUN_MIME])) < 14_000_000
    urls = [i["part"]["state"]["attachments"][0]["url"] for i in data[RUN_MIME]["items"] if i["kind"] == "call"]
    assert [bool(url) for url in urls].count(True) == 7
    quiet = settled_bundle(run_json([call(n, "x" * 60_000) for n in range(200)]))[0]
    assert len(json.dumps(quiet)) < 4_000_000


PICTURE = {"mime": "image/png", "url": "data:image/png;base64,AAAA", "filename": "figure-1.png"}


async def test_pictures_stand_outside_the_folded_calls() -> None:
    table = {"mime": "text/csv", "url": "", "filename": "a.csv"}
    items = [call(1, attachments=[PICTURE, table]), call(2), call(3, parent="c2", attachments=[PICTURE])]
    html = settled_bundle(run_json(items))[0]["text/html"]
    outside, depth = "", 0
    for piece in re.split("(</?details)", html):
        depth += {"<details": 1, "</details": -1}.get(piece, 0)
        outside += "" if depth else piece
    assert re.findall('<img alt="([^"]*)"', outside) == ["figure-1.png of read f1", "figure-1.png of read f3"]
    assert html.count("<img") == 2, "each only once"
    assert "a.csv" in html and "a.csv" not in outside


async def test_a_live_card_has_the_pictures_of_calls_that_ended(workspace: Workspace) -> None:
    @tool
    async def plot(size: int) -> ToolResult:
        """Draws."""
        return ToolResult("plot", "", attachments=[Attachment.from_bytes(b"x" * size, "image/png", "figure-1.png")])

    turns = [{"calls": [["plot", {"size": size}]]} for size in (900_000, 600_000, 100)] + [{"text": "Done."}]
    workspace.registry.register(plot)
    run = workspace.sessions.prompt("go", model=FakeModel(turns))
    card = card_of(run)
    await run.run()
    call_items = [item for _, item in card.items.changes({})["items"] if item["kind"] == "call"]
    for items in (call_items, [item for item in card.items.all_items({}, live=True) if item["kind"] == "call"]):
        counts = [len(item["part"]["state"].get("attachments", ())) for item in items]
        assert counts == [0, 1, 1], "the oldest are left out of a message that servers would not pass on"
    settled = [item["part"]["state"] for item in card.items.all_items({}, live=False) if item["kind"] == "call"]
    assert [len(state["attachments"]) for state in settled] == [1, 1, 1]


async def test_what_a_dead_kernel_leaves() -> None:
    going = call(1, outcome="")
    going["part"]["state"] = {"status": "running", "input": {}, "time": {"start": 1}}
    data = lost_bundle(run_json([text("So far."), going], status="working"))
    assert set(data) == {"text/html", RUN_MIME}
    assert data[RUN_MIME]["outcome"] == "ended"
    assert data[RUN_MIME]["items"][1]["part"]["ui"]["outcome"] == "ended"
    assert "State unknown" in data["text/html"]


async def test_a_saved_run_never_asks() -> None:
    asking = call(1)
    asking["part"]["ui"]["ask"] = {"id": "per_1"}
    record = saved_run(run_json([asking, {"kind": "gone", "id": "x"}], retry={"attempt": 1, "message": "m", "next": 2}))
    assert "ask" not in record["items"][0]["part"]["ui"]
    assert len(record["items"]) == 1
    assert "retry" not in record


async def test_calls_inside_calls_are_put_together() -> None:
    cards = with_children([call(1), call(2, parent="c1"), call(3, parent="c2"), call(4, parent="c1")])
    assert [c["callID"] for c in cards["c1"]["ui"]["children"]] == ["c2", "c4"]
    assert [c["callID"] for c in cards["c1"]["ui"]["children"][0]["ui"]["children"]] == ["c3"]


HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "[x](data:text/html,<script>1</script>)",
    "[x](//evil.example)",
    "![p](https://evil.example/p.png)",
    "`<b>` **<i onclick=x>**",
    "- <iframe src=x>",
    "# <style>*{display:none}</style>",
    "> <object data=x>",
    "```\n<script>alert(1)</script>",
    '[a](https://x.example/"onmouseover="alert(1))',
)
KNOWN = {"p", "b", "i", "code", "pre", "a", "span", "div", "br", "hr", "blockquote", "ul", "li"}


@pytest.mark.parametrize("markup", HOSTILE)
async def test_hostile_words_show_as_text(markup: str) -> None:
    from html.parser import HTMLParser

    texts: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag in KNOWN
            for name, value in attrs:
                assert name in ("style", "class", "href", "rel")
                if name == "href":
                    assert re.match(r"https?://", value or "")

        def handle_data(self, data: str) -> None:
            texts.append(data)

    Reader().feed(markdown(markup))
    for attribute in re.findall(r"alert|onerror|iframe|object|style|onclick", markup):
        assert attribute in "".join(texts)
    html = settled_bundle(run_json([text(markup), text(markup, "note"), text(markup, "reasoning")]))[0]["text/html"]
    for tag in ("<script", "<img", "<iframe", "<object", "<style>*", "<i onclick", 'href="javascript'):
        assert tag not in html


def test_an_error_of_colours_alone_and_half_a_character_are_shown() -> None:
    """An error of which nothing can be shown broke the run's card, half a character its messages."""
    head = {"v": 1, "id": "r", "sessionID": "s", "agent": "build", "model": "m", "mode": "\x1b[31m"}
    bad = {
        "id": "p", "callID": "c", "sessionID": "s", "messageID": "m", "v": 1, "tool": "bash",
        "state": {"status": "error", "input": {}, "error": "\x1b[31m\n"},
        "ui": {"label": "x", "by": "model", "waited": 0, "decisions": []},
    }  # fmt: skip
    head |= {"status": "done", "step": 1, "tokens": 0, "started": 0, "ended": 1}
    data, _ = settled_bundle({**head, "items": [{"kind": "call", "id": "p", "part": bad}]})
    assert "bash x" in data["text/plain"]
    assert "\x1b" not in data["text/plain"] + data["text/html"]
    items = RunItems(cast("Any", None), lambda: None)
    item = items.add_note("a")
    items.changes({})
    item.append("\ud83d")
    items.mark_changed(item)
    assert items.changes({}) == {"deltas": [[0, 1, "?"]]}


def test_a_table_in_a_models_words() -> None:
    html = markdown("Before\n| file | **n** |\n|:--|--:|\n| a\\|b | <i> |\n| c | 2 | more |\n| d |\n\nAfter")
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]
    assert rows == [["file", "<b>n</b>"], ["a|b", "&lt;i&gt;"], ["c", "2"], ["d", ""]]
    assert "text-align:right" in html and html.count("<p ") == 2
    for text in ("a | b\nc | d", "| a | b |\n|---|", "| a |\n| b |", "a\n---"):
        assert "<table" not in markdown(text), text


async def test_formulas_are_for_the_typesetter_of_an_exported_page() -> None:
    html = markdown(
        "It is $\\bar{x}*2*$, \\(y<1\\), not $5 or $6, `$c$`.\n\n$$\na *b* c\n$$\n\n$$ no end\n\n$HOME and $PATH"
    )
    formulas = re.findall(r'<span class="tex2jax_process mathjax_process">(.*?)</span>', html, re.DOTALL)
    assert formulas == ["$\\bar{x}*2*$", "\\(y&lt;1\\)", "$$\na *b* c\n$$"]
    assert "not $5 or $6, <code>$c$</code>." in html and "$$ no end" in html and "$HOME and $PATH" in html


@pytest.mark.timeout(30)
async def test_markdown() -> None:
    html = markdown("# T\n\nOne **b** *i* `a*b` [d](https://e.org)\nx\n- l\n\n```py\n<b>\n```\nhttps://f.org.")
    for piece in (
        "<b>T</b>", "<b>b</b>", "<i>i</i>", "<code>a*b</code>", 'href="https://e.org"', "(https://e.org)", "<br>x",
        "<li>l</li>", "&lt;b&gt;", 'href="https://f.org"',
    ):  # fmt: skip
        assert piece in html, piece
    for piece in ("**a ", "`", "[", "*a", "(", "**", "[a](", "$a", "$$a", "\\(", "$$ a\n"):
        markdown(f"{piece * 500}\n" * 10)
        markdown(piece * 30_000)
