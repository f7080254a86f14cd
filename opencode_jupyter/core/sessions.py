"""Sessions: conversations that calls belong to, each with rules of its own (docs/opencode/core.md 9, 22)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, cast

from . import ids
from .call_state import now_ms
from .doom_loop import Key
from .errors import UnknownSessionError
from .option_checks import check_kind
from .permission import Rule
from .permission.modes import is_mode_rule, restore_mode
from .permission.rules import check_rules
from .store.queries import DIRECT

if TYPE_CHECKING:
    from .host import ToolHost
    from .messages import Message

RECENT_CALLS = 12
"""How many of a session's last calls the doom-loop guard can look at."""


class ActiveRun(Protocol):
    """The work in progress in a session: a model's run."""

    model: Any
    """The model, or its name."""

    def abort(self, reason: str = ...) -> None:
        """End it; any thread may call this."""

    def add(self, message: Message) -> Any:
        """Have it continue with this message after the model's present answer."""


@dataclass(slots=True, eq=False)
class Session:
    """One conversation.

    Attributes:
        permission: rules for this session only; they come after the agent's.
        tool_rules: rules by a tool's id, from the last prompt's ``tools``; they hold for the sessions it starts too.
        recent: the last calls in canonical form, for the doom-loop guard.
        message_id: the message that direct calls (no model) are added to.
        agent: the key of the agent that the last prompt went to; "" before the first.
        model: ``{"providerID", "modelID"}`` of the last prompt; None before the first.
        messages: its messages, oldest first; filled by prompts, and by `Sessions.open` from the store.
        extra: further keys of OpenCode's sessions (``slug``, ``summary``, ``revert``, ``cost``, ``tokens``, ...).
        rule_extras: further keys of a stored or imported session with a rule of `permission`.
        run: the run in progress; None if there is none.
        prompted_model: the model object of the last prompt; None if there was none since it was opened.
    """

    id: str
    title: str
    directory: str
    parent_id: str | None = None
    permission: list[Rule] = field(default_factory=list)
    created: int = field(default_factory=now_ms)
    updated: int = field(default_factory=now_ms)
    recent: deque[Key] = field(default_factory=lambda: deque(maxlen=RECENT_CALLS))
    tool_rules: list[Rule] = field(default_factory=list)
    message_id: str = ""
    agent: str = ""
    model: dict[str, str] | None = None
    messages: list[Message] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    project_id: str = "global"
    version: str = "opencode_jupyter"
    rule_extras: dict[Rule, dict[str, Any]] = field(default_factory=dict, repr=False)
    run: ActiveRun | None = None
    prompted_model: Any = field(default=None, repr=False)
    workspace: Any = field(default=None, repr=False)

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's ``Session.Info``."""
        wire: dict[str, Any] = {
            "id": self.id,
            "projectID": self.project_id,
            "directory": self.directory,
            "title": self.title,
            "version": self.version,
            "time": {**(self.extra.get("time") or {}), "created": self.created, "updated": self.updated},
        }
        if self.agent:
            wire["agent"] = self.agent
        if self.model:
            wire["model"] = {"id": self.model["modelID"], **{k: v for k, v in self.model.items() if k != "modelID"}}
        if self.parent_id:
            wire["parentID"] = self.parent_id
        own_rules = [rule for rule in self.permission if not is_mode_rule(rule)]  # a mode is kept by its name
        rules = [{**self.rule_extras.get(rule, {}), **rule.to_wire()} for rule in own_rules]
        if rules:
            wire["permission"] = rules
        return {**{key: value for key, value in self.extra.items() if key != "time"}, **wire}

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> Self:
        """A session from OpenCode's form, without its messages.

        Raises:
            ValueError: it can't be one.
        """
        try:
            times = wire.get("time") or {}
            rules = [Rule(r["permission"], r["pattern"], r["action"], "session") for r in wire.get("permission") or ()]
            model = wire.get("model") or None
            if model is not None:
                name = model.get("modelID") or model["id"]
                model = {**{k: v for k, v in model.items() if k != "id"}, "modelID": name}
            created = int(times.get("created") or now_ms())
            session = cls(
                wire["id"],
                wire.get("title") or "",
                wire.get("directory") or "",
                wire.get("parentID"),
                rules,
                created,
                int(times.get("updated") or created),
                agent=wire.get("agent") or "",
                model=model,
                project_id=wire.get("projectID") or "global",
                version=wire.get("version") or "",
            )
            for rule, rule_wire in zip(rules, wire.get("permission") or (), strict=True):
                if other := {key: value for key, value in rule_wire.items() if key not in rule.to_wire()}:
                    session.rule_extras[rule] = other
            known = session.to_wire()
            session.extra = {key: value for key, value in wire.items() if key not in known}
            if other := {key: value for key, value in times.items() if key not in known["time"]}:
                session.extra["time"] = other
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a session that can't be read: {type(error).__name__} {error}") from error
        return session

    def __repr__(self) -> str:
        return f"<session {self.id} {self.title!r}: {len(self.messages)} messages>"


S = TypeVar("S", bound=Session)


