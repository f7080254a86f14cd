"""Sessions that a model can be prompted in. See docs/opencode/core.md 9."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from ..core.errors import InvalidArgumentsError
from ..core.option_checks import check_option_names
from ..core.sessions import Session, Sessions

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from ..core.messages import Message
    from .model import Model
    from .run import Run


class AgentSession(Session):
    """A session that can be prompted, forked and reverted."""

    __slots__ = ()
    if TYPE_CHECKING:
        run: Run | None

    def prompt(self, text: str, **options: Any) -> Run:
        """Ask a model something in this session: `Sessions.prompt` with ``session=`` this one."""
        return sessions_of(self._home).prompt(text, session=self, **options)

    async def fork(self, at: str | int | Message | None = None) -> AgentSession:
        """A new session with copies of the messages before `at` (a message, its id or its place); all if left out.

        Raises:
            ToolError: there is no such message.
        """
        from .forking import fork  # here: few sessions are forked

        return await fork(self._home, self, at)

    async def revert(self, to: str | int | Message, **options: Any) -> Any:
        """Undo the messages from `to` (a message, its id, a part's id, its place) on, with their changes of files.

        Returns:
            The files that were restored, and those that were kept because somebody else had changed them (`Reverted`).

        Raises:
            ToolError: there is no such message, or the session is running.
        """
        from ..core.messages import Message
        from .revert import revert

        check_option_names(revert, options, "revert")
        if isinstance(to, bool) or not isinstance(to, str | int | Message):
            raise InvalidArgumentsError(
                "revert needs the first message to revert: itself, its id or its index (0 is the first, -1 "
                f"the last), not {to!r}"
            )
        return await revert(self._home, self, to, **options)

    async def unrevert(self) -> Any:
        """Undo the last `revert`, as long as no prompt came after it.

        Raises:
            ToolError: nothing was reverted.
        """
        from .revert import unrevert

        return await unrevert(self._home, self)

    @property
    def _home(self) -> ToolHost:
        if self.workspace is None:
            raise RuntimeError("this session belongs to no workspace; add it with workspace.sessions.add(session)")
        return cast("ToolHost", self.workspace)


class AgentSessions(Sessions[AgentSession]):
    """The sessions of one workspace, and prompts to models."""

    session_type = AgentSession

    def prompt(
        self,
        text: str,
        *,
        model: str | Model | None = None,
        agent: str | None = None,
        session: str | AgentSession | None = None,
        files: Iterable[Any] = (),
        format: Any = None,
        max_steps: int | None = None,
        tools: Mapping[str, bool] | Iterable[str] | None = None,
        system: str | None = None,
        **options: Any,
    ) -> Run:
        """Ask a model something: ``answer = await workspace.sessions.prompt("...", model="openai:gpt-5")``.

        Args:
            text: the request.
            model: ``provider:model``, ``provider/model``, ``scripted:FILE``, or an object that is one
                (`agent.model.Model`). The agent's, the session's or the configuration's ``model`` if left out.
            agent: who is to answer; the session's, or the default one, if left out.
            session: where it belongs; a new one if left out.
            files: pictures, PDF files and texts that go along: paths or `Attachment` objects.
            format: a JSON schema, a pydantic model or another type: the answer's `value` is then one of these.
            max_steps: most times that the model is asked; the agent's ``steps`` if left out.
            tools: the names of the only tools to be offered, or a dict that turns some off.
            system: text to add to the system prompt, for this prompt only.
            **options: see `PromptOptions`.

        Returns:
            The run. Nothing happens before it is awaited (for the `Answer`) or iterated over (for its events).

        Raises:
            InvalidArgumentsError: something is not of the kind it should be.
        """
        from .prompt_options import PromptOptions
        from .run import Run  # here: a workspace without a model loads no model loop

        check_option_names(PromptOptions, options, "prompt")
        prompt = PromptOptions(
            text,
            model=model,
            agent=agent,
            session=session,
            files=files,
            format=format,
            max_steps=max_steps,
            tools=tools,
            system=system,
            **options,
        )
        return Run(self._workspace, prompt)


def sessions_of(workspace: ToolHost) -> AgentSessions:
    """Return a workspace's sessions as this layer knows them.

    Raises:
        TypeError: it has none in which a model can be prompted.
    """
    sessions = workspace.sessions
    if not isinstance(sessions, AgentSessions):
        raise TypeError(f"{workspace!r} has no sessions in which a model can be prompted; use a Workspace")
    return sessions
