"""Reply channels where no card can be clicked: the prompt with its dialogs, and the policy where nobody is present.

(A card's clicks, by widget message, tap, pump or control channel, end in `Broker.on_message`; these routes are
installed in `ipykernel_compat`.)
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ...core.errors import PermissionRejectedError, QuestionRejectedError
from ...core.permission import PermissionRequest
from ...core.permission.request import TRUST
from ...text.visible import visible
from ..cards.approval_json import approval_question, trusted_code
from ..magics.line_syntax import quote
from . import ipykernel_compat
from .waiting import Waiter, interrupts_released

if TYPE_CHECKING:
    from ...core.question_request import Answers, Question, QuestionRequest
    from ...workspace import Workspace
    from .approvals import CardRequest

POLICY_VARIABLE = "OPENCODE_JUPYTER_ON_ASK"
"""Environment variable: ``deny`` (default) or ``allow`` where nobody is present."""
TRIES = 3
"""Unclear answers after which a request counts as denied, questions as dismissed: no prompt may repeat forever."""
SHOWN_LINES = 40
"""Lines of a diff or command that a prompt shows."""

END_OF_INPUT = "\x04"
"""What jupyter_console sends for Ctrl-D, where a terminal's ``input()`` raises EOFError."""

DialogStep = Literal["again", "next", "done", "dismissed"]
Parsed = tuple[Literal["once", "always", "reject"], str | None]


class PromptChannel:
    """Shows requests in the front end's input box (a kernel) or with ``input()`` (a terminal), one request at a time.

    It works while the cell waits: the waiter calls `beat` on its thread.
    """

    name = "prompt"

    def __init__(self, kernel: Any, workspace: Workspace, can_prompt: Callable[[CardRequest], bool]) -> None:
        self._kernel = kernel
        self._workspace = workspace
        self._can_prompt = can_prompt
        self._queue: deque[CardRequest] = deque()
        self._active: tuple[CardRequest, ipykernel_compat.StdinPrompt] | None = None
        self._dialogs: dict[str, PermissionDialog | QuestionDialog] = {}

    def open(self, entry: CardRequest) -> bool:
        """Put the request into the queue, if a cell waits and its front end takes input."""
        if entry.card.waiter is None or not self._can_prompt(entry):
            return False
        self._queue.append(entry)
        return True

    def close(self, entry: CardRequest) -> None:
        """Forget the request. Its box stays on the page until it is answered.

        That answer is dropped too if another box was opened meanwhile (where the front end says which box was answered,
        as JupyterLab does).
        """
        with contextlib.suppress(ValueError):
            self._queue.remove(entry)
        self._dialogs.pop(entry.id, None)

    def beat(self, waiter: Waiter | None) -> None:
        """Look for an answer, or put the next request. Called on the waiting thread."""
        if self._active is not None:
            entry, prompt = self._active
            if entry not in self._queue:
                self._active = None
                return
            answer = prompt.poll()
            if answer is not None:
                self._active = None
                self._take(entry, answer)
            return
        if not self._queue:
            return
        entry = self._queue[0]
        if self._kernel is not None:
            self._active = (entry, ipykernel_compat.StdinPrompt(self._kernel, self._dialog(entry).text()))
        elif waiter is not None and entry.card.waiter is waiter:
            entry.card.before_prompt()
            waiter.serve_all()  # what was printed so far comes before the request
            try:
                with interrupts_released():
                    answer = input(self._dialog(entry).text())
            except EOFError:
                answer = END_OF_INPUT
            except KeyboardInterrupt:
                if isinstance(entry.request, PermissionRequest):
                    raise  # ends the call; a question is only dismissed
                answer = END_OF_INPUT
            self._take(entry, answer)

    def _dialog(self, entry: CardRequest) -> PermissionDialog | QuestionDialog:
        if entry.id not in self._dialogs:
            request = entry.request
            made = PermissionDialog(request) if isinstance(request, PermissionRequest) else QuestionDialog(request)
            self._dialogs[entry.id] = made
        return self._dialogs[entry.id]

    def _take(self, entry: CardRequest, answer: str) -> None:
        dialog = self._dialogs.get(entry.id)
        if isinstance(dialog, PermissionDialog):
            reply = dialog.take("n" if answer == END_OF_INPUT else answer)
            if reply is not None:
                self.close(entry)  # now: the engine reports the end later, and this thread would show it again
                self._workspace.permissions.reply(entry.id, *reply, by="prompt")
        elif dialog is not None:  # else answered elsewhere meanwhile
            outcome = dialog.take("" if answer == END_OF_INPUT else answer)
            if outcome in ("dismissed", "done"):
                self.close(entry)
            if outcome == "dismissed":
                self._workspace.questions.reject(entry.id, by="prompt")
            elif outcome == "done":
                self._workspace.questions.reply(entry.id, dialog.answers, by="prompt")


