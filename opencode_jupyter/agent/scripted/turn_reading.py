"""One turn of a script: what is said, when, and how it goes wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, cast

from ..errors import Kind
from ..events import FinishReason, Usage
from .checking import Checker
from .conditions import When
from .nodes import Mistakes, Node
from .parts import FINISHES, KINDS, Call, Cut, Failure, Part, Recorded, Say, Thought, Words, failure
from .seen import OUTCOMES
from .templates import OPEN, check, near

TURN = (
    "label",
    "when",
    "capture",
    "reasoning",
    "text",
    "calls",
    "parts",
    "usage",
    "finish",
    "error",
    "cut",
    "delay",
    "goto",
    "repeat",
    "results",
)
CALL = ("tool", "arguments", "id")
WHEN = ("result", "contains", "outcome", "tool", "call", "prompt", "number", "agent", "offered", "not", "any")
USAGE = ("input", "output", "reasoning", "cache_read", "cache_write", "total")
ERROR = ("kind", "message", "retry_after", "status", "times")
RESULT = ("tool", "output", "hash", "failed", "cut")


class TurnReader(Checker):
    """Reads turns; names and labels are gathered on the way and checked at the end.

    Attributes:
        names: variables that a template may name.
    """

    def __init__(self, mistakes: Mistakes) -> None:
        super().__init__(mistakes)
        self.names: set[str] = set()
        self._templates: list[tuple[str, str, int]] = []
        self._labels: list[dict[str, Any]] = []
        self._gotos: list[tuple[str, str]] = []

    # ------------------------------------------------------------------ blocks

    def begin_block(self) -> None:
        """The turns of another prompt or agent follow: labels begin anew."""
        self._gotos = []
        self._labels.append({})

    def end_block(self, labels: dict[str, int]) -> None:
        """They are over: where ``goto`` leads can be told."""
        for label, place in self._gotos:
            if label not in labels:
                self.at(place, f"goto: there is no label {label!r} among these turns{near(label, labels)}")

    def block_condition(self, inside: dict[str, Node]) -> When | None:
        """The condition of an entry of ``prompts:``."""
        when = When(
            prompt=self._caught(inside["match"], "match:") if "match" in inside else (),
            number=self.numbers(inside["number"], "number:") if "number" in inside else (),
            agent=self.texts(inside["agent"], "agent:") if "agent" in inside else (),
        )
        return None if when == When() else when

    def check_templates(self) -> None:
        """Check all that was gathered, now that every name is known."""
        for text, place, block in self._templates:
            for wrong in check(text, self.names, list(self._labels[block])):
                self.at(place, wrong)

    # ------------------------------------------------------------------ turns

    def noted(self, said: Say, place: str) -> Say:
        """A turn that was made in Python, its templates to be checked."""
        for part in said.parts:
            self._template(part.arguments if isinstance(part, Call) else part.text, place)
        return replace(said, place=place)

    def turn(self, node: Node, *, case: bool = False) -> Say:
        """One turn; a bare text is what it says."""
        if isinstance(node.value, str):
            self._template(node.value, node.place)
            return Say((Words(node.value),), place=node.place)
        known = [key for key in TURN if not (case and key == "repeat")]
        inside = self.mapping(node, known, "a case" if case else "a turn")
        error = self._error(inside["error"]) if "error" in inside else None
        cut = self._cut(inside["cut"]) if "cut" in inside else ""
        if cut and error is None:
            error = failure("cut")
        label = self.text(inside["label"], "label:") if "label" in inside else ""
        if label:
            self._label(label, inside["label"])
        goto = self.text(inside["goto"], "goto:") if "goto" in inside else ""
        if goto:
            self._gotos.append((goto, inside["goto"].place))
        finish = self.words(inside["finish"], FINISHES, "finish:") if "finish" in inside else ()
        delay = self.number(inside["delay"], "delay: is a number of seconds") if "delay" in inside else 0
        said = Say(
            self._parts(node, inside),
            self._usage(inside["usage"]) if "usage" in inside else None,
            cast("FinishReason", finish[0]) if finish else None,
            error,
            cut,
            delay or 0.0,
            label,
            self.when(inside["when"]) if "when" in inside else None,
            self._caught(inside["capture"], "capture:") if "capture" in inside else (),
            goto,
            tuple(self._result(one) for one in self.list_of(inside["results"], "results:"))
            if "results" in inside
            else None,
            node.place,
        )
        silent = not (said.parts or said.fails or said.goto or said.finish or said.results is not None)
        speaks = inside.keys() & {"text", "reasoning", "calls", "parts", "error", "usage"}
        if silent and not speaks and isinstance(node.value, dict) and node.value.keys() <= set(known):
            self.wrong(node, "the turn is empty; it needs text:, calls:, error: or goto:")
        return said

    def _cut(self, node: Node) -> Cut:
        if node.value == "end":
            return "end"
        if not isinstance(node.value, bool):
            self.wrong(node, "cut: is true (in the middle of the last part) or end (after its last piece)")
        return "half" if node.value is True else ""

    def _label(self, label: str, node: Node) -> None:
        if not re.fullmatch(r"[A-Za-z_][\w-]*", label):
            self.wrong(node, f"label: {label!r} must be a name (letters, digits, _ and -)")
        elif label in self._labels[-1]:
            self.wrong(node, f"label: {label!r} is there twice")
        self._labels[-1][label] = node

    def _parts(self, node: Node, inside: dict[str, Node]) -> tuple[Part, ...]:
        parts: list[Part] = []
        if "parts" in inside:
            for key in ("reasoning", "text", "calls"):
                if key in inside:
                    self.at(node.keys[key], f"{key}: and parts: can't both be there; parts: holds all in order")
            return tuple(self._part(one) for one in self.list_of(inside["parts"], "parts:"))
        if "reasoning" in inside:
            parts += [Thought(self._said(one)) for one in _each(inside["reasoning"])]
        if "text" in inside:
            parts += [Words(self._said(one)) for one in _each(inside["text"])]
        if "calls" in inside:
            parts += [self._call(one) for one in self.list_of(inside["calls"], "calls:")]
        return tuple(part for part in parts if isinstance(part, Call) or part.text)

    def _part(self, node: Node) -> Part:
        if isinstance(node.value, dict) and len(node.value) == 1:
            key, value = next(iter(node.value.items()))
            if key in ("text", "reasoning"):
                return Words(self._said(value)) if key == "text" else Thought(self._said(value))
        return self._call(node)

    def _said(self, node: Node) -> str:
        text = self.text(node, "what is said")
        self._template(text, node.place)
        return text

    def _call(self, node: Node) -> Call:
        value = node.value
        if isinstance(value, Call):
            self._template(value.arguments, node.place)
            return value
        if isinstance(value, str):
            self._tool_name(value, node)
            return Call(value)
        inside = self.named(node, "a call (`- read: {filePath: a.txt}`)")
        if "tool" in inside:
            inside = self.mapping(node, CALL, "a call")
            tool, arguments = self.text(inside["tool"], "tool:"), inside.get("arguments")
            id = self.text(inside["id"], "id:") if "id" in inside else ""
        elif len(inside) == 1:
            tool, arguments = next(iter(inside.items()))
            id = ""
        else:
            if inside:
                self.wrong(node, "a call has one name (`- read: {filePath: a.txt}`), or tool:, arguments: and id:")
            return Call("")
        self._tool_name(tool, node)
        given = {} if arguments is None or arguments.value is None else arguments.plain
        self._template(given, node.place if arguments is None else arguments.place)
        return Call(tool, given, id)

    def _tool_name(self, name: str, node: Node) -> None:
        """A name with white space, braces or a comma in it is a call that was written wrongly, not one of no tool."""
        if re.search(r"[\s{}:,]", name.strip()):
            self.wrong(node, f"{name!r} is no tool's name; a call is written `- read: {{filePath: a.txt}}`")

    def _template(self, value: Any, place: str) -> None:
        """Note the templates of a value, to be checked when all names are known."""
        if isinstance(value, str):
            if OPEN in value:
                self._templates.append((value, place, len(self._labels) - 1))
        elif isinstance(value, dict):
            for item in value.values():
                self._template(item, place)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self._template(item, place)

    # ------------------------------------------------------------------ beside what is said

    def when(self, node: Node) -> When:
        """A condition; a bare text is a regular expression for the last results."""
        if not isinstance(node.value, dict):
            return When(result=self._caught(node, "when:"))
        inside = self.mapping(node, WHEN, "when:")
        if not inside and not node.value:
            self.wrong(node, "when: is empty, so it would always hold")
        many = inside.get("any")
        never = inside.get("not")
        return When(
            result=self._caught(inside["result"], "result:") if "result" in inside else (),
            contains=self.texts(inside["contains"], "contains:") if "contains" in inside else (),
            outcome=self.words(inside["outcome"], OUTCOMES, "outcome:") if "outcome" in inside else (),
            tool=self.texts(inside["tool"], "tool:") if "tool" in inside else (),
            call=(*self.numbers(inside["call"], "call:"), 0)[0] if "call" in inside else None,
            prompt=self._caught(inside["prompt"], "prompt:") if "prompt" in inside else (),
            number=self.numbers(inside["number"], "number:") if "number" in inside else (),
            agent=self.texts(inside["agent"], "agent:") if "agent" in inside else (),
            offered=self.texts(inside["offered"], "offered:") if "offered" in inside else (),
            never=() if never is None else tuple(self.when(one) for one in _each(never)),
            any=() if many is None else tuple(self.when(one) for one in self.list_of(many, "any:")),
        )

    def _caught(self, node: Node, what: str) -> tuple[str, ...]:
        patterns = self.patterns(node, what)
        for pattern in patterns:
            self.names.update(re.compile(pattern).groupindex)
        return patterns

    def _usage(self, node: Node) -> Usage:
        inside = self.mapping(node, USAGE, "usage:")
        tokens = {key: int(self.number(value, f"{key}: is a number of tokens") or 0) for key, value in inside.items()}
        return Usage(**tokens)

    def _error(self, node: Node) -> Failure | None:
        if not isinstance(node.value, dict):
            kind = self.words(node, KINDS, "error:")
            return failure(cast("Kind", kind[0])) if kind else None
        inside = self.mapping(node, ERROR, "error:")
        kinds = self.words(inside["kind"], KINDS, "kind:") if "kind" in inside else ()
        if not kinds:
            if "kind" not in inside:
                self.wrong(node, f"error: needs kind:{near('', KINDS)}")
            return None
        more: dict[str, Any] = {}
        if "message" in inside:
            more["message"] = self.text(inside["message"], "message:")
        if "retry_after" in inside:
            more["retry_after"] = self.number(inside["retry_after"], "retry_after: is a number of seconds")
        for key in ("status", "times"):
            if key in inside:
                more[key] = int(self.number(inside[key], f"{key}: is a whole number") or 0)
        return failure(cast("Kind", kinds[0]), **more)

    def _result(self, node: Node) -> Recorded:
        inside = self.mapping(node, RESULT, "an entry of results:")
        if "tool" not in inside:
            if isinstance(node.value, dict):
                self.wrong(node, "an entry of results: needs tool:")
            return Recorded("")
        output = self.text(inside["output"], "output:") if "output" in inside else ""
        hash = self.text(inside["hash"], "hash:") if "hash" in inside else ""
        failed, cut = self.true_or_false(inside.get("failed")), self.true_or_false(inside.get("cut"))
        return Recorded(self.text(inside["tool"], "tool:"), output, hash, failed, cut)


def _each(node: Node) -> list[Node]:
    return node.value if isinstance(node.value, list) else [node]
