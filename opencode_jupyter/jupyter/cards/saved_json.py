"""A card's JSON as a notebook keeps it: bounded, without pending requests, the same for the same result.

What differs each time the same cell runs (ids and times) goes into the output's metadata, so a notebook that is run
again shows no changes. ``labextension/src/card/savedBundle.ts`` puts both halves together.
"""

from __future__ import annotations

import math
import re
from itertools import islice
from typing import Any

from ...core.ids import PREFIXES
from ...text.visible import escape

CARD_MIME = "application/vnd.opencode.toolpart.v1+json"
"""MIME type of the saved part; the version in it is the part's ``v``."""
RUN_MIME = "application/vnd.opencode.run.v1+json"
"""MIME type of a saved run; the version in it is the run's ``v``."""
OUTPUT_CHARS = 64_000
"""Characters of an output that are saved: a little more than the 50 KiB a model sees (docs/opencode/core.md 3)."""
NESTED_CHARS = 16_000
"""The same of a call inside another; a batch may hold 25."""
INPUT_CHARS = 50_000
"""Most characters kept of one text in the arguments."""
METADATA_CHARS = 2_000
"""Most characters kept of one text in a tool's own metadata."""
DIFF_CHARS = 100_000
PICTURE_CHARS = 4_000_000
"""A picture's ``data:`` URL above this (3 MB) is left out of the saved card."""
DEPTH = 12
"""Levels of nesting that are kept of JSON; what is deeper becomes its text."""
ENTRIES = 1_000
"""Most entries of one list or object that are kept."""
CHILDREN = 100
"""Most nested calls that are kept."""
_LONE = re.compile("[\ud800-\udfff]")
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+")
METADATA_KEY = "opencode"
"""Where an output's metadata has what was taken out of its data."""
PART_IDS = ("id", "callID", "sessionID", "messageID")
RUN_VALUES = ("id", "sessionID", "started", "ended", "waited")
FIRST_RUN = ("exists",)
"""Metadata that the first run of a cell changes for the next: whether the file to write was there."""
TIME_COLUMNS = ("mtime",)
"""Columns of a result's table that change whenever the files are written."""

_PREFIXES = "|".join(prefix for prefix in PREFIXES.values() if prefix != "tool")  # a file that a person may look for
_ID = re.compile(rf"\b({_PREFIXES})_[0-9a-f]{{12}}[0-9A-Za-z]{{14}}\b")

Half = dict[str, Any]


def is_picture(url: object) -> bool:
    """Whether `url` is an inline picture of a kind that can't carry code."""
    return isinstance(url, str) and len(url) <= PICTURE_CHARS and _PICTURE.fullmatch(url) is not None


def saved_part(part: dict[str, Any], most: int = OUTPUT_CHARS) -> dict[str, Any]:
    """`part` as a notebook keeps it: bounded JSON that any reader takes, without pending requests.

    Args:
        part: a card's JSON.
        most: characters kept of its output.
    """
    state, ui = dict(part["state"]), dict(part["ui"])
    ui.pop("ask", None)
    ui.pop("question", None)
    children = ui.pop("children", None)
    attachments = state.pop("attachments", None)
    saved: dict[str, Any] = {key: value for key, value in part.items() if key not in {"state", "ui"}}
    saved = plain_json(saved, METADATA_CHARS)
    saved["state"] = _texts(state, {"output": most, "error": most, "raw": INPUT_CHARS})
    saved["state"]["input"] = plain_json(state.get("input") or {}, INPUT_CHARS)
    if attachments:
        saved["state"]["attachments"] = [_attachment(a) for a in attachments[:CHILDREN]]
    saved["ui"] = _texts(
        ui,
        {
            "diff": DIFF_CHARS,
            "diffs": DIFF_CHARS,
            "tail": most,
            "answered": INPUT_CHARS,
            "printed": most,
            "sent": most,
        },
    )
    if children:
        saved["ui"]["children"] = [saved_part(child, NESTED_CHARS) for child in children[:CHILDREN]]
    return saved


def _texts(fields: dict[str, Any], caps: dict[str, int]) -> dict[str, Any]:
    """The values of `given` as plain JSON, its long texts cut to `caps`."""
    return {key: plain_json(value, caps.get(key, METADATA_CHARS)) for key, value in fields.items()}


def _attachment(attachment: dict[str, Any]) -> dict[str, Any]:
    url = str(attachment.get("url", ""))
    saved = plain_json({key: value for key, value in attachment.items() if key != "url"}, METADATA_CHARS)
    # a file that is no picture is only named
    return {**saved, "url": _LONE.sub(escape, url) if is_picture(url) or len(url) <= METADATA_CHARS else ""}


def cut(text: str, most: int) -> str:
    """The first `most` characters of `text`, and how many more there were."""
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most:,} more characters"


def plain_json(value: Any, most: int, depth: int = DEPTH, entries: int = ENTRIES) -> Any:
    """`value` as JSON that every reader takes: no NaN, no lone surrogates.

    Args:
        value: anything; what is no JSON becomes its ``repr``.
        most: characters kept of each text.
        depth: levels kept; what is deeper becomes its ``repr``.
        entries: entries kept of each list and object.
    """
    if isinstance(value, str):
        if len(value) <= most and value.isascii():
            return value
        return _LONE.sub(escape, cut(value, most))
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth and isinstance(value, dict):
        deeper, mapping = depth - 1, {}
        for key, item in islice(value.items(), entries):
            name = key if isinstance(key, str) and key.isascii() else _LONE.sub(escape, str(key))
            mapping[name] = plain_json(item, most, deeper, entries)
        return mapping if len(value) <= entries else {**mapping, "…": f"{len(value) - entries:,} more"}
    if depth and isinstance(value, (list, tuple)):
        items = [plain_json(item, most, depth - 1, entries) for item in value[:entries]]
        return items if len(value) <= entries else [*items, f"… {len(value) - entries:,} more"]
    try:
        text = repr(value)
    except RecursionError:
        text = "… (nested too deeply)"
    return _LONE.sub(escape, cut(text, METADATA_CHARS))


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
        stable_item = {**item, **{name: numbers.get(id, "") for name, id in ids.items()}}
        if "part" in item:
            stable_item["part"], ids["part"] = _split_part(item["part"])
        items.append(stable_item)
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
        state["attachments"] = [stable_part for stable_part, _ in pairs]
    rest: Half = {}
    if "waited" in ui:
        rest["waited"] = ui.pop("waited")
    table = ui.get("table")
    if table and table["columns"] and table["columns"][-1] in TIME_COLUMNS:
        ui["table"] = {**table, "columns": table["columns"][:-1], "rows": [row[:-1] for row in table["rows"]]}
        rest["table"] = {name: table[name] for name in ("columns", "rows")}
    if ui.get("children"):
        pairs = [_split_part(child) for child in ui["children"]]
        ui["children"], rest["children"] = map(list, zip(*pairs, strict=True))
    if rest:
        volatile["ui"] = rest
    return {**stable, "state": state, "ui": ui}, volatile


def _without(value: Half, names: tuple[str, ...]) -> tuple[Half, Half]:
    rest = {name: item for name, item in value.items() if name not in names}
    return rest, {name: value[name] for name in names if name in value}


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
