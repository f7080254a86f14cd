"""Reply channels where no card can be clicked: the prompt, and the policy where nobody is present.

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
    from ...core.question_request import QuestionRequest
    from ...workspace import Workspace
    from .approvals import CardRequest
    from .question_dialog import QuestionDialog

POLICY_VARIABLE = "OPENCODE_JUPYTER_ON_ASK"
"""Environment variable: ``deny`` (default) or ``allow`` where nobody is present."""
TRIES = 3
"""Unclear answers after which a request counts as denied."""
SHOWN_LINES = 40
"""Lines of a diff or command that a prompt shows."""

END_OF_INPUT = "\x04"
"""What jupyter_console sends for Ctrl-D, where a terminal's ``input()`` raises EOFError."""

Parsed = tuple[Literal["once", "always", "reject"], str | None]


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
            # VS Code sends an empty text for Escape: the second one denies. No prompt may repeat forever.
            self._unclear.append(line.strip())
            if self._unclear[-2:] == ["", ""] or len(self._unclear) >= TRIES:
                return "reject", None
        return parsed


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
            if isinstance(entry.request, PermissionRequest):
                self._dialogs[entry.id] = PermissionDialog(entry.request)
            else:
                from .question_dialog import QuestionDialog  # here: few calls ask questions at a prompt

                self._dialogs[entry.id] = QuestionDialog(entry.request)
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


def terminal_is_attended() -> bool:
    """Whether a person can type answers here: standard input is a terminal."""
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:
        return False
