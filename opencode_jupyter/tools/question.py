"""question: ask the person at the notebook. See docs/opencode/core.md 15.3."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from ..core.call_state import ToolPart
from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import InvalidArgumentsError
from ..core.question_request import Answers, Choice, Question
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..text.encoding import printable
from .builtin import builtin


class Option(Arguments):
    """One answer to choose."""

    model_config = ConfigDict(json_schema_extra={"ref": "QuestionOption"})  # OpenCode's schema has it

    label: str = Field(description="Display text of the answer (1-5 words, at most 30 characters)")
    description: str = Field(description="What choosing it means")


class Asked(Arguments):
    """One question."""

    question: str = Field(description="The complete question")
    header: str = Field(description="Very short label of the question (at most 30 characters)")
    options: list[Option] = Field(description="The answers to choose from")
    multiple: bool | None = Field(default=None, description="Whether several answers may be chosen")


class Parameters(Arguments):
    """What to ask."""

    questions: list[Asked] = Field(description="The questions to ask")


def _label(arguments: dict[str, Any], part: ToolPart) -> str:
    questions = arguments.get("questions")
    entries = [entry for entry in questions if isinstance(entry, dict)] if isinstance(questions, list) else []
    headers = [str(entry.get("header") or entry.get("question") or "").strip() for entry in entries]
    return ", ".join(filter(None, headers))


@builtin(
    "question",
    Parameters,
    group="agent",
    body="questions",
    effect="notes",
    card=CardSpec(label=_label),
)
async def question(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Ask the person a question."""
    ctx.proceed()
    try:
        answers = await ctx.question([_to_question(entry) for entry in args.questions])
    except ValueError as error:
        message = f"The question tool was called with invalid arguments: {error}"
        raise InvalidArgumentsError(message, tool="question", for_person=f"question: {error}.") from error
    text = ", ".join(
        f'"{entry.question}"="{answer}"' for entry, answer in zip(args.questions, _in_words(answers), strict=True)
    )
    count = len(args.questions)
    return ToolResult(
        f"Asked {count} question{'s' if count > 1 else ''}",
        printable(f"User has answered your questions: {text}. You can now continue with the user's answers in mind."),
        {"answers": answers},
        records=[
            {"header": entry.header, "question": entry.question, "answer": answer}
            for entry, answer in zip(args.questions, answers, strict=True)
        ],
    )


def _to_question(entry: Asked) -> Question:
    choices = tuple(Choice(option.label, option.description) for option in entry.options)
    return Question(entry.question, entry.header, choices, bool(entry.multiple))


def _in_words(answers: Answers) -> list[str]:
    return [", ".join(labels) or "Unanswered" for labels in answers]
