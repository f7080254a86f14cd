"""Our tools give the answers that real OpenCode releases gave, or differ by decision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.core.workspace import Workspace

from . import recorded

NOT_BUILT = {"apply_patch", "webfetch", "todoread", "skill", "invalid", "batch"}
"""Tools of the recording that this package does not have yet."""

DECIDED: dict[str, tuple[str, dict[str, Any]]] = {
    "read str offset": (
        "arguments are used as validated: a number written as text is a number",
        {
            "error": None,
            "title": "big.txt",
            "output": "<path>$WS/big.txt</path>\n<type>file</type>\n<content>\n3: line 3\n4: line 4\n\n"
            "(Showing lines 3-4 of 2500. Use offset=5 to continue.)\n</content>",
            "truncated": True,
            "metadata_keys": ["display", "loaded", "preview", "truncated"],
        },
    ),
}
"""Case name to the reason (DESIGN.md 8) and to what ours must give in the fields that differ."""


def built() -> list[dict[str, Any]]:
    return [case for case in recorded.cases() if case["tool"] not in NOT_BUILT]


@pytest.mark.anyio
@pytest.mark.parametrize("case", built(), ids=lambda case: case["name"])
async def test_equals_a_recorded_answer(case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("OPENCODE_TEST_HOME", str(home))
    folder = tmp_path / "ws"
    recorded.build(case, folder)
    config = {**case.get("config", {}), "permission": {"*": "allow"}}
    async with Workspace(folder, config, data_dir=tmp_path / "data") as ws:
        outcome = await recorded.run(ws, case, home)
    reason, allowed = DECIDED.get(case["name"], ("", {}))
    assert recorded.judge(case, outcome, folder, allowed) is None, reason


def test_tables_name_recorded_cases() -> None:
    names = {case["name"] for case in recorded.cases()}
    tools = {case["tool"] for case in recorded.cases()}
    assert set(DECIDED) <= names
    assert tools >= NOT_BUILT