class PolicyChannel:
    """Decides when nobody is present (nbclient, papermill, a batch job): deny, unless configured otherwise."""

    name = "policy"

    def __init__(self, workspace: Workspace, policy: Callable[[], str]) -> None:
        self._workspace = workspace
        self._policy = policy

    def open(self, entry: CardRequest) -> bool:
        """Decide at once."""
        request = entry.request
        if not isinstance(request, PermissionRequest):
            error = QuestionRejectedError(unattended_question(request))
            return self._workspace.questions.reject(entry.id, by="policy", error=error)
        if self._policy() == "allow":
            return self._workspace.permissions.reply(entry.id, "once", by="policy")
        denial = PermissionRejectedError(unattended_denial(request))
        return self._workspace.permissions.reply(entry.id, "reject", by="policy", error=denial)

    def close(self, entry: CardRequest) -> None:
        """Nothing to close."""


def policy_from(env: dict[str, str] | os._Environ[str], configured: str) -> str:
    """``allow`` or ``deny``: the environment's value, else the configured one; anything else is ``deny``."""
    word = env.get(POLICY_VARIABLE, "").strip().lower() or configured
    return "allow" if word == "allow" else "deny"


def terminal_is_attended() -> bool:
    """Whether a person can type answers here: standard input is a terminal."""
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:
        return False


def unattended_denial(request: PermissionRequest) -> str:
    """The reason of an unattended request's denial, and the rule that would allow it."""
    # "*" would allow more than was requested; bash's "git status *" is what a person would write.
    if request.permission == TRUST:
        names = " ".join(quote(p) for p in request.patterns)
        return (
            f"{names} is code of a project that is not trusted yet, and nobody can answer here. "
            f"To trust it: %tools trust {names} in a notebook, or {POLICY_VARIABLE}=allow for every request."
        )
    patterns = [p for p in request.always if p != "*"] or request.everything
    rules = ", ".join(f'{json.dumps(p, ensure_ascii=False)}: "allow"' for p in patterns)
    magic = " ".join(quote(p) for p in patterns)
    return (
        f"{request.permission} needs approval for {', '.join(request.everything)}, and nobody can answer here. "
        f'To allow it: {{"permission": {{"{request.permission}": {{{rules}}}}}}} in opencode.json, '
        f"or %permissions allow {request.permission} {magic}, or {POLICY_VARIABLE}=allow for every request."
    )


def unattended_question(request: QuestionRequest) -> str:
    """The reason why a question got no answer where nobody is present."""
    asked = ", ".join(json.dumps(question.question, ensure_ascii=False) for question in request.questions)
    return (
        f"Nobody can answer here: {asked}. Run this where a person sees the card or a prompt, or answer from code: "
        "Workspace(..., answer=...), or workspace.questions.reply(...)."
    )


# ---------------------------------------------------------------------- permission requests at a prompt


class PermissionDialog:
    """A permission request at a prompt, shown again where an answer is not understood."""

    def __init__(self, request: PermissionRequest) -> None:
        self._request = request
        self._unclear: list[str] = []

    def text(self) -> str:
        """What the prompt shows."""
        unclear = self._unclear[-1] if self._unclear else ""
        note = f"{unclear!r} is not an answer. Type one of those in brackets.\n" if unclear else ""
        return note + prompt_text(self._request)

    def take(self, line: str) -> Parsed | None:
        """The reply that was typed; None if the request is to be shown again."""
        parsed = parse_answer(line)
        if parsed is None:
            # VS Code sends an empty text for Escape: the second one denies.
            self._unclear.append(line.strip())
            if self._unclear[-2:] == ["", ""] or len(self._unclear) >= TRIES:
                return "reject", None
        return parsed


def prompt_text(request: PermissionRequest) -> str:
    """A prompt's text: the request, in full up to `SHOWN_LINES` lines, and how to answer."""
    head = approval_question(request.permission) or f"Allow {request.permission}?"
    lines = [f"{head} {', '.join(visible(p) for p in request.everything)}"]
    for key in ("command", "diff"):
        text = trusted_code(request) if request.permission == TRUST and key == "command" else request.metadata.get(key)
        if isinstance(text, str) and text and text not in request.patterns:
            body = [visible(line) for line in text.splitlines()]
            lines += body[:SHOWN_LINES]
            if len(body) > SHOWN_LINES:
                lines.append(f"… {len(body) - SHOWN_LINES} more lines")
    if request.rule is not None and request.permission != TRUST:
        origin = f" from {request.rule.origin}" if request.rule.origin else ""
        lines.append(f"(rule {request.rule.permission} {request.rule.pattern}: {request.rule.action}{origin})")
    session = f" [2] for this session ({', '.join(visible(p) for p in request.always)})" if request.always else ""
    once = "trust it until it changes" if request.permission == TRUST else "once"
    lines.append(f"[1] {once}{session} [n] deny [n REASON: deny with a reason] > ")
    return "\n".join(lines)


def parse_answer(text: str) -> Parsed | None:
    """A typed answer; None if it is none."""
    word = text.strip()
    low = word.lower()
    if low in ("1", "o", "once", "y", "yes"):
        return "once", None
    if low in ("2", "s", "session", "always", "a"):
        return "always", None
    if low in ("3", "n", "no", "d", "deny", "reject"):
        return "reject", None
    reason = re.match(r"(?is)(?:3|n|no|d|deny|reject)(?:\s*[:,;.]\s*|\s+)(.+)", word)
    return ("reject", reason.group(1).strip()) if reason else None


# ---------------------------------------------------------------------- questions at a prompt


@dataclass(slots=True)
class QuestionDialog:
    """Questions at a prompt: one after another, with numbered options or a free answer.

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
