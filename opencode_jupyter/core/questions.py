"""The questions of one workspace: asked by tools, pending, answered (docs/opencode/core.md 16)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import ids
from .call_state import now_ms
from .errors import QuestionRejectedError, ToolError
from .events import Bus
from .pending_requests import UNANSWERABLE, PendingRequest, PendingRequests, no_mask

if TYPE_CHECKING:
    from .question_request import Answered, Answers, Question, QuestionRequest

log = logging.getLogger(__name__)
Answer = Callable[["QuestionRequest"], Any]
_PendingQuestion = PendingRequest["QuestionRequest", "Answered"]


class QuestionService:
    """Asks a person questions and waits for the answers.

    Any thread may call `reply`, `reject`, `pending` and `close`; the first answer to a request counts. No answer
    affects another request. Events are published, and waiting calls continue, on the loop that made the request.

    Attributes:
        answer: called with each request when it was announced. What it returns counts like a `reply`, None like a
            `reject`; it may be async.
    """

    def __init__(self, bus: Bus, answer: Answer | None = None, mask: Callable[[Any], Any] = no_mask) -> None:
        self.bus = bus
        self.answer = answer
        self._mask = mask
        self._pending: PendingRequests[QuestionRequest, Answered] = PendingRequests()

    # ---- asking

    async def ask(
        self,
        *,
        session_id: str,
        questions: Sequence[Question | Mapping[str, Any]],
        tool: Mapping[str, str] | None = None,
    ) -> Answers:
        """Ask, and return the answers: for each question its labels.

        Raises:
            QuestionRejectedError: the person dismissed the questions, or no answer can come any more.
            ValueError: there is no question, or one can't be answered.
        """
        answered = await self.ask_request(session_id=session_id, questions=questions, tool=tool)
        return answered.answers or []

    async def ask_request(
        self,
        *,
        session_id: str,
        questions: Sequence[Question | Mapping[str, Any]],
        tool: Mapping[str, str] | None = None,
        on_end: Callable[[Answered], None] | None = None,
    ) -> Answered:
        """`ask`, with the whole outcome; `on_end` is called for a dismissal too."""
        from .question_request import QuestionRequest, parse_questions  # here, as below: few calls ask

        request = QuestionRequest(
            ids.create("question"),
            ids.ascending("session", session_id),
            self._mask(parse_questions(questions)),
            dict(tool) if tool is not None else None,
            now_ms(),
        )
        pending = self._pending.add(request, QuestionRejectedError)

        def announce() -> None:
            if self.bus.has_subscribers("question.asked"):
                self.bus.publish("question.asked", request.to_wire())
            elif self.answer is None:
                log.warning(UNANSWERABLE, "question", request.id, "questions", request.id)

        def withdraw(error: BaseException) -> None:
            if self._pending.take(request.id):
                self._finish(pending, None, "cancelled", QuestionRejectedError("The call was stopped"))

        answered, error = await pending.wait(
            announce,
            self.answer,
            lambda answer: self._submit(pending, answer),
            lambda: QuestionRejectedError("Nobody could answer: `answer` was stopped."),
            withdraw,
        )
        if on_end is not None:
            on_end(self._mask(answered))
        if error is not None:
            raise error
        return answered

    def _submit(self, pending: _PendingQuestion, answer: Any) -> None:
        if answer is None:
            self.reject(pending.request.id, by="answer")
        else:
            self.reply(pending.request.id, answer, by="answer")

    # ---- answering

    def pending(self) -> list[QuestionRequest]:
        """The pending requests, oldest first."""
        return self._pending.requests()

    def reply(self, request_id: str, answers: Any, *, by: str = "reply") -> bool:
        """Answer a request. May be called from any thread.

        Args:
            request_id: which.
            answers: for each question, in order, a list of labels or own words (or one as a plain text); questions
                at the end optional. For a single question its one answer as a plain text will do.
            by: the channel through which the answer came.

        Returns:
            False if no request of that id is pending (any more).

        Raises:
            ValueError: the answers do not fit the questions; the request stays pending.
        """
        from .question_request import parse_answers

        with self._pending.lock:
            pending = self._pending.entries.get(request_id)
            if pending is None:
                return False
            labels = parse_answers(pending.request.questions, answers)
            self._pending.take(request_id)
        self._settle(pending, labels, by, None)
        return True

    def reject(self, request_id: str, *, by: str = "reply", error: ToolError | None = None) -> bool:
        """Dismiss a request: its call ends with `error`. May be called from any thread.

        Returns:
            False if no request of that id is pending (any more).
        """
        pending = self._pending.take(request_id)
        if pending is None:
            return False
        self._settle(pending, None, by, error or QuestionRejectedError())
        return True

    def close(self, reason: str = "The workspace was closed before the question was answered.") -> None:
        """Reject what is pending, and every later question."""
        self._pending.closed = reason
        for request in self._pending.requests():
            self.reject(request.id, by="closed", error=QuestionRejectedError(reason))

    # ---- ending a wait

    def _settle(self, pending: _PendingQuestion, answers: Answers | None, by: str, error: ToolError | None) -> None:
        """Finish on the loop that waits."""
        pending.run_on_waiting_loop(lambda: self._finish(pending, answers, by, error))

    def _finish(self, pending: _PendingQuestion, answers: Answers | None, by: str, error: ToolError | None) -> None:
        from .question_request import Answered

        request = pending.request
        event = "question.rejected" if answers is None else "question.replied"
        if self.bus.has_subscribers(event):
            payload: dict[str, Any] = {"sessionID": request.session_id, "requestID": request.id}
            if answers is not None:
                payload["answers"] = self._mask(answers)
            self.bus.publish(event, payload)
        answered = Answered(request.questions, answers, by, pending.waited)
        if isinstance(error, QuestionRejectedError):
            error.answered = answered
        pending.end(answered, error)
