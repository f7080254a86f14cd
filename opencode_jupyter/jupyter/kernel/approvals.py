"""The broker of pending permission requests and questions: their cards, and the first reply to each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ...core.call_state import CallOutcome
from ...core.errors import ToolError
from ...core.permission import PermissionRequest
from ...core.store.rows import EXTRA
from ...core.threads import call_on_loop, call_soon
from ..cards.approval_json import RequestView, digest_of
from ..cards.call_json import is_untouched

if TYPE_CHECKING:
    from ...core.call import Call
    from ...core.question_request import QuestionRequest
    from ...core.sessions import ActiveRun
    from ...workspace import Workspace
    from ..cards.display import LiveDisplay

log = logging.getLogger(__name__)

HELLO_WAIT = 2.0
"""Seconds in which a card must report that it is shown, before the prompt or the policy takes over."""
HELLO_WAIT_SILENT = 0.3
"""The same once a card of this kernel has not reported: a console does not show widgets."""
PANEL_WAIT = 15.0
"""Seconds after which a page with our extension, which lists the approval in its panel, must request it again to count
as open. A slow page draws the card later, and an input box opened by then keeps JupyterLab from running other cells."""
ENDS = ("permission.replied", "question.replied", "question.rejected")
"""Events of requests that are no longer pending."""
RECOUNT = 0.05
"""Seconds within which requests that come and go are counted together on the other cards ("2 of 3 waiting")."""


class ReplyChannel(Protocol):
    """A channel by which a reply can arrive. `open` and `close` are called on the engine's thread."""

    name: str

    def open(self, entry: CardRequest) -> bool:
        """Offer the request on this channel; False if it is closed, so that the next one is tried."""

    def close(self, entry: CardRequest) -> None:
        """The request is decided."""


@dataclass(slots=True, eq=False)
class CardRequest:
    """A pending permission request, or pending questions."""

    request: PermissionRequest | QuestionRequest
    card: LiveDisplay
    """The card it is shown in: that of the call, of the call that made it, or of the run."""
    call_id: str
    digest: str
    loop: asyncio.AbstractEventLoop
    channel: ReplyChannel | None = None
    is_in_panel: bool = False
    """Whether a page with our extension has queried it for its panel."""

    @property
    def id(self) -> str:
        """The request's id."""
        return self.request.id


