"""Where skills are found, which of two counts, what is no skill, and when the folders are looked at again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.core import skills as skill_module
from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.core.flags import Flags
from opencode_jupyter.core.permission import Rule
from opencode_jupyter.core.skills import Skills, available


def put(folder: Path, name: str, description: str = "d", body: str = "Body.") -> Path:
    """A skill's SKILL.md in a folder of its name."""
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n")
    return path


def age(root: Path, seconds: float = 60) -> None:
    """Make everything below look as if it had not been touched lately."""
    moment = time.time() - seconds
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            os.utime(path, (moment, moment))


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, and in a checkout a folder to work in."""
    for name in ("HOME", "OPENCODE_TEST_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_CONFIG_CONTENT"):
        monkeypatch.delenv(name, raising=False)
    for folder in ("home", "top/.git", "top/sub/work"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def opened(base: Path, config: dict[str, Any] | None = None) -> Workspace:
    return Workspace(base / "top/sub/work", config, data_dir=base / "data", store=False)


def names(workspace: Workspace) -> list[str]:
    return [skill.name for skill in workspace.service(Skills).all()]


PLACES = [
    "home/.claude/skills",
    "home/.agents/skills",
    "top/sub/work/.claude/skills",
    "top/sub/work/.agents/skills",
    "top/sub/.claude/skills",
    "top/.agents/skills",
    "home/.config/opencode/skill",
    "home/.config/opencode/skills",
    "top/sub/work/.opencode/skill",
    "top/sub/work/.opencode/skills",
    "top/.opencode/skills",
    "home/.opencode/skill",
    "top/sub/work/named",
    "home/mine",
]
"""In the order of discovery."""
NAMED = {"skills": {"paths": ["named", "~/mine"]}}


def test_every_place_in_its_order(base: Path) -> None:
    for i, folder in enumerate(PLACES):
        put(base / folder, f"s{i:02}")
    put(base / ".claude/skills", "above-the-worktree")
    with opened(base, NAMED) as ws:
        assert names(ws) == [f"s{i:02}" for i in range(len(PLACES))]


def test_of_equal_names_the_one_found_last_counts(base: Path, caplog: pytest.LogCaptureFixture) -> None:
    for folder in PLACES:
        path = base / folder / "x/SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: same\ndescription: {folder}\n---\n")
    for count in range(len(PLACES), 0, -1):
        with opened(base, NAMED) as ws:
            [skill] = ws.service(Skills).all()
            assert skill.description == PLACES[count - 1]
            assert len(ws.service(Skills).folders()) == count
        (base / PLACES[count - 1] / "x/SKILL.md").unlink()
    assert "the skill same is in" in caplog.text


def test_two_of_one_name_are_told_of_once(base: Path, caplog: pytest.LogCaptureFixture) -> None:
    for folder in PLACES[:2]:
        path = base / folder / "x/SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: same\ndescription: {folder}\n---\n")
    with opened(base, NAMED) as ws:
        for _ in range(3):  # files as new as these are looked at anew each time
            assert len(ws.service(Skills).all()) == 1
    assert caplog.text.count("the skill same is in") == 1


@pytest.mark.parametrize(
    "switch",
    ["OPENCODE_DISABLE_EXTERNAL_SKILLS", "OPENCODE_DISABLE_CLAUDE_CODE", "OPENCODE_DISABLE_CLAUDE_CODE_SKILLS"],
)
def test_skills_of_other_programs_can_be_switched_off(base: Path, monkeypatch: pytest.MonkeyPatch, switch: str) -> None:
    put(base / "home/.claude/skills", "theirs")
    put(base / "top/.agents/skills", "theirs-too")
    put(base / "top/.opencode/skills", "ours")
    for value, expected in (("1", ["ours"]), ("TRUE", ["ours"]), ("0", ["theirs", "theirs-too", "ours"])):
        monkeypatch.setenv(switch, value)
        with opened(base) as ws:
            assert names(ws) == expected
    assert Flags.read({}).external_skills


def test_nested_hidden_and_linked_folders(base: Path) -> None:
    skills = base / "top/.opencode/skills"
    put(skills / "group/.hidden", "deep")
    target = put(base / "elsewhere", "linked")
    (skills / "link").symlink_to(target.parent)
    (skills / "circle").symlink_to(skills)
    (skills / "group/up").symlink_to(base / "top")
    (skills / "broken").symlink_to(base / "nowhere")
    with opened(base) as ws:
        assert sorted(set(names(ws))) == ["deep", "linked"]


def test_what_is_no_skill_is_left_out(base: Path) -> None:
    skills = base / "top/.opencode/skills"
    texts = {
        "no-fields": "# Only text\n",
        "no-name": "---\ndescription: d\n---\n",
        "no-description": "---\nname: x\n---\n",
        "number": "---\nname: 5\ndescription: d\n---\n",
        "list": "---\nname: [a]\ndescription: d\n---\n",
        "no-end": "---\nname: x\ndescription: d\n",
        "bad": "---\nname: x\n  - [}\n{{{\n---\n",
        "lines": '---\nname: "a\\nb"\ndescription: d\n---\n',
        "blank": '---\nname: " "\ndescription: d\n---\n',
        "empty": "",
    }
    for name, text in texts.items():
        (skills / name).mkdir(parents=True)
        (skills / name / "SKILL.md").write_text(text)
    (skills / "lower").mkdir()
    (skills / "lower/skill.md").write_text("---\nname: lower\ndescription: d\n---\n")
    (skills / "folder/SKILL.md").mkdir(parents=True)
    (skills / "binary").mkdir()
    (skills / "binary/SKILL.md").write_bytes(b"---\nname: b\xff\ndescription: \x00\x01\xfe\n---\n")
    (skills / "pipe").mkdir()
    os.mkfifo(skills / "pipe/SKILL.md")
    (skills / "endless").mkdir()
    (skills / "endless/SKILL.md").write_text("---\nname: x\n" + "a: b\n" * 50_000)
    put(skills, "good")
    with opened(base) as ws:
        assert set(names(ws)) == {"good"}
        problems = "\n".join(ws.service(Skills).problems)
    for name in ("no-end", "bad", "lines", "blank", "pipe", "endless", "folder", "binary"):
        assert f"{skills}/{name}/SKILL.md: " in problems, name
    assert "no-name" not in problems


def test_a_warning_names_the_file_once_and_controls_no_terminal(base: Path) -> None:
    path = put(base / "top/.opencode/skills/\x1b[31mred", "x")
    path.write_text("---\nname: x\n")
    with opened(base) as ws:
        ws.service(Skills).all()
        [warning] = map(str, ws.warnings())
    escaped = str(path).replace("\x1b", r"\x1b")
    assert warning == (
        f'Failed to parse skill {escaped}: the front matter starts with "---" but has no closing "---" (line 1)'
    )


def test_what_can_not_be_read_is_told(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run as root, who may read everything: so the system's refusal is played."""
    path = put(base / "top/.opencode/skills", "closed")
    locked = put(base / "top/.opencode/skills", "locked").parent
    put(base / "top/.opencode/skills", "open")
    real_open, real_scan = os.open, os.scandir

    def refuse(target: Any, wrong: Path, real: Any, *arguments: Any) -> Any:
        if Path(target) == wrong:
            raise PermissionError(13, "Permission denied", str(target))
        return real(target, *arguments)

    monkeypatch.setattr("os.open", lambda target, *arguments, **kw: refuse(target, path, real_open, *arguments))
    monkeypatch.setattr("os.scandir", lambda target: refuse(target, locked, real_scan))
    with opened(base) as ws:
        assert names(ws) == ["open"]
        assert ws.service(Skills).problems == [
            f"Failed to parse skill {path}: Permission denied",
            f"{locked} could not be searched for skills: Permission denied",
        ]


