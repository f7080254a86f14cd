"""Our tools give the answers that real OpenCode releases gave, or differ by decision."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.workspace import Workspace

from . import recorded

NOT_BUILT: set[str] = set()
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
    "glob **/*": (
        "newest first, and never .git",
        {
            "output": "\n".join(
                f"$WS/{name}"
                for name in (
                    "top.py",
                    *(f"src/{folder}/f{i}.py" for folder in "ba" for i in (3, 2, 1, 0)),
                    "sp ace/é.py",
                    "node_modules/x/y.py",
                    "ignored/i.py",
                    "a.log",
                    "README.md",
                    ".hidden/h.py",
                    ".gitignore",
                )
            )
        },
    ),
    "grep a|b": (
        "the compact format, and never .git",
        {
            "output": "Found 2 matches\n$WS/uni.txt:\n  Line 1: naïve foo\n\n$WS/b/d.txt:\n  Line 1: foo bar",
        },
    ),
    "grep $": (
        "the compact format, never .git, and how many more there are",
        {
            "output": re.compile(
                r"Found 162 matches \(showing first 100\)\n\$WS/uni\.txt:\n  Line 1: naïve foo\n.*"
                r"\n\n\(Results truncated: showing 100 of 162 matches \(62 hidden\)\. "
                r"Consider using a more specific path or pattern\.\)",
                re.DOTALL,
            )
        },
    ),
    "bash none": ("an empty output says so", {"output": "(no output)"}),
    "bash stdin": ("an empty output says so", {"output": "(no output)"}),
    "bash long": (
        "the preview of a cut output shows its end as well as its start",
        {
            "output": re.compile(
                r"1\n2\n.*\n1000\n\n\.\.\.1001 lines truncated\.\.\.\n\n.*Full output saved to: .*\n\n2002\n.*3000\n",
                re.DOTALL,
            ),
            "metadata_keys": ["bytes", "cutLine", "description", "exit", "lines", "output", "truncated"],
        },
    ),
}
"""Case name to the reason and to what ours must give in the fields that differ."""


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
    # webfetch goes to loopback only where a rule names it
    rules = {"*": "allow", "webfetch": {"http://127.0.0.1:*": "allow"}}
    config = {**case.get("config", {}), "permission": rules}
    async with Workspace(folder, config, data_dir=tmp_path / "data") as ws:
        with recorded.site(case) as port:
            outcome = await recorded.run(ws, case, home, port=port)
    reason, allowed = DECIDED.get(case["name"], ("", {}))
    assert recorded.judge(case, outcome, folder, allowed) is None, reason


def test_tables_name_recorded_cases() -> None:
    names = {case["name"] for case in recorded.cases()}
    tools = {case["tool"] for case in recorded.cases()}
    assert set(DECIDED) <= names
    assert tools >= NOT_BUILT
