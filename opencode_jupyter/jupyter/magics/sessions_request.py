"""One ``%sessions`` line taken apart: its options, and the session it names."""

from __future__ import annotations

from typing import Any

from ...agent.sessions import AgentSession
from ...core._store_sessions import DIRECT
from ...core.errors import InvalidArgumentsError, ToolError
from ...core.store import Store
from .subcommands import LineRequest, said

_SEEN = "_sessions_listed"


class SessionRequest(LineRequest):
    """One line: its words, and the sessions they are about."""

    @property
    def store(self) -> Store:
        """Where sessions are kept.

        Raises:
            ToolError: nothing is kept in this workspace.
        """
        if self.workspace.store is None:
            raise ToolError("This workspace keeps no sessions (it was opened without a store).")
        return self.workspace.store

    def rows(self, *, everywhere: bool, limit: int) -> list[dict[str, Any]]:
        """The sessions of this folder, or of all; rows as `Store.listed` gives them."""
        directory = None if everywhere else str(self.workspace.directory)
        return self.wait(self.store.listed(directory, limit))

    def numbered(self, ids: list[str]) -> None:
        """Keep what the numbers of a list that is shown now mean."""
        setattr(self.notebook, _SEEN, ids)

    def count(self, name: str, default: int) -> int:
        """The number behind an option.

        Raises:
            InvalidArgumentsError: it is none.
        """
        text = self.option(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
            raise InvalidArgumentsError(f"{name} takes a whole number above 0, not {text}.")
        return int(text)

    def last(self) -> str:
        """The last word; it is taken out."""
        return said(self.rest.pop())

    def current_id(self) -> str | None:
        """The id of the session that the next ``%%agent`` goes on in."""
        here = self.notebook.agent_session
        return here if here is None or isinstance(here, str) else here.id

    def note(self, info: dict[str, Any]) -> str:
        """What a person should know of a session in a list."""
        notes = []
        if info["id"] == self.current_id():
            notes.append("next %%agent")
        known = next((one for one in self.workspace.sessions.list() if one.id == info["id"]), None)
        if known is not None and known.run is not None:
            notes.append("running")
        if info.get("title") == DIRECT and not info.get("model"):
            notes.append("calls by hand")
        if info.get("revert"):
            notes.append("partly undone")
        return ", ".join(notes)

    def session(self, usage: str, *, required: bool = False) -> AgentSession:
        """The session that the first word names, which is taken out; without a word, the one ``%%agent`` goes on in.

        Raises:
            InvalidArgumentsError: there is none, or the word means several.
        """
        if self.rest and not (said(self.rest[0]).startswith("-") and not self.rest[0].quoted):
            return self._open(self._id(said(self.rest.pop(0)), usage))
        if required:
            raise InvalidArgumentsError(f"Which session? {usage}")
        here = self.current_id()
        if here is None:
            raise InvalidArgumentsError(f"No session was started in this notebook; name one. {usage}")
        return self._open(here)

    def _open(self, id: str) -> AgentSession:
        try:
            return self.wait(self.workspace.sessions.open(id))
        except KeyError:
            raise InvalidArgumentsError(f"The session {id} was deleted; %sessions lists the sessions.") from None

    def _id(self, name: str, usage: str) -> str:
        number = name.removeprefix("#")
        if number.isascii() and number.isdigit() and len(number) < 6:
            listed = self._listed()
            if 0 < int(number) <= len(listed):
                return listed[int(number) - 1]
        found = self.wait(self.store.found(name))
        if len(found) > 1:  # of several with this title, those of this folder are meant
            found = [info for info in found if info.get("directory") == str(self.workspace.directory)] or found
        if len(found) == 1:
            return str(found[0]["id"])
        if not found:
            raise InvalidArgumentsError(f"There is no session {name!r}; %sessions lists them. {usage}")
        several = ", ".join(f"{info['id']} ({info.get('title')})" for info in found[:5])
        raise InvalidArgumentsError(f"{name!r} matches several sessions: {several}. Use more of the id.")

    def _listed(self) -> list[str]:
        """The ids of the list that was shown last; of the one that would be shown now if there was none."""
        seen = getattr(self.notebook, _SEEN, None)
        if seen is None:
            seen = [one["info"]["id"] for one in self.rows(everywhere=False, limit=100)]
        return list(seen)
