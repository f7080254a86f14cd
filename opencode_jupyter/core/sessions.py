"""Sessions: conversations that calls belong to, each with rules of its own (reference: core.md 9, 22)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import ids
from .permission import Rule
from .state import now_ms

if TYPE_CHECKING:
    from .workspace import Workspace

RECENT_CALLS = 12
"""How many of a session's last calls the doom-loop guard can look at."""


@dataclass(slots=True)
class Session:
    """One conversation.

    Attributes:
        permission: rules for this session only; they come after the agent's.
        recent: the last calls as canonical text, for the doom-loop guard.
        message_id: the message that direct calls (no model) are added to.
    """

    id: str
    title: str
    directory: str
    parent_id: str | None = None
    permission: list[Rule] = field(default_factory=list)
    created: int = field(default_factory=now_ms)
    updated: int = field(default_factory=now_ms)
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=RECENT_CALLS))
    message_id: str = ""

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's ``Session.Info``."""
        wire: dict[str, Any] = {
            "id": self.id,
            "projectID": "global",
            "directory": self.directory,
            "title": self.title,
            "version": "opencode_jupyter",
            "time": {"created": self.created, "updated": self.updated},
        }
        if self.parent_id:
            wire["parentID"] = self.parent_id
        if self.permission:
            wire["permission"] = [rule.to_wire() for rule in self.permission]
        return wire


class Sessions:
    """The sessions of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._sessions: dict[str, Session] = {}
        self._default: Session | None = None

    @property
    def default(self) -> Session:
        """The session of calls that name none; made at its first use."""
        if self._default is None:
            self._default = self.create("Direct calls")
        return self._default

    def create(self, title: str = "", *, parent_id: str | None = None, permission: list[Rule] | None = None) -> Session:
        """A new session."""
        made = Session(
            ids.create("session", descending=True),
            title or "New session",
            str(self._workspace.directory),
            parent_id,
            list(permission or ()),
        )
        self._sessions[made.id] = made
        self._workspace.publish("session.created", lambda: {"info": made.to_wire()})
        if self._workspace.store is not None:
            self._workspace.store.put_session(made.to_wire())
        return made

    def get(self, session: str | Session | None) -> Session:
        """The session of this id; the default one for None.

        Raises:
            KeyError: there is none of that id.
        """
        if session is None:
            return self.default
        if isinstance(session, Session):
            return session
        try:
            return self._sessions[session]
        except KeyError:
            raise KeyError(f"no session {session}; there are {', '.join(self._sessions) or 'none'}") from None

    def list(self) -> list[Session]:
        """Every session of this workspace, oldest first."""
        return list(self._sessions.values())

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
