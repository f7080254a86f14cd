"""Blocks of a call's card beside its output: answers, tasks, diffs, tables, names of files.

Each is a field of ``ui`` that ``labextension/src/card/types.ts`` describes.
"""

from __future__ import annotations

import os
import re
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.call_state import Completed, ToolPart
from ...core.repair import INVALID
from ...core.result import PRINTED, TABLES
from ..tables import cell
from .labels import card_of

if TYPE_CHECKING:
    from ...core.question_request import Answered

ROWS = 100
"""Most rows of a table; the whole is in ``result.records``."""
COLUMNS = 8
TASKS = 200
FILES = 50
"""Most files whose changes, or names, are shown."""
DIFF_CHARS = 200_000
"""Most characters of all diffs of one call."""
VALUES = 20
"""Most tables of one result."""

_TRUNCATED = re.compile(r"\.\.\.\d+ (?:lines|bytes) truncated\.\.\.")

_STATUSES = ("pending", "in_progress", "completed", "cancelled")
_PATHS = ("path", "file", "filePath", "uri")
_TIMES = ("mtime", "time", "modified")
_SKILL_FILE = re.compile(r"<file>(.*?)</file>")


def bodies_of(part: ToolPart, metadata: dict[str, Any], base: Path | None) -> dict[str, Any]:
    """The fields of ``ui`` for a part. What is shown from `metadata` in another form is taken out of it.

    Args:
        part: the call.
        metadata: a copy of the tool's own data.
        base: paths below it are shown relative to it.
    """
    body = card_of(part.tool).body
    diffs = file_diffs(metadata.get("files"))
    if diffs:
        del metadata["files"]
    tables, printed = metadata.pop(TABLES, None), metadata.pop(PRINTED, None)
    fields: dict[str, Any] = {
        "answered": [answered_json(answered) for answered in part.answered] or None,
        "tasks": task_list(part, metadata) if body == "tasks" else None,
        "diffs": diffs or None,
    }
    if isinstance(part.state, Completed):
        if body == "cells":
            fields["cells"] = notebook_cells(part.state, metadata)
        tables = value_tables(tables)
        fields |= _tables_of(part, metadata, tables, base)
        fields["printed"] = _readable_output(part.tool, part.state, printed, tables)
        if body == "skill" and (files := skill_files(part.state.output, metadata)):
            fields |= {"files": files, "base": metadata["dir"]}
    if base is not None and (diffs or fields.get("table")):
        fields["base"] = str(base)
    return {name: value for name, value in fields.items() if value is not None}


def _tables_of(
    part: ToolPart, metadata: dict[str, Any], tables: list[dict[str, Any]], base: Path | None
) -> dict[str, Any]:
    """The tables of the returned value, or else the rows of the result."""
    if tables:
        return {"tables": tables}
    table = table_of(part, base)
    if table is None:
        return {}
    metadata.pop("result", None)  # lsp's, which the table shows
    return {"table": table}


def _readable_output(tool: str, state: Completed, printed: Any, tables: list[Any]) -> str | None:
    """The text that a person reads in place of the model's output; None if it is the same."""
    if (text := card_of(tool).text) is not None:
        return text(state)
    return printed if isinstance(printed, str) and (tables or state.attachments or tool == INVALID) else None


def answered_json(answered: Answered) -> dict[str, Any]:
    """Questions with their answers; without answers if they were dismissed."""
    asked = [{"question": q.question, "header": q.header} for q in answered.questions]
    fields: dict[str, Any] = {"questions": asked, "by": answered.by}
    if answered.answers is not None:
        fields["answers"] = answered.answers
    return fields


def task_list(part: ToolPart, metadata: dict[str, Any]) -> list[dict[str, str]] | None:
    """The tasks of todowrite or todoread: as stored, or before that those of the arguments."""
    todos = metadata.get("todos")
    if todos is None and isinstance(part.state.input, dict):
        todos = part.state.input.get("todos")
    if not isinstance(todos, list):
        return None
    tasks = []
    for task in todos[:TASKS]:
        if isinstance(task, dict):
            status = str(task.get("status") or "")
            tasks.append(
                {
                    "content": cell(task.get("content"), 1000),
                    "status": status if status in _STATUSES else "pending",
                    "priority": cell(task.get("priority"), 20),
                }
            )
    return tasks


