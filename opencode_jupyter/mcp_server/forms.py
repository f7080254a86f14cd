"""Permission requests and questions as forms that a client shows, and the replies in what comes back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp import types

from ..core.permission import PermissionRequest, Reply
from ..core.permission.request import TRUST
from ..text.visible import visible

if TYPE_CHECKING:
    from ..core.question_request import Answers, Question, QuestionRequest

SHOWN_LINES = 60
"""Lines of a diff or a command that a form shows."""
SHOWN_WIDTH = 1000
"""Characters of such a line that it shows. Patterns are always shown whole."""
ANSWER, FEEDBACK = "answer", "feedback"
CUSTOM = "other"


def supports_forms(capabilities: types.ClientCapabilities | None) -> bool:
    """Return whether a client can show a form. One that names no mode is from before there were others."""
    if capabilities is None or capabilities.elicitation is None:
        return False
    return capabilities.elicitation.form is not None or capabilities.elicitation.url is None


def permission_form(request: PermissionRequest, tool: str) -> types.ElicitRequestFormParams:
    """A permission request of a tool's call as a form: what, up to `SHOWN_LINES` lines, and the three answers."""
    lines = [f"{visible(tool)} asks for permission: {request.permission}"]
    lines += [f"  {visible(pattern)}" for pattern in request.everything]
    for key in ("command", "diff", "content"):
        text = request.metadata.get(key)
        if isinstance(text, str) and text and text not in request.patterns:
            lines += _shorten(text)
        elif isinstance(text, list) and text and all(isinstance(argument, str) for argument in text):
            lines += _shorten(" ".join(text))
    if request.rule is not None:
        origin = f" from {request.rule.origin}" if request.rule.origin else ""
        lines.append(f"(rule {request.rule.permission} {request.rule.pattern}: {request.rule.action}{origin})")
    answers = {"once": "Allow once"}
    if request.always:
        answers["always"] = f"Allow while this server runs: {', '.join(visible(p) for p in request.always)}"
    answers["reject"] = "Deny"
    properties: dict[str, Any] = {
        ANSWER: {
            "type": "string",
            "title": "Answer",
            "enum": list(answers),
            "enumNames": list(answers.values()),
        },
        FEEDBACK: {
            "type": "string",
            "title": "Reason (sent to the model)",
            "description": "Only with Deny: why not, or what to do instead",
        },
    }
    schema = {"type": "object", "properties": properties, "required": [ANSWER]}
    return types.ElicitRequestFormParams(message="\n".join(lines), requested_schema=schema)


def read_reply(result: types.ElicitResult, request: PermissionRequest) -> Reply:
    """The reply in a form that came back. Whatever is not plainly a yes is a no."""
    if result.action != "accept":
        return "reject"
    content = result.content or {}
    answer = content.get(ANSWER)
    if answer == "once":
        return "once"
    if answer == "always" and request.always:
        return "always"
    feedback = content.get(FEEDBACK)
    reason = feedback.strip() if isinstance(feedback, str) else ""
    return ("reject", reason) if reason else "reject"


def refusal_text(request: PermissionRequest, obstacle: str) -> str:
    """The error of a request that no person could be asked about, with the rule that would allow it.

    Args:
        request: the request.
        obstacle: why nobody could be asked, a clause.
    """
    patterns = ", ".join(visible(pattern) for pattern in request.everything)
    reason = f"{request.permission} of {patterns} needs permission, and {obstacle}. "
    if request.permission == TRUST:
        return reason + "Trust it where a person can be asked: call the tool in a notebook of this project."
    # "*" would allow more than was requested; bash's "git status *" is what a person would write.
    allowed = [p for p in request.always if p != "*"] or request.everything
    rules = ", ".join(f'{json.dumps(p, ensure_ascii=False)}: "allow"' for p in allowed)
    allow = " ".join(f"--allow {json.dumps(f'{request.permission}:{p}', ensure_ascii=False)}" for p in allowed)
    return (
        f"{reason}To allow it, a person can put "
        f'{{"permission": {{"{request.permission}": {{{rules}}}}}}} into opencode.json '
        f"(a project's counts once a person trusts the project), or start this server with {allow}."
    )


def question_form(request: QuestionRequest) -> types.ElicitRequestFormParams:
    """Questions as one form: for each a choice and a free text; a tick for each answer where several may be chosen."""
    properties: dict[str, Any] = {}
    lines: list[str] = []
    for i, question in enumerate(request.questions, 1):
        lines.append(visible(question.question))
        lines += [f"  {visible(o.label)}: {visible(o.description)}" for o in question.options if o.description]
        title = visible(question.header or question.question)
        labels = [option.label for option in question.options]
        if question.multiple:
            for n, label in enumerate(labels, 1):
                properties[f"q{i}_{n}"] = {"type": "boolean", "title": f"{title}: {visible(label)}", "default": False}
        elif labels:
            properties[f"q{i}"] = {"type": "string", "title": title, "enum": list(dict.fromkeys(labels))}
        if question.custom:
            other = "in your own words" if labels else visible(question.question)
            properties[f"q{i}_{CUSTOM}"] = {"type": "string", "title": f"{title}: {other}"}
    schema = {"type": "object", "properties": properties}
    return types.ElicitRequestFormParams(message="\n".join(lines), requested_schema=schema)


def read_answers(result: types.ElicitResult, request: QuestionRequest) -> Answers | None:
    """The answers in a form that came back; None if the person dismissed it."""
    if result.action != "accept":
        return None
    content = result.content or {}
    return [_answer(i, question, content) for i, question in enumerate(request.questions, 1)]


def _answer(i: int, question: Question, content: dict[str, Any]) -> list[str]:
    labels = [option.label for option in question.options]
    if question.multiple:
        answers = [label for n, label in enumerate(labels, 1) if content.get(f"q{i}_{n}") is True]
    else:
        label = content.get(f"q{i}")
        answers = [label] if isinstance(label, str) and label in labels else []
    custom = content.get(f"q{i}_{CUSTOM}")
    if question.custom and isinstance(custom, str) and custom.strip():
        answers = [*answers, custom.strip()] if question.multiple else [custom.strip()]
    return answers


def _shorten(text: str) -> list[str]:
    lines = text.splitlines()
    lines_shown = [
        visible(line[:SHOWN_WIDTH])
        + (f" … {len(line) - SHOWN_WIDTH} more characters" if len(line) > SHOWN_WIDTH else "")
        for line in lines[:SHOWN_LINES]
    ]
    return [*lines_shown, f"… {len(lines) - SHOWN_LINES} more lines"] if len(lines) > SHOWN_LINES else lines_shown
