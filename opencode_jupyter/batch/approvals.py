"""Answer the permission requests and questions of many runs: by `on_ask`, a person, or the workspace as usual."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from ..core.call import Call
from ..core.context import ToolContext
from ..core.errors import PermissionCorrectedError, PermissionRejectedError, QuestionRejectedError, ToolError
from ..core.permission import PermissionRequest, PermissionService, Reply, Rule
from ..core.question_request import QuestionRequest
from ..core.result import ToolResult
from ..core.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.host import ToolHost
    from ..core.sessions import Session


OnAsk = Literal["reject"] | Callable[[PermissionRequest], Reply | Awaitable[Reply]] | None
"""``reject`` denies every permission request with a reason for the model and dismisses every question; a function
decides; None asks as the workspace does for any call."""
REJECT_REASON = (
    'map(..., on_ask="reject") denies every permission request. Add a rule that allows it to let the run continue.'
)
OnCellLoop = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
"""Runs a coroutine where a person sees its card: on the loop and in the context of the cell that waits."""


@dataclass(slots=True, eq=False)
class ReplySource:
    """Answers the requests of some sessions.

    Attributes:
        has_session: returns whether a session is one of them, by its id.
        on_ask: see `OnAsk`.
        person: asks a person; None: as the workspace does for every call.
    """

    has_session: Callable[[str], bool]
    on_ask: OnAsk = None
    person: Callable[[PermissionRequest | QuestionRequest], Awaitable[Any]] | None = None


@dataclass(eq=False)
class ReplyRouter:
    """Replaces a workspace's own approver and passes each request to its source of replies (`Workspace.service`)."""

    workspace: ToolHost
    sources: list[ReplySource] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.approve, self.answer = self.workspace.permissions.approve, self.workspace.questions.answer
        self.workspace.permissions.approve = self.permission
        self.workspace.questions.answer = self.question

    @contextmanager
    def using(self, source: ReplySource) -> Iterator[None]:
        """Let it answer as long as this lasts."""
        self.sources.append(source)
        try:
            yield
        finally:
            self.sources.remove(source)
            if not self.sources:
                self.close()
                self.workspace._services.pop(ReplyRouter, None)

    def close(self) -> None:
        """Leave the workspace as it was."""
        permissions, questions = self.workspace.permissions, self.workspace.questions
        if permissions.approve == self.permission:
            permissions.approve = self.approve
        if questions.answer == self.question:
            questions.answer = self.answer

    def _source_of(self, session_id: str) -> ReplySource | None:
        return next((source for source in reversed(self.sources) if source.has_session(session_id)), None)

    def permission(self, request: PermissionRequest) -> Any:
        """The reply to a permission request."""
        source = self._source_of(request.session_id)
        if source is not None and source.on_ask is not None:
            return ("reject", REJECT_REASON) if source.on_ask == "reject" else source.on_ask(request)
        if self.approve is not None:
            return self.approve(request)
        return _wait_forever() if source is None or source.person is None else source.person(request)

    def question(self, request: QuestionRequest) -> Any:
        """The answers to questions."""
        source = self._source_of(request.session_id)
        if source is not None and source.on_ask == "reject":
            return None
        if self.answer is not None:
            return self.answer(request)
        return _wait_forever() if source is None or source.person is None else source.person(request)


def _wait_forever() -> asyncio.Future[Any]:
    """Waits until the request is answered otherwise."""
    return asyncio.get_running_loop().create_future()


# ---------------------------------------------------------------------- a card for a request


class _Parameters(BaseModel):
    """A run's request."""

    run: str
    """The title of the run."""
    permission: str = ""
    patterns: list[str] = []
    always: list[str] = []
    metadata: dict[str, Any] = {}
    questions: list[dict[str, Any]] = []


async def _ask(args: _Parameters, ctx: ToolContext) -> ToolResult:
    if args.questions:
        answers = await ctx.question(args.questions)
        return ToolResult(f"{args.run} asked", "answered", {"answers": answers})
    await ctx.ask(permission=args.permission, patterns=args.patterns, always=args.always, metadata=args.metadata)
    return ToolResult(f"{args.run}: {args.permission} allowed", "allowed")


@dataclass(frozen=True, slots=True)
class PolicyRefusal:
    """A refusal by the policy: nobody was present, and a rule would help."""

    text: str
    by: str


def apply_refusal(permissions: PermissionService, request: PermissionRequest, reply: Any) -> Any:
    """Make a `PolicyRefusal` the error of the call that asked; what is returned is the reply to the request."""
    if isinstance(reply, PolicyRefusal):
        permissions.reply(request.id, "reject", by=reply.by, error=PermissionRejectedError(reply.text))
        return "reject"
    return reply


class HumanApprover:
    """Asks whoever the workspace asks: each request is a small call, so a notebook shows a card for it.

    Args:
        workspace: the notebook's.
        on_cell_loop: see `OnCellLoop`.
    """

    def __init__(self, workspace: ToolHost, on_cell_loop: OnCellLoop) -> None:
        self._workspace = workspace
        self._on_cell_loop = on_cell_loop
        self._session: Session | None = None
        self._tool = Tool.define(
            "ask",
            {"description": "An ask of a run that works elsewhere.", "parameters": _Parameters, "execute": _ask},
            builtin=True,  # it runs on the workspace's own loop
        )

    async def permission(self, wire: Mapping[str, Any], run: str) -> Reply | PolicyRefusal:
        """Ask for a permission, a payload of ``permission.asked``; "for this session" is remembered here."""
        rules = {name: wire.get(name) or [] for name in ("patterns", "always")}
        calls: list[Call] = []
        try:
            await self._ask(
                {"run": run, "permission": wire["permission"], "metadata": dict(wire.get("metadata") or {}), **rules},
                calls,
            )
        except PermissionCorrectedError as error:
            return ("reject", error.feedback)
        except ToolError as error:
            decisions = calls[-1].part.decisions if calls else []
            return PolicyRefusal(str(error), decisions[-1].by if decisions else "closed")
        return "once"

    async def question(self, wire: Mapping[str, Any], run: str) -> list[list[str]] | None:
        """Ask questions; None if they were dismissed."""
        try:
            result = await self._ask({"run": run, "questions": list(wire["questions"])}, [])
        except (QuestionRejectedError, ToolError):
            return None
        answers: list[list[str]] = result.metadata["answers"]
        return answers

    async def _ask(self, arguments: dict[str, Any], calls: list[Call]) -> ToolResult:
        workspace = self._workspace
        if self._session is None:
            # The run's own rules have decided to ask: here it is asked whatever this agent may do.
            self._session = workspace.sessions.create("Asks of runs", permission=[Rule("*", "*", "ask", "run")])
        session = self._session

        def make() -> Call:
            calls.append(workspace.start("ask", arguments, session=session, by="user", tool=self._tool))
            return calls[-1]

        if workspace.present is None:
            return await make().run()
        result: ToolResult = await self._on_cell_loop(workspace.present.run("ask", make))
        return result
