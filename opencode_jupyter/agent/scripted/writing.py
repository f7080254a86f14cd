"""Recordings as YAML text. What was written once is kept, so that a long one is not made anew at every turn."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import nodes

VERSION = 1
"""Of the form of recordings."""
KEPT = 6000
"""Characters of a result that a recording keeps; its hash is of the whole."""
HEAD = """\
# A recorded conversation. It is played again without a key by: %%agent -m scripted:THIS-FILE
# Secrets, the home folder and the user's name were taken out. Docs: scripted-models.md
"""


@dataclass(slots=True, eq=False)
class WrittenTurn:
    """A turn of a recording.

    Attributes:
        data: as under ``turns:``.
        answered: whether it left an answer in the conversation.
    """

    data: dict[str, Any]
    answered: bool = True
    _text: str = ""

    @property
    def text(self) -> str:
        """It as YAML, an entry of the list in a block."""
        if not self._text:
            self._text = textwrap.indent(dump([self.data]), "  ")
        return self._text

    def set_results(self, results: list[dict[str, Any]]) -> None:
        """Say what its calls gave."""
        if self.data.get("results") != results:
            self.data["results"], self._text = results, ""


@dataclass(slots=True, eq=False)
class WrittenBlock:
    """A prompt of a recording and the turns that answered it.

    Attributes:
        prompt: its text; None for turns that answer any.
        recorded: ``session``, ``number`` of the prompt in it, and ``start``: the beginning that the number counts from
            (a conversation that is summed up begins anew).
    """

    prompt: str | None
    recorded: dict[str, Any]
    turns: list[WrittenTurn] = field(default_factory=list)
    agent: str = ""
    number: int = 0

    @property
    def text(self) -> str:
        """It as YAML, an entry of a list."""
        head: dict[str, Any] = {} if self.prompt is None else {"prompt": self.prompt}
        if self.agent:
            head["agent"] = self.agent
        if self.number:
            head["number"] = self.number
        head["recorded"] = self.recorded
        if not self.turns:
            return dump([{**head, "turns": []}])
        return dump([head]) + "  turns:\n" + "".join(turn.text for turn in self.turns)

    def answered(self) -> list[WrittenTurn]:
        """The turns that left an answer in the conversation."""
        return [turn for turn in self.turns if turn.answered]

    def cut(self, keep: int) -> bool:
        """Drop all from the answer with this index on; whether there was any."""
        answered = self.answered()
        if keep >= len(answered):
            return False
        del self.turns[self.turns.index(answered[keep]) :]
        return True


def script_text(
    head: Mapping[str, Any], prompts: Sequence[WrittenBlock], agents: Mapping[str, Sequence[WrittenBlock]]
) -> str:
    """A whole script.

    Args:
        head: its other keys (``recording``, ``model``, ...).
        prompts: what stands under ``prompts:``.
        agents: the same for each agent under ``agents:``.
    """
    text = HEAD + dump(dict(head)) + _prompts(prompts)
    if agents:
        text += "agents:\n"
        for name, blocks in agents.items():
            text += textwrap.indent(f"{dump(name).splitlines()[0]}:\n{textwrap.indent(_prompts(blocks), '  ')}", "  ")
    return text


def _prompts(blocks: Sequence[WrittenBlock]) -> str:
    blocks = [block for block in blocks if block.turns]
    return "prompts:\n" + "".join(block.text for block in blocks) if blocks else "prompts: []\n"


def dump(value: Any) -> str:
    """A value as YAML that `nodes` reads as the same value."""
    import yaml

    text: str = yaml.dump(
        value, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=1_000_000, default_flow_style=False
    )
    return text


@functools.cache
def _dumper() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(base):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, data: str) -> Any:
        data = data.encode("utf-8", "replace").decode()
        style = "|" if "\n" in data else '"' if not isinstance(nodes.means(data), str) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, text)
    return Dumper
