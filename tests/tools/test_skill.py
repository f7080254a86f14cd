"""skill: what it gives, what a model is told, and skills from the web."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import PermissionDeniedError, PermissionRejectedError, ToolError, Workspace
from opencode_jupyter.tools.skill import SkillDownloads
from tests.support.workspaces import OpenWorkspace

from .conftest import Approver

pytestmark = pytest.mark.anyio


def put(folder: Path, name: str, body: str = "# Demo\n\nDo things.", description: str = "A demo skill") -> Path:
    skill = folder / ".opencode/skills" / name.replace("/", "_")
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n")
    return skill


async def described(ws: Workspace, agent: str = "build") -> Any:
    [bound] = [bound for bound in await ws.registry.tools("a:b", agent) if bound.id == "skill"]
    return bound


async def test_gives_the_text_the_folder_and_some_files(
    workspace: Workspace, project: Path, approver: Approver
) -> None:
    skill = put(project, "demo", body="\ufeff\n\n# Demo\n\nDo things.\n\n")
    for name in ("extra.txt", ".hidden", "scripts/run.py", "my SKILL.md.bak", ".git/config"):
        (skill / name).parent.mkdir(exist_ok=True)
        (skill / name).write_text("x")
    (skill / "link").symlink_to(project)
    result = await workspace.call("skill", {"name": "demo"})
    assert result.title == "Loaded skill: demo"
    assert result.metadata == {"name": "demo", "dir": str(skill), "truncated": False}
    head, _, files = result.output.partition("<skill_files>\n")
    assert head == (
        '<skill_content name="demo">\n# Skill: demo\n\n# Demo\n\nDo things.\n\n'
        f"Base directory for this skill: {skill}\n"
        "Relative paths in this skill (e.g., scripts/, reference/) are relative to this base directory.\n"
        "Note: file list is sampled.\n\n"
    )
    *listed, close, end = files.split("\n")
    assert listed == [f"<file>{skill}/{name}</file>" for name in (".hidden", "extra.txt", "scripts/run.py")]
    assert (close, end) == ("</skill_files>", "</skill_content>")
    [ask] = approver.asks
    assert (ask.permission, ask.patterns, ask.always, ask.metadata) == ("skill", ["demo"], ["demo"], {})


async def test_at_most_ten_files(workspace: Workspace, project: Path) -> None:
    skill = put(project, "many")
    for i in range(200):
        (skill / f"f{i:03}.txt").write_text("x")
    output = (await workspace.call("skill", {"name": "many"})).output
    assert output.count("<file>") == 10
    assert f"<file>{skill}/f009.txt</file>" in output


async def test_without_files(workspace: Workspace, project: Path) -> None:
    put(project, "bare")
    output = (await workspace.call("skill", {"name": "bare"})).output
    assert output.endswith("\n<skill_files>\n\n</skill_files>\n</skill_content>")


async def test_a_long_text_is_cut_and_kept(workspace: Workspace, project: Path) -> None:
    put(project, "long", body="\n".join(f"line {i}" for i in range(20_000)))
    result = await workspace.call("skill", {"name": "long"})
    assert result.truncated
    assert result.output.startswith('<skill_content name="long">')
    assert "line 19999" in Path(str(result.output_path)).read_text()


@pytest.mark.parametrize("name", ["nope", "../demo", "demo/../demo", "DEMO", "", " demo", '"', "/etc/passwd", "a\nb"])
async def test_a_missing_skill_names_those_there_are(
    workspace: Workspace, project: Path, approver: Approver, name: str
) -> None:
    with pytest.raises(ToolError) as caught:
        await workspace.call("skill", {"name": name})
    assert str(caught.value) == f'Skill "{name}" not found. Available skills: none'
    put(project, "demo")
    put(project, "other")
    with pytest.raises(ToolError) as caught:
        await workspace.call("skill", {"name": name})
    assert str(caught.value) == f'Skill "{name}" not found. Available skills: demo, other'
    assert not approver.asks


async def test_odd_names_do_not_break_out(workspace: Workspace, project: Path) -> None:
    put(project, "'x\" onload=\"y'", description="a <b> & </available_skills>")
    [row] = [(await workspace.call("skill", {"name": 'x" onload="y'})).output.split("\n")[0]]
    assert row == '<skill_content name="x&quot; onload=&quot;y">'
    description = (await described(workspace)).description
    assert description.count("</available_skills>") == 1
    assert "a &lt;b&gt; &amp;" in description


async def test_asks_and_goes_by_rules(open_workspace: OpenWorkspace, project: Path, approver: Approver) -> None:
    for name in ("open", "asked", "closed"):
        put(project, name)
    rules = {"skill": {"*": "ask", "open": "allow", "closed": "deny"}}
    ws = await open_workspace({"permission": rules}, approve=approver)
    await ws.call("skill", {"name": "open"})
    assert not approver.asks
    approver.reply = "reject"
    with pytest.raises(PermissionRejectedError):
        await ws.call("skill", {"name": "asked"})
    with pytest.raises(PermissionDeniedError):
        await ws.call("skill", {"name": "closed"})
    with pytest.raises(ToolError, match="Available skills: asked, open"):
        await ws.call("skill", {"name": "gone"})
    description = (await described(ws)).description
    assert "<name>open</name>" in description
    assert "closed" not in description
    decisions = await ws.dry_run("skill", {"name": "asked"})
    assert [(d.permission, d.action) for d in decisions] == [("skill", "ask")]


async def test_a_model_is_told_of_them(open_workspace: OpenWorkspace, project: Path) -> None:
    recorded = json.loads((Path(__file__).parents[1] / "data" / "tool_schemas_1.1.65.json").read_text())["parameters"]
    config = {"agent": {"quiet": {"permission": {"skill": {"d*": "deny"}}}}}
    ws = await open_workspace(config, store=False)
    none = await described(ws)
    assert none.description.endswith("No skills are currently available.")
    assert "e.g." not in none.parameters["properties"]["name"]["description"]
    places = {name: put(project, name, description=f"For {name}.") for name in ("a", "b", "c", "d")}
    bound = await described(ws)
    block = bound.description.partition("<available_skills>\n")[2]
    assert block.startswith(
        "  <skill>\n    <name>a</name>\n    <description>For a.</description>\n"
        f"    <location>{(places['a'] / 'SKILL.md').as_uri()}</location>\n  </skill>\n  <skill>\n    <name>b</name>"
    )
    assert block.endswith("  </skill>\n</available_skills>")
    schema = bound.parameters
    hint = schema["properties"]["name"].pop("description")
    assert hint == "The name of the skill from available_skills (e.g., 'a', 'b', 'c', ...)"
    assert {k: v for k, v in schema.items() if k != "$schema"} == recorded["skill"]
    assert "<name>d</name>" in bound.description
    assert "<name>d</name>" not in (await described(ws, "quiet")).description


async def test_its_files_can_be_read_without_asking(
    open_workspace: OpenWorkspace, tmp_path: Path, approver: Approver
) -> None:
    skill = put(tmp_path / "home", "mine")
    (skill / "scripts").mkdir()
    (skill / "scripts/run.py").write_text("print(1)\n")
    ws = await open_workspace({}, approve=approver)
    assert str(skill / "scripts/run.py") in (await ws.call("skill", {"name": "mine"})).output
    assert "print(1)" in (await ws.call("read", {"filePath": str(skill / "scripts/run.py")})).output
    assert not approver.asks
    (tmp_path / "home/other.txt").write_text("x")
    await ws.call("read", {"filePath": str(tmp_path / "home/other.txt")})
    assert [ask.permission for ask in approver.asks] == ["external_directory"]


async def test_a_skill_that_goes_away_in_between(workspace: Workspace, project: Path, approver: Approver) -> None:
    skill = put(project, "brief")

    def answer(request: Any) -> str:
        (skill / "SKILL.md").unlink()
        return "once"

    approver.reply = answer
    with pytest.raises(ToolError, match="The skill brief can't be read"):
        await workspace.call("skill", {"name": "brief"})


# ---------------------------------------------------------------------- skills from the web


class Site:
    """A web site on loopback: `pages` by path; a text beginning with ``http`` or ``//`` redirects there."""

    def __init__(self) -> None:
        self.pages: dict[str, Any] = {}
        self.asked: list[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                page = site.pages.get(self.path)
                if isinstance(page, str) and page.startswith(("http", "//")):
                    self.send_response(302)
                    self.send_header("Location", page)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                data = page if isinstance(page, bytes) else str(page).encode()
                self.send_response(404 if page is None else 200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def offer(self, *skills: Any, at: str = "") -> None:
        self.pages[f"{at}/index.json"] = json.dumps({"skills": list(skills)})

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


TEXT = "---\nname: far\ndescription: From far away\n---\n\nFar.\n"


async def test_downloads_what_a_url_offers_once(project: Path, tmp_path: Path, site: Site) -> None:
    site.offer({"name": "far", "files": ["SKILL.md", "scripts/a b.py"]}, at="/skills")
    site.pages |= {"/skills/far/SKILL.md": TEXT, "/skills/far/scripts/a%20b.py": b"print(1)\n"}
    config = {"skills": {"urls": [f"{site.url}/skills/"]}}
    for _ in range(2):
        async with Workspace(project, config, data_dir=tmp_path / "data", store=False) as ws:
            assert "<name>far</name>" in (await described(ws)).description
            result = await ws.call("skill", {"name": "far"})
            skill = Path(result.metadata["dir"])
            assert skill.is_relative_to(tmp_path / "data/skills")
            assert f"<file>{skill}/scripts/a b.py</file>" in result.output
            assert (skill / "scripts/a b.py").read_bytes() == b"print(1)\n"
    assert sorted(site.asked) == sorted(
        ["/skills/index.json"] * 2 + ["/skills/far/SKILL.md", "/skills/far/scripts/a%20b.py"]
    )
    site.pages.clear()
    async with Workspace(project, config, data_dir=tmp_path / "data", store=False) as ws:
        assert (await ws.call("skill", {"name": "far"})).title == "Loaded skill: far"  # what was downloaded stays


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "..", "files": ["SKILL.md"]},
        {"name": "../x", "files": ["SKILL.md"]},
        {"name": "a/b", "files": ["SKILL.md"]},
        {"name": "", "files": ["SKILL.md"]},
        {"name": 5, "files": ["SKILL.md"]},
        {"name": "x"},
        {"name": "x", "files": "SKILL.md"},
        {"name": "x", "files": ["other.md"]},
        {"name": "x", "files": ["SKILL.md", "../../evil"]},
        {"name": "x", "files": ["SKILL.md", "/etc/evil"]},
        {"name": "x", "files": ["SKILL.md", "a/../../evil"]},
        {"name": "x", "files": ["SKILL.md", "a\\..\\evil"]},
        {"name": "x", "files": ["SKILL.md", "%2e%2e/evil"]},
        {"name": "x", "files": ["SKILL.md", "http://evil.example/x"]},
        {"name": "x", "files": ["SKILL.md", "//evil.example/x"]},
        {"name": "x", "files": ["SKILL.md", "a\0b"]},
        {"name": "x", "files": ["SKILL.md", 5]},
        {"name": "x", "files": ["SKILL.md", *(f"f{i}" for i in range(500))]},
        "x",
        None,
    ],
)
async def test_what_leads_elsewhere_is_left_out(
    open_workspace: OpenWorkspace, tmp_path: Path, site: Site, entry: Any
) -> None:
    site.offer(entry, {"name": "far", "files": ["SKILL.md"]})
    site.pages["/far/SKILL.md"] = TEXT
    data = tmp_path / "data"
    ws = await open_workspace({"skills": {"urls": [site.url]}}, data_dir=data, store=False)
    [folder] = await ws.service(SkillDownloads).folders([site.url])
    assert folder.name == "far"
    assert [path for path in (data / "skills").rglob("*") if path.is_file()] == [folder / "SKILL.md"]
    assert site.asked == ["/index.json", "/far/SKILL.md"]