class Sessions(Generic[S]):
    """The sessions of one workspace."""

    session_type: type[S] = cast("type[S]", Session)

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._sessions: dict[str, S] = {}
        self._default: S | None = None

    @property
    def default(self) -> S:
        """The session of calls that name none; made at its first use."""
        if self._default is None:
            self._default = self.create(DIRECT)
        return self._default

    def create(self, title: str = "", *, parent_id: str | None = None, permission: list[Rule] | None = None) -> S:
        """A new session.

        Raises:
            InvalidArgumentsError: an option is of the wrong kind.
        """
        check_kind(title, str, "title", "a text")
        check_kind(parent_id, (str, type(None)), "parent_id", "a session's id")
        check_rules(permission or (), "permission")
        session = self.session_type(
            ids.create("session", descending=True),
            self._workspace.masked(title) or "New session",
            str(self._workspace.directory),
            parent_id,
            list(permission or ()),
        )
        self.add(session)
        return session

    def add(self, session: S) -> None:
        """Add a session (a new, forked or imported one) and store its info; its messages are not stored."""
        check_kind(session, Session, "session", "a Session")
        session.workspace = self._workspace
        self._sessions[session.id] = session
        self._workspace.publish("session.created", lambda: {"info": session.to_wire()})
        self.save(session, touch=False)

    def save(self, session: Session, *, touch: bool = True) -> None:
        """Store a session's info and publish it; `touch` sets the time of its last change."""
        check_kind(session, Session, "session", "a Session")
        if touch:
            session.updated = now_ms()
            self._workspace.publish("session.updated", lambda: {"info": session.to_wire()})
        if self._workspace.store is not None:
            self._workspace.store.put_session(session.to_wire())

    def get(self, session: str | Session | None) -> S:
        """The session of this id; the default one for None.

        Raises:
            UnknownSessionError: there is none of that id.
        """
        if session is None:
            return self.default
        if isinstance(session, Session):
            return session  # type: ignore[return-value]  # of the type that this class makes
        known = self._sessions.get(session) if isinstance(session, str) else None
        if known is None:
            raise UnknownSessionError(
                f"There is no session {session!r} in this workspace. Load a stored one with "
                "`await ws.sessions.open(id)`, make one with `ws.sessions.create()`, or leave session out."
            )
        return known

    async def open(self, session: str | Session) -> S:
        """A session with its messages, from the store if this workspace does not have it yet.

        Raises:
            UnknownSessionError: there is none of that id.
        """
        if isinstance(session, Session):
            return session  # type: ignore[return-value]  # of the type that this class makes
        known = self._sessions.get(session)
        if known is not None:
            return known
        store = self._workspace.store
        info = await store.session(session) if store is not None else None
        if store is None or info is None:
            raise UnknownSessionError(f"There is no session {session!r}. %sessions lists the stored ones.")
        opened = self.session_type.from_wire(info)
        opened.workspace = self._workspace
        from .messages import Message, part_from_wire

        by_id = {info["id"]: Message(info) for info in await store.messages(session)}
        for part in await store.parts(session):
            message = by_id.get(part["messageID"])
            if message is None:
                continue
            message_part = part_from_wire(part)
            if isinstance(message_part, dict):
                message_part.pop("opencode_jupyter", None)
            message.parts.append(message_part)
        opened.messages = list(by_id.values())
        self._sessions.setdefault(opened.id, opened)
        restore_mode(self._workspace, self._sessions[opened.id])
        return self._sessions[opened.id]

    def list(self) -> list[S]:
        """Every session that this workspace has in memory, oldest first; ``store.sessions()`` has all stored ones."""
        return list(self._sessions.values())

    async def delete(self, session: str | Session) -> None:
        """Remove a session, and those started by it, with all that belongs to them.

        Raises:
            UnknownSessionError: there is none of that id.
        """
        deleted = await self.open(session)
        if deleted.run is not None:
            deleted.run.abort("closed")
        if self._workspace.store is not None:
            await self._workspace.store.delete_session(deleted.id)
        removed = {deleted.id}
        for other in list(self._sessions.values()):  # parents come before their children
            if other.id in removed or other.parent_id in removed:
                removed.add(other.id)
                self._sessions.pop(other.id, None)
                self._workspace.publish("session.deleted", partial(dict, info=other.to_wire()))
        if self._default is deleted:
            self._default = None

    def open_message(self, session: Session, agent: str) -> str:
        """The message that a session's direct calls go to; made (and stored) at its first use."""
        if not session.message_id:
            session.message_id = ids.create("message")
            info = {
                "id": session.message_id,
                "sessionID": session.id,
                "role": "assistant",
                "agent": agent,
                "mode": agent,
                "providerID": "opencode_jupyter",
                "modelID": "none",
                "parentID": "",
                "path": {"cwd": session.directory, "root": str(self._workspace.worktree)},
                "cost": 0,
                "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
                "time": {"created": now_ms()},
            }
            self._workspace.publish("message.updated", lambda: {"info": info})
            if self._workspace.store is not None:
                self._workspace.store.put_message(info)
        return session.message_id
