"""The formatters that are known by name, and what enables each (docs/opencode/tools.md 17)."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any

from ..core.flags import flag

PROBE = 5.0
"""Seconds that a program has to print its help."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a workspace is: files that enable a formatter are looked for upward from `directory` to `worktree`."""

    directory: Path
    worktree: Path

    def up(self, *names: str) -> Iterator[Path]:
        """Existing files of these names, nearest folder first."""
        for folder in (self.directory, *self.directory.parents):
            for name in names:
                if (folder / name).is_file():
                    yield folder / name
            if folder == self.worktree:
                return

    def read(self, *names: str) -> Iterator[str]:
        """Their texts."""
        for path in self.up(*names):
            yield path.read_text(encoding="utf-8", errors="replace")


Enabled = Callable[[Place], bool]


@dataclass(frozen=True, slots=True)
class Formatter:
    """A formatter, built in or configured.

    Attributes:
        name: its key in the config's ``formatter``.
        command: program and arguments; ``$FILE`` stands for the file.
        extensions: endings of the files it formats, with the dot.
        enabled: whether a project wants it; only asked if the program is there.
        environment: set in its environment.
    """

    name: str
    command: tuple[str, ...]
    extensions: tuple[str, ...]
    enabled: Enabled
    environment: Mapping[str, str] = field(default_factory=dict)


def _installed(place: Place) -> bool:
    """Being on the PATH is enough."""
    return True


def _file(*names: str) -> Enabled:
    return lambda place: any(place.up(*names))


def _depends(package: str, file: str = "package.json", *keys: str) -> Enabled:
    wanted = keys or ("dependencies", "devDependencies")

    def enabled(place: Place) -> bool:
        for text in place.read(file):
            try:
                data = json.loads(text)
            except ValueError:
                continue
            if isinstance(data, dict) and any(package in (data.get(key) or {}) for key in wanted):
                return True
        return False

    return enabled


def _oxfmt(place: Place) -> bool:
    return flag("OPENCODE_EXPERIMENTAL_OXFMT") and _depends("oxfmt")(place)


def _ruff(place: Place) -> bool:
    """Wanted where the project configures ruff or names it as a dependency."""
    for path in place.up("pyproject.toml", "ruff.toml", ".ruff.toml"):
        if path.name != "pyproject.toml" or _has_tool(path.read_text(encoding="utf-8", errors="replace"), "ruff"):
            return True
    return any("ruff" in text for text in place.read("requirements.txt", "pyproject.toml", "Pipfile"))


def _has_tool(text: str, name: str) -> bool:
    try:
        tool: Any = tomllib.loads(text).get("tool")
    except tomllib.TOMLDecodeError:
        return f"[tool.{name}" in text
    return isinstance(tool, dict) and name in tool


def _uv(place: Place) -> bool:
    """``uv format`` is ruff too, so only where ruff itself is not at work.

    OpenCode runs it wherever uv is installed, and so rewrites files of projects that never asked for a formatter. Here
    the project must be one that uv manages.
    """
    ruff = which("ruff") or which("ruff", path=sysconfig.get_path("scripts"))
    managed = any(place.up("uv.lock", "uv.toml")) or any("[tool.uv" in text for text in place.read("pyproject.toml"))
    return not (ruff and _ruff(place)) and managed and _helps("uv", "format")


def _air(place: Place) -> bool:
    """Another program has the same name: the formatter's help tells that it is for R."""
    return _helps("air", says="R language") and _helps("air", says="formatter")


def _helps(*words: str, says: str = "") -> bool:
    program = which(words[0]) or which(words[0], path=sysconfig.get_path("scripts"))
    if program is None:
        return False
    try:
        done = subprocess.run(
            [program, *words[1:], "--help"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE,
            check=False,
            start_new_session=sys.platform != "win32",
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and says.encode() in done.stdout.split(b"\n\n")[0] if says else done.returncode == 0


_JS = ".js .jsx .mjs .cjs .ts .tsx .mts .cts"
_WEB = f"{_JS} .html .htm .css .scss .sass .less .vue .svelte .json .jsonc .yaml .yml .toml .xml .md .mdx .graphql .gql"
_C = ".c .cc .cpp .cxx .c++ .h .hh .hpp .hxx .h++ .ino .C .H"


def _formatter(name: str, command: str, extensions: str, enabled: Enabled = _installed) -> Formatter:
    return Formatter(name, tuple(command.split()), tuple(extensions.split()), enabled)


BUILTIN: tuple[Formatter, ...] = (
    _formatter("gofmt", "gofmt -w $FILE", ".go"),
    _formatter("mix", "mix format $FILE", ".ex .exs .eex .heex .leex .neex .sface"),
    Formatter(
        "prettier",
        ("bun", "x", "prettier", "--write", "$FILE"),
        tuple(_WEB.split()),
        _depends("prettier"),
        {"BUN_BE_BUN": "1"},
    ),
    Formatter(
        "biome",
        ("bun", "x", "@biomejs/biome", "check", "--write", "$FILE"),
        tuple(_WEB.split()),
        _file("biome.json", "biome.jsonc"),
        {"BUN_BE_BUN": "1"},
    ),
    Formatter("oxfmt", ("bun", "x", "oxfmt", "$FILE"), tuple(_JS.split()), _oxfmt, {"BUN_BE_BUN": "1"}),
    _formatter("zig", "zig fmt $FILE", ".zig .zon"),
    _formatter("clang-format", "clang-format -i $FILE", _C, _file(".clang-format")),
    _formatter("ktlint", "ktlint -F $FILE", ".kt .kts"),
    _formatter("ruff", "ruff format $FILE", ".py .pyi", _ruff),
    _formatter("air", "air format $FILE", ".R", _air),
    _formatter("uv", "uv format -- $FILE", ".py .pyi", _uv),
    _formatter("rubocop", "rubocop --autocorrect $FILE", ".rb .rake .gemspec .ru"),
    _formatter("standardrb", "standardrb --fix $FILE", ".rb .rake .gemspec .ru"),
    _formatter("htmlbeautifier", "htmlbeautifier $FILE", ".erb .html.erb"),
    _formatter("dart", "dart format $FILE", ".dart"),
    _formatter("ocamlformat", "ocamlformat -i $FILE", ".ml .mli", _file(".ocamlformat")),
    _formatter("terraform", "terraform fmt $FILE", ".tf .tfvars"),
    _formatter("latexindent", "latexindent -w -s $FILE", ".tex"),
    _formatter("gleam", "gleam format $FILE", ".gleam"),
    _formatter("shfmt", "shfmt -w $FILE", ".sh .bash"),
    _formatter("nixfmt", "nixfmt $FILE", ".nix"),
    _formatter("rustfmt", "rustfmt $FILE", ".rs"),
    _formatter("dfmt", "dfmt -i $FILE", ".d"),
    _formatter("ormolu", "ormolu -i $FILE", ".hs"),
    _formatter("cljfmt", "cljfmt fix --quiet $FILE", ".clj .cljs .cljc .edn"),
    _formatter(
        "pint", "./vendor/bin/pint $FILE", ".php", _depends("laravel/pint", "composer.json", "require", "require-dev")
    ),
)
"""In the order they run."""
