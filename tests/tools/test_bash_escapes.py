"""Lines that did harm under rules which allow ordinary programs: each must request approval or be denied."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.tools.shell.analysis import analyse

DATA = Path(__file__).parents[1] / "data"
ESCAPED: dict[str, Any] = json.loads((DATA / "escaped_lines.json").read_text())
VARIATIONS: dict[str, list[str]] = json.loads((DATA / "escaped_variations.json").read_text())
"""More of each kind, by the name of the rules."""
OPTIONS: dict[str, list[str]] = json.loads((DATA / "escaped_options.json").read_text())
"""Words with which a program that a rule allows runs another, or reaches other files; by program."""
ORDINARY = (
    "7z ar awk base64 bash-completion bat bzip2 cat cmp comm convert cp cpio csplit curl cut date dd diff dos2unix "
    "du echo expand ffmpeg file find fmt fold g++ gcc git go gpg grep gunzip gzip head iconv install java javac join "
    "jq ld less ln ls make md5sum mkdir mv nl node npm objcopy od openssl pandoc paste patch perl pip pr printf "
    "python python3 pytest readelf rg rsync ruff sed seq sha256sum shuf sort split sqlite3 stat strings strip tac "
    "tail tar tee touch tr tree truncate tsort uniq unxz unzip uudecode wc wget xxd xz yes yq zcat zip zstd"
).split()
RULES: dict[str, dict[str, str]] = {
    "M": ESCAPED["rules"]["M"],
    "D": ESCAPED["rules"]["D"],
    "T": {"*": "ask"} | {f"{name} *": "allow" for name in ORDINARY},
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project that the lines were written for, beside a folder with a secret and a repository."""
    home, folder, outside = tmp_path / "home", tmp_path / "project", tmp_path / "outside"
    for path in (home, folder / "hooks", folder / "ocdir" / "tool", folder / "src", outside / "repo"):
        path.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    (outside / "secret.txt").write_text("secret\n")
    for name in ("a.txt", "C", "x.c", "a.po", "oc.json", "hooks/post-checkout", "ocdir/tool/prog.py", "prog.py"):
        (folder / name).write_text("keep\n")
    (folder / "evil.sh").write_text("#!/bin/sh\ntouch P\n")
    (folder / "evil.sh").chmod(0o755)
    (folder / "link").symlink_to(outside)

    def git(*words: str, cwd: Path = folder) -> None:
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@x", *words], cwd=cwd, check=True)

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "one")
    git("branch", "plain")
    for branch, name in (("evil", "lnk"), ("evilcfg", "opencode.json")):
        git("checkout", "-qb", branch, "main")
        if branch == "evil":
            (folder / name).symlink_to("../outside")
        else:
            (folder / name).write_text("{}\n")
        git("add", name)
        git("commit", "-qm", name)
    git("checkout", "-q", "main")
    git("clone", "-q", "--bare", ".", "bare.git")
    (folder / "hook.patch").write_text("--- /dev/null\n+++ b/.git/hooks/post-checkout\n@@ -0,0 +1 @@\n+touch P\n")
    (folder / "cfg.patch").write_text("--- /dev/null\n+++ b/opencode.json\n@@ -0,0 +1 @@\n+{}\n")
    (folder / "out.patch").write_text("--- /dev/null\n+++ b/../outside/o\n@@ -0,0 +1 @@\n+{}\n")
    subprocess.run(["tar", "cf", "hooks.tar", "-C", "hooks", "."], cwd=folder, check=True)
    return folder