def test_odd_front_matter_that_is_one(base: Path) -> None:
    skills = base / "top/.opencode/skills"
    texts = {
        "bom": "\ufeff---\nname: bom\ndescription: d\n---\nx",
        "crlf": "---\r\nname: crlf\r\ndescription: d\r\n---\r\nx",
        "colon": "---\nname: colon\ndescription: Use when: the user asks\n---\nx",
        "folded": "---\nname: folded\ndescription: >\n  two\n  lines\nallowed-tools:\n  - Read\n---\nx",
        "quotes": "---\nname: 'it''s \"<b>\"'\ndescription: d\n---\nx",
        "dots": "---\nname: ../../etc\ndescription: d\n---\nx",
    }
    for name, text in texts.items():
        (skills / name).mkdir(parents=True)
        (skills / name / "SKILL.md").write_bytes(text.encode())
    with opened(base) as ws:
        skills_by_name = {skill.name: skill for skill in ws.service(Skills).all()}
        assert set(skills_by_name) == {"bom", "crlf", "colon", "folded", 'it\'s "<b>"', "../../etc"}
        assert skills_by_name["colon"].description == "Use when: the user asks"
        assert skills_by_name["folded"].description.strip() == "two lines"
        assert [skill.content().strip() for skill in skills_by_name.values()] == ["x"] * 6
        assert skills_by_name["../../etc"].directory == skills / "dots"


