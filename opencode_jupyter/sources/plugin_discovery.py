"""Find plugins: where they are, in which order, and which of those with equal names is used (docs/opencode/core.md 20).

Plugins of installed packages come first, in the place of OpenCode's internal ones; then the ``plugin`` lists of the
config files in load order; then the files of the config folders. Of equal names the last one is used, at its position.

A plugin is switched off by ``"-name"`` in a ``plugin`` list: one that comes before it in this order, or a file of a
config folder. The name may be an installed package's, for all its plugins; ``"-*"`` stands for all before.
``OPENCODE_DISABLE_DEFAULT_PLUGINS`` switches off all installed ones that no config names.

A project must not take a guard of the user's away. So its ``"-name"`` reaches its own plugins only, and its plugin
hides one of the user's with the same name only once it is trusted.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import unquote, urlparse

from ..core.config import Config
from ..core.config.files import display
from ..core.fingerprint import Fingerprint
from ..core.permission import expand
from ..core.trust import Subject, digest
from .tool_file_discovery import NOT_TRUSTED, config_folders

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from .source_code import SourceCode

log = logging.getLogger(__name__)

ENTRY_POINTS = "opencode_jupyter.plugins"
FOLDERS = ("plugin", "plugins")
SCRIPTS = (".js", ".ts", ".mjs", ".cjs", ".mts", ".cts", ".jsx", ".tsx")
JAVASCRIPT = (
    "it is a JavaScript plugin, and plugins run in the kernel's Python; write it as a .py file "
    "(tools in JavaScript can stay: .opencode/tool/)"
)
NOT_INSTALLED = (
    "no Python package of that name is installed here (packages of npm can't run in the kernel's Python); "
    "take it out of the config or pip install the Python package"
)
KIND = "plugin"
"""`Subject.kind`."""
MAX_FILES = 2000
"""Files of a project's package that its digest covers; one with more cannot be trusted."""


def canonical(name: str) -> str:
    """A package's or plugin's name in the form in which names are compared."""
    return re.sub(r"[-_.]+", "-", name).strip("-").lower()


@dataclass(frozen=True, slots=True)
class PluginSpec:
    """A plugin that was found or named, not loaded.

    Attributes:
        name: as a person reads it.
        kind: what `target` is.
        target: an entry point, a module's name, a file.
        source: where it comes from, for a person.
        digest: of the file and what it imports from beside it.
        code: the same as it was read; this is what runs.
        subject: what a person has to trust first; None if it needs no trust.
        needs_trust: it waits for a person's trust.
        reason: why it cannot run; "" if it can.
    """

    name: str
    kind: Literal["entry point", "module", "file", "none"]
    target: Any
    source: str
    digest: str = ""
    code: SourceCode | None = field(default=None, repr=False, compare=False)
    subject: Subject | None = None
    needs_trust: bool = False
    reason: str = ""

    @property
    def key(self) -> str:
        """The name by which it is compared with others."""
        return canonical(self.name)


class _Candidate(NamedTuple):
    spec: PluginSpec
    own: bool
    """It is the user's, and not the project's."""


