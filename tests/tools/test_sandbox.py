"""The sandbox: what a model's commands can do on this machine, with Landlock and with bubblewrap."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from opencode_jupyter.core.call_state import failure_of
from opencode_jupyter.core.errors import ToolAbortedError, ToolError
from opencode_jupyter.core.permission import Rule
from opencode_jupyter.core.result import ToolResult
from opencode_jupyter.sandbox import bubblewrap
from opencode_jupyter.sandbox.confine import backend
from opencode_jupyter.sandbox.landlock import abi
from opencode_jupyter.sandbox.service import Sandbox
from opencode_jupyter.workspace import Workspace
from tests.support.workspaces import OpenWorkspace

from .conftest import Approver

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="Landlock and bubblewrap")]
NAMES = {"landlock": "Landlock", "bubblewrap": "bubblewrap"}
Make = Callable[..., Workspace]


@pytest.fixture(params=NAMES)
def kind(request: pytest.FixtureRequest) -> str:
    if backend(request.param) != NAMES[request.param]:
        pytest.skip(f"no {request.param} on this machine")
    return str(request.param)


@pytest.fixture
async def make(project: Path, tmp_path: Path, approver: Approver) -> AsyncIterator[Make]:
    """Makes workspaces in which rules allow everything, with settings for the sandbox."""
    made: list[Workspace] = []

    def workspace(permission: Any = "allow", agent: dict[str, Any] | None = None, **settings: Any) -> Workspace:
        config = {"permission": permission, "experimental": {"sandbox": settings}, "agent": agent or {}}
        made.append(Workspace(project, config, data_dir=tmp_path / "data", approve=approver))
        return made[-1]

    yield workspace
    for opened in made:
        await opened.aclose()


async def run(workspace: Workspace, command: str, by: Any = "model", **options: Any) -> ToolResult:
    return await workspace.call("bash", {"command": command, "description": "does it"}, by=by, **options)


async def test_the_project_can_be_written_and_nothing_else(
    make: Make, kind: str, project: Path, tmp_path: Path, approver: Approver
) -> None:
    approver.reply = "reject"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("old")
    ws = make(backend=kind)
    result = await run(ws, "echo new > made && mkdir -p a/b && mv made a/b/ && cat a/b/made")
    assert (result.output, result.metadata["exit"]) == ("new\n", 0)
    assert result.metadata["sandbox"] == f"workspace-write, {NAMES[kind]}"
    for hostile in (
        f"echo x > {outside}/new",
        f"echo x >> {outside}/kept",
        f"rm {outside}/kept",
        f"mv a {outside}/",
        f"ln -s {outside} link && echo x > link/kept",
        f"ln {outside}/kept hard && echo x > hard",
        f"chmod 777 {outside}/kept && truncate -s0 {outside}/kept",
        f'python3 -c \'import os; os.symlink("/etc", "{outside}/etc")\'',
    ):
        result = await run(ws, hostile)
        assert result.metadata["exit"] != 0, hostile
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert (outside / "kept").read_text() == "old"


async def test_read_only_changes_nothing_but_the_private_temporary_folder(
    make: Make, kind: str, project: Path, approver: Approver
) -> None:
    approver.reply = "reject"
    (project / "kept").write_text("old")
    ws = make(backend=kind, profile="read-only")
    for hostile in ("echo x > new", "echo x > kept", "rm kept", "mkdir folder"):
        assert (await run(ws, hostile)).metadata["exit"] != 0, hostile
    assert sorted(path.name for path in project.iterdir()) == [".git", "kept"]
    assert (project / "kept").read_text() == "old"
    assert (await run(ws, 'echo t > "$TMPDIR/f"; cat "$TMPDIR/f" kept')).output == "t\nold"


async def test_the_temporary_folder_is_private_shared_by_calls_and_removed(make: Make, kind: str) -> None:
    ws = make(backend=kind)
    folder = (await run(ws, "mktemp -d && echo kept > $TMPDIR/f && echo $TMPDIR")).output.split()[-1]
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    assert (await run(ws, "cat $TMPDIR/f")).output == "kept\n"
    await ws.aclose()
    assert not Path(folder).exists()


async def test_secrets_are_not_readable(make: Make, kind: str, tmp_path: Path, approver: Approver) -> None:
    # reading a key is approved here; the sandbox keeps it all the same
    approver.reply = lambda request: "reject" if request.permission == "sandbox" else "once"
    home = tmp_path / "home"
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_rsa").write_text("SECRET")
    (home / ".netrc").write_text("SECRET")
    (home / "token").write_text("SECRET")
    (home / "notes.txt").write_text("plain")
    ws = make(backend=kind, hidden=["~/token"])
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "trust.json").write_text("SECRET")
    for path in (home / ".ssh" / "id_rsa", home / ".netrc", home / "token", tmp_path / "data" / "trust.json"):
        result = await run(ws, f"cat {path}; cp {path} copy; cat copy; ln -s {path} l; cat l")
        assert "SECRET" not in result.output
        await run(ws, "rm -f copy l")
    assert (await run(ws, f"cat {home}/notes.txt")).output == "plain"
    assert (await run(ws, "seq 5000")).output_path is not None
    spilled = next((tmp_path / "data" / "tool-output").iterdir())
    assert (await run(ws, f"tail -1 {spilled}")).output == "5000\n"


async def test_the_environment_of_other_processes_is_out_of_reach(make: Make, kind: str, approver: Approver) -> None:
    approver.reply = "reject"
    with subprocess.Popen(["sleep", "60"], env={"CANARY": "SECRET", "PATH": os.environ["PATH"]}) as other:
        try:
            result = await run(make(backend=kind), f"tr '\\0' '\\n' < /proc/{other.pid}/environ; cat /proc/*/environ")
        finally:
            other.kill()
    assert "CANARY" not in result.output


async def test_signals_reach_only_the_call_itself(make: Make, kind: str, approver: Approver) -> None:
    if kind == "landlock" and abi() < 6:
        pytest.skip("signals are scoped since ABI 6")
    approver.reply = "reject"
    ws = make(backend=kind)
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            assert (await run(ws, f"kill -9 {other.pid}")).metadata["exit"] != 0
            assert other.poll() is None
        finally:
            other.kill()
    assert (await run(ws, "sleep 60 & kill $!; wait $!; echo $?")).output == "143\n"


async def test_tcp_is_refused_unless_it_is_allowed(make: Make, kind: str, approver: Approver) -> None:
    if kind == "landlock" and abi() < 4:
        pytest.skip("TCP is restricted since ABI 4")
    approver.reply = "reject"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected"
        closed = await run(make(backend=kind), command)
        assert "connected" not in closed.output
        assert "blocked this command: a connection to the network" in closed.output
        assert (await run(make(backend=kind, network=True), command)).output == "connected\n"


async def test_limits(make: Make, kind: str, project: Path) -> None:
    ws = make(backend=kind, limits={"file_size": 100_000, "memory": 300_000_000, "processes": 500})
    result = await run(ws, "head -c 1000000 /dev/zero > big")
    assert result.metadata["exit"] != 0
    assert (project / "big").stat().st_size == 100_000
    result = await run(ws, "python3 -c 'bytearray(600_000_000)'")
    assert "MemoryError" in result.output
    assert int((await run(ws, "ulimit -u")).output) < 500 + 20_000


async def test_too_much_output_ends_the_command(make: Make) -> None:
    for by in ("model", "user"):
        ws = make(limits={"output": 3_000_000})
        began = time.monotonic()
        result = await run(ws, "yes", by=by)
        assert time.monotonic() - began < 60, "the time limit ended it"
        assert "bash tool terminated command after 3,000,000 bytes of output" in result.output
        assert failure_of("bash", result.metadata) == "ended early"
        assert result.output_path is not None
        assert os.path.getsize(result.output_path) < 5_000_000


async def test_start_up_files_are_read_only_with_bubblewrap(make: Make, project: Path, approver: Approver) -> None:
    if backend("bubblewrap") != "bubblewrap":
        pytest.skip("no bubblewrap on this machine")
    approver.reply = "reject"
    (project / ".opencode").mkdir()
    (project / "opencode.json").write_text("{}")
    ws = make(backend="bubblewrap")
    for hostile in (
        "echo x > .git/hooks/pre-commit",
        "git config core.pager evil",
        "echo x >> .git/config",
        "echo x > .opencode/tool.py",
        "echo x > opencode.json",
        "rm opencode.json",
        "mv .opencode elsewhere",
    ):
        assert (await run(ws, hostile)).metadata["exit"] != 0, hostile
    assert (project / "opencode.json").read_text() == "{}"
    assert not (project / ".git" / "hooks" / "pre-commit").exists()
    assert "evil" not in (project / ".git" / "config").read_text()
    result = await run(ws, "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && git log --oneline")
    assert result.metadata["exit"] == 0, result.output


async def test_start_up_files_that_a_command_makes_are_moved_away(
    make: Make, kind: str, project: Path, tmp_path: Path, approver: Approver
) -> None:
    ws = make(backend=kind)
    for hostile, name in (
        ("echo evil > opencode.json", "opencode.json"),
        ("mkdir -p .opencode/tool && echo evil > .opencode/tool/x.py", ".opencode"),
        ("ln -s /etc/profile .envrc", ".envrc"),
        ("rm -rf .git/hooks && mkdir .git/hooks && echo evil > .git/hooks/post-checkout", ".git/hooks/post-checkout"),
        ("echo evil > .envrc; sleep 30", ".envrc"),
    ):
        approver.reply = lambda request: "reject" if request.permission == "sandbox" else "once"
        result = await ws.call("bash", {"command": hostile, "description": "d", "timeout": 600}, by="model")
        assert not os.path.lexists(project / name), hostile
        if name != ".git/hooks/post-checkout" or kind == "landlock":
            assert f"blocked this command: writing {project / name}" in result.output
            assert "which other programs run or obey" in result.output
            assert f"{project / name} is now {tmp_path}/data/blocked/" in result.output
    approver.reply = "once"
    result = await run(ws, "echo '{}' > opencode.json; echo done")
    assert (result.output, (project / "opencode.json").read_text()) == ("done\n", "{}\n")
    assert "Keep what it wrote?" in approver.named("sandbox")[-1].metadata["command"]
    assert (await run(ws, "mkdir new && cd new && git init -q && ls .git/config")).output == ".git/config\n"


async def test_start_up_files_that_a_command_changes_are_put_back(
    make: Make, kind: str, project: Path, tmp_path: Path, approver: Approver
) -> None:
    def content() -> dict[str, object]:
        kept = [project / ".git" / "info" / "attributes", project / "opencode.json", project / "mine"]
        kept += [path for pattern in (".git/*", ".git/hooks/*", ".opencode/**/*") for path in project.glob(pattern)]
        return {str(path): (path.read_bytes(), path.stat().st_mode) for path in kept if path.is_file()}

    (project / ".opencode" / "tool").mkdir(parents=True)
    for name in ("opencode.json", ".opencode/opencode.json", ".opencode/tool/a.py", ".git/hooks/pre-commit"):
        (project / name).write_text("{}")
    (project / "mine").symlink_to(".envrc")
    before = content()
    ws = make(backend=kind)
    approver.reply = lambda request: "reject" if request.permission == "sandbox" else "once"
    for hostile in (
        "git config core.fsmonitor ./evil; true",
        "echo evil >> .git/config; true",
        "chmod +x .git/hooks/pre-commit; true",
        "for hook in .git/hooks/*.sample; do mv $hook ${hook%.sample}; done; true",
        "rm -rf opencode.json .opencode; true",
        "rm opencode.json; ln -s /etc/passwd opencode.json; true",
        "mv .opencode x; mkdir -p .opencode/tool; echo evil > .opencode/tool/a.py; true",
        "echo evil > .git/commondir; echo evil > .git/config.worktree; true",
        "echo evil > .git/info/attributes; true",
        "echo evil > mine; true",
        "mv .git kept; echo gitdir: evil > .git; true",
    ):
        result = await run(ws, hostile)
        if hostile.startswith("mv .git"):
            assert not (project / ".git").is_file(), hostile
        else:
            assert content() == before, hostile
        assert kind == "bubblewrap" or "which other programs run or obey" in result.output, hostile
    if kind == "bubblewrap":
        return
    (project / "kept").rename(project / ".git")
    approver.reply = "once"
    result = await run(ws, "git config a.b c && rm opencode.json")
    assert (result.output, (project / "opencode.json").exists()) == ("(no output)", False)
    assert "b = c" in (project / ".git" / "config").read_text()


async def test_what_other_calls_write_is_not_undone(make: Make, kind: str, project: Path, approver: Approver) -> None:
    ws = make(backend=kind)
    async with anyio.create_task_group() as group:
        group.start_soon(run, ws, "sleep 1")
        await anyio.sleep(0.4)
        await ws.call("write", {"filePath": "opencode.json", "content": "{}"}, by="model")
    assert (project / "opencode.json").read_text() == "{}"
    assert approver.named("sandbox") == []


async def test_a_blocked_command_offers_to_run_again_without(
    make: Make, kind: str, tmp_path: Path, approver: Approver
) -> None:
    ws = make(backend=kind)
    command = f"echo x > {tmp_path}/outside.txt"
    approver.reply = lambda request: "reject" if request.permission == "sandbox" else "once"
    result = await run(ws, command)
    assert f"The sandbox (workspace-write, {NAMES[kind]}) blocked this command: writing {tmp_path}" in result.output
    assert "The user declined" in result.output
    approver.reply = lambda request: ("reject", "use the project") if request.permission == "sandbox" else "once"
    assert "The user declined: use the project" in (await run(ws, command)).output
    assert not (tmp_path / "outside.txt").exists()
    approver.reply = "once"
    result = await run(ws, command)
    assert (result.metadata["exit"], result.metadata["sandbox"]) == (0, "off, approved for this command")
    assert (tmp_path / "outside.txt").read_text() == "x\n"
    request = approver.named("sandbox")[-1]
    assert request.patterns == [command]
    question, shown = request.metadata["command"].split("\n")
    assert question.startswith("# The sandbox (workspace-write")
    assert "Run again without the sandbox?" in question
    assert shown == command


async def test_only_a_rule_that_names_it_lets_a_command_out(make: Make, kind: str, tmp_path: Path) -> None:
    command = f"echo x > {tmp_path}/outside.txt"
    ws = make({"*": "allow", "sandbox": {"echo *": "allow"}}, backend=kind)
    assert (await run(ws, command)).metadata["sandbox"] == "off, a rule allows it"
    (tmp_path / "outside.txt").unlink()
    for permission in ("allow", {"*": "allow", "sandbox": "deny"}):
        ws = make(permission, backend=kind)
        ws.permissions.approve = None
        ws.permissions.approved.append(Rule("*", "*", "allow"))
        result = await run(ws, command)
        assert "Work inside the project or in $TMPDIR" in result.output
        assert not (tmp_path / "outside.txt").exists()


async def test_an_ordinary_failure_is_not_blamed_on_the_sandbox(
    make: Make, kind: str, project: Path, approver: Approver
) -> None:
    (project / "plain").write_text("")
    ws = make(backend=kind)
    for command in ("false", "cat /missing", "./plain", "ls missing", "echo 'permission denied' && exit 3"):
        result = await run(ws, command)
        assert result.metadata["exit"] != 0
        assert "sandbox" not in result.output, command
    assert approver.named("sandbox") == []


async def test_who_gets_which_profile(make: Make, kind: str) -> None:
    def shown(result: ToolResult) -> str:
        return str(result.metadata.get("sandbox", "off")).split(",")[0]

    ws = make(
        backend=kind,
        agents={"explore": "read-only"},
        rules={"echo *": "off", "echo strict*": "read-only"},
        agent={"mine": {"permission": {"edit": "deny"}}},
    )
    assert shown(await run(ws, "true", by="user")) == "off"
    assert shown(await run(ws, "true", by="python")) == "off"
    assert shown(await run(ws, "true")) == "workspace-write"
    assert shown(await run(ws, "true", agent="explore")) == "read-only"
    assert shown(await run(ws, "true", agent="plan")) == "read-only"
    assert shown(await run(ws, "true", agent="mine")) == "read-only"
    assert shown(await run(ws, "echo a")) == "off"
    assert shown(await run(ws, "echo a; true")) == "workspace-write"
    assert shown(await run(ws, "echo strict; echo a")) == "read-only"
    assert shown(await run(ws, "echo $(true)")) == "workspace-write"
    service = ws.service(Sandbox)
    service.model_profile, service.user = "read-only", "workspace-write"
    assert shown(await run(ws, "true")) == "read-only"
    assert shown(await run(ws, "true", by="user")) == "workspace-write"


async def test_the_card_names_the_profile(make: Make, kind: str) -> None:
    ws = make(backend=kind)
    call = ws.start("bash", {"command": "true", "description": "does it"}, by="model")
    await call.run()
    assert [d.note for d in call.part.decisions] == [f"sandbox: workspace-write, {NAMES[kind]}"]


async def test_a_project_cannot_let_its_commands_out(make: Make, kind: str, project: Path, tmp_path: Path) -> None:
    agent = "---\ndescription: d\npermission:\n  sandbox: allow\n---\nhi\n"
    (project / ".opencode" / "agent").mkdir(parents=True)
    for name in ("mine", "a, b"):
        (project / ".opencode" / "agent" / f"{name}.md").write_text(agent)
    rules = '"permission": {"sandbox": "allow"}'
    (project / "opencode.json").write_text("{" + rules + ', "agent": {"other": {' + rules + "}}}")
    ws = make(backend=kind)
    ws.trust_project()
    ws.permissions.approve = None
    for name in ("build", "other", "mine", "a, b"):
        assert any(r.permission == "sandbox" and r.action == "allow" for r in ws.agents[name].model_permission)
        result = await run(ws, f"echo x > {tmp_path}/outside.txt", agent=name)
        assert "blocked this command" in result.output
        assert not (tmp_path / "outside.txt").exists()
    with pytest.raises(ToolError, match="can't let commands out of the sandbox"):
        ws.allow_in_project("sandbox", ["echo *"])


async def test_a_project_can_only_make_it_stricter(open_workspace: OpenWorkspace, project: Path) -> None:
    loose = '{"profile": "off", "user": "read-only", "network": true, "writable": ["/"], "hidden": ["~/x"], '
    loose += '"rules": {"a*": "off", "b*": "read-only"}, "programs": {"mcp": "off"}, "agents": {"build": "off"}}'
    (project / "opencode.json").write_text('{"experimental": {"sandbox": ' + loose + "}}")
    ws = await open_workspace({})
    settings = ws.service(Sandbox).settings
    assert (settings.profile, settings.user, settings.network) == ("workspace-write", "read-only", False)
    assert (settings.writable, settings.hidden) == ([], ["~/x"])
    assert settings.rules == {"a*": "workspace-write", "b*": "read-only"}
    assert settings.program("mcp") == "workspace-write"
    assert settings.agents == {"plan": "read-only", "build": "workspace-write"}


async def test_a_project_that_is_the_home_folder_keeps_its_secrets(
    open_workspace: OpenWorkspace, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir()
    (home / "work").mkdir()
    config = {"permission": "allow", "experimental": {"sandbox": {"backend": kind}}}
    ws = await open_workspace(config, directory=home, data_dir=home / ".local" / "data")
    result = await run(ws, "echo x > work/a; echo y > .ssh/authorized_keys; cat work/a")
    assert result.output.endswith("x\n")
    assert list((home / ".ssh").iterdir()) == []


async def test_a_linked_worktree_can_commit(
    open_workspace: OpenWorkspace, project: Path, tmp_path: Path, kind: str
) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=project, check=True)
    subprocess.run(["git", "worktree", "add", "-q", str(tmp_path / "linked")], cwd=project, check=True)
    config = {"permission": "allow", "experimental": {"sandbox": {"backend": kind}}}
    ws = await open_workspace(config, directory=tmp_path / "linked")
    result = await run(ws, f"{' '.join(git)} commit -q --allow-empty -m second && git log --oneline | wc -l")
    assert result.output == "2\n"
    (tmp_path / "linked" / ".git").write_text(f"gitdir: {tmp_path}")
    policy = ws.service(Sandbox).policy("workspace-write")
    assert policy is not None
    assert str(tmp_path) not in policy.writable


async def test_without_a_sandbox_more_needs_approval_and_the_card_says_so(
    make: Make, tmp_path: Path, approver: Approver, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "echo").symlink_to("/bin/echo")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))  # no bubblewrap here, and Landlock is not to be used
    bubblewrap.program.cache_clear()
    try:
        ws = make({"bash": {"*": "allow", "echo *": "allow"}}, backend="bubblewrap")
        call = ws.start("bash", {"command": "echo a", "description": "d"}, by="model")
        assert (await call.run()).metadata["sandbox"] == "none on this machine"
        assert call.part.decisions[-1].note == "sandbox: none on this machine"
        assert approver.asks == []
        await run(ws, "true", by="user")
        assert approver.asks == []
        await run(ws, "true")
        assert [rule.origin for rule in approver.asks[0].rules] == ["this machine has no sandbox"]
        ws = make("allow", backend="bubblewrap", profile="off")
        await run(ws, "true")
        assert len(approver.asks) == 1
    finally:
        bubblewrap.program.cache_clear()


async def test_a_stopped_command_ends_with_all_it_started(make: Make, kind: str) -> None:
    ws = make(backend=kind)
    call = ws.start(
        "bash", {"command": "setsid sleep 4242 & sleep 4242", "description": "waits"}, by="model", timeout=0.6
    )
    with pytest.raises(ToolAbortedError):
        await call.run()
    search = subprocess.run(["pgrep", "-f", "^sleep 4242"], capture_output=True, text=True, check=False)
    assert search.stdout == ""