def test_new_changed_and_removed_skills_are_noticed(base: Path) -> None:
    skills = base / "top/.opencode/skills"
    first = put(skills, "first")
    with opened(base, {"skills": {"paths": ["later"]}}) as ws:
        assert names(ws) == ["first"]
        put(skills / "deep/er", "second")
        assert names(ws) == ["second", "first"]
        first.write_text("---\nname: renamed\ndescription: d\n---\n")
        assert names(ws) == ["second", "renamed"]
        put(base / "top/sub/work/later", "third")
        assert names(ws) == ["second", "renamed", "third"]
        put(base / "home/.claude/skills", "fourth")
        put(base / "top/sub/.opencode/skill", "fifth")
        put(base / "home/.opencode/skill", "sixth")
        assert names(ws) == ["fourth", "fifth", "second", "renamed", "sixth", "third"]
        first.unlink()
        assert names(ws) == ["fourth", "fifth", "second", "sixth", "third"]


def test_a_projects_own_skills_can_be_switched_off(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(base / "top/.opencode/skills", "the-projects")
    put(base / "home/.config/opencode/skills", "mine")
    monkeypatch.setenv("OPENCODE_DISABLE_PROJECT_CONFIG", "true")
    with opened(base) as ws:
        assert names(ws) == ["mine"]


def test_nothing_is_read_again_while_nothing_changed(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skills = base / "top/.opencode/skills"
    for i in range(3):
        put(skills, f"s{i}")
    age(base)
    read: list[Path] = []
    original = skill_module.read_skill

    def counting(path: Path, problems: list[str]) -> Any:
        read.append(path)
        return original(path, problems)

    monkeypatch.setattr("opencode_jupyter.core.skills.read_skill", counting)
    with opened(base) as ws:
        for _ in range(5):
            assert names(ws) == ["s0", "s1", "s2"]
        assert len(read) == 3
        put(skills, "s3")
        assert names(ws) == ["s0", "s1", "s2", "s3"]
        assert len(read) == 7


def test_it_follows_the_working_folder_and_the_configuration(base: Path) -> None:
    put(base / "other/.opencode/skills", "there")
    put(base / "top/.opencode/skills", "here")
    (base / "other/.git").mkdir()
    with opened(base) as ws:
        assert names(ws) == ["here"]
        ws.change_directory(base / "other")
        assert names(ws) == ["there"]
        put(base / "other/more", "named")
        (base / "other/opencode.json").write_text('{"skills": {"paths": ["more"]}}')
        ws.reload_config()
        assert names(ws) == ["there", "named"]


def test_a_named_folder_that_is_not_there_is_told(base: Path) -> None:
    with opened(base, {"skills": {"paths": ["nowhere", "bad\0name"]}}) as ws:
        assert names(ws) == []
        assert ws.service(Skills).problems[0] == f"skills.paths names {base}/top/sub/work/nowhere, which is missing"


def test_a_folder_without_end_is_not_looked_through_for_ever(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skill_module, "MOST_FOLDERS", 10)
    for i in range(30):
        put(base / "top/.opencode/skills", f"s{i:02}")
    with opened(base) as ws:
        assert 0 < len(names(ws)) < 10
        assert "too many folders" in ws.service(Skills).problems[0]


def test_a_text_that_is_far_too_long(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skill_module, "BODY_BYTES", 1000)
    put(base / "top/.opencode/skills", "long", body="é" * 600)
    with opened(base) as ws:
        [skill] = ws.service(Skills).all()
        with pytest.raises(ToolError, match="too long for a skill"):
            skill.content()
        skill.location.unlink()
        with pytest.raises(ToolError, match="can't be read"):
            skill.content()


def test_rules_take_skills_away(base: Path) -> None:
    for name in ("alpha", "beta", "internal-x"):
        put(base / "top/.opencode/skills", name)
    with opened(base) as ws:
        skills = ws.service(Skills).all()
        rules = [Rule("skill", "*", "ask"), Rule("skill", "internal-*", "deny"), Rule("skill", "beta", "allow")]
        assert [skill.name for skill in available(skills, rules)] == ["alpha", "beta"]
        assert available(skills, [Rule("*", "*", "deny")]) == []


@pytest.mark.anyio
async def test_problems_are_published_once(base: Path) -> None:
    path = put(base / "top/.opencode/skills", "x")
    path.write_text("---\nname: x\n")
    messages: list[Any] = []
    async with opened(base) as ws:
        ws.bus.subscribe(
            "session.error", lambda event: messages.append(event["properties"]["error"]["data"]["message"])
        )
        for _ in range(3):
            assert await ws.service(Skills).discover() == []
    assert len(messages) == 1
    assert messages[0].startswith(f"Failed to parse skill {path}: ")


@pytest.mark.anyio
async def test_their_folders_can_be_read_and_others_not(base: Path) -> None:
    path = put(base / "home/.claude/skills", "theirs")
    (path.parent / "extra.txt").write_text("extra\n")
    link = put(base / "real", "linked").parent
    (base / "home/.claude/skills/l").symlink_to(link)
    odd = put(base / "home/.claude/skills/a*", "odd")
    (base / "home/secret.txt").write_text("s\n")
    async with opened(base, {"permission": {"*": "allow"}}) as ws:
        await ws.service(Skills).discover()
        ruleset = ws.agent("build").permission
        for by_rule, file in (("allow", path), ("allow", base / "home/.claude/skills/l/SKILL.md")):
            assert _judged(ws, file, ruleset) == by_rule
    async with opened(base) as ws:
        await ws.service(Skills).discover()
        for agent in ("build", "plan"):
            rules = ws.agent(agent).permission
            assert _judged(ws, path, rules) == "allow"
            assert _judged(ws, link / "x", rules) == "allow"
            assert _judged(ws, odd, rules) == "ask"
            assert _judged(ws, base / "home/secret.txt", rules) == "ask"
            assert _judged(ws, path, ws.agent(agent).model_permission) == "allow"
        assert _judged(ws, path, ws.agent("explore").permission) == "deny"  # it is denied skills too
        ws.reload_config()
        assert _judged(ws, path, ws.agent("build").permission) == "allow"
    async with opened(base, {"permission": {"external_directory": "deny"}}) as ws:
        await ws.service(Skills).discover()
        assert _judged(ws, path, ws.agent("build").permission) == "deny"


def _judged(ws: Workspace, file: Path, rules: list[Rule]) -> str:
    [rule] = ws.permissions.check("external_directory", [f"{file.parent}/*"], rules)
    return rule.action
