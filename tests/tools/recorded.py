"""Recorded calls of real OpenCode releases: how a case is laid out, run and judged.

`cases()` lists them, `build` makes a case's workspace, `run` makes the call, `judge` says in what it differs
from the recorded answers.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from opencode_jupyter.workspace import Workspace

from ..support.site import Site

DATA = Path(os.environ.get("RECORDED_CALLS") or Path(__file__).parent.parent / "data" / "recorded_calls.json")
"""Another recording of the same form can be run by naming it in the environment."""


SITE = "127.0.0.1:8977"
"""Where recorded fetches went."""


@dataclass
class Outcome:
    """What a call gave, in the form of a recorded answer."""

    error: str | None = None
    title: str | None = None
    output: str | None = None
    metadata_keys: list[str] = field(default_factory=list)
    truncated: bool | None = None
    attachments: list[str] = field(default_factory=list)
    after: dict[str, Any] = field(default_factory=dict)


@cache
def data(path: Path = DATA) -> dict[str, Any]:
    """The whole recording."""
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def cases(path: Path = DATA) -> list[dict[str, Any]]:
    """Every recorded call."""
    recorded: list[dict[str, Any]] = data(path)["cases"]
    return recorded


def build(case: dict[str, Any], folder: Path, path: Path = DATA) -> None:
    """Lay out the case's files and modification times in a new git repository."""
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    files = data(path)["sets"][case["files"]] if "files" in case else {}
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(content["b64"]) if isinstance(content, dict) else content.encode())
    times = data(path)["sets"][case["mtimes"]] if "mtimes" in case else {}
    for name, seconds in times.items():
        os.utime(folder / name, (seconds, seconds))


def fill(value: Any, folder: Path, home: Path) -> Any:
    """``$WS`` and ``$HOME`` in a case's parameters, in place of the folders they stand for."""
    if isinstance(value, str):
        return value.replace("$WS", str(folder)).replace("$HOME", str(home))
    if isinstance(value, dict):
        return {key: fill(item, folder, home) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, folder, home) for item in value]
    return value


def blank(text: str, folder: Path, home: Path) -> str:
    """A text of ours with the folders as the recording writes them."""
    return text.replace(str(folder), "$WS").replace(str(home), "$HOME")


@contextmanager
def site(case: dict[str, Any]) -> Iterator[int]:
    """The site that recorded fetches went to, on a port of this machine."""
    if SITE not in str(case["params"].get("url")):
        yield 0
        return
    with Site() as running:
        running.serve("/plain.txt", "plain text\n<b>not html</b>\n", "text/plain")
        running.serve("/d.json", '{"a":1}\n', "application/json")
        running.serve("/big.txt", b"x" * (6 << 20), "text/plain")
        yield running.port


async def run(ws: Workspace, case: dict[str, Any], home: Path, path: Path = DATA, *, port: int = 0) -> Outcome:
    """Make the call, its files having been read before, and recorded fetches going to a site at `port`."""
    folder = ws.directory
    here = f"127.0.0.1:{port}"
    for name in data(path)["sets"].get(case.get("files", ""), {}):
        ws.files.read(ws.sessions.default.id, folder / name)
    outcome = Outcome()
    try:
        parameters = fill(case["params"], folder, home)
        if port:
            parameters["url"] = parameters["url"].replace(SITE, here)
        result = await ws.call(case["tool"], parameters)
    except Exception as error:
        outcome.error = blank(str(error), folder, home)
    else:
        outcome.title = blank(result.title, folder, home).replace(here, SITE)
        outcome.output = blank(result.output, folder, home)
        outcome.metadata_keys = sorted(key for key in result.metadata if key != "outputPath")
        outcome.truncated = bool(result.metadata.get("truncated"))
        outcome.attachments = [attachment.mime for attachment in result.attachments]
    for name in case.get("after", ()):
        file = folder / name
        outcome.after[name] = file.read_bytes().decode("utf-8", "replace") if file.is_file() else None
    return outcome


def judge(case: dict[str, Any], outcome: Outcome, folder: Path, allowed: dict[str, Any] | None = None) -> str | None:
    """None if the outcome equals one of the answers; else how it differs from the latest one.

    Args:
        case: the recorded call.
        outcome: ours.
        folder: where it ran.
        allowed: fields in which ours differs by decision, with what they must be instead (a text may be a pattern).
    """
    answers = [here(answer, folder) for answer in case["answers"]]
    expected = [{**answer, **(allowed or {})} for answer in answers]
    differences = [_differences(answer, outcome) for answer in expected]
    if not all(differences):
        return None
    return "\n".join(differences[-1])


def here(answer: dict[str, Any], folder: Path) -> dict[str, Any]:
    """An answer as it would have been on this machine: its host name, and how deep the workspace lies."""
    title, output = answer.get("title", ""), answer.get("output", "")
    if not title.endswith("/etc/hostname"):
        return answer
    lines = Path("/etc/hostname").read_text().split("\n")
    return {
        **answer,
        "title": os.path.relpath("/etc/hostname", folder),
        "output": re.sub(r"((?:0000)?1(?:: |\| ))vm", lambda match: match[1] + lines[0], output),
    }


def _differences(answer: dict[str, Any], outcome: Outcome) -> list[str]:
    out = []
    for key in ("error", "title", "output", "truncated", "after", "metadata_keys", "attachments"):
        want = answer.get(key)
        got = getattr(outcome, key)
        if key == "metadata_keys" and want is not None:
            want = sorted(name for name in want if name != "outputPath")
        same = bool(want.fullmatch(got or "")) if isinstance(want, re.Pattern) else (want or None) == (got or None)
        if not same:
            out.append(f"{key}:\n  wanted {want!r}\n  got    {got!r}")
    return out
