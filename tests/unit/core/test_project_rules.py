"""Rules for a whole project: allowed on a card, typed, listed, taken back; and the history of decisions."""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import InvalidArgumentsError, Rule, ToolError, Workspace
from opencode_jupyter.core import atomic
from opencode_jupyter.core.call import Call
from opencode_jupyter.jupyter.kernel.approvals import Broker
from tests.support.shells import Shell, shell
from tests.support.workspaces import OpenWorkspace

CONFIG = Path("opencode.json")


@pytest.fixture
def ip(tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".git").mkdir()
    (tmp_path / "work" / CONFIG).write_text(json.dumps({"permission": {"bash": "ask"}}, indent=4))
    with shell(tmp_path) as instance:
        yield instance


def bash() -> Any:
    return json.loads(CONFIG.read_text())["permission"]["bash"]


class Asked:
    """A bash call that waits for an answer, with a broker that takes somebody to be there."""

    def __init__(self, ip: Shell, command: str) -> None:
        workspace = ip.notebook.workspace
        ip.notebook.broker.close()  # it would decide by its policy: nobody is at this shell
        self.broker = Broker(workspace, [], lambda card: True)
        arguments = {"command": command, "description": "Tries it"}
        self.call: Call = ip.notebook.on_engine(lambda: workspace.start("bash", arguments, by="user"))
        self.broker.attach(FakeCard(self.call))  # type: ignore[arg-type]
        self.future = ip.notebook.engine.submit(self.call.run())
        deadline = time.monotonic() + 10
        while not self.broker.pending():
            assert time.monotonic() < deadline, self.future
            time.sleep(0.01)
        (self.ask,) = self.broker.pending()

    def click(self, **more: Any) -> None:
        """What the button "Always in this project" sends."""
        request = self.ask
        data = {
            "kind": "reply",
            "id": request.id,
            "digest": request.digest,
            "reply": "always",
            "scope": "project",
            **more,
        }
        self.broker.on_message("comm", data, "widget")

    def output(self) -> str:
        return self.future.result(10).output.strip()


class FakeCard:
    """What the broker wants of a card."""

    def __init__(self, call: Call) -> None:
        self.call, self.comm_id, self.can_live = call, "comm", True
        self.key = call.part.call_id
        self.hello_after: float | None = 0.0

    def set_requests(self, requests: Any) -> None:
        pass

    def note_shown(self) -> None:
        pass


def test_always_in_this_project_is_written_and_holds_for_the_session(ip: Shell) -> None:
    request = Asked(ip, "git --version")
    request.click(patterns=["git --version *"])
    assert "git version" in request.output()
    assert bash() == {"*": "ask", "git --version *": "allow"}
    (decision,) = request.call.part.decisions
    assert (decision.reply, decision.by, decision.action) == ("always", "card", "allow")
    assert decision.message is None
    assert decision.note == "also saved for this project, in opencode.json."
    workspace = ip.notebook.workspace
    assert [rule.pattern for rule in workspace.permissions.approved] == ["git --version *"]
    workspace.permissions.approved.clear()  # as in the next session
    assert ip.run("%permissions test bash 'git --version'").records[0]["origin"] == "opencode.json"


def test_for_this_session_writes_nothing(ip: Shell) -> None:
    before = CONFIG.read_text()
    request = Asked(ip, "echo a")
    request.click(scope="session")
    assert request.output() == "a"
    assert CONFIG.read_text() == before


def test_what_can_not_be_saved_holds_for_the_session_and_says_why(ip: Shell) -> None:
    CONFIG.write_text('{"permission": {"bash": {"*": "ask", "echo secret": "deny", "~/x": "ask"}}}')
    ip.notebook.on_engine(ip.notebook.workspace.reload_config)
    request = Asked(ip, "echo a")
    Path("opencode.json").write_text("{")  # broken while the person thinks
    request.click()
    assert request.output() == "a"
    note = request.call.part.decisions[0].note
    assert note is not None
    assert note.startswith("not saved for this project: ")
    assert "opencode.json:1" in note
    assert CONFIG.read_text() == "{"
    assert [rule.pattern for rule in ip.notebook.workspace.permissions.approved] == ["echo *"]