async def unasked(project: Path, lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The lines, each with the name of its rules, that would run without anybody's approval."""
    out = []
    for name, rules in RULES.items():
        config = {"permission": {"bash": rules}}
        async with Workspace(project, config, project.parent / "data", store=False) as ws:
            for rule_name, line in lines:
                if rule_name == name:
                    decisions = await ws.dry_run("bash", {"command": line, "description": "d"}, by="model")
                    if all(decision.action == "allow" for decision in decisions):
                        out.append((name, line))
    return out


@pytest.mark.anyio
@pytest.mark.parametrize("family", ["arith", "bxs", "git", "own", "find", "out", "wrap", "start"])
async def test_lines_that_once_did_harm_are_not_run_unasked(project: Path, family: str) -> None:
    lines = [(line["rules"], line["command"]) for line in ESCAPED["lines"] if line["family"] == family]
    assert lines
    assert await unasked(project, lines) == []


@pytest.mark.anyio
async def test_variations_of_them_are_not_run_unasked(project: Path) -> None:
    lines = [(rules, line) for rules, variations in VARIATIONS.items() for line in variations]
    assert await unasked(project, lines) == []


@pytest.mark.anyio
async def test_a_rule_for_a_program_does_not_cover_what_its_words_have_it_run(project: Path) -> None:
    more = {f"{name} *": "allow" for name in {*OPTIONS, "let", "echo", "find", "xargs", "history"}}
    config = {"permission": {"bash": RULES["T"] | more}, "experimental": {"sandbox": {"profile": "off"}}}
    async with Workspace(project, config, project.parent / "data", store=False) as ws:
        for line in [line for lines in OPTIONS.values() for line in lines]:
            decisions = await ws.dry_run("bash", {"command": line, "description": "d"}, by="model")
            assert any(decision.action != "allow" for decision in decisions), line


@pytest.mark.parametrize(
    "line",
    [
        "echo a.txt C | xargs wc -l",
        "git ls-files '*.py' | xargs sort -u",
        "python -W once x.py",
        "python -m pip install -r requirements.txt",
        "python -m pytest -q tests",
        "coverage run -m pytest -q",
        "make CC=clang -j4 all",
        "make CC='gcc -O2' TARGET=test",
        'curl -H "Authorization: $TOKEN" https://example.org/a.csv -o a.csv',
        'jq ".items[] | select(.id == \\"$id\\")" a.json',
        "duckdb -c \"select count(*) from 'data.parquet' where day > '2024-01-01'\"",
        "mlr --icsv --ojson sort -nr x then head -n 5 a.csv",
        "R CMD INSTALL .",
        "rsync -av --delete --exclude '*.pyc' src/ dst/",
        "seq 1 5 | xargs -n 1 touch",
        "printf 'a\\nb\\n' | xargs wc -l",
        "sed -i.bak s/a/b/ a.txt",
        "npm run build -- --git",
        "tar czf out.tar.gz src",
        "wget -nc -P data https://example.org/a.csv",
    ],
)
def test_usual_lines_of_such_programs_are_readable(line: str, project: Path) -> None:
    assert analyse(line, project, lambda path: True).reasons == []


@pytest.mark.parametrize(
    "line",
    [
        "n=5; echo $((n*2))",
        "for i in 1 2 3; do echo $((i+1)); done",
        "for ((i=0;i<3;i++)); do echo $i; done",
        "x=1; ((x++)); echo $x",
        "n=$(ls | wc -l); echo $((n+1))",
        "echo $((16#ff + 0x1f)) $((RANDOM % 6))",
        "a=(1 2 3); echo ${a[0]} ${a[-1]} ${#a[@]} ${a[@]:1:2}",
        "i=1; a=(x y); echo ${a[$i]} ${a[i]}",
        "declare -A m; m[k]=v; echo ${m[k]}",
        "for i in {1..3}; do [[ $i -gt 2 ]] && echo $i; done",
        "declare -i n=5; n=6; let i=1+2; echo $n $i",
        "cat <<EOF\n$((1+2))\nEOF",
        "x=abc; echo ${x:0:2} ${x: -1}",
    ],
)
def test_calculating_with_plain_digits_is_readable(line: str, tmp_path: Path) -> None:
    assert analyse(line, tmp_path, lambda path: True).reasons == []
