"""Questions in a terminal or an input box: one after another, with numbered options or a free answer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from ...core.question_request import Answers, Question, QuestionRequest
from ...text.visible import visible

TRIES = 3
"""Unclear answers after which the questions count as dismissed: no prompt may repeat forever."""

DialogStep = Literal["again", "next", "done", "dismissed"]


@dataclass(slots=True)
class QuestionDialog:
    """The state of one request that is answered line by line.

    Attributes:
        request: what is asked.
        answers: the answers so far.
        note: why the last answer was not accepted.
    """

    request: QuestionRequest
    answers: Answers = field(default_factory=list)
    note: str = ""
    _tries: int = 0

    @property
    def current(self) -> Question:
        """The question to answer now."""
        return self.request.questions[len(self.answers)]

    def text(self) -> str:
        """What the prompt shows."""
        count, question = len(self.request.questions), self.current
        position = f"[{len(self.answers) + 1} of {count}] " if count > 1 else ""
        header = f"{visible(question.header)}: " if question.header.strip() else ""
        lines = [self.note] if self.note else []
        lines += [f"{position}{header}{visible(question.question)}"]
        for number, option in enumerate(question.options, 1):
            description = f": {visible(option.description)}" if option.description.strip() else ""
            lines.append(f"  [{number}] {visible(option.label)}{description}")
        return "\n".join([*lines, f"{_how(question)} (empty: dismiss) > "])

    def take(self, line: str) -> DialogStep:
        """Accept a typed line; ``done`` when there is an answer to every question."""
        if not line.strip():
            return "dismissed"
        answer = parse_choice(line, self.current)
        if isinstance(answer, str):
            self._tries += 1
            self.note = answer
            return "again" if self._tries < TRIES else "dismissed"
        self.note, self._tries = "", 0
        self.answers.append(answer)
        return "done" if len(self.answers) == len(self.request.questions) else "next"


def _how(question: Question) -> str:
    if not question.options:
        return "Your answer"
    numbers = "Numbers, such as 1,2" if question.multiple else "A number"
    return f"{numbers}, or your own answer" if question.custom else numbers


def parse_choice(line: str, question: Question) -> list[str] | str:
    """The labels that a typed line selects, or a free answer; a text that explains what is wrong with it.

    Options are selected by number, from 1, or by label. Several are separated by commas
    or blanks. Other text is a free answer where those are accepted.
    """
    typed = line.strip()
    label = _option(typed, question)
    if label is not None:
        return [label]
    pieces = re.split(r"[,;\s]+" if re.fullmatch(r"[\d,;\s]+", typed) else r"[,;]", typed)
    pieces = [piece.strip() for piece in pieces if piece.strip()]
    options = [_option(piece, question) for piece in pieces]
    if len(pieces) > 1 and any(label is not None for label in options):
        if not question.multiple:
            if all(label is not None for label in options):
                return "One answer only, please."
        elif question.custom or None not in options:
            labels = [label or piece for label, piece in zip(options, pieces, strict=True)]
            return list(dict.fromkeys(labels))
    if not question.custom:
        return f"{visible(typed)!r} is not one of the answers: type {_how(question)[0].lower()}{_how(question)[1:]}."
    return [typed]


def _option(typed: str, question: Question) -> str | None:
    """The label that a number or the label itself names."""
    if typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(question.options):
        return question.options[int(typed) - 1].label
    return next((o.label for o in question.options if o.label.strip().casefold() == typed.casefold()), None)