def test_a_click_never_lifts_a_deny(ip: Shell) -> None:
    CONFIG.write_text('{"permission": {"bash": {"*": "ask", "echo secret *": "deny"}}}')
    ip.notebook.on_engine(ip.notebook.workspace.reload_config)
    request = Asked(ip, "echo a")
    request.click(patterns=["echo *", "echo secret x", "~/bin *"])
    request.output()
    assert list(bash()) == ["*", "echo *", "echo secret *"]
    note = str(request.call.part.decisions[0].note)
    assert "Not saved: bash echo secret x allow can't be saved in opencode.json" in note
    assert "~/bin * would mean the home folder" in note


def test_only_the_answer_that_counts_is_written(ip: Shell) -> None:
    before = CONFIG.read_text()
    request = Asked(ip, "echo a")
    assert ip.notebook.workspace.permissions.reply(request.ask.id, "reject", "no")
    request.click()
    with pytest.raises(ToolError):
        request.output()
    request.click(patterns=[1])
    ip.notebook.on_engine(lambda: None)
    assert CONFIG.read_text() == before


def test_typed_rules_for_the_project(ip: Shell) -> None:
    table = ip.run("%permissions allow bash git log * --project")
    assert bash() == {"*": "ask", "git log *": "allow"}
    assert CONFIG.read_text().startswith('{\n    "permission"')
    assert [(r["pattern"], r["origin"]) for r in table] == [("git log *", "opencode.json")]
    assert "Saved in opencode.json" in table.title
    ip.run("%permissions deny --project bash 'rm *' 'dd *'")
    assert list(bash()) == ["*", "git log *", "rm *", "dd *"]
    assert ip.notebook.workspace.rules == []
    rows = ip.run("%permissions").records
    assert [r["pattern"] for r in rows if r["origin"] == "opencode.json"] == ["*", "git log *", "rm *", "dd *"]
    ip.run("%permissions allow bash 'gcloud --project'")
    assert ip.notebook.workspace.rules[-1].pattern == "gcloud --project"


def test_a_project_rule_says_what_still_decides(ip: Shell) -> None:
    ip.run("%permissions deny bash 'rm *'")
    assert "still decided by: bash rm * deny (this session)" in repr(ip.run("%permissions allow bash 'rm *' --project"))
    assert "It lifts a deny for agents plan, explore too." in repr(ip.run("%permissions allow edit src/* --project"))
    content = json.loads(CONFIG.read_text())
    content["agent"] = {"build": {"permission": {"webfetch": "deny"}}}
    CONFIG.write_text(json.dumps(content))
    text = " ".join(repr(ip.run("%permissions allow webfetch --project")).split())
    assert text.count("webfetch * deny (agent build, opencode.json)") == 1


def test_revoking_a_rule_of_the_project(ip: Shell) -> None:
    number = ip.run("%permissions allow bash 'git log *' --project").records[0]["n"]
    table = ip.run(f"%permissions revoke {number}")
    assert "Removed from opencode.json. bash git log * is now decided by: bash * ask (opencode.json)" in " ".join(
        repr(table).split()
    )
    assert bash() == {"*": "ask"}
    ip.run("%permissions allow bash 'ls *'")
    rows = ip.run("%permissions").records
    numbers = [r["n"] for r in rows if r["origin"] in ("opencode.json", "this session")]
    ip.run(f"%permissions revoke {numbers[1]} {numbers[0]}")
    assert json.loads(CONFIG.read_text()) == {"permission": {}}
    assert ip.notebook.workspace.rules == []


