"""Where plugins are looked for, in which order, and which of equal names counts (reference: core.md 20).

Plugins of installed packages come first, in the place of OpenCode's internal ones; then the ``plugin`` lists of the
config files in load order; then the files of the config folders. Of equal names the last one counts, at its place.

A plugin is switched off by ``"-name"`` in a ``plugin`` list: one that was found or named before, or a file of a config
folder. The name may be an installed package's, for all its plugins; ``"-*"`` stands for all that were found or named
before. ``OPENCODE_DISABLE_DEFAULT_PLUGINS`` switches off all installed ones that no config names.

Two things differ for what a project brings, since a project must not be able to take a guard of yours away: its
``"-name"`` reaches no further than its own plugins, and its plugin hides one of yours of the same name only once it is
trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlparse

from ..config import Config
from ..config.reading import display
from ..permission import expand
from ..trust import Subject, Trust
from .installed import Installed, canonical

if TYPE_CHECKING:
    from ..discovery.content import Content

FOLDERS = ("plugin", "plugins")
SCRIPTS = (".js", ".ts", ".mjs", ".cjs", ".mts", ".cts", ".jsx", ".tsx")
NOT_TRUSTED = "not trusted yet; run %tools trust"
JAVASCRIPT = (
    "it is a JavaScript plugin, and plugins run in the kernel's Python; write it as a .py file "
    "(tools in JavaScript can stay: .opencode/tool/)"
)
KIND = "plugin"
"""`Subject.kind`."""


@dataclass(frozen=True, slots=True)
class Found:
    """A plugin that is named somewhere.

    Attributes:
        name: as a person reads it.
        kind: what `target` is.
        target: an entry point, a module's name, a file.
        source: where it comes from, in words.
        digest: of the file and what it imports from beside it.
        content: the same as it was read when it was looked at; this is what runs.
        subject: what a person has to trust first; None for what needs no trust.
        reason: why it can't run; "" if it can.
    """

    name: str
    kind: Literal["entry point", "module", "file", "none"]
    target: Any
    source: str
    digest: str = ""
    content: Content | None = field(default=None, repr=False, compare=False)
    subject: Subject | None = None
    reason: str = ""

    @property
    def key(self) -> str:
        """By which it is compared with others."""
        return canonical(self.name)


class Findings:
    """What one look gave.

    Attributes:
        plugins: in order; each key once, but for those that wait for trust.
        off: name and place of those that were switched off.
        watched: files whose change makes another look necessary.
        folders: where plugins may come to be; the same goes for them.
        problems: lines of configs that had no effect, with the reason.
    """

    def __init__(self) -> None:
        self.plugins: list[Found] = []
        self.off: list[tuple[str, str]] = []
        self.watched: list[Path] = []
        self.folders: list[Path] = []
        self.problems: list[str] = []


class Finder:
    """Looks for the plugins of one workspace. It reads files: not for the event loop.

    Args:
        config: the merged configuration, without what plugins changed in it.
        directory: where the workspace runs.
        worktree: top of the project.
        trust: what a person trusted.
        defaults: whether installed packages' plugins run unnamed.
        folders: the config folders, such as are not there yet too; those of `config` if left out.
    """

    def __init__(
        self,
        config: Config,
        directory: Path,
        worktree: Path,
        trust: Trust,
        *,
        defaults: bool,
        folders: Sequence[Path] | None = None,
    ) -> None:
        self._config = config
        self._folders = config.directories if folders is None else folders
        self._directory = directory
        self._project = Path(os.path.realpath(directory if worktree == Path(worktree.anchor) else worktree))
        self._trust = trust
        self._defaults = defaults
        self._mine = {config.home / ".opencode", *config.directories[:1]}

    def look(self, packages: Sequence[Installed]) -> Findings:
        """Everything that is there now."""
        out = Findings()
        entries = [_entry_point(one) for one in packages]
        found: list[tuple[Found, bool]] = [(one, True) for one in entries] if self._defaults else []
        switched: dict[str, tuple[str, bool]] = {}
        for text, source, base, own in self._named():
            if text.startswith("-"):
                name = text[1:].strip()
                switched[canonical(name)] = (source, own)
                self._switch_off(name, source, own, found, out, packages)
                continue
            for one in self._resolved(text, source, base, own, entries, packages, out):
                found.append((one, own))
                switched.pop(one.key, None)
        for one, mine in self._local(out):
            source, own = switched.get(one.key, ("", False))
            if source and (own or not mine):
                out.off.append((one.name, source))
                continue
            if source:
                out.problems.append(_no_effect(one.name, source, one.name))
            found.append((one, mine))
        out.plugins = _last_of_each([one for one, _ in found])
        return out

    # ------------------------------------------------------------------ config lists

    def _named(self) -> Iterator[tuple[str, str, Path, bool]]:
        """Entries of the ``plugin`` lists: text, who says so, where its paths start, whether the user says so."""
        for name, data in self._config.sources:
            for text in data.get("plugin") or ():
                path = Path(name)
                if not path.is_absolute():  # given in code or in the environment
                    yield text, name, self._directory, True
                else:
                    yield text, name, path.parent, self._is_mine(path)

    def _is_mine(self, path: Path) -> bool:
        """Return whether a config file or folder is the user's own, and not one that came with a project."""
        if any(path.is_relative_to(folder) for folder in self._mine):
            return True
        here = Path(os.path.realpath(self._directory))
        for one in (path, Path(os.path.realpath(path))):
            folder = one if one.is_dir() else one.parent
            folder = folder.parent if folder.name == ".opencode" else folder
            if folder.is_relative_to(self._project) or here.is_relative_to(folder):
                return False
        return True

    def _switch_off(
        self,
        name: str,
        source: str,
        own: bool,
        found: list[tuple[Found, bool]],
        out: Findings,
        packages: Sequence[Installed],
    ) -> None:
        key = canonical(name)
        offered = {canonical(one.name) for one in packages if canonical(one.package) == key}
        hit = [pair for pair in found if name == "*" or pair[0].key == key or pair[0].key in offered]
        kept = [pair for pair in hit if pair[1] and not own]
        for pair in hit:
            if pair not in kept:
                found.remove(pair)
                out.off.append((pair[0].name, source))
        for pair in kept:
            out.problems.append(_no_effect(name, source, pair[0].name))

    def _resolved(
        self,
        text: str,
        source: str,
        base: Path,
        own: bool,
        entries: Sequence[Found],
        packages: Sequence[Installed],
        out: Findings,
    ) -> list[Found]:
        if _is_path(text):
            return [self._file(_path(text, base, self._config.home), source, own, out)]
        package = text.removeprefix("npm:")
        name = (package[:1] + package[1:].partition("@")[0]).strip()  # without its version
        key = canonical(name)
        offered = [e for e, one in zip(entries, packages, strict=True) if key in (e.key, canonical(one.package))]
        if offered:
            return [replace(one, source=f"{one.source}, named in {source}") for one in offered]
        return [self._module(name, f'plugin "{text}" in {source}', own)]

    def _module(self, name: str, source: str, own: bool) -> Found:
        from .packages import locate

        module = locate(name, self._project)
        if module is None:
            reason = (
                "no Python package of that name is installed here (packages of npm can't run in the kernel's Python); "
                "take it out of the config or pip install the Python package"
            )
            return Found(name, "none", None, source, reason=reason)
        if own:
            return Found(name, "module", module.name, source)
        subject = Subject(KIND, f"package {module.name} ({module.path})", module.digest, {"content": module.shown})
        return self._judged(Found(name, "module", module.name, source, subject=subject))

    # ------------------------------------------------------------------ files

    def _local(self, out: Findings) -> Iterator[tuple[Found, bool]]:
        for folder in self._folders:
            own = self._is_mine(folder)
            for name in FOLDERS:
                place = folder / name
                out.folders.append(place)
                try:
                    files = sorted(place.iterdir())
                except OSError:
                    continue
                for path in files:
                    if path.suffix in (".py", *SCRIPTS) and path.name[0] not in "._" and path.is_file():
                        yield self._file(path, str(path), own, out), own

    def _file(self, path: Path, source: str, own: bool, out: Findings) -> Found:
        name = path.name[: -len(path.suffix)] if path.suffix else path.name
        if path.suffix in SCRIPTS:
            return Found(name, "none", path, source, reason=JAVASCRIPT)
        if path.suffix != ".py":
            return Found(name, "none", path, source, reason=f"{path} is no Python file (.py)")
        from ..discovery.content import ContentError, read_content

        out.watched.append(path)
        try:
            content = read_content(path)
        except ContentError as error:
            return Found(name, "none", path, source, reason=f"{error.path} {error}")
        out.watched += content.stamps
        found = Found(name, "file", path, source, content.digest, content)
        if own:
            return found
        shown = {"content": content.text, "label": display(path, self._project, self._config.home)}
        subject = Subject(KIND, os.path.realpath(path), content.digest, shown)
        return self._judged(replace(found, subject=subject))

    def _judged(self, found: Found) -> Found:
        if found.subject is None or self._trust.known(found.subject):
            return found
        return replace(found, reason=NOT_TRUSTED)


