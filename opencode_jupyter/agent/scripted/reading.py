"""A script's values to a `Script`: every key and value is checked before anything is said."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..structured import NAME as STRUCTURED
from . import nodes
from .checking import Checker
from .nodes import Mistakes, Node
from .parts import Call, Say, as_say
from .script import Block, Body, Cases, Item, Script, labels_of
from .turn_reading import TurnReader

TOP = ("about", "model", "speed", "strict", "variables", "turns", "prompts", "agents", "recording")
BLOCK = ("prompt", "match", "number", "agent", "turns", "recorded")
MODEL = ("name", "context", "output", "images", "documents", "reasons", "cost")
COST = ("input", "output", "cache_read", "cache_write")
MOST_REPEATED = 10_000
"""Turns that repeating may make of a script."""


def script_of_file(path: Path) -> Script:
    """The script in a YAML or JSON file.

    Raises:
        ModelError: kind ``script``: it can't be read, or has mistakes; each is named with line and column.
    """
    return script_of_node(nodes.read(path), path.name, path)


def script_of_text(text: str, name: str = "script") -> Script:
    """The script in a YAML text; see `script_of_file`."""
    return script_of_node(nodes.parse(text, name), name)


def script_of_node(root: Node, name: str, path: Path | None = None) -> Script:
    """The script that values make; see `script_of_file`."""
    mistakes = Mistakes(name)
    script = _ScriptReader(mistakes).script(root, name, path)
    mistakes.raise_any()
    return script


class _ScriptReader(Checker):
    def __init__(self, mistakes: Mistakes) -> None:
        super().__init__(mistakes)
        self._turns = TurnReader(mistakes)

    def script(self, root: Node, name: str, path: Path | None) -> Script:
        if isinstance(root.value, list):
            root = Node({"turns": root}, root.place, {"turns": root.place})
        top = self.mapping(root, TOP, "a script")
        agents = {}
        variables = self.free(top.get("variables"))
        for key in variables:
            self._turns.names.add(key)
        recording = self.free(top["recording"]) if "recording" in top else None
        recorded = recording is not None
        if "turns" not in top and "prompts" not in top and not recorded:
            self.wrong(root, "a script needs turns: (for any prompt) or prompts: (turns for each)")
        main = self._body(root, top, recorded)
        if "agents" in top:
            for key, node in self.named(top["agents"], "agents:").items():
                agents[key] = self._agent(node, recorded)
        self._turns.check_templates()
        strict = self.true_or_false(top.get("strict"))
        speed = (
            self.number(top["speed"], "speed: is milliseconds between two pieces, 0 or more")
            if "speed" in top
            else None
        )
        model = self._model(top["model"]) if "model" in top else {}
        spawned = frozenset(_spawned(main)) - set(agents)
        return Script(name, main, agents, model, speed, strict, variables, spawned, recording, path)

    def _agent(self, node: Node, recorded: bool) -> Body:
        if isinstance(node.value, list):
            node = Node({"turns": node}, node.place, {"turns": node.place})
        inside = self.mapping(node, ("turns", "prompts"), "an agent")
        if not inside and isinstance(node.value, dict):
            self.wrong(node, "an agent needs turns: or prompts:")
        return self._body(node, inside, recorded)

    def _body(self, node: Node, inside: dict[str, Node], recorded: bool) -> Body:
        if "turns" in inside and "prompts" in inside:
            self.at(
                node.keys["prompts"],
                "turns: and prompts: can't both be there; put the turns under an entry of prompts:",
            )
        if "prompts" not in inside:
            blocks = (self._block(inside["turns"], {}, recorded),) if "turns" in inside else ()
            return Body(blocks, flat=True, recorded=recorded)
        listed = self.list_of(inside["prompts"], "prompts:")
        return Body(tuple(self._prompt(entry, recorded) for entry in listed), recorded=recorded)

    def _prompt(self, entry: Node, recorded: bool) -> Block:
        inside = self.mapping(entry, BLOCK, "an entry of prompts:")
        if "turns" not in inside:
            if isinstance(entry.value, dict):
                self.wrong(entry, "an entry of prompts: needs turns:")
            return Block((), place=entry.place)
        prompt = self.text(inside["prompt"], "prompt:") if "prompt" in inside else None
        when = self._turns.block_condition(inside)
        info = self.free(inside.get("recorded"))
        more = {"prompt": prompt, "when": when, "info": info, "place": entry.place}
        return self._block(inside["turns"], more, recorded)

    def _block(self, turns: Node, more: dict[str, Any], recorded: bool) -> Block:
        self._turns.begin_block()
        items = self._items(turns)
        labels = labels_of(items)
        self._turns.end_block(labels)
        if not recorded:  # what was recorded was reached, as when a run was stopped and gone on with
            self._reachable(items)
        return Block(tuple(items), labels=labels, **{"place": turns.place, **more})

    def _items(self, turns: Node) -> list[Item]:
        items: list[Item] = []
        for node in self.list_of(turns, "turns:"):
            inner: list[Item]
            times = 1
            if isinstance(node.value, dict) and "repeat" in node.value:
                times = self._times(node.value["repeat"])
            if isinstance(node.value, dict) and "turns" in node.value:
                inside = self.mapping(node, ("repeat", "turns"), "a group of turns")
                if "repeat" not in inside:
                    self.wrong(node, "turns: within turns: needs repeat: (how many times)")
                inner = self._items(inside["turns"])
            else:
                inner = [self._item(node)]
            if times * max(1, len(inner)) + len(items) > MOST_REPEATED:
                self.wrong(node, f"repeat: makes more than {MOST_REPEATED:,} turns")
                times = 1
            items += inner if times == 1 else [_again(item, round) for round in range(1, times + 1) for item in inner]
        if not items and isinstance(turns.value, list) and not turns.value:
            self.wrong(turns, "turns: is empty")
        return items

    def _times(self, node: Node) -> int:
        if isinstance(node.value, int) and not isinstance(node.value, bool) and node.value >= 1:
            return node.value
        self.wrong(node, f"repeat: is a whole number above 0, not {node.kind}")
        return 1

    def _item(self, node: Node) -> Item:
        if isinstance(node.value, (Say, Call)):  # given in Python
            return self._turns.noted(as_say(node.value), node.place)
        if isinstance(node.value, dict) and "cases" in node.value:
            inside = self.mapping(node, ("cases", "repeat"), "a turn with cases:")
            cases = tuple(self._turns.turn(one, case=True) for one in self.list_of(inside["cases"], "cases:"))
            for index, one in enumerate(cases[:-1]):
                if one.when is None:
                    self.at(
                        cases[index + 1].place, "can't be reached: the case before it has no when:, so it always fits"
                    )
                    break
            return Cases(cases, node.place)
        return self._turns.turn(node)

    def _reachable(self, items: list[Item]) -> None:
        # An answer that has to have a form is asked for again, until it is given by this call.
        asked_again = any(call.tool == STRUCTURED for item in items for said in _said(item) for call in said.calls)
        for one, after in pairwise(items):
            if not isinstance(one, Say) or one.when is not None or one.goto or one.fails:
                continue
            if one.parts and not one.calls and not _labelled(after) and not asked_again:
                self.at(
                    after.place,
                    f"can't be reached: the turn before it ({one.place}) makes no calls, so the answer ends there. "
                    "For several prompts, write prompts: with turns: for each",
                )
                return

    def _model(self, node: Node) -> dict[str, Any]:
        inside = self.mapping(node, MODEL, "model:")
        made: dict[str, Any] = {}
        for key, value in inside.items():
            if key == "name":
                made[key] = self.text(value, "name:")
            elif key in ("images", "documents", "reasons"):
                made[key] = self.true_or_false(value)
            elif key == "cost":
                prices = self.mapping(value, COST, "cost:")
                made[key] = {
                    name: self.number(price, f"{name}: is dollars for a million tokens")
                    for name, price in prices.items()
                }
            else:
                made[key] = int(self.number(value, f"{key}: is a number of tokens") or 0)
        return made


def _again(item: Item, round: int) -> Item:
    if isinstance(item, Say):
        return replace(item, round=round)
    return Cases(tuple(replace(one, round=round) for one in item.of), item.place)


def _said(item: Item) -> tuple[Say, ...]:
    return (item,) if isinstance(item, Say) else item.of


def _labelled(item: Item) -> bool:
    return any(one.label for one in _said(item))


def _spawned(body: Body) -> Collection[str]:
    """Agents that calls of ``task`` name."""
    found = set()
    for block in body.blocks:
        for item in block.items:
            for said in _said(item):
                for call in said.calls:
                    if call.tool == "task" and isinstance(call.arguments, dict):
                        found.add(str(call.arguments.get("subagent_type") or ""))
    return found - {""}
