"""Lines that hide a command from a naive check ask or are refused; plain ones are not held up."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from opencode_jupyter import ToolError
from opencode_jupyter.core.permission import Rule, evaluate
from opencode_jupyter.core.permission.rules import NOT_ANALYSED, resolve_unanalysed
from opencode_jupyter.tools.shell.analysis import analyse
from tests.support.workspaces import OpenWorkspace

DATA = Path(__file__).parents[1] / "data"
HIDDEN: list[str] = [
    *json.loads((DATA / "hidden_commands.json").read_text()),
    *json.loads((DATA / "hidden_commands_more.json").read_text()),
]
"""Each runs ``rm victim`` or the like, or would with the right files and programs around."""
PLAIN: list[str] = json.loads((DATA / "plain_commands.json").read_text())
"""What people who work with data type."""

REFUSING = {"bash": {"*": "allow", "rm *": "deny", "rm": "deny"}}
FEW = {
    "bash": {"*": "ask"}
    | {f"{name}*": "allow" for name in ("ls", "echo ", "git status", "cat ", "find ", "sed ", "env ")}
}


@pytest.mark.anyio
async def test_each_asks_or_is_refused_where_rm_is(open_workspace: OpenWorkspace, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    passed = []
    ws = await open_workspace({"permission": REFUSING}, directory=tmp_path, store=False)
    for line in HIDDEN:
        try:
            decisions = await ws.dry_run("bash", {"command": line, "description": "d"})
        except ToolError as error:
            assert "needs a terminal" in str(error)  # noqa: PT017 - one of thousands of lines
            continue
        if all(decision.action == "allow" for decision in decisions):
            passed.append(line)
    assert len(HIDDEN) > 2000
    assert passed == []


@pytest.mark.anyio
async def test_each_asks_where_only_a_few_commands_are_allowed(open_workspace: OpenWorkspace, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    passed = []
    ws = await open_workspace({"permission": FEW}, directory=tmp_path, store=False)
    for line in HIDDEN:
        if line.split(" ")[0] in ("ls", "echo", "git", "cat", "find", "sed", "env"):
            decisions = await ws.dry_run("bash", {"command": line, "description": "d"})
            if all(decision.action == "allow" for decision in decisions):
                passed.append(line)
    assert passed == []


@pytest.mark.anyio
async def test_nothing_has_happened_when_it_asks(open_workspace: OpenWorkspace, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("whole")
    config = {"permission": REFUSING}
    ws = await open_workspace(config, directory=tmp_path, approve=lambda request: "reject", store=False)
    for line in HIDDEN[::25]:
        with pytest.raises(Exception, match=r"rejected|prevents"):
            await ws.call("bash", {"command": line, "description": "d"}, by="user")
    assert victim.read_text() == "whole"


@pytest.mark.anyio
async def test_a_refused_command_is_not_asked_for_first(open_workspace: OpenWorkspace, tmp_path: Path) -> None:
    requests: list[str] = []

    def approve(request: object) -> str:
        requests.append(str(request))
        return "once"

    rules = {"bash": {"*": "ask", "rm *": "deny"}, "external_directory": "ask"}
    ws = await open_workspace({"permission": rules}, directory=tmp_path, approve=approve, store=False)
    with pytest.raises(Exception, match="prevents"):
        await ws.call("bash", {"command": "cat /etc/hostname && rm x", "description": "d"})
    assert requests == []


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


def test_everyday_lines_are_readable(tmp_path: Path) -> None:
    alarms = {line: reasons for line in PLAIN if (reasons := analyse(line, tmp_path, lambda path: True).reasons)}
    assert len(PLAIN) > 150
    assert alarms == {}


def test_the_commands_of_a_line_are_listed(tmp_path: Path) -> None:
    for line, commands in (
        ("uv run --with x pytest -q | tail -3", {"uv run --with x pytest -q", "tail -3", "pytest -q"}),
        (
            "env </dev/null A=1 nice -n 5 wc -l f",
            {"env </dev/null A=1 nice -n 5 wc -l f", "nice -n 5 wc -l f", "wc -l f"},
        ),
        ("bash -euo pipefail -c 'ls; wc f'", {"bash -euo pipefail -c 'ls; wc f'", "ls", "wc f"}),
        ("xargs -rn 1 wc -l < f", {"xargs -rn 1 wc -l < f", "wc -l"}),
        ("timeout -vs 9 5 du -sh", {"timeout -vs 9 5 du -sh", "du -sh"}),
        ("time A=1 du", {"time A=1 du", "du"}),
        ("echo `echo \\`date\\``", {"echo `echo \\`date\\``", "echo \\`date\\`", "echo `date`", "date"}),
    ):
        asks = analyse(line, tmp_path, lambda path: True)
        assert commands <= {*asks.patterns, *(reading.pattern for reading in asks.readings)}
        assert asks.reasons == []


@pytest.mark.parametrize("line", ["=rm x", "ls *(e:'rm x':)", "repeat 2 rm x", "- rm x", "ls; path=(. $path); ls"])
def test_what_zsh_reads_in_other_ways(line: str, tmp_path: Path) -> None:
    assert any("zsh" in reason for reason in analyse(line, tmp_path, lambda path: True, shell="zsh").reasons)
    assert analyse("git log --oneline -5 | head", tmp_path, lambda path: True, shell="zsh").reasons == []


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
        assert resolve_unanalysed("bash", pattern, evaluate("bash", pattern, rules), rules).action == action


@pytest.mark.anyio
async def test_always_for_one_command_lets_no_hidden_one_go_on(open_workspace: OpenWorkspace, tmp_path: Path) -> None:
    """ "time *" allowed for one call covers what OpenCode names of the other, not that it removes a file."""
    (tmp_path / ".git").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("whole")
    config = {"permission": {"bash": {"*": "ask", "ls *": "allow"}}}
    ws = await open_workspace(config, directory=tmp_path, store=False)
    session = ws.sessions.create()
    errors: list[Exception] = []

    async def run(line: str) -> None:
        try:
            await ws.call("bash", {"command": line, "description": "d"}, session=session)
        except Exception as error:
            errors.append(error)

    async with anyio.create_task_group() as group:
        with anyio.fail_after(20):
            group.start_soon(run, "time ls victim")
            group.start_soon(run, "time rm victim")
            while len(pending := ws.permissions.pending()) < 2:
                await anyio.sleep(0.01)
            first = next(request for request in pending if request.patterns[0].startswith("time ls"))
            other = next(request for request in pending if request is not first)
            ws.permissions.reply(first.id, "always", patterns=["time *"])
            while not (again := ws.permissions.pending()) or again[0].id == other.id:
                await anyio.sleep(0.01)
            assert again[0].patterns == ["time rm victim", "rm victim"]
            assert victim.exists()
            ws.permissions.reply(again[0].id, "reject")
    assert len(errors) == 1
    assert victim.read_text() == "whole"