class PluginScan:
    """The plugins of one workspace; empty until `find` was called.

    Args:
        workspace: whose config folders and trust.
        config: its configuration, without the changes of plugins.
        installed: the plugins of installed packages.

    Attributes:
        plugins: in order; each key once, and those that cannot run.
        off: name and source of those that are switched off.
        files: what the plugins were made of.
        folders: where plugins may appear.
        problems: lines of configs that have no effect, with the reason.
    """

    def __init__(self, workspace: ToolHost, config: Config, installed: Sequence[InstalledPlugin]) -> None:
        self.plugins: list[PluginSpec] = []
        self.off: list[tuple[str, str]] = []
        self.files = Fingerprint()
        self.folders = Fingerprint()
        self.problems: list[str] = []
        self._workspace = workspace
        self._config = config
        self._installed = installed
        worktree = workspace.worktree
        project = workspace.directory if worktree == Path(worktree.anchor) else worktree
        self._project = Path(os.path.realpath(project))

    def find(self) -> PluginScan:
        """Look for them, once; returns this object. Reads files: not for the event loop."""
        candidates: list[_Candidate] = []
        if self._workspace.flags.default_plugins:
            candidates = [_Candidate(plugin.spec, True) for plugin in self._installed]
        switched_off: dict[str, tuple[str, bool]] = {}
        for text, source, base, own in self._config_entries():
            if text.startswith("-"):
                name = text[1:].strip()
                switched_off[canonical(name)] = (source, own)
                candidates = self._switch_off(name, source, own, candidates)
                continue
            for spec in self._resolve(text, source, base, own):
                candidates.append(_Candidate(spec, own))
                switched_off.pop(spec.key, None)
        for spec, own in self._folder_files():
            source, by_user = switched_off.get(spec.key, ("", False))
            if source and (by_user or not own):
                self.off.append((spec.name, source))
                continue
            if source:
                self.problems.append(_no_effect(spec.name, source, spec.name))
            candidates.append(_Candidate(spec, own))
        self.plugins = _remove_overridden([candidate.spec for candidate in candidates])
        if any(spec.subject is not None for spec in self.plugins):
            self.files.add(self._workspace.data_dir / "trust.json")
        return self

    # ------------------------------------------------------------------ config lists

    def _config_entries(self) -> Iterator[tuple[str, str, Path, bool]]:
        """Entries of the ``plugin`` lists: text, source, base of relative paths, and whether the user wrote it."""
        for source, data in self._config.sources:
            for text in data.get("plugin") or ():
                path = Path(source)
                if not path.is_absolute():  # from code or the environment
                    yield text, source, self._workspace.directory, True
                else:
                    yield text, source, path.parent, source not in self._config.project_sources

    def _switch_off(self, name: str, source: str, by_user: bool, candidates: list[_Candidate]) -> list[_Candidate]:
        """The candidates that remain."""
        key = canonical(name)
        keys = {key, *(plugin.spec.key for plugin in self._installed if canonical(plugin.package) == key)}
        remaining = []
        for candidate in candidates:
            is_named = name == "*" or candidate.spec.key in keys
            if is_named and (by_user or not candidate.own):
                self.off.append((candidate.spec.name, source))
                continue
            if is_named:
                self.problems.append(_no_effect(name, source, candidate.spec.name))
            remaining.append(candidate)
        return remaining

    def _resolve(self, text: str, source: str, base: Path, own: bool) -> list[PluginSpec]:
        if text.startswith(("file://", "./", "../", "/", "~", ".\\", "..\\")) or text.endswith((".py", *SCRIPTS)):
            return [self._file(_path(text, base, self._config.home), source, own)]
        package = text.removeprefix("npm:")
        name = (package[:1] + package[1:].partition("@")[0]).strip()  # without its version
        key = canonical(name)
        specs = [plugin.spec for plugin in self._installed if key in (plugin.spec.key, canonical(plugin.package))]
        if specs:
            return [replace(spec, source=f"{spec.source}, named in {source}") for spec in specs]
        return [self._module(name, f'plugin "{text}" in {source}', own)]

    def _module(self, name: str, source: str, own: bool) -> PluginSpec:
        module = locate_module(name, self._project)
        if module is None:
            return PluginSpec(name, "none", None, source, reason=NOT_INSTALLED)
        if own:
            return PluginSpec(name, "module", module.name, source)
        subject = Subject(KIND, f"package {module.name} ({module.path})", module.digest, {"content": module.text})
        return self._check_trust(PluginSpec(name, "module", module.name, source, subject=subject))

    # ------------------------------------------------------------------ files

    def _folder_files(self) -> Iterator[_Candidate]:
        for config_folder, own in config_folders(self._workspace):
            for name in FOLDERS:
                folder = config_folder / name
                self.folders.add(folder)
                try:
                    files = sorted(folder.iterdir())
                except OSError:
                    continue
                for path in files:
                    if path.suffix in (".py", *SCRIPTS) and path.name[0] not in "._" and path.is_file():
                        yield _Candidate(self._file(path, str(path), own), own)

    def _file(self, path: Path, source: str, own: bool) -> PluginSpec:
        name = path.name[: -len(path.suffix)] if path.suffix else path.name
        if path.suffix in SCRIPTS:
            return PluginSpec(name, "none", path, source, reason=JAVASCRIPT)
        if path.suffix != ".py":
            return PluginSpec(name, "none", path, source, reason=f"{path} is no Python file (.py)")
        from .source_code import SourceCodeError, read_source_code

        self.files.add(path)
        try:
            code = read_source_code(path)
        except SourceCodeError as error:
            return PluginSpec(name, "none", path, source, reason=f"{error.path} {error}")
        self.files.merge(code.fingerprint)
        spec = PluginSpec(name, "file", path, source, code.digest, code)
        if own:
            return spec
        shown = {"content": code.text, "label": display(path, self._project, self._config.home)}
        return self._check_trust(replace(spec, subject=Subject(KIND, os.path.realpath(path), code.digest, shown)))

    def _check_trust(self, spec: PluginSpec) -> PluginSpec:
        trusted = spec.subject is None or self._workspace.trust.known(spec.subject)
        return spec if trusted else replace(spec, needs_trust=True, reason=NOT_TRUSTED)


def _no_effect(text: str, source: str, name: str) -> str:
    return f'"-{text}" in {source} has no effect on {name}: a project cannot switch your plugins off'