def notebook_cells(state: Completed, metadata: dict[str, Any]) -> dict[str, Any] | None:
    """The cells of a notebook as lines of the output, those that a cut output lacks left out; None if it has none."""
    layout = metadata.pop("layout", None)
    if not isinstance(layout, list) or not layout:
        return None
    lines = state.output.split("\n")
    end = len(lines)
    if metadata.get("truncated"):
        end = next((i - 1 for i in range(end - 1, 0, -1) if _TRUNCATED.fullmatch(lines[i])), end)
    cells = []
    for cell_layout in layout:
        if not isinstance(cell_layout, dict) or cell_layout["line"] >= end:
            break
        source = min(cell_layout["source"], end - cell_layout["line"])
        output = max(0, min(cell_layout["output"], end - cell_layout["line"] - source - 1))
        cells.append({**cell_layout, "source": source, "output": output})
    total, language = metadata.pop("total", len(cells)), metadata.pop("language", "")
    for name in ("preview", "cells", "more", "open"):
        metadata.pop(name, None)
    notes = [str(note) for note in metadata.pop("notes", None) or ()]
    return {"cells": cells, "total": total, "language": language, "notes": notes}


def file_diffs(files: Any) -> list[dict[str, Any]]:
    """The changes of several files, as apply_patch gives them (docs/opencode/tools.md 9.6)."""
    if not isinstance(files, list):
        return []
    diffs: list[dict[str, Any]] = []
    room = DIFF_CHARS
    for file in files[:FILES]:
        if not isinstance(file, dict):
            continue
        diff = file.get("diff", file.get("patch"))
        if not isinstance(diff, str):
            continue
        entry: dict[str, Any] = {
            "path": str(file.get("relativePath") or file.get("filePath") or ""),
            "type": str(file.get("type") or "update"),
            "diff": diff[:room],
        }
        if file.get("movePath") and file.get("filePath"):
            entry["from"] = _moved_from(str(file["filePath"]), str(file["movePath"]), entry["path"])
        for name in ("additions", "deletions"):
            if isinstance(file.get(name), int):
                entry[name] = file[name]
        room = max(0, room - len(diff))
        diffs.append(entry)
    return diffs


def _moved_from(source: str, target: str, target_name: str) -> str:
    """A moved file's earlier path, relative to the same folder as its new path `shown`."""
    root = target.removesuffix(target_name)
    if root == target or not source.startswith(root):
        return source if os.path.dirname(source) != os.path.dirname(target) else os.path.basename(source)
    return source.removeprefix(root)


def table_of(part: ToolPart, base: Path | None) -> dict[str, Any] | None:
    """The rows of a result as a small table; None where the text shows them better."""
    state, result = part.state, part.result
    if not isinstance(state, Completed) or result is None or not result.records:
        return None
    body = card_of(part.tool).body
    if body == "tasks" or (body != "table" and not state.output.lstrip().startswith(("[", "{"))):
        return None
    rows = [row for row in result.records[:ROWS] if isinstance(row, dict)]
    columns = list(dict.fromkeys(str(key) for row in rows for key in row))[:COLUMNS]
    # the tool may have counted further than it returned
    counts = [count for name in ("total", "matches", "count") if isinstance(count := state.metadata.get(name), int)]
    return {
        "columns": columns,
        "rows": [[_value(name, row.get(name), base) for name in columns] for row in rows],
        "total": max([len(result.records), *counts]),
    }


def value_tables(tables_json: Any) -> list[dict[str, Any]]:
    """The tables of a value that a tool returned (`core.result_values`), as far as they have the form of one."""
    tables = []
    if not isinstance(tables_json, list) or not tables_json:
        return []
    from ...core.result_values import FIELD_CHARS  # here: most results are text
    from ...core.value_tables import COLUMNS as VALUE_COLUMNS

    for table in tables_json[:VALUES]:
        if not isinstance(table, dict) or not all(isinstance(table.get(key), list) for key in ("columns", "rows")):
            continue
        columns = [str(name) for name in table["columns"][: 2 * VALUE_COLUMNS]]
        rows = [row for row in table["rows"][:ROWS] if isinstance(row, list) and len(row) == len(columns)]
        made: dict[str, Any] = {"columns": columns, "rows": [[cell(text, FIELD_CHARS) for text in row] for row in rows]}
        if isinstance(table.get("types"), list):
            made["types"] = [str(name) for name in table["types"][: len(columns)]]
        for key in ("total", "width", "index"):
            if isinstance(table.get(key), int):
                made[key] = table[key]
        tables.append({"name": str(table.get("name") or ""), **made, "total": max(made.get("total", 0), len(rows))})
    return tables


def _value(name: str, value: Any, base: Path | None) -> str:
    if isinstance(value, datetime):
        return f"{value.astimezone():%Y-%m-%d %H:%M}"
    if name in _TIMES and isinstance(value, (int, float)) and value > 0:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(value))
    if name in _PATHS and isinstance(value, str) and base is not None:
        return cell(value.removeprefix("file://").removeprefix(str(base).rstrip("/") + "/"))
    return cell(value)


def skill_files(output: str, metadata: dict[str, Any]) -> list[str]:
    """The files of a skill, as its output lists them, relative to its folder."""
    folder = str(metadata.get("dir") or "")
    return [file.removeprefix(folder.rstrip("/") + "/") for file in _SKILL_FILE.findall(output)[:FILES]]
