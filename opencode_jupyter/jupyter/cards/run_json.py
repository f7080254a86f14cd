"""The items of a run's card in order: text, reasoning, calls, notes.

A change is only noted. JSON is made on request: of what has changed since the last time
(`changes`), at most some ten times a second, or of all (`all_items`). ``labextension/src/run/types.ts`` describes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ...core.call_state import Completed, Pending, Running, State
from .approval_json import RequestView
from .call_json import NESTED_LINES, card_tree, tail, tail_update

if TYPE_CHECKING:
    from ...agent.run import Run
    from ...core.call import Call

Kind = Literal["text", "reasoning", "summary", "note", "call", "gone"]
Requests = Mapping[str, Sequence[RequestView]]

WHOLE_INTERVAL = 1.0
"""Seconds between two whole updates of a call while only its output grows."""
LIVE_PICTURES = 1_500_000
"""Characters of attachments in one message: Jupyter servers pass on 3 MB in 3 s. The settled card has the others."""
RAW_CHARS = 2_000
"""Characters of a pending call's arguments that are sent, the last ones."""
COMPACTING = "Summarising the conversation: it has grown too long for the model's window …"
COMPACTED = "The conversation was summarised, since it had grown too long for the model's window."
PARTS: Mapping[str, Kind] = {"text": "text", "reasoning": "reasoning"}
"""Types of parts that are shown, as which kind of item."""


@dataclass(slots=True, eq=False)
class Item:
    """One item of the card.

    Attributes:
        kind: its kind; ``gone`` for an item of a broken stream that the run withdrew.
        id: the part's id, or the call's.
        index: its position on the card.
        message: the id of its message.
        call: of a call: the call itself.
        parent: of a call inside another one: that one's call id.
        done: its text is complete.
        children: the calls inside this one that have an item.
        pieces: the pieces of its text.
        growth: those that were not sent yet.
        length: length of the text that was sent, as JavaScript counts.
    """

    kind: Kind
    id: str
    index: int
    message: str = ""
    call: Call | None = None
    parent: str = ""
    done: bool = False
    children: list[Call] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    growth: list[str] = field(default_factory=list)
    length: int = 0
    sent: tuple[Any, ...] | None = None
    sent_state: State | None = None
    sent_at: float = 0.0
    _whole: str | None = None

    @property
    def text(self) -> str:
        """Its text so far."""
        return self._whole if self._whole is not None else "".join(self.pieces)

    def append(self, text: str) -> None:
        """Add to the text."""
        self.pieces.append(text)
        self.growth.append(text)

    def end(self, text: str) -> None:
        """Set the final text."""
        self._whole, self.done = text, True


