"""What the analysis of a shell command finds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter import ToolError, Workspace
from opencode_jupyter.core.paths import follow_links
from opencode_jupyter.core.permission.rules import NOT_ANALYSED
from opencode_jupyter.tools.shell.analysis import analyse
from opencode_jupyter.tools.shell.shell_requests import ShellRequests

PROJECT = Path("/project")
HOME = "/home/someone"


def contains(path: Path) -> bool:
    return path == PROJECT or PROJECT in path.parents


def read(command: str, cwd: Path = PROJECT) -> ShellRequests:
    return analyse(command, cwd, contains, home=HOME)


def readings(command: str) -> list[str]:
    return [reading.pattern for reading in read(command).readings]


@pytest.mark.parametrize(
    ("command", "patterns", "always"),
    [
        ("ls", ["ls"], ["ls *"]),
        ("git log --oneline -5 | head -3", ["git log --oneline -5", "head -3"], ["git log *", "head *"]),
        ("echo foo && echo bar; echo foo", ["echo foo", "echo bar"], ["echo *"]),
        ("if true; then echo y; fi", ["true", "echo y"], ["true *", "echo *"]),
        ("for f in a b; do wc $f; done", ["wc $f"], ["wc *"]),
        ("f() { ls; }; f", ["ls", "f"], ["ls *", "f *"]),
        ("echo `date` $(id)", ["echo `date` $(id)", "date", "id"], ["echo *", "date *", "id *"]),
        ("diff <(ls a) <(ls b)", ["diff <(ls a) <(ls b)", "ls a", "ls b"], ["diff *", "ls *"]),
        ("cat > out.txt", ["cat > out.txt"], ["cat *"]),
        ("ls 2>&1 | wc > n", ["ls 2>&1", "wc"], ["ls *", "wc *"]),
        ("cat <<EOF\nhi $(pwd)\nEOF", ["cat <<EOF\nhi $(pwd)\nEOF", "pwd"], ["cat *", "pwd *"]),
        ("cd .", [], []),
        ("   ", [], []),
        ("", [], []),
    ],
)
def test_patterns_are_opencodes(command: str, patterns: list[str], always: list[str]) -> None:
    asks = read(command)
    assert (asks.patterns, asks.always) == (patterns, always)


@pytest.mark.parametrize(
    ("command", "directories"),
    [
        ("cat a.txt src/b.py", []),
        ("cat /etc/hosts", ["/etc"]),
        ("cat /etc", ["/etc"]),
        ("rm 'a b' \"c d\"", []),
        ('rm "/nowhere/a b"', ["/nowhere"]),
        ("cat ../x", ["/"]),
        ("cat ~/x", [HOME]),
        ("cat $HOME/x ${HOME}/y", [HOME]),
        ("touch {a,/opt}/x", ["/opt"]),
        ("mkdir -p src/{a,b}/{1..3}", []),
        ("rm /nowhere/*.log", ["/nowhere"]),
        ("cd /usr && cat x", ["/usr"]),
        ("cd src && cat ../../x", ["/"]),
        ("cd", [os.path.dirname(HOME)]),
        ("echo x > /nowhere/f", ["/nowhere"]),
        ("echo x >> src/f 2>/dev/null", []),
        ("wc < /etc/hosts", ["/etc"]),
        ("(ls; ls) &> /nowhere/f", ["/nowhere"]),
        ("ls | tee /nowhere/f", ["/nowhere"]),
        ("dd if=a of=/nowhere/f", ["/nowhere"]),
        ("timeout 5 rm /nowhere/f", ["/nowhere"]),
        ("sh -c 'rm /nowhere/f'", ["/nowhere"]),
        ("chmod +x a.sh && chmod 755 b.sh", []),
        ("ls 2>&1 >&2", []),
    ],
)
def test_folders_outside_the_project(command: str, directories: list[str]) -> None:
    asks = read(command)
    assert asks.directories == directories
    assert asks.unknown == []


@pytest.mark.parametrize(
    ("command", "unknown"),
    [
        ("cat $X/a", ["$X/a"]),
        ("rm $(cat list)", ["$(cat list)"]),
        ("echo x > $OUT", ["$OUT"]),
        ("cd $X && rm y", ["$X", "y"]),
        ("cat ~root/x", ["~root/x"]),
        ("rm */../x", ["*/../x"]),
        ("HOME=/ cat ~/x", ["~/x"]),
    ],
)
def test_paths_that_only_running_it_can_tell(command: str, unknown: list[str]) -> None:
    assert read(command).unknown == unknown
    assert read(command).reasons


def test_a_link_that_must_not_be_read_leads_to_an_unknown_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def realpath(path: str | Path) -> str:  # as Python 3.11 does for /proc/1/root in a container
        if str(path).startswith("/nowhere/link"):
            raise PermissionError(13, "Permission denied", "/nowhere/link")
        return str(path)

    monkeypatch.setattr("os.path.realpath", realpath)
    assert read("cat /nowhere/link/etc/passwd").unknown == ["/nowhere/link/etc/passwd"]
    with pytest.raises(ToolError, match="the link /nowhere/link can't be read"):
        follow_links("/nowhere/link/etc/passwd")


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["read", "write", "edit", "apply_patch"])
async def test_tools_name_a_link_that_must_not_be_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to("/nowhere/link")
    real = os.path.realpath

    def realpath(path: str | Path, **options: Any) -> str:
        if str(path).startswith(("/nowhere/link", f"{tmp_path}/link")):
            raise PermissionError(13, "Permission denied", "/nowhere/link")
        return real(path, **options)

    patch = "*** Begin Patch\n*** Add File: link/x\n+a\n*** End Patch"
    arguments: dict[str, dict[str, Any]] = {
        "read": {"filePath": "link/x"},
        "write": {"filePath": "link/x", "content": "a"},
        "edit": {"filePath": "link/x", "oldString": "a", "newString": "b"},
        "apply_patch": {"patchText": patch},
    }
    async with Workspace(tmp_path, {"permission": "allow"}, tmp_path / "data", store=False) as ws:
        monkeypatch.setattr("os.path.realpath", realpath)
        with pytest.raises(ToolError, match="/nowhere/link"):
            await ws.call(name, arguments[name])


def test_a_link_that_leads_out_is_outside(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)

    def within(path: Path) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(inside)

    assert analyse("cat link/x", inside, within).directories == [str(outside)]
    assert analyse("pwd", outside, within).directories == [str(outside)]


@pytest.mark.parametrize(
    ("command", "reading"),
    [
        ("r''m x", "rm x"),
        ("\\rm x", "rm x"),
        ("$'\\x72m' x", "rm x"),
        ("$'\\162\\155' x", "rm x"),
        ("r\\\nm x", "rm x"),
        ("/bin/rm x", "rm x"),
        ("FOO=1 rm x", "rm x"),
        ("command rm x", "rm x"),
        ("env -i -u A B=1 rm x", "rm x"),
        ("nice -n 5 nohup rm x", "rm x"),
        ("timeout --signal=KILL 5 rm x", "rm x"),
        ("ls | xargs -n 1 rm -f", "rm -f"),
        ("find . -type f -exec rm {} +", "rm {}"),
        ("bash -lc 'ls; rm x'", "rm x"),
        ("eval 'rm x'", "rm x"),
        ("sudo -u root sh -c \"sh -c 'rm x'\"", "rm x"),
        ("echo x > a.txt", "> a.txt"),
        ("{ ls; } >> a.txt", ">> a.txt"),
        ("export A=1; ls", "export A=1"),
        ("[ -f x ] && ls", "[ -f x ]"),
    ],
)
def test_other_readings_of_a_command(command: str, reading: str) -> None:
    assert reading in readings(command)


@pytest.mark.parametrize(
    "command",
    [
        "echo 'open",
        "$X foo",
        "cat$IFS/etc/passwd a",
        "ls | sh",
        "bash <<EOF\nrm x\nEOF",
        "bash <<< 'rm x'",
        'sh -c "$X"',
        "eval $X",
        "source ./x.sh; ls",
        "trap 'rm x' EXIT; ls",
        "python3 -c 'import os'",
        "perl -e 1",
        "echo 1 | python3",
        "PATH=/tmp ls",
        "export LD_PRELOAD=x; ls",
        "find . -delete",
        "env GIT_PAGER=x git log",
    ],
)
def test_what_no_rule_for_a_first_word_covers(command: str) -> None:
    asks = read(command)
    assert any(p.startswith(NOT_ANALYSED) for p in [*asks.patterns, *readings(command)])
    assert asks.reasons


def test_letters_beyond_ascii() -> None:
    for _ in range(200):  # the grammar's own scanner reads beyond its tables here
        assert read('echo "{😀" {\U00070c5f é').patterns == ['echo "{😀" {\U00070c5f é']
    assert read("cat '/nowhere/日本/x'").directories == ["/nowhere/日本"]
    assert read("é=1 rm x").patterns == ["é=1 rm x"]


@pytest.mark.parametrize("command", ["# a word", "X=1", "X=1 Y=2", "((1))"])
def test_nothing_found_is_asked_as_a_whole(command: str) -> None:
    asks = read(command)
    assert asks.patterns
    assert "*" not in "".join(asks.always)


def test_too_long_and_nul() -> None:
    assert read("echo " + "x" * 200_000).patterns[0].startswith(NOT_ANALYSED + "echo x")
    assert read("echo a\0b").patterns == [NOT_ANALYSED + "echo a\0b"]


def test_deep_nesting_is_no_recursion() -> None:
    assert read("{ " * 3000 + "ls; " + "} " * 3000).patterns
    assert read("$(" * 2000 + "ls" + ")" * 2000).patterns
    assert read("sh -c " * 30 + "ls").patterns


@pytest.mark.parametrize(
    "text",
    [
        "$(" * 50_000,
        "ls|" * 33_000,
        "x) " * 30_000,
        "` > f " * 9_000,
        "ls;" * 33_000,
        "rm " + "{a,b}" * 19_000,
        "rm " + " ".join(f"/x{i}/a" for i in range(9_000)),
        "ls" + "".join(f" > /x{i}/a" for i in range(9_000)),
    ],
    ids=["substitutions", "pipes", "cases", "broken", "list", "braces", "paths", "redirects"],
)
@pytest.mark.timeout(60)
def test_hostile_texts_take_little_time(text: str) -> None:
    asks = read(text)
    assert asks.patterns


SHELL = st.text(alphabet="abrm /.~$`'\"\\{}(),*?[]<>|&;=#!\n\t0159-x\0é", max_size=60)
WORDS = ["ls", "rm", "-rf", "cd", "sh", "-c", "eval", "xargs", "env", "A=1", "find", ".", "-exec", "é", "{\U00070c5f"]
WORDS += ["if", "then", "fi", "for", "i", "in", "do", "done", "[[", "]]", "f()", "{", "}", "case", "esac", "x)"]
SIGNS = [
    " ",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "$(",
    ")",
    "`",
    "'",
    '"',
    "{a,b}",
    "{1..9}",
    "$X",
    "${X:-y}",
    "> f",
    "\\;",
    "~",
    "\\",
]
SIGNS += ["< /etc/x", "$'\\x41'", "#", "<<EOF\n", "EOF\n", "((", "))", "a=("]
PIECES = st.lists(st.sampled_from(WORDS).map(lambda word: word + " ") | st.sampled_from(SIGNS), max_size=20).map(
    "".join
)


@settings(max_examples=300, deadline=None)
@given(SHELL | PIECES | st.text(max_size=60))
def test_any_text_can_be_read(command: str) -> None:
    asks = read(command)
    assert asks.patterns or asks.directories or asks.unknown or not command.strip() or "cd" in command
    for rule in asks.always:
        assert rule.endswith(" *") or rule in asks.patterns


@pytest.mark.parametrize("program", ["find", "xargs find", "find -name", "grep", "xargs", "git", "tar", "sed", "cp"])
def test_a_program_without_its_arguments_is_read(program: str) -> None:
    assert read(program).patterns


@pytest.mark.parametrize(
    "command",
    [
        r"python3 <<< 'print(1)'\x61'#'",
        r"wc > 'out'\x61'.txt' -l",
        r"A='a'\x61'b' wc",
        r"A=('a'\x61'b'); wc",
        r"for name in 'a'\x61'b'; do wc; done",
        r"export A='a'\x61'b'",
        r"wc 'a'\x61'b'",
    ],
)
def test_a_word_that_the_grammar_takes_apart_requests_approval(command: str) -> None:
    assert "its syntax could not be read" in read(command).reasons


@pytest.mark.parametrize("command", ["""echo "a"'b'c$d"e">out""", "wc<in>out", "A=(a \"b\" 'c'd); wc", "wc <<<'a'>b"])
def test_words_beside_operators_are_read(command: str) -> None:
    assert "its syntax could not be read" not in read(command).reasons


@pytest.mark.parametrize(
    "command",
    [
        "true ${x:-$(( x='$(alpha)'; true $x ))}",
        "true ${x:-$(( '$(alpha)' ))}",
        'true "${x:=$((y))}"',
        "cat <<X\n$(( '$(alpha)' ))\nX",
    ],
)
def test_a_calculation_that_the_grammar_takes_for_a_subshell_requests_approval(command: str) -> None:
    assert any(reading.startswith(NOT_ANALYSED) for reading in readings(command))


@pytest.mark.parametrize(
    "command", ["echo ${n:-$((1 + 2))}", "n=3; echo ${m:-$((n * 2))}", "echo $( (ls; date) | wc -l)"]
)
def test_usual_calculations_in_expansions_are_read(command: str) -> None:
    assert read(command).reasons == []
