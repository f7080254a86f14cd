"""Formatters: programs that put a file in order after a tool has changed it (docs/opencode/tools.md 17).

A service of the workspace that listens to ``file.edited``. The event's publisher waits for it, so a tool reads the file
again when it has been formatted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from ..core import atomic
from ..core.flags import flag
from ..core.permission.sensitive_files import is_startup_file
from ..sandbox.service import Sandbox
from ._path_checks import find_program
from .process.child import spawn
from .process.environment import clean_environment

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from ..sandbox.policy import SandboxPolicy

log = logging.getLogger(__name__)

LIMIT = 10.0
"""Seconds a formatter may take for a file; then it is ended and the file is as it was before."""


@dataclass(frozen=True, slots=True)
class ProjectFolders:
    """A workspace's folders: files that enable a formatter are looked for upward from `directory` to `worktree`."""

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


Enabled = Callable[[ProjectFolders], bool]


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


def _installed(project: ProjectFolders) -> bool:
    """Being on the PATH is enough."""
    return True


def _file(*names: str) -> Enabled:
    return lambda project: any(project.up(*names))


def _depends(package: str, file: str = "package.json", *keys: str) -> Enabled:
    sections = keys or ("dependencies", "devDependencies")

    def enabled(project: ProjectFolders) -> bool:
        for text in project.read(file):
            try:
                data = json.loads(text)
            except ValueError:
                continue
            if isinstance(data, dict) and any(package in (data.get(key) or {}) for key in sections):
                return True
        return False

    return enabled


def _oxfmt(project: ProjectFolders) -> bool:
    return flag("OPENCODE_EXPERIMENTAL_OXFMT") and _depends("oxfmt")(project)


def _ruff(project: ProjectFolders) -> bool:
    """Wanted where the project configures ruff or names it as a dependency."""
    for path in project.up("pyproject.toml", "ruff.toml", ".ruff.toml"):
        if path.name != "pyproject.toml" or "[tool.ruff" in path.read_text(encoding="utf-8", errors="replace"):
            return True
    return any("ruff" in text for text in project.read("requirements.txt", "pyproject.toml", "Pipfile"))


def _uv(project: ProjectFolders) -> bool:
    """``uv format`` is ruff too, so only where ruff itself is not at work.

    OpenCode runs it wherever uv is installed, and so rewrites files of projects that never asked for a formatter. Here
    the project must be one that uv manages.
    """
    ruff = find_program("ruff")
    managed = any(project.up("uv.lock", "uv.toml")) or any(
        "[tool.uv" in text for text in project.read("pyproject.toml")
    )
    return not (ruff and _ruff(project)) and managed


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
    _formatter("air", "air format $FILE", ".R"),
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