def _no_effect(said: str, source: str, name: str) -> str:
    return f'"-{said}" in {source} has no effect on {name}: a project cannot switch your plugins off'


def _entry_point(one: Installed) -> Found:
    return Found(one.name, "entry point", one.entry, f"{one.package} {one.version} (installed)".strip())


def _is_path(text: str) -> bool:
    return text.startswith(("file://", "./", "../", "/", "~", ".\\", "..\\")) or text.endswith((".py", *SCRIPTS))


def _path(text: str, base: Path, home: Path) -> Path:
    if text.startswith("file://"):
        from urllib.request import url2pathname  # here: few plugins are named by a URL

        url = urlparse(text)
        text = url2pathname(url.path if url.netloc in ("", "localhost") else f"//{url.netloc}{url.path}")
    return Path(os.path.abspath(os.path.join(base, expand(text, home))))


def _last_of_each(found: Sequence[Found]) -> list[Found]:
    """Of equal keys the last one that can run; one that can't hides no other."""
    out: list[Found] = []
    seen: set[str] = set()
    idle: set[tuple[str, str]] = set()
    for one in reversed(found):
        if one.key in seen:
            continue
        if not one.reason:
            seen.add(one.key)
        elif (one.key, one.reason) in idle:
            continue
        else:
            idle.add((one.key, one.reason))
        out.append(one)
    return out[::-1]
