"""What a server may ask of us while it works: the project's folder, and a few answers of a person.

Models are lent to servers only where the configuration allows it (`sampling`). That a person opens a page is refused
too, unless the configuration allows to ask; no page is ever opened by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mcp_types import (
    INVALID_REQUEST,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    Root,
)

from ..core.errors import QuestionRejectedError
from . import forms
from .sampling import allowed, sampling

if TYPE_CHECKING:
    from mcp.client.session import ElicitationFnT, SamplingFnT

    from ..core.workspace import Workspace
    from .calls import Running
    from .connection import Connection

running: ContextVar[Running | None] = ContextVar("mcp_call", default=None)
"""The call in whose task this code runs: newer servers ask within it, older ones out of nowhere."""
PAGES = "mcp_pages"
"""Key under ``experimental``: a server may ask a person to open a page."""
TRIES = 3
"""Times a question is put again because the answer does not fit."""


class Callbacks:
    """Answers the requests of the servers of one workspace."""

    def __init__(self, workspace: Workspace, newest: Callable[[str], Running | None]) -> None:
        self._workspace = workspace
        self._newest = newest

    async def roots(self, context: Any) -> ListRootsResult:
        """The folder of the workspace."""
        folder = self._workspace.directory
        return ListRootsResult(roots=[Root.model_validate({"uri": folder.as_uri(), "name": folder.name or "/"})])

    def sampling(self, connection: Connection) -> SamplingFnT | None:
        """What asks a model for one server; None where the configuration does not allow it."""
        if not allowed(self._workspace):
            return None
        name = connection.spec.name
        return sampling(self._workspace, connection, lambda: running.get() or self._newest(name))

    def elicitation(self, connection: Connection) -> ElicitationFnT:
        """What answers the questions of one server."""

        async def answer(context: Any, params: ElicitRequestParams) -> ElicitResult | ErrorData:
            call = running.get() or self._newest(connection.spec.name)
            page = not isinstance(params, ElicitRequestFormParams)
            if page and self._workspace.config.get("experimental", PAGES) is not True:
                connection.log.add(f"requested to open a page and was refused: {params.message}", "client")
                return ElicitResult(action="decline")
            if call is None:
                return ErrorData(code=INVALID_REQUEST, message="no call is running in which a person could be asked")
            if isinstance(params, ElicitRequestFormParams):
                return await self._form(
                    connection.spec.name, params.message, forms.fields(params.requested_schema), call
                )
            words = f"{params.message}\nIt wants this page opened: {params.url}"
            return await self._form(connection.spec.name, words, [], call)

        return answer

    async def _form(self, server: str, message: str, fields: list[forms.Field], call: Running) -> ElicitResult:
        """Put a form's fields as questions on the card of the call; one without fields is a yes or no."""
        content: dict[str, Any] = {}
        left, notes = list(fields), dict[str, str]()
        with call.waiting():
            for _ in range(TRIES):
                questions = forms.questions(server, message, left, notes)
                try:
                    answers = await call.ctx.question(questions)
                except QuestionRejectedError:
                    return ElicitResult(action="cancel")
                if not fields:
                    agreed = bool(answers and answers[0] == [forms.ACCEPT])
                    return ElicitResult(action="accept" if agreed else "decline", content={} if agreed else None)
                wrong: list[forms.Field] = []
                notes = {}
                for field, answer in zip(left, answers, strict=False):
                    try:
                        value = field.value(answer)
                    except ValueError as error:
                        notes[field.name] = str(error)
                        wrong.append(field)
                        continue
                    if value is not None:
                        content[field.name] = value
                if not wrong:
                    return ElicitResult(action="accept", content=content)
                left = wrong
        return ElicitResult(action="decline")