def _path(text: str, base: Path, home: Path) -> Path:
    if text.startswith("file://"):
        from urllib.request import url2pathname  # here: few plugins are named by a URL

        url = urlparse(text)
        path = url.path if url.netloc in ("", "localhost") else f"//{url.netloc}{url.path}"
        text = url2pathname(path) if os.name == "nt" else unquote(path)  # Python 3.14's refuses other hosts
    return Path(os.path.abspath(os.path.join(base, expand(text, home))))


def _remove_overridden(specs: Sequence[PluginSpec]) -> list[PluginSpec]:
    """Of equal keys the last one that can run; one that cannot run hides no other."""
    used: list[PluginSpec] = []
    seen: set[tuple[str, str]] = set()
    running: set[str] = set()
    for spec in reversed(specs):
        if spec.key in running or (spec.key, spec.reason) in seen:
            continue
        seen.add((spec.key, spec.reason))
        if not spec.reason:
            running.add(spec.key)
        used.append(spec)
    return used[::-1]


# ---------------------------------------------------------------------- installed packages


class InstalledPlugin(NamedTuple):
    """A plugin of an installed package's entry points."""

    package: str
    spec: PluginSpec


_lock = threading.Lock()
_import_path: list[str] = []
_installed: Future[tuple[InstalledPlugin, ...]] | None = None


def installed_plugins() -> Future[tuple[InstalledPlugin, ...]]:
    """The plugins of installed packages, by package and name. Any thread may call it.

    They are read once for each ``sys.path``, on a thread of their own, since that takes long.
    """
    global _installed, _import_path
    with _lock:
        if _installed is None or _import_path != sys.path:
            _installed, _import_path = Future(), list(sys.path)
            threading.Thread(
                target=_read_entry_points, args=(_installed,), name="opencode-plugins", daemon=True
            ).start()
        return _installed


def _read_entry_points(future: Future[tuple[InstalledPlugin, ...]]) -> None:
    plugins: list[InstalledPlugin] = []
    try:
        texts = (dist.read_text("entry_points.txt") for dist in importlib.metadata.distributions())
        # Parsing the files of all packages takes three times as long as reading them, and few have plugins.
        has_plugins = any(ENTRY_POINTS in text for text in texts if text)
        for entry in importlib.metadata.entry_points(group=ENTRY_POINTS) if has_plugins else ():
            package, version = (entry.dist.name, entry.dist.version) if entry.dist is not None else ("", "")
            source = f"{package} {version} (installed)".strip()
            plugins.append(InstalledPlugin(package, PluginSpec(entry.name, "entry point", entry, source)))
    except Exception:  # one broken package must not break every call
        log.exception("the entry points of installed packages can't be read")
    plugins.sort(key=lambda plugin: (canonical(plugin.package), plugin.spec.name))
    future.set_result(tuple(plugins))


@dataclass(frozen=True, slots=True)
class LocatedModule:
    """A Python module that a config names.

    Attributes:
        name: to import it by.
        path: its file.
        digest: of its code: every file of a package that lies in the project, else the module's own file.
        text: of its own file, for a person who is asked to trust it.
    """

    name: str
    path: Path
    digest: str
    text: str


def locate_module(name: str, project: Path) -> LocatedModule | None:
    """Find a module on ``sys.path`` without running anything of it; None if there is none.

    Args:
        name: dotted, or a package's name with hyphens.
        project: what lies below it is the project's own code.
    """
    dotted = name.replace("-", "_")
    parts = dotted.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    try:  # importlib's own finder also knows packages that are installed for editing
        top = spec = importlib.util.find_spec(parts[0])
    except (ImportError, ValueError, AttributeError):
        return None
    for i in range(1, len(parts)):
        if spec is None:
            return None
        # `find_spec` would import the parents of a dotted name
        folders = list(spec.submodule_search_locations or ())
        spec = importlib.machinery.PathFinder.find_spec(".".join(parts[: i + 1]), folders)
    if spec is None or spec.origin is None or not spec.has_location:
        return None
    path = Path(os.path.realpath(spec.origin))
    # an environment often is a folder of the project
    in_environment = path.is_relative_to(os.path.realpath(sys.prefix)) and "site-packages" in path.parts
    try:
        own_code = path.read_bytes()
        content = own_code
        if path.is_relative_to(project) and not in_environment and top is not None and top.origin:
            content = _package_code(Path(os.path.realpath(top.origin)), own_code)
    except OSError:
        return None
    return LocatedModule(dotted, path, digest(content), own_code.decode("utf-8", "replace"))


def _package_code(top: Path, own_code: bytes) -> bytes:
    """The code of every file of a package, so that a change of any asks again."""
    if top.name != "__init__.py":
        return own_code
    files = sorted(top.parent.rglob("*.py"))
    if len(files) > MAX_FILES:
        raise OSError(f"{top.parent} has more than {MAX_FILES} files")
    return b"".join(os.fsencode(f.relative_to(top.parent)) + b"\0" + f.read_bytes() + b"\0" for f in files)
