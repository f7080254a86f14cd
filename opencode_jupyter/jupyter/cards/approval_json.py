"""The pending request of a call as its card's JSON: a permission request or questions."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.permission import PermissionRequest
from ...core.permission.request import TRUST
from .bodies_json import file_diffs
from .labels import card_of

if TYPE_CHECKING:
    from ...core.question_request import QuestionRequest

TEXT_CHARS = 200_000
"""Most characters of a command or a diff that a permission request shows."""


QUESTIONS = {
    "external_directory": "Access files outside the project?",
    "trust": "Trust this project's code until it changes?",
    "sandbox": "Allow what the sandbox blocked?",
    "doom_loop": "Run the same call again?",
}
"""By permission: the question of an approval where no tool of that id has one (`CardSpec.question`)."""


class RequestView(NamedTuple):
    """One pending request as the card shows it."""

    request: PermissionRequest | QuestionRequest
    digest: str
    position: tuple[int, int] = (1, 1)

    def to_json(self) -> dict[str, dict[str, Any]]:
        """The card's field for it: ``ask`` or ``question``."""
        request = self.request
        if not isinstance(request, PermissionRequest):
            return {"question": self._questions(request)}
        return {"ask": self._ask(request)}

    def _questions(self, request: QuestionRequest) -> dict[str, Any]:
        return {
            "id": request.id,
            "digest": self.digest,
            "questions": [question.to_wire() for question in request.questions],
            "asked": request.asked,
            "position": list(self.position),
        }

    def _ask(self, request: PermissionRequest) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "id": request.id,
            "digest": self.digest,
            "permission": request.permission,
            "question": approval_question(request.permission),
            "patterns": list(request.patterns),
            "always": list(request.always),
            "asked": request.asked,
            "position": list(self.position),
        }
        metadata = request.metadata
        for key, name in (("command", "command"), ("diff", "diff"), ("filepath", "path")):
            if isinstance(metadata.get(key), str):
                fields[name] = metadata[key][:TEXT_CHARS]
        if request.permission == TRUST:
            fields["command"] = trusted_code(request)[:TEXT_CHARS]
            fields.pop("path", None)
        diffs = file_diffs(metadata.get("files"))
        if diffs:
            fields["diffs"] = diffs
            fields.pop("diff", None)  # the same once more
        if len(request.patterns) == 1 and str(fields.get("path", "")).endswith("/" + request.patterns[0]):
            fields["path"] = request.patterns[0]  # a file of the project reads best as the rules name it
        if request.rule is not None and request.permission != TRUST:  # which no rule decides
            fields["rule"] = request.rule.to_json()
        if len(request.rules) > 1:
            fields["rules"] = [rule.to_json() for rule in request.rules]
        return fields


def approval_question(permission: str) -> str:
    """The question of a permission's approval; empty if only its name is known."""
    return card_of(permission).question or QUESTIONS.get(permission, "")


def trusted_code(request: PermissionRequest) -> str:
    """The code to trust, as text: the tools that it gives, then the command and the code in full."""
    metadata = request.metadata
    ids, command, content = (metadata.get(name) for name in ("ids", "command", "content"))
    gives = f", gives {', '.join(map(str, ids))}" if isinstance(ids, (list, tuple)) and ids else ""
    lines = [f"{metadata.get('kind') or 'code'}{gives}"]
    if command:
        lines.append(command if isinstance(command, str) else " ".join(map(str, command)))
    if isinstance(content, str) and content:
        lines += ["", content]
    return "\n".join(lines)


def digest_of(request: PermissionRequest | QuestionRequest) -> str:
    """A digest of what a person sees, so that a reply can't be meant for something else."""
    if not isinstance(request, PermissionRequest):
        content: list[Any] = [question.to_wire() for question in request.questions]
    else:
        content = [request.permission, list(request.patterns), list(request.always), request.metadata]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]