@pytest.mark.parametrize("index", [b"", b"{", b"[]", b'{"skills": 5}', b"\xff\xfe", b"[" * 100_000, None])
async def test_an_index_that_is_none(
    open_workspace: OpenWorkspace, project: Path, site: Site, index: Any, caplog: pytest.LogCaptureFixture
) -> None:
    site.pages["/index.json"] = index
    put(project, "local")
    config = {"skills": {"urls": [site.url, "ftp://x", "nonsense"]}}
    ws = await open_workspace(config, store=False)
    for _ in range(2):
        assert (await ws.call("skill", {"name": "local"})).title == "Loaded skill: local"
    assert site.asked == ["/index.json"]  # not asked again at once
    assert caplog.text.count("cannot be downloaded") == 3


async def test_no_other_origin_is_followed(project: Path, tmp_path: Path, site: Site) -> None:
    other = Site()
    try:
        other.pages["/far/SKILL.md"] = TEXT
        site.offer({"name": "far", "files": ["SKILL.md"]})
        site.pages["/far/SKILL.md"] = f"{other.url}/far/SKILL.md"
        config = {"skills": {"urls": [site.url]}}
        async with Workspace(project, config, data_dir=tmp_path / "data", store=False) as ws:
            assert "far" not in (await described(ws)).description
        assert other.asked == []
        site.pages |= {"/far/SKILL.md": "//" + site.url.removeprefix("http://") + "/moved", "/moved": TEXT}
        async with Workspace(project, config, data_dir=tmp_path / "data2", store=False) as ws:
            assert "<name>far</name>" in (await described(ws)).description
    finally:
        other.close()


async def test_a_skill_that_is_not_whole_is_none(open_workspace: OpenWorkspace, site: Site) -> None:
    site.offer({"name": "far", "files": ["SKILL.md", "gone.py"]})
    site.pages["/far/SKILL.md"] = TEXT
    ws = await open_workspace({"skills": {"urls": [site.url]}}, store=False)
    with pytest.raises(ToolError, match="Available skills: none"):
        await ws.call("skill", {"name": "far"})


async def test_keys_of_a_cloud_are_out_of_reach(open_workspace: OpenWorkspace) -> None:
    config = {"skills": {"urls": ["http://169.254.169.254/latest"]}}
    ws = await open_workspace(config, store=False)
    assert await ws.service(SkillDownloads).folders(["http://169.254.169.254/latest"]) == []