class RunItems:
    """The items of one run.

    Args:
        run: whose; its ``on_change`` is to be `on_change`.
        wake: called at every change; must be cheap.
        over: called once for each call of the run itself that has ended.
    """

    def __init__(self, run: Run, wake: Callable[[], None], over: Callable[[Call], None] | None = None) -> None:
        self._run = run
        self._wake = wake
        self._over = over
        self.items: list[Item] = []
        self._by_id: dict[str, Item] = {}
        self._dirty: dict[int, Item] = {}
        self._roles: dict[str, str] = {}
        self._compacting: Item | None = None
        self._noted = 0

    # ------------------------------------------------------------------ the run's reports, on the engine's thread

    def on_change(self, run: Run, kind: str, change: Any) -> None:
        """Note a change; see `Run.on_change`."""
        if kind == "delta":
            part, text = change
            item = self._text(part)
            if item is not None:
                item.append(text)
                self.mark_changed(item)
        elif kind == "call":
            self._add_call(change, "")
        elif kind == "part":
            self._part(change)
        elif kind == "message":
            info = change.info
            self._roles[change.id] = "summary" if info.get("summary") is True else str(info.get("role"))
        elif kind == "dropped":
            for item in [item for item in self.items if item.message in change]:
                self._drop(item.id)
            for id in change:
                self._drop(id)
        else:
            self._status()
        self._wake()

    def _part(self, part: Mapping[str, Any]) -> None:
        item = self._text(part)
        if item is not None and (part.get("time") or {}).get("end") is not None:
            item.end(str(part.get("text", "")))
            self.mark_changed(item)

    def _text(self, part: Mapping[str, Any]) -> Item | None:
        """The item of a text or reasoning part; None for what is not shown."""
        kind, role = PARTS.get(part["type"]), self._roles.get(part.get("messageID", ""), "assistant")
        if kind is None or role == "user" or part.get("synthetic") or part.get("ignored"):
            return None
        if role == "summary" and kind == "text":
            kind = "summary"
        item = self._by_id.get(part["id"])
        if item is None:
            item = self._add(Item(kind, part["id"], len(self.items), str(part.get("messageID", ""))))
        return item

    def _add(self, item: Item) -> Item:
        self.items.append(item)
        self._by_id[item.id] = item
        self.mark_changed(item)
        return item

    def _add_call(self, call: Call, parent: str) -> None:
        item = self._add(Item("call", call.part.call_id, len(self.items), call.part.message_id, call, parent))
        self._by_id[call.part.id] = item

        def changed(_: Any) -> None:
            self._sync_children(item)
            self.mark_changed(item)
            if call.part.outcome and not item.done:
                item.done = True
                if self._over is not None and not parent:
                    self._over(call)
            self._wake()

        call.on_update = changed
        self._sync_children(item)

    def _sync_children(self, item: Item) -> None:
        """Add items for new calls inside a call, and drop those that it has withdrawn."""
        call = item.call
        if call is None or (len(call.children) == len(item.children) and call.children[-1:] == item.children[-1:]):
            return
        before, item.children = item.children, list(call.children)
        for child in before:
            if child not in item.children:
                self._drop(child.part.id)
        for child in item.children:
            if child not in before:
                self._add_call(child, call.part.call_id)

    def _drop(self, id: str) -> None:
        item = self._by_id.pop(id, None)
        if item is not None:
            self._by_id.pop(item.id, None)
            item.kind, item.call, item.pieces, item.growth = "gone", None, [], []
            item.end("")
            self.mark_changed(item)

    def _status(self) -> None:
        for text in self._run.notes[self._noted :]:
            self._noted += 1
            self.add_note(text).end(text)
        if self._run.status == "compacting":
            if self._compacting is None:
                self._compacting = self.add_note(COMPACTING)
        elif self._compacting is not None:
            self._compacting.end(COMPACTED)
            self.mark_changed(self._compacting)
            self._compacting = None

    def add_note(self, text: str) -> Item:
        """Add a line of our own."""
        item = self._add(Item("note", f"note-{len(self.items)}", len(self.items)))
        item.append(text)
        return item

    def mark_changed(self, item: Item) -> None:
        """Have `changes` report the item again."""
        self._dirty[item.index] = item

    def note_requests(self, *requests: Requests) -> None:
        """Note that the pending requests changed from the first to the last; their cards change."""
        for call_id in {call_id for by_call in requests for call_id in by_call}:
            item = self._by_id.get(call_id)
            if item is not None:
                self.mark_changed(item)

    def calls(self) -> list[Call]:
        """Every call, those inside others too, in the order they were made."""
        return [item.call for item in list(self.items) if item.call is not None]

    # ------------------------------------------------------------------ JSON

    def changes(self, requests: Requests) -> dict[str, Any]:
        """The changes since the last time: whole items, pieces of text, ends of live outputs."""
        dirty, self._dirty = self._dirty, {}
        items: list[Any] = []
        deltas: list[Any] = []
        tails: list[Any] = []
        for index in sorted(dirty):
            item = dirty[index]
            if item.call is not None:
                growth = self._tail(item, requests)
                if growth is not None:
                    tails.append([index, growth])
                elif self._has_changed(item, requests):
                    items.append([index, item_json(item, requests, live=True)])
            elif item.growth and item.length and not item.done:
                text = _without_surrogates("".join(item.growth))
                deltas.append([index, item.length, text])
                item.length += javascript_length(text)
            else:
                items.append([index, item_json(item, requests, live=True)])
                item.length = javascript_length(items[-1][1].get("text", ""))
            item.growth = []
        _limit_attachments([item for _, item in items])
        return {name: value for name, value in (("items", items), ("deltas", deltas), ("tails", tails)) if value}

    def _has_changed(self, item: Item, requests: Requests) -> bool:
        """Whether a call differs from what was sent of it; notes what is sent now."""
        assert item.call is not None
        part = item.call.part
        waiting = requests.get(part.call_id) or ()
        shown = tuple((view.request.id, view.position) for view in waiting[:1])
        now = (part.tool, part.outcome, part.waited, len(part.decisions), len(part.answered), shown)
        if item.sent == now and item.sent_state is part.state:
            return False
        item.sent, item.sent_state, item.sent_at = now, part.state, time.monotonic()
        return True

    def _tail(self, item: Item, requests: Requests) -> dict[str, Any] | None:
        """The new end of a running call's output, if nothing else of it has changed."""
        assert item.call is not None
        part = item.call.part
        state = part.state
        if (
            not isinstance(state, Running)
            or not isinstance(item.sent_state, Running)
            or not state.metadata
            or requests.get(part.call_id)
            or time.monotonic() - item.sent_at > WHOLE_INTERVAL
            or (item.sent is not None and item.sent[3] != len(part.decisions))
        ):
            return None
        return tail_update(state.metadata, NESTED_LINES)

    def all_items(self, requests: Requests, *, live: bool) -> list[dict[str, Any]]:
        """Every item as it stands. On any thread."""
        items = [item_json(item, requests, live=live) for item in list(self.items)]
        if live:
            _limit_attachments(items)
        return items


