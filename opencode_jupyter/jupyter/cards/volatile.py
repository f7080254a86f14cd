"""What differs each time the same cell runs: ids and times. It goes into an output's metadata.

The same results then give the same saved output, byte for byte, and a notebook that is run again shows no changes.
``labextension/src/card/savedBundle.ts`` puts both halves together.
"""

from __future__ import annotations

import re
from typing import Any

from ...core.ids import PREFIXES

METADATA_KEY = "opencode"
"""Where an output's metadata has what was taken out of its data."""
PART_IDS = ("id", "callID", "sessionID", "messageID")
RUN_VALUES = ("id", "sessionID", "started", "ended", "waited")
FIRST_RUN = ("exists",)
"""Metadata that the first run of a cell changes for the next: whether the file to write was there."""
TIME_COLUMNS = ("mtime",)
"""Columns of a result's table that change whenever the files are written anew."""

_PREFIXES = "|".join(prefix for prefix in PREFIXES.values() if prefix != "tool")  # a file that a person may look for
_ID = re.compile(rf"\b({_PREFIXES})_[0-9a-f]{{12}}[0-9A-Za-z]{{14}}\b")

Half = dict[str, Any]


def split_part(part: Half) -> tuple[Half, Half]:
    """A call's saved JSON without what is volatile, and that: a tree of the same shape, and ``aliases``."""
    stable, volatile = _split_part(part)
    return _with_aliases(stable, volatile)


def split_run(run: Half) -> tuple[Half, Half]:
    """The same for a saved run. Its items are numbered in place of their ids."""
    volatile = {name: run[name] for name in RUN_VALUES if name in run}
    stable = {name: value for name, value in run.items() if name not in RUN_VALUES}
    numbers = {item["id"]: str(number) for number, item in enumerate(run["items"])}
    items, rest = [], []
    for item in run["items"]:
        ids = {name: item[name] for name in ("id", "parent") if name in item}
        kept = {**item, **{name: numbers.get(id, "") for name, id in ids.items()}}
        if "part" in item:
            kept["part"], ids["part"] = _split_part(item["part"])
        items.append(kept)
        rest.append(ids)
    return _with_aliases({**stable, "items": items}, {**volatile, "items": rest})


def _split_part(part: Half) -> tuple[Half, Half]:
    volatile: Half = {name: part[name] for name in PART_IDS if name in part}
    stable = {name: value for name, value in part.items() if name not in PART_IDS}
    state, ui = dict(part["state"]), dict(part["ui"])
    if "time" in state:
        volatile["state"] = {"time": state.pop("time")}
    metadata, first_run = _without(state.get("metadata") or {}, FIRST_RUN)
    if first_run:
        state["metadata"] = metadata
        volatile.setdefault("state", {})["metadata"] = first_run
    if state.get("attachments"):
        pairs = [_without(attachment, PART_IDS) for attachment in state["attachments"]]
        state["attachments"] = [kept for kept, _ in pairs]
    rest: Half = {}
    if "waited" in ui:
        rest["waited"] = ui.pop("waited")
    table = ui.get("table")
    if table and table["columns"] and table["columns"][-1] in TIME_COLUMNS:
        ui["table"] = {**table, "columns": table["columns"][:-1], "rows": [row[:-1] for row in table["rows"]]}
        rest["table"] = {name: table[name] for name in ("columns", "rows")}
    if ui.get("children"):
        pairs = [_split_part(child) for child in ui["children"]]
        ui["children"], rest["children"] = [kept for kept, _ in pairs], [taken for _, taken in pairs]
    if rest:
        volatile["ui"] = rest
    return {**stable, "state": state, "ui": ui}, volatile


def _without(value: Half, names: tuple[str, ...]) -> tuple[Half, Half]:
    kept = {name: item for name, item in value.items() if name not in names}
    return kept, {name: value[name] for name in names if name in value}


def _with_aliases(stable: Half, volatile: Half) -> tuple[Half, Half]:
    """Put a number in place of every id of ours in a text: ``ses_…1``."""
    aliases: dict[str, str] = {}

    def alias(match: re.Match[str]) -> str:
        return aliases.setdefault(match[0], f"{match[1]}_…{len(aliases) + 1}")

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return _ID.sub(alias, value) if "_" in value else value
        if isinstance(value, dict):
            return {_ID.sub(alias, name): walk(item) for name, item in value.items()}
        return [walk(item) for item in value] if isinstance(value, list) else value

    stable = walk(stable)
    if aliases:
        volatile = {**volatile, "aliases": {short: id for id, short in aliases.items()}}
    return stable, volatile