class Formatters:
    """The formatters of a workspace, and whether each is enabled: found out when its kind of file is first edited.

    Args:
        workspace: whose config, folder and bus count.
    """

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._config: Any = None
        self._formatters: list[Formatter] = []
        self._enabled: dict[str, bool] = {}
        self._unsubscribe = workspace.bus.subscribe("file.edited", self._edited)

    def close(self) -> None:
        """Listen no more."""
        self._unsubscribe()

    async def format(self, path: Path) -> list[str]:
        """Run every enabled formatter of a file, one after another.

        Returns:
            The names of those that ran without a fault. What goes wrong is logged only.
        """
        self._load()
        ran = []
        for formatter in self._formatters:
            if path.suffix in formatter.extensions and await self._is_enabled(formatter):
                service = self._workspace.service(Sandbox)
                sandbox = service.program("formatter", formatter.name)
                if sandbox is not None and is_startup_file(str(path)):
                    continue  # the sandbox would undo it
                try:
                    with service.startup_files_kept(sandbox):
                        if await self._run(formatter, path, sandbox):
                            ran.append(formatter.name)
                except Exception:
                    log.exception("the formatter %s failed", formatter.name)
        return ran

    async def _edited(self, event: dict[str, Any]) -> None:
        await self.format(Path(event["properties"]["file"]))

    def _load(self) -> None:
        config = self._workspace.config
        if config is not self._config:
            self._config = config
            self._formatters = configured(config.data.get("formatter"))
            self._enabled = {}

    async def _is_enabled(self, formatter: Formatter) -> bool:
        is_enabled = self._enabled.get(formatter.name)
        if is_enabled is None:
            project = ProjectFolders(self._workspace.directory, self._workspace.worktree)
            is_enabled = await anyio.to_thread.run_sync(_check, formatter, project)
            self._enabled[formatter.name] = is_enabled
        return is_enabled

    async def _run(self, formatter: Formatter, path: Path, sandbox: SandboxPolicy | None) -> bool:
        program = find(formatter.command[0], self._workspace.directory)
        if program is None:
            log.info("the formatter %s is not installed: no %s", formatter.name, formatter.command[0])
            return False
        argv = [program, *(word.replace("$FILE", str(path)) for word in formatter.command[1:])]
        keep = self._workspace.config.get("experimental", "shell_env_keep", default=())
        env = clean_environment(os.environ, keep=keep, extra=formatter.environment)
        before = await anyio.to_thread.run_sync(path.read_bytes)
        cwd = str(self._workspace.directory)
        child = spawn(argv, cwd=cwd, env=env, on_output=_discard, sandbox=sandbox)
        try:
            outcome = await asyncio.wait_for(child.wait(), LIMIT)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await child.stop()
                await anyio.to_thread.run_sync(_restore, path, before)
            if not isinstance(error, TimeoutError):
                raise
            log.warning("the formatter %s took more than %g s for %s and was stopped", formatter.name, LIMIT, path)
            return False
        finally:
            child.close()
        if outcome.code != 0:
            log.warning("the formatter %s failed for %s: exit code %s", formatter.name, path, outcome.code)
        return outcome.code == 0


def configured(config: Any) -> list[Formatter]:
    """The formatters that a config's ``formatter`` leaves: ``false`` for none, or an object of entries by name.

    An entry has ``command`` (a list, with ``$FILE``), ``extensions``, ``environment``, ``disabled``. One that is not
    built in needs a command and is always enabled.
    """
    if config is False:
        return []
    formatters = {formatter.name: formatter for formatter in BUILTIN}
    for name, entry in config.items() if isinstance(config, Mapping) else ():
        if entry is False or (isinstance(entry, Mapping) and entry.get("disabled") is True):
            formatters.pop(name, None)
        elif isinstance(entry, Mapping):
            formatter = _merged(str(name), entry, formatters.get(name))
            if formatter is not None:
                formatters[name] = formatter
        elif entry is not True:
            log.warning("formatter.%s is %r; it should be an object with command and extensions", name, entry)
    return [*formatters.values()]


def _merged(name: str, entry: Mapping[str, Any], builtin: Formatter | None) -> Formatter | None:
    base = builtin or Formatter(name, (), (), _installed)
    command = entry.get("command", base.command)
    extensions = entry.get("extensions", base.extensions)
    environment = entry.get("environment", base.environment)
    good = (
        all(
            isinstance(words, (list, tuple)) and all(isinstance(word, str) for word in words)
            for words in (command, extensions)
        )
        and bool(command)
        and isinstance(environment, Mapping)
    )
    if not good:
        log.warning(
            'formatter.%s is ignored: it needs "command" and "extensions", lists of texts such as ["black", "$FILE"] '
            'and [".py"]',
            name,
        )
        return builtin
    values = {str(key): str(value) for key, value in environment.items()}
    return Formatter(name, tuple(command), tuple(extensions), base.enabled, values)


def find(program: str, directory: Path) -> str | None:
    """A formatter's program: a path from the project's folder, or a name."""
    if os.sep not in program:
        return find_program(program)
    path = os.path.normpath(os.path.join(directory, os.path.expanduser(program)))
    return path if os.access(path, os.X_OK) and os.path.isfile(path) else None


def _check(formatter: Formatter, project: ProjectFolders) -> bool:
    try:
        return find(formatter.command[0], project.directory) is not None and formatter.enabled(project)
    except Exception:
        log.exception("cannot tell whether the formatter %s is configured", formatter.name)
        return False


def _restore(path: Path, before: bytes) -> None:
    """A formatter that is ended may leave half a file."""
    with contextlib.suppress(OSError):
        if path.read_bytes() != before:
            atomic.write(path, before)


def _discard(data: bytes) -> None:
    """Ignore a formatter's output."""