def _limit_attachments(items: Sequence[dict[str, Any]]) -> None:
    """Leave out the oldest attachments where all together exceed `LIVE_PICTURES`; in place."""
    room = LIVE_PICTURES
    for item in reversed(items):
        state = item["part"]["state"] if item["kind"] == "call" else {}
        room -= sum(len(attachment["url"]) for attachment in state.get("attachments", ()))
        if room < 0:
            state.pop("attachments", None)


def item_json(item: Item, requests: Requests, *, live: bool) -> dict[str, Any]:
    """One item's JSON."""
    fields: dict[str, Any] = {"kind": item.kind, "id": item.id}
    if item.call is not None:
        fields["part"] = call_json(item.call, requests, live=live)
        if item.parent:
            fields["parent"] = item.parent
    elif item.kind != "gone":
        fields["text"] = _without_surrogates(item.text)
        if item.done:
            fields["done"] = True
    return fields


def call_json(call: Call, requests: Requests, *, live: bool) -> dict[str, Any]:
    """A call's card without the calls inside it."""
    shown = card_tree(call, requests, live=live, nested=live, children=False)
    state = call.part.state
    if live and isinstance(state, Pending) and state.raw:
        _add_streamed_arguments(shown, state)
    if live and isinstance(state, Completed) and state.attachments:  # a run's calls are sent once, not at each update
        shown["state"]["attachments"] = [attachment.to_wire() for attachment in state.attachments]
    return shown


def _add_streamed_arguments(fields: dict[str, Any], state: Pending) -> None:
    """Arguments that a model is still writing: the end of the one that grows."""
    raw = state.raw
    fields["state"]["raw"] = raw[-RAW_CHARS:]
    growing = next((v for v in reversed(list(state.input.values())) if v not in (None, "")), None)
    if isinstance(growing, str):
        fields["ui"]["tail"] = tail(growing, NESTED_LINES)
    else:
        fields["ui"]["tail"] = raw[-RAW_CHARS:]
    fields["ui"]["bytes"] = len(raw)


def _without_surrogates(text: str) -> str:
    """`text` with a question mark for each half of a character, which no message can carry."""
    return text.encode("utf-8", "replace").decode()


def javascript_length(text: str) -> int:
    """The length of a text as JavaScript counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "replace")) // 2


def with_children(items: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By call id: the cards of a run's items, each with the cards of the calls inside it."""
    cards: dict[str, dict[str, Any]] = {}
    for item in items:
        if item["kind"] == "call":
            part = item["part"]
            cards[item["id"]] = {**part, "ui": dict(part["ui"])}
    for item in items:
        parent = cards.get(str(item.get("parent") or ""))
        if item["kind"] == "call" and parent is not None:
            parent["ui"].setdefault("children", []).append(cards[item["id"]])
    return cards
