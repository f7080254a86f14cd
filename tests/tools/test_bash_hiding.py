"""Lines that hide a command from a naive check ask or are refused; plain ones are not held up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.core.permission import Rule, evaluate
from opencode_jupyter.core.permission.rules import NOT_ANALYSED, doubted
from opencode_jupyter.tools.shell import analyse

HIDDEN: list[str] = json.loads((Path(__file__).parents[1] / "data" / "hidden_commands.json").read_text())
"""Each runs ``rm victim``, or would with the right files around."""

REFUSING = {"bash": {"*": "allow", "rm *": "deny", "rm": "deny"}}


@pytest.mark.anyio
async def test_each_asks_or_is_refused_where_rm_is(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    passed = []
    async with Workspace(tmp_path, {"permission": REFUSING}, tmp_path / "data", store=False) as ws:
        for line in HIDDEN:
            decisions = await ws.dry_run("bash", {"command": line, "description": "d"})
            if all(decision.action == "allow" for decision in decisions):
                passed.append(line)
    assert len(HIDDEN) > 250
    assert passed == []


@pytest.mark.anyio
async def test_nothing_has_happened_when_it_asks(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("whole")
    config = {"permission": REFUSING}
    async with Workspace(tmp_path, config, tmp_path / "data", lambda request: "reject", store=False) as ws:
        for line in HIDDEN[::5]:
            with pytest.raises(Exception, match=r"rejected|prevents"):
                await ws.call("bash", {"command": line, "description": "d"}, by="user")
    assert victim.read_text() == "whole"


@pytest.mark.anyio
async def test_a_refused_command_is_not_asked_for_first(tmp_path: Path) -> None:
    asked: list[str] = []

    def approve(request: object) -> str:
        asked.append(str(request))
        return "once"

    rules = {"bash": {"*": "ask", "rm *": "deny"}, "external_directory": "ask"}
    async with Workspace(tmp_path, {"permission": rules}, tmp_path / "data", approve, store=False) as ws:
        with pytest.raises(Exception, match="prevents"):
            await ws.call("bash", {"command": "cat /etc/hostname && rm x", "description": "d"})
    assert asked == []


@pytest.mark.parametrize(
    "line",
    [
        "sed -n '1,5p' a",
        "sed -E 's/(a)(b)/\\2\\1/g; /x/d' f",
        "sed '/foo/,/bar/{/x/!d;=}' f",
        "sed -i.bak 's|a|b|' f",
        "awk -F: '{print $1}' f",
        "git commit -m \"$(cat <<'EOF'\nwhat and why\nEOF\n)\"",
        "git log --oneline -5",
        "git push origin main",
        "tar xzf a.tgz",
        "sort -k2 f",
        "python3 -m pytest -q",
        "find . -name '*.py' | xargs wc -l",
        "find . -name x | xargs -I{} cp {} y",
        "make test",
        "echo '$(not run)' \"and \\$(neither)\"",
        "i=0; while ((i < 3)); do echo ${names[$i]} $((i + 1)); i=$((i + 1)); done",
        "x=$(date); echo ${x:0:4} ${x@Q} ${#x}",
        "n=$(nproc); [ $n -gt 1 ] && echo ${!PATH*}",
    ],
)
def test_plain_work_is_readable(line: str, tmp_path: Path) -> None:
    assert analyse(line, tmp_path, lambda path: True).reasons == []


def test_what_cannot_be_read_is_allowed_only_where_everything_is() -> None:
    everything = Rule("bash", "*", "allow")
    pattern = NOT_ANALYSED + "$X victim"
    exact = Rule("bash", pattern, "allow")
    for rules, action in (
        ([everything], "allow"),
        ([Rule("bash", "rm *", "deny"), everything], "allow"),
        ([everything, Rule("edit", "*", "deny")], "allow"),
        ([everything, Rule("bash", "rm *", "deny")], "ask"),
        ([everything, Rule("bash", "git push *", "ask")], "ask"),
        ([everything, Rule("bash", "rm *", "deny"), exact], "allow"),
    ):
        assert doubted("bash", pattern, evaluate("bash", pattern, rules), rules).action == action