class Broker:
    """The pending requests of a notebook.

    Args:
        workspace: whose requests.
        fallbacks: where a request goes that no card can show or nobody sees, in this order (prompt, policy).
        attended: whether a person may be present, for a card's call; False sends its requests to the fallbacks at once.
        wait: seconds in which a card must report that it is shown.
        add_card: makes a card for a call that requests approval and has none (code of a cell started it by itself).
        notify_pages: has open pages query again what waits for approval.
    """

    def __init__(
        self,
        workspace: Workspace,
        fallbacks: list[ReplyChannel],
        attended: Callable[[LiveDisplay], bool],
        wait: Callable[[], float] = lambda: HELLO_WAIT,
        add_card: Callable[[Call], LiveDisplay] | None = None,
        notify_pages: Callable[[], None] = lambda: None,
    ) -> None:
        self._wait = wait
        self._notify_pages = notify_pages
        self._add_card = add_card
        self._recount = False
        self._workspace = workspace
        self._fallbacks = fallbacks
        self._attended = attended
        self._cards: dict[str, LiveDisplay] = {}
        self._entries: dict[str, CardRequest] = {}
        self.has_page = False
        self.last_hello: float | None = None
        self.silent_cards = 0
        handlers = (self._add, ("permission.asked", "question.asked")), (self._remove, ENDS)
        self._unsubscribe = [
            workspace.bus.subscribe(event, partial(self._on_engine, handler))
            for handler, events in handlers
            for event in events
        ]

    def attach(self, card: LiveDisplay) -> None:
        """Show the requests of this card's call, or of the calls of its run, on it from now on."""
        self._cards[card.key] = card

    def detach(self, card: LiveDisplay) -> None:
        """Forget a card whose work has ended."""
        self._cards.pop(card.key, None)

    def close(self) -> None:
        """Unsubscribe from the workspace's events."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()

    def stop(self) -> int:
        """Stop what every card shows; any thread may call it. Returns the number of cards."""
        cards = [card for card in list(self._cards.values()) if not card.is_over]
        for card in cards:
            card.find(None).abort("stopped")
        return len(cards)

    def pending(self) -> list[CardRequest]:
        """The pending requests: those of the oldest call first, in the order of their cards in the notebook."""
        calls = self._workspace.calls
        entries = self._entries.values()
        parts = {entry.id: call.part.id for entry in entries if (call := calls.get(entry.call_id)) is not None}
        return sorted(entries, key=lambda entry: parts.get(entry.id, ""))

    # ------------------------------------------------------------------ the workspace's events, on the engine's thread

    def _add(self, event: dict[str, Any]) -> None:
        wire = event["properties"]
        call_id = (wire.get("tool") or {}).get("callID", "")
        card = self.card_of(call_id) or self._late_card(call_id)
        asker = self._workspace.questions if event["type"] == "question.asked" else self._workspace.permissions
        request = next((r for r in asker.pending() if r.id == wire["id"]), None)
        if card is None or request is None:
            return  # answered already, or by nobody's call
        entry = CardRequest(request, card, call_id, digest_of(request), asyncio.get_running_loop())
        self._entries[entry.id] = entry
        self._store_waiting(call_id)
        if not card.can_live or not self._attended(card):
            self._fall_back(entry)
            return
        self._show(card)
        self._update_counts_soon()
        seconds = self._wait()
        if self.silent_cards and not self.has_page:
            seconds = min(seconds, HELLO_WAIT_SILENT)
        entry.loop.call_later(seconds, self._unseen, entry)

    def _store_waiting(self, call_id: str) -> None:
        """Note in the history that a call has done nothing yet, in case the kernel ends before it is approved."""
        call, store = self._workspace.calls.get(call_id), self._workspace.store
        if call is not None and store is not None and is_untouched(call):
            part = call.part
            extra = {"agent": part.agent, "by": part.by, "waited": part.waited, "outcome": CallOutcome.WAITING}
            extra |= {"decisions": list(part.decisions), "parentID": part.parent_id}
            store.put_part({**part.to_wire(), EXTRA: extra})

    def card_of(self, call_id: str) -> LiveDisplay | None:
        """The card that shows a call: its own, that of the call inside which it was made, or that of its run."""
        call = self._workspace.calls.get(call_id)
        while call is not None:
            card = self._cards.get(call.part.call_id) or self._card_of_run(call.session.run)
            if card is not None:
                return card
            call = call.parent
        return self._cards.get(call_id)

    def _card_of_run(self, run: ActiveRun | None) -> LiveDisplay | None:
        return next((c for c in list(self._cards.values()) if c.run is run), None) if run is not None else None

    def _on_engine(self, fn: Callable[..., None], *args: Any) -> None:
        """Call it on the workspace's loop: a call that code runs by itself reports its requests on another one."""
        loop = self._workspace.loop
        if loop is None:
            fn(*args)
        else:
            call_on_loop(loop, fn, *args)

    def _late_card(self, call_id: str) -> LiveDisplay | None:
        call = self._workspace.calls.get(call_id)
        if call is None or self._add_card is None:
            return None
        while call.parent is not None:
            call = call.parent
        return self._add_card(call)

    def _remove(self, event: dict[str, Any]) -> None:
        entry = self._entries.pop(event["properties"]["requestID"], None)
        if entry is None:
            return
        if entry.channel is not None:
            entry.channel.close(entry)
        self._show(entry.card)
        self._update_counts_soon()

    def _update_counts_soon(self) -> None:
        """Have every card show which of how many its request is, in a moment: many may come or go at once."""
        if not self._recount and len({entry.card for entry in self._entries.values()}) > 0:
            self._recount = True
            asyncio.get_running_loop().call_later(RECOUNT, self._update_counts)

    def _update_counts(self) -> None:
        self._recount = False
        for card in {entry.card for entry in self._entries.values()}:
            self._show(card)

    def _show(self, card: LiveDisplay) -> None:
        waiting = self.pending()
        views: dict[str, list[RequestView]] = {}
        for number, entry in enumerate(waiting, 1):
            if entry.card is card:
                view = RequestView(entry.request, entry.digest, (number, len(waiting)))
                views.setdefault(entry.call_id, []).append(view)
        card.set_requests(views)

    def _unseen(self, entry: CardRequest) -> None:
        if entry.id not in self._entries or entry.card.hello_after is not None:
            return
        if entry.is_in_panel:  # and is queried again, as long as such a page is open
            entry.is_in_panel = False
            self._notify_pages()
            entry.loop.call_later(PANEL_WAIT, self._unseen, entry)
            return
        self.silent_cards += 1
        self._fall_back(entry)

    def _fall_back(self, entry: CardRequest) -> None:
        for channel in self._fallbacks:
            if channel.open(entry):
                entry.channel = channel
                return

    # ------------------------------------------------------------------ replies, on any thread

    def on_message(self, comm_id: str, data: dict[str, Any], route: str) -> None:
        """Handle a card's message. The same message may come by several routes; the first counts."""
        card = next((c for c in list(self._cards.values()) if c.comm_id and c.comm_id == comm_id), None)
        if card is None:
            # An answer can come while the card's widget is still being made, before its comm is known here.
            entry = self._entries.get(str(data.get("id", "")))
            card = entry.card if entry is not None else self.card_of(str(data.get("callID", "")))
        if card is None:
            return
        kind = data.get("kind")
        if kind == "hello":
            card.note_drawn()
            self.has_page, self.last_hello = True, card.hello_after
        elif kind == "stop":
            card.note_shown()
            call = card.find(data.get("callID"))
            if call is not None:
                call.abort("stopped")
        elif kind in ("reply", "answer", "dismiss"):
            card.note_shown()
            self._on_reply(card, data, route)

    def _on_reply(self, card: LiveDisplay, data: dict[str, Any], route: str) -> None:
        request_id = data.get("id")
        entries = [entry for entry in list(self._entries.values()) if entry.card is card]
        entry = next((entry for entry in entries if not request_id or entry.id == request_id), None)
        if entry is None:
            return  # decided already; the card shows by whom
        digest = data.get("digest")
        if digest and digest != entry.digest:
            return  # the person saw something else than what is pending
        by = "control" if route == "control" else "card"
        if not isinstance(entry.request, PermissionRequest):
            self._on_answer(entry, data, by)
        elif data["kind"] == "reply":
            self._on_permission(entry, data, by)

    def _on_permission(self, entry: CardRequest, data: dict[str, Any], by: str) -> None:
        if data.get("reply") == "always" and data.get("scope") == "project":
            call_soon(entry.loop, self._always_in_project, entry, data, by)
            return
        self._resolve_message(entry, data, by)

    def _on_answer(self, entry: CardRequest, data: dict[str, Any], by: str) -> None:
        if data["kind"] == "dismiss":
            self._workspace.questions.reject(entry.id, by=by)
        elif data["kind"] == "answer":
            try:
                self._workspace.questions.reply(entry.id, data.get("answers"), by=by)
            except ValueError:
                log.debug("an unusable answer from a card: %r", data)

    def _resolve_message(self, entry: CardRequest, data: dict[str, Any], by: str) -> bool:
        patterns = data.get("patterns")
        try:
            return self._workspace.permissions.reply(
                entry.id,
                data.get("reply"),  # type: ignore[arg-type]  # checked there
                data.get("message") or None,
                patterns=patterns if isinstance(patterns, list) else None,
                by=by,
            )
        except ValueError:
            log.debug("an unusable reply from a card: %r", data)
            return False

    def _always_in_project(self, entry: CardRequest, data: dict[str, Any], by: str) -> None:
        """Answer "always" for the session and write it to the project's configuration. On the engine's thread.

        Only a reply that counted is saved. The call goes on when this returns, so its card shows the outcome.
        """
        request, patterns = entry.request, data.get("patterns")
        if not isinstance(request, PermissionRequest) or not self._resolve_message(entry, data, by):
            return
        allowed = patterns if isinstance(patterns, list) else request.always
        try:
            saved = self._workspace.allow_in_project(request.permission, allowed, agent=request.agent or None)
            note = " ".join([f"also saved for this project, in {', '.join(saved.files)}.", *saved.notes])
        except ToolError as error:
            note = f"not saved for this project: {error}"
        except Exception as error:  # the call must go on, and the person must know
            log.exception("a rule could not be saved")
            note = f"not saved for this project: {error}"
        for decision in reversed(self._workspace.permissions.history):
            if decision.request_id == entry.id:
                decision.note = note
                break
