"""Questions, their options, and validation of answers (docs/opencode/core.md 16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Answers = list[list[str]]
"""For each question in order the labels that were selected, or a person's own words; empty: not answered."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers that a question offers."""

    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Attributes:
        question: the whole question.
        header: a very short name for it, for a chip.
        options: the answers it offers.
        multiple: several options may be selected.
        custom: a person may answer in their own words.
    """

    question: str
    header: str = ""
    options: tuple[Choice, ...] = ()
    multiple: bool = False
    custom: bool = True

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's form, without defaults."""
        wire: dict[str, Any] = {
            "question": self.question,
            "header": self.header,
            "options": [{"label": o.label, "description": o.description} for o in self.options],
        }
        if self.multiple:
            wire["multiple"] = True
        if not self.custom:
            wire["custom"] = False
        return wire


@dataclass(slots=True)
class QuestionRequest:
    """A pending request: questions that are asked together.

    Attributes:
        id: ``que_...``.
        session_id: ``ses_...``.
        questions: at least one.
        tool: ``{"messageID", "callID"}`` of the call, if any.
        asked: Unix milliseconds.
    """

    id: str
    session_id: str
    questions: list[Question]
    tool: dict[str, str] | None = None
    asked: int = 0

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's form: the payload of ``question.asked``."""
        wire: dict[str, Any] = {
            "id": self.id,
            "sessionID": self.session_id,
            "questions": [question.to_wire() for question in self.questions],
        }
        if self.tool is not None:
            wire["tool"] = dict(self.tool)
        return wire


@dataclass(slots=True)
class Answered:
    """The outcome of a request, for the card.

    Attributes:
        questions: what was asked.
        answers: None if it was dismissed.
        by: the channel through which the answer came (``card``, ``prompt``, ``answer``, ...).
        waited: seconds.
    """

    questions: list[Question]
    answers: Answers | None
    by: str = ""
    waited: float = 0.0


def parse_questions(questions: Any) -> list[Question]:
    """Questions from a tool's argument: `Question` objects or dicts in OpenCode's form; a single one may stand alone.

    Raises:
        ValueError: there is none, or one has no text, or nothing to answer with.
    """
    items = [questions] if isinstance(questions, (Question, Mapping)) else questions
    if not isinstance(items, Sequence) or isinstance(items, str) or not items:
        raise ValueError("there is nothing to ask: give a list of at least one question")
    return [_question(item) for item in items]


def _question(question: Any) -> Question:
    if isinstance(question, Mapping):
        text = question.get("question")
        options = question.get("options") or ()
        if isinstance(options, str) or not isinstance(options, Sequence):
            raise ValueError(  # noqa: TRY004 - every fault of a question is a ValueError
                f"the options of a question must be a list, not {options!r}"
            )
        header = question.get("header")
        question = Question(
            text if isinstance(text, str) else "",
            header if isinstance(header, str) else "",
            tuple(_option(option) for option in options),
            bool(question.get("multiple")),
            question.get("custom") is not False,
        )
    if not isinstance(question, Question):
        raise ValueError(  # noqa: TRY004
            f"a question must be a dict with question, header and options, not {question!r}"
        )
    if not question.question.strip():
        raise ValueError("a question needs its text: {'question': ..., 'header': ..., 'options': [...]}")
    if not all(option.label.strip() for option in question.options):
        raise ValueError(f"every option of {question.question!r} needs a label")
    if not question.options and not question.custom:
        raise ValueError(
            f"{question.question!r} can't be answered: it has no options and accepts no answer of one's own"
        )
    return question


def _option(option: Any) -> Choice:
    if isinstance(option, str) and option:
        return Choice(option)
    if isinstance(option, Choice):
        return option
    if isinstance(option, Mapping) and isinstance(option.get("label"), str) and option["label"]:
        return Choice(option["label"], str(option.get("description") or ""))
    raise ValueError(f"an option must be a text or a dict with label and description, not {option!r}")


def parse_answers(questions: Sequence[Question], reply: Any) -> Answers:
    """Answers as a list of labels for each question.

    Raises:
        ValueError: they are more than the questions, not texts, or none of the options where only those are taken.
    """
    if isinstance(reply, str) and len(questions) == 1:
        reply = [reply]
    if not isinstance(reply, Sequence) or isinstance(reply, str):
        raise ValueError(  # noqa: TRY004
            f"answers must be a list with a list of labels for each question, not {reply!r}"
        )
    if len(reply) > len(questions):
        raise ValueError(
            f"{len(reply)} answers were given to {len(questions)} question(s); answers are lists of labels"
        )
    answers: Answers = [_labels(question, answer) for question, answer in zip(questions, reply, strict=False)]
    return answers + [[] for _ in questions[len(answers) :]]


def _labels(question: Question, answer: Any) -> list[str]:
    labels = [answer] if isinstance(answer, str) else answer
    if labels is None:
        return []
    if not isinstance(labels, Sequence) or not all(isinstance(label, str) for label in labels):
        raise ValueError(f"an answer must be a list of labels, not {answer!r}")
    known = [option.label for option in question.options]
    for label in labels:
        if not question.custom and label not in known:
            raise ValueError(f"{label!r} is not one of the answers to {question.question!r}: {', '.join(known)}")
    return list(labels)