def test_rules_that_can_not_be_revoked_here_say_where(ip: Shell, tmp_path: Path) -> None:
    user = tmp_path / "config_home" / "opencode" / "opencode.json"
    user.parent.mkdir(parents=True)
    user.write_text('{"permission": {"webfetch": "ask"}}')
    Path("opencode.jsonc").write_text('{"permission": {"skill": "ask"}} // mine')
    CONFIG.write_text('{"agent": {"build": {"permission": {"task": "ask"}}}}')
    ip.notebook.on_engine(ip.notebook.workspace.reload_config)
    rows = ip.run("%permissions").records
    for permission, message in (
        ("webfetch", f"Edit it in {user}, or add a later rule"),
        ("skill", "opencode.jsonc has comments"),
        ("task", "Edit it in agent build, opencode.json, or add a later rule"),
        ("plan_enter", "was not added here. Add a later rule"),
    ):
        number = [r["n"] for r in rows if r["permission"] == permission][-1]
        with pytest.raises(ToolError) as caught:
            ip.run(f"%permissions revoke {number}")
        assert message in str(caught.value)
    assert json.loads(user.read_text()) == {"permission": {"webfetch": "ask"}}


def test_one_pattern_may_be_given_as_a_text(tmp_path: Path) -> None:
    with Workspace(tmp_path, store=False, data_dir=tmp_path / "data") as workspace:
        result = workspace.save_rules("bash", "ls *", "deny")
        assert (result.patterns, result.files) == (["ls *"], ["opencode.json"])
        assert workspace.config.permission_rules == [Rule("bash", "ls *", "deny")]
        with pytest.raises(ToolError, match="denies a part of it"):
            workspace.allow_in_project("bash", ["ls *"])
        with pytest.raises(ToolError, match="no pattern"):
            workspace.allow_in_project("bash", [])


def test_history_of_decisions(ip: Shell) -> None:
    assert "No decisions yet" in repr(ip.run("%permissions history"))
    Path("a.txt").write_text("a")
    ip.run("%tool -q read a.txt")
    request = Asked(ip, "echo a")
    request.click()
    request.output()
    table = ip.run("%permissions history")
    assert [(r["permission"], r["action"], r["by"], r["reply"]) for r in table] == [
        ("read", "allow", "rule", None),
        ("bash", "allow", "card", "always"),
    ]
    assert table[1]["patterns"] == ["echo a"]
    assert table[1]["rule"] == "bash * ask (opencode.json)"
    assert "opencode.json" in table[1]["message"]
    text = repr(table)
    assert f"{table[0]['time']:%H:%M:%S}" in text and "allowed for this session by you" in text
    assert len(ip.run("%permissions history 1")) == 1
    with pytest.raises(InvalidArgumentsError, match="whole number"):
        ip.run("%permissions history all")


def test_completion(ip: Shell) -> None:
    assert ip.complete("%permissions hi") == ["%permissions history"]
    assert ip.complete("%permissions allow bash x --p") == ["%permissions allow bash x --project"]


@pytest.mark.anyio
async def test_a_rule_whose_trust_meets_a_full_disk_is_saved_and_says_so(
    open_workspace: OpenWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, data = tmp_path / "work", tmp_path / "data"
    (project / ".git").mkdir(parents=True)
    fill = atomic.fill

    def full(temporary: Path, *arguments: Any) -> None:
        if temporary.parent == data:
            raise OSError(errno.ENOSPC, "No space left on device")
        fill(temporary, *arguments)

    ws = await open_workspace({}, directory=project, data_dir=data)
    ws.save_rules("bash", ["ls *"], "allow")
    ws.save_rules("bash", ["cat *"], "allow")
    (rule,) = [rule for rule in ws.config.permission_rules if rule.pattern == "cat *"]
    monkeypatch.setattr(atomic, "fill", full)
    with pytest.raises(ToolError, match=r"The configuration is changed, but your trust .* No space left"):
        ws.forget_rule(rule)
    assert "cat *" not in (project / CONFIG).read_text()
    monkeypatch.undo()
    ws.trust_project()
    monkeypatch.setattr(atomic, "fill", full)
    result = ws.save_rules("bash", ["pwd *"], "allow")
    assert result.patterns == ["pwd *"]
    assert "pwd *" in (project / CONFIG).read_text()
    assert "No space left" in result.notes[0]
    assert result.notes[1] == "Not in effect until you trust this project: %tools trust --project"
