"""The magics in a plain IPython shell, from the line to the value and the card."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import (
    InvalidArgumentsError,
    PermissionDeniedError,
    Rule,
    ToolError,
    ToolTimeoutError,
    UnknownToolError,
)
from opencode_jupyter.core.permission.modes import mode_of
from opencode_jupyter.jupyter.magics.history import display_row
from tests.support.shells import Shell, shell

OTHER_KERNEL = """
import asyncio, os, sys
from opencode_jupyter import Workspace

async def main() -> None:
    for folder in sys.argv[1:]:
        async with Workspace(folder, approve=lambda request: "once") as ws:
            description = f"In {os.path.basename(folder)}"
            await ws.call("bash", {"command": "echo hi", "description": description})

asyncio.run(main())
"""
CARD = "application/vnd.opencode.toolpart.v1+json"


@pytest.fixture
def ip(tmp_path: Path) -> Iterator[Shell]:
    with shell(tmp_path) as instance:
        Path("a.txt").write_text("one\nTODO two\n")
        yield instance


def cards(ip: Shell) -> list[dict[str, Any]]:
    return [data[CARD] for data in ip.shown if CARD in data]


def test_a_line_gives_a_value_and_one_card(ip: Shell) -> None:
    result = ip.run("r = %tool read a.txt\nr")
    assert "1: one" in result.output
    assert ip["r"] is result
    assert [c["tool"] for c in cards(ip)] == ["read"]


def test_results_in_loops_and_functions(ip: Shell) -> None:
    for i in range(3):
        Path(f"f{i}.txt").write_text(f"text {i}")
    assert ip.run(
        'found = []\nfor i in range(3):\n    r = %tool read f"f{i}.txt"\n    found.append(r.output)\nfound[2]'
    ).count("text 2")
    assert "text 1" in ip.run(
        "def show(n):\n    where = f'f{n}.txt'\n    r = %tool read f'{where}'\n    return r.output\nshow(1)"
    )


def test_a_body_is_written_as_it_stands(ip: Shell) -> None:
    ip.run("x = 1\n")
    ip.run("%%tool write out.txt\n{x} $x `x`\n  end?\n")
    assert Path("out.txt").read_text() == "{x} $x `x`\n  end?\n"
    ip.run("%%tool edit out.txt 'end?'\nstop")
    assert Path("out.txt").read_text() == "{x} $x `x`\n  stop\n"


def test_bash_gets_its_line_untouched(ip: Shell) -> None:
    ip.run("x = 5")
    assert ip.run("r = %tool -q bash echo '{x}' \"$((1+1))\" | tr 2 3\nr.output").strip() == "{x} 3"
    Path("b1").write_text("")
    assert ip.run("r = %tool -q bash ls b?\nr.output").strip() == "b1"
    assert ip.run("%tool -q bash ls b?").output.strip() == "b1"
    assert ip.run("%%tool -q bash\nfor i in 1 2; do\n  echo $i\ndone").output.split() == ["1", "2"]


def test_quiet_and_output(ip: Shell) -> None:
    ip.run("%tool -q -o hits grep TODO\nhits.title")
    assert cards(ip) == []
    assert ip["hits"].records[0]["line"] == 2


def test_question_and_help(ip: Shell) -> None:
    assert "filePath" in repr(ip.run("%tool read?"))
    assert "filePath" in repr(ip.run("h = %tool read --help\nh"))
    assert "filePath" in repr(ip.run("%%tool read?\nx"))
    assert "read" in [row["tool"] for row in ip.run("%tool")]
    with pytest.raises(UnknownToolError):
        ip.run("%tool raed?")


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("%tool raed a.txt", UnknownToolError, "Did you mean read"),
        ("%tool frobnicate", UnknownToolError, "Unknown tool: frobnicate. %tool lists the tools."),
        ("%tool invalidd", UnknownToolError, "Unknown tool: invalidd. %tool lists the tools."),
        ("%tool read", InvalidArgumentsError, "filePath (string) is missing"),
        ("%tool read 'a", InvalidArgumentsError, "Unclosed quote"),
        ("%tool read limit=x a.txt", InvalidArgumentsError, "limit must be a number"),
        ("%tool read --agent nobody a.txt", ToolError, "no agent 'nobody'"),
        ("%tools histroy", InvalidArgumentsError, "Did you mean %tools history?"),
        ("%tools history many", InvalidArgumentsError, "whole number"),
        ("%tools undo", ToolError, "no change to undo"),
        ("%tools clean now", InvalidArgumentsError, "not understood here. Usage: %tools clean [--all]"),
        ("%tools doctor now", InvalidArgumentsError, "now is not understood here. Usage: %tools doctor"),
        ("%permissions alow bash", InvalidArgumentsError, "Did you mean %permissions allow?"),
        ("%permissions allow", InvalidArgumentsError, "needs a permission"),
        ("%permissions allow bsh", InvalidArgumentsError, "Did you mean bash?"),
        ("%permissions allow bash 'git *' ls", InvalidArgumentsError, "in quotes, each"),
        ("%permissions mode plam", InvalidArgumentsError, "Did you mean plan?"),
        ("%permissions mode bypass", ToolError, "allow_bypass"),
        ("%permissions revoke", InvalidArgumentsError, "needs a rule's number"),
        ("%permissions revoke 1", ToolError, "was not added here"),
        ("%permissions revoke 999", ToolError, "There is no rule 999"),
        ("%permissions revoke webfetch", ToolError, "No rule of this session"),
        ("%permissions test bash", InvalidArgumentsError, "needs a permission and a pattern"),
    ],
)
def test_errors_are_one_clear_sentence(ip: Shell, line: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        ip.run(line)
    assert message in str(caught.value)
    printed = ip.printed
    assert "Traceback" not in printed
    assert message in printed


def test_a_line_that_is_no_call_leaves_a_card_too(ip: Shell) -> None:
    with pytest.raises(InvalidArgumentsError):
        ip.run("%tool read limit=x a.txt")
    (card,) = cards(ip)
    assert card["state"]["status"] == "error"
    assert "limit must be a number" in card["state"]["error"]
    assert card["ui"]["code"] == "OJ-invalid-arguments"
    assert ip.run("r = %tool -q read a.txt\nr.title")


def test_dry_run_says_what_would_be_asked_and_does_nothing(ip: Shell) -> None:
    ip.run("%permissions deny edit *.env")
    ip.run("%permissions ask bash 'rm *'")
    rows = ip.run("%tool --dry-run write x.env y").records
    assert [(r["permission"], r["action"], r["origin"]) for r in rows] == [("edit", "deny", "this session")]
    rows = ip.run("t = %tool --dry-run bash ls && rm x\nt").records
    assert {(r["pattern"], r["action"]) for r in rows} == {("ls", "allow"), ("rm x", "ask")}
    assert not Path("x.env").exists()
    assert cards(ip) == []


def test_background_gives_a_handle(ip: Shell) -> None:
    ip.run("h = %tool --bg bash sleep 0.3; echo done")
    assert not ip["h"].done()
    assert ip["h"].result(timeout=10).output.strip() == "done"
    ip.run("%tool --bg -o slow bash sleep 60")
    ip["slow"].cancel()
    with pytest.raises(ToolError):
        ip["slow"].result(timeout=10)


def test_timeout_ends_the_call(ip: Shell) -> None:
    with pytest.raises(ToolTimeoutError):
        ip.run("%tool --timeout 0.3 bash sleep 60")


def test_history_has_rows_and_a_frame(ip: Shell) -> None:
    ip.run("%tool -q read a.txt")
    ip.run("%tool -q grep TODO")
    table = ip.run("%tools history 5")
    assert [row["tool"] for row in table] == ["read", "grep"]  # the newest last
    assert list(table.df["state"]) == ["completed", "completed"]
    assert [row["tool"] for row in ip.run("%tools history 1")] == ["grep"]


def test_history_reads_like_a_list_and_keeps_raw_values(ip: Shell) -> None:
    ip.run("%tool -q read a.txt")
    ip.run("%permissions deny bash 'rm *'")
    for line in ("bash rm a.txt", "read limit=1 nowhere.txt", "--timeout 0.3 bash sleep 60"):
        with pytest.raises(ToolError):
            ip.run(f"%tool -q {line}")
    ip.run("%%tool python\nx = 1\nx")
    table = ip.run("%tools history")
    text = repr(table)
    assert [row["state"] for row in table] == ["completed", "denied", "failed", "timed out", "completed"]
    assert table.columns == ["time", "tool", "title", "state", "took", "by"]
    assert "e-0" not in text
    assert "{" not in text
    assert [row["title"] for row in table] == ["a.txt", "rm a.txt", "nowhere.txt", "sleep 60", "x = 1"]
    assert re.search(r"bash +sleep 60 +timed out +0\.\d s +you", text)
    assert {row["status"] for row in table} == {"completed", "error"}
    assert {type(row["waited"]) for row in table} == {float}
    assert ip.run("%tools history 2 --project").records == table.records[-2:]


def test_history_is_of_this_kernel_unless_it_is_asked_for_more(ip: Shell, tmp_path: Path) -> None:
    ip.run("%tool -q read a.txt")
    folder = tmp_path / "other"
    folder.mkdir()
    script = tmp_path / "other.py"
    script.write_text(OTHER_KERNEL)
    subprocess.run([sys.executable, str(script), str(Path.cwd()), str(folder)], check=True, timeout=60)
    assert [row["title"] for row in ip.run("%tools history")] == ["a.txt"]
    assert [row["title"] for row in ip.run("%tools history --project")] == ["a.txt", "In work"]
    table = ip.run("%tools history --all")
    assert [row["title"] for row in table] == ["a.txt", "In work", "In other"]
    assert str(folder) in table._repr_html_()
    for line in ("--everything", "--project --all", "3 4"):
        with pytest.raises(InvalidArgumentsError):
            ip.run(f"%tools history {line}")


@pytest.mark.parametrize(
    ("seconds", "waited", "text"),
    [(0.0000296, None, "0 ms"), (0.31, 0.2, "0.1 s"), (12.2, None, "0:12"), (125, 61.0, "1:04, waited 1:01")],
)
def test_how_long_calls_took_reads_as_on_cards(seconds: float, waited: float | None, text: str) -> None:
    record = {"seconds": seconds, "waited": waited, "state": "completed", "title": "", "by": "user", "agent": ""}
    assert display_row({**record, "time": datetime.now()})["took"] == text  # noqa: DTZ005


def test_undo_says_what_it_took_back(ip: Shell) -> None:
    ip.run("%tool -q write new.txt x")
    ip.run("%tool -q read a.txt")
    ip.run("%tool -q edit a.txt one 1")
    table = ip.run("t = %tools undo 2\nprint('next')\nt")
    expected = "Undid 2 changes: a.txt restored; new.txt removed. 0 can still be undone.\nnext\n"
    assert ip.printed == expected and not ip.shown
    assert [(row["file"], row["tool"]) for row in table] == [("a.txt", "edit"), ("new.txt", "write")]
    assert Path("a.txt").read_text() == "one\nTODO two\n"
    assert not Path("new.txt").exists()


def test_undo_of_a_file_changed_since_needs_force(ip: Shell) -> None:
    ip.run("%tool -q write new.txt x")
    Path("new.txt").write_text("mine")
    with pytest.raises(ToolError, match="%tools undo --force"):
        ip.run("%tools undo")
    assert Path("new.txt").read_text() == "mine"
    ip.run("%tools undo --force")
    assert not Path("new.txt").exists()


def test_clean_says_how_much(ip: Shell) -> None:
    result = ip.run("r = %tool -q bash seq 1 5000\nr")
    spill = Path(result.output_path)
    assert spill.exists()
    assert ip.run("%tools clean").records[0]["count"] == 0
    table = ip.run("%tools clean --all")
    assert table.records[0]["count"] == 1
    assert table.records[0]["size"].endswith("KB")
    assert not spill.exists()


def test_rules_are_listed_in_order_with_their_origin(ip: Shell) -> None:
    ip.run("%permissions deny edit *.env")
    ip.notebook.workspace.permissions.remember(Rule("bash", "ls *", "allow", "this session"))
    rows = ip.run("%permissions").records
    assert [row["n"] for row in rows] == list(range(1, len(rows) + 1))
    assert rows[0]["origin"] == "OpenCode's defaults"
    assert [(r["permission"], r["pattern"], r["action"]) for r in rows[-2:]] == [
        ("edit", "*.env", "deny"),
        ("bash", "ls *", "allow"),
    ]
    ip.run(f"%permissions revoke {rows[-1]['n']} {rows[-2]['n']}")
    assert len(ip.run("%permissions")) == len(rows) - 2
    assert ip.notebook.workspace.permissions.approved == []


def test_a_command_pattern_without_quotes_stays_one(ip: Shell) -> None:
    ip.run("%permissions deny bash git push *")
    assert ip.notebook.workspace.rules == [Rule("bash", "git push *", "deny")]
    ip.run("%permissions ask bash 'a *' 'b *'")
    assert [r.pattern for r in ip.notebook.workspace.rules] == ["git push *", "a *", "b *"]
    assert ip.run("%permissions test bash git push origin").records[0]["action"] == "deny"
    ip.run("%permissions revoke bash git push *")
    assert [r.pattern for r in ip.notebook.workspace.rules] == ["a *", "b *"]
    ip.run("%permissions revoke bash")
    assert ip.notebook.workspace.rules == []


def test_a_rule_for_one_command_says_what_it_matches(ip: Shell) -> None:
    ip.run("%permissions deny bash git push")
    line = "%permissions deny bash 'git push *'"
    note = f"bash git push matches this command only as it is written. With arguments too: {line}"
    assert ip.printed.splitlines() == ["Added until the kernel ends: deny bash git push.", note]
    for command, action in (("git push", "deny"), ("git push origin", "allow")):
        assert ip.run(f"%permissions test bash {command}").records[0]["action"] == action
    ip.run(line)
    for command, action in (("git push", "deny"), ("git push origin", "deny"), ("git pushx", "allow")):
        assert ip.run(f"%permissions test bash {command}").records[0]["action"] == action
    ip.run("%permissions deny bash 'git commit -m \"x y\"' --project")
    assert ip.printed.splitlines()[-1].endswith("%permissions deny bash 'git commit -m \"x y\" *' --project")


def test_lines_that_change_rules_print_a_line_each(ip: Shell) -> None:
    value = ip.run("%permissions deny read './src/*'\n%permissions allow bash 'git *'\n%permissions revoke bash")
    assert ip.printed.splitlines() == [
        "Added until the kernel ends: deny read ./src/*.",
        "read ./src/* can never match; paths are relative to the top of the project: write 'src/*'.",
        "Added until the kernel ends: allow bash git *.",
        "Revoked: allow bash git *.",
    ]
    assert not ip.shown and value.records[0]["pattern"] == "git *"


def test_the_commands_of_a_magic_are_in_its_help(ip: Shell) -> None:
    for magic, command in (("sessions", "fork"), ("permissions", "revoke"), ("tools", "undo"), ("mcp", "logs")):
        assert f"%{magic} {command}" in ip.ip.find_magic(magic).__doc__
        assert f"%{magic} {command}" not in repr(ip.run(f"%{magic}"))
        assert f"%{magic}? shows the commands." in repr(ip.run(f"%{magic}"))


def test_options_and_questions_in_the_wrong_place_get_a_hint(ip: Shell) -> None:
    ip.run("%tool bash echo made --bg")
    assert "options go before it (%tool --bg ...)" in ip.printed
    with pytest.raises(ToolError):
        ip.run("%tool read draft.md?")
    assert "There is no file draft.md?. To see the help of read: %tool read?" in ip.printed
    ip.run("%tool bash echo made")
    assert "options" not in ip.printed


def test_the_result_of_a_background_call_is_shown_once(ip: Shell) -> None:
    ip.run("h = %tool --bg bash sleep 0.3; echo made")
    value = ip.run("h.result()")
    assert value.output == "made\n"
    assert "ToolResult" not in ip.printed
    assert str([*ip.shown, ip.printed]).count("echo made (completed") <= 1


def test_writing_tools_are_ruled_by_edit(ip: Shell) -> None:
    table = ip.run("%permissions deny write")
    assert "write needs edit" in repr(table)
    with pytest.raises(PermissionDeniedError):
        ip.run("%tool write x y")


def decides(ip: Shell, permission: str, pattern: str) -> str:
    return str(ip.run(f"%permissions test {permission} '{pattern}'").records[0]["action"])


def test_modes(ip: Shell) -> None:
    ip.notebook.workspace.permissions.approved.append(Rule("edit", "old/*", "allow", "this session"))
    ip.run("%permissions deny edit secret/*")
    assert "default" in repr(ip.run("%permissions mode"))

    ip.run("%permissions mode ask")
    assert [decides(ip, p, "x") for p in ("edit", "bash", "webfetch", "read")] == ["ask", "ask", "ask", "allow"]
    assert decides(ip, "edit", "secret/a") == "deny"

    assert "It was ask" in repr(ip.run("%permissions mode plan"))
    assert [decides(ip, p, "x") for p in ("edit", "bash", "read")] == ["deny", "deny", "allow"]
    assert decides(ip, "edit", "old/a") == "deny"

    ip.run("%permissions mode accept-edits")
    assert [decides(ip, p, "x") for p in ("edit", "bash")] == ["allow", "allow"]
    assert decides(ip, "edit", "secret/a") == "deny"
    ip.run("%permissions ask edit 'src/*'")  # typed later, so it wins over the mode
    assert decides(ip, "edit", "src/a") == "ask"

    ip.run("%permissions mode default")
    assert decides(ip, "edit", "src/a") == "ask"
    assert not any("mode" in r["origin"] for r in ip.run("%permissions").records)


def test_a_mode_for_one_session(ip: Shell) -> None:
    session = ip.notebook.workspace.sessions.create("one")
    assert f"Mode of session {session.id} plan" in repr(ip.run(f"%permissions mode plan --session {session.id}"))
    assert mode_of(ip.notebook.workspace, session) == "plan"
    assert decides(ip, "edit", "a") == "allow"
    assert "Mode default" in repr(ip.run("%permissions mode"))
    second = ip.notebook.workspace.sessions.create("Cleaning up")
    for name in ("'Cleaning up'", second.id[:-1]):
        ip.run(f"%permissions mode ask --session {name}")
        assert mode_of(ip.notebook.workspace, second) == "ask"
        ip.run(f"%permissions mode default --session {name}")
    with pytest.raises(ToolError, match="no session 'ses_gone'"):
        ip.run("%permissions mode plan --session ses_gone")
    with pytest.raises(InvalidArgumentsError, match="needs a value"):
        ip.run("%permissions mode plan --session")


def test_mode_accept_edits_keeps_another_agents_denies(ip: Shell) -> None:
    ip.run("%permissions mode accept-edits")
    with pytest.raises(PermissionDeniedError):
        ip.run("%tool --agent plan write x.txt y")


def test_bypass_needs_the_config_and_is_red(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "opencode.json").write_text(json.dumps({"experimental": {"allow_bypass": True}}))
    with shell(tmp_path) as own:
        own.run("%tools trust --project")
        notice = own.run("%permissions mode bypass")
        assert "color:#d6453a" in notice._repr_html_()
        assert decides(own, "external_directory", "/x/*") == "allow"
        own.run("%permissions mode default")
        assert decides(own, "external_directory", "/x/*") == "ask"


def test_config_sets_agent_and_policy(ip: Shell) -> None:
    ip.run("%config ToolMagics.agent = 'plan'")
    assert "agent plan" in ip.run("%permissions").title
    with pytest.raises(PermissionDeniedError):
        ip.run("%tool write x.txt y")
    ip.run("%config ToolMagics.on_ask = 'allow'")
    assert ip.notebook.settings.on_ask == "allow"
    ip.run("%config ToolMagics.cards = False")
    assert ip.notebook.settings.cards is False


def test_a_tool_of_the_notebook_is_there_at_once(ip: Shell) -> None:
    ip.run("from opencode_jupyter import tool\n@tool\ndef twice(n: int) -> str:\n    'Twice.'\n    return str(2 * n)\n")
    assert ip.run("%tool -q twice 21").output == "42"
    assert [r["source"] for r in ip.run("%tool") if r["tool"] == "twice"] == ["this notebook"]


def test_what_nobody_types_is_not_listed(tmp_path: Path) -> None:
    with shell(tmp_path) as own:
        ip = own.ip

        def offered(text: str) -> set[str]:
            return set(ip.complete(text)[1])

        magic_list = str(own.run("%lsmagic"))
        assert "%tool " in magic_list and "%agent " in magic_list and "_awaited" not in magic_list
        assert {"%tool", "%%tool", "%tools"} <= offered("%too")
        assert not [
            name for line in ("%too", "%%too", "tool_", "%agent", "%tool_a") for name in offered(line) if "_aw" in name
        ]
        assert ip.find_line_magic("tool_awaited") is not None, "a cell that awaits still reaches it"
        ip.register_magic_function(lambda line: "mine", "line", "mine_awaited")
        assert "%mine_awaited" in offered("%mine"), "others' magics are left alone"
        own.run("%unload_ext opencode_jupyter")
        assert "lsmagic" not in vars(ip.magics_manager)


def test_unload_takes_back_exactly_what_load_added(tmp_path: Path) -> None:
    with shell(tmp_path) as own:
        ip = own.ip
        own.run("%unload_ext opencode_jupyter")
        ip.register_magic_function(lambda line: "mine", "line", "tool")

        def state() -> Any:
            manager = ip.magics_manager
            transformers = ip.input_transformer_manager
            return (
                {kind: dict(functions) for kind, functions in manager.magics.items()},
                dict(manager.registry),
                list(ip.configurables),
                list(transformers.token_transformers),
                list(ip.input_transformers_post),
                list(ip.Completer.custom_matchers),
            )

        before = state()
        own.run("%load_ext opencode_jupyter")
        own.run("%reload_ext opencode_jupyter")
        assert state() != before
        assert own.run("%tool").title == ""
        assert len([c for c in ip.configurables if type(c).__name__ == "ToolMagics"]) == 1
        own.run("%unload_ext opencode_jupyter")
        assert state() == before
        assert own.run("%tool") == "mine"


def test_reload_keeps_rules(ip: Shell) -> None:
    ip.run("%permissions deny edit *.env")
    ip.run("%reload_ext opencode_jupyter")
    assert ip.run("%permissions").records[-1]["pattern"] == "*.env"
