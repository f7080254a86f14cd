"""A project folder with its configuration, tools, permissions, sessions, store and bus: it makes the calls.

`ToolHost` needs nothing above this layer: what else a workspace has (built-in tools, sources of tools, agents) is
passed in by `opencode_jupyter.workspace.Workspace`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

from . import paths, secrets
from .agents import Agent, build_agents, default_agent
from .call import By, Call, CallOptions, Executor
from .config import Config, ConfigWarning, load_config
from .errors import ToolError
from .events import Bus
from .file_changes import Changes
from .file_tracker import FileTracker
from .flags import Flags
from .hooks import Hooks
from .option_checks import check_call_options, check_callable, check_kind
from .permission import Decision, PermissionService, Rule
from .project_trust import trust_project
from .questions import QuestionService
from .registry import Registry
from .result import ToolResult
from .sessions import Session, Sessions
from .store.store import Store
from .suggestions import near_names, suggestion
from .threads import call_soon, close_service, is_current, run_elsewhere, run_on_loop, wait_interruptibly
from .truncation import Truncation
from .trust import Subject, Trust

if TYPE_CHECKING:
    from .config.save import SavedRules
    from .sampling import Completer
    from .tool import Tool

T = TypeVar("T")
S = TypeVar("S")
CLEANUP_INTERVAL = 3600.0
"""Seconds between two sweeps of old spill files (docs/opencode/core.md 3)."""


class Presenter(Protocol):
    """Runs the calls of other libraries' agents where a person sees them: a notebook gives each a card.

    Both are used on the thread of the code that makes the call; the call itself runs on the workspace's loop.
    """

    async def run(self, id: str, make: Callable[[], Call]) -> ToolResult:
        """Make a call of the tool `id` with `make`, show it and await its end."""

    def run_sync(self, id: str, make: Callable[[], Call]) -> ToolResult:
        """`run`, from code that can't await."""


@dataclass(frozen=True, slots=True)
class Layers:
    """What the layers above bring to a workspace.

    Attributes:
        tools: a function that makes each built-in tool, by its id.
        sessions: the class of its sessions.
        adapt: makes tools of what other libraries call one, for ``registry.register``; None for anything else.
    """

    tools: Mapping[str, Callable[[], Tool]] = field(default_factory=dict)
    sessions: type[Sessions[Any]] = Sessions
    adapt: Callable[..., list[Tool] | None] | None = None


class ToolHost:
    """The tool system for one folder, without tools of its own.

    Args:
        layers: what the layers above add; for the others see `opencode_jupyter.workspace.Workspace`.

    Raises:
        NotADirectoryError: `directory` is no folder.
        ConfigError: a config file can't be read.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] = ".",
        config: dict[str, Any] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        approve: Callable[..., Any] | None = None,
        answer: Callable[..., Any] | None = None,
        *,
        store: bool = True,
        layers: Layers | None = None,
    ) -> None:
        layers = layers or Layers()
        check_kind(data_dir, (str, os.PathLike, type(None)), "data_dir", "a path")
        check_callable(approve, "approve", optional=True)
        check_callable(answer, "answer", optional=True)
        self.directory, self.worktree = paths.folders(directory)
        self.data_dir = paths.data_folder() if data_dir is None else Path(data_dir)
        self.flags = Flags.read()
        self.bus = Bus()
        self.hooks = Hooks()
        self.rules: list[Rule] = []
        """Rules a person added while the workspace is open; after the agent's, before a session's."""
        self.execute: Executor | None = None
        """Runs a tool in place of `Bound.execute`: the notebook's engine puts user code on a thread of its own."""
        self.present: Presenter | None = None
        """Shows the calls of other libraries' agents: a notebook gives them cards."""
        self.complete: Completer | None = None
        """Has a model answer a request, for servers that sample; None where there are no models."""
        self.calls: dict[str, Call] = {}
        self.permissions = PermissionService(self.bus, approve, self.hooks, os.path.realpath(self.data_dir))
        self.permissions.mask = self.masked
        self.permissions.other_spelling = lambda path: paths.other_spelling(path, self.directory, self.worktree)
        self.questions = QuestionService(self.bus, answer, self.masked)
        self.files = FileTracker()
        self.changes = Changes(self.data_dir, self.files)
        self.trust = Trust(self.data_dir / "trust.json")
        self.trust_subjects: list[Callable[[], Iterable[Subject]]] = []
        """Functions that list what else needs trust, besides the configuration and the registry's sources."""
        self.warning_lists: list[Callable[[], Iterable[ConfigWarning]]] = []
        """Functions that list what is wrong in files besides the configuration."""
        self.overrides = config
        """Configuration that overrides the config files."""
        self._skill_folders: list[str] = []
        secrets.learn_stored(self.data_dir)
        self.reload_config()
        self.store = Store(self.data_dir / "opencode.db") if store else None
        self.sessions = layers.sessions(self)
        self.registry = Registry(self, layers.tools, layers.adapt)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._services: dict[Callable[[Any], Any], Any] = {}
        self._closed = False

    def _read_config(self, directory: Path, worktree: Path) -> Config:
        return load_config(directory, worktree, overrides=self.overrides, trusted=self.trust.known)

    def use_config(self, config: Config) -> None:
        """Use this configuration from now on; running calls keep the rules they started with."""
        self.config = config
        self.masker = secrets.masker_for(config)
        self.truncation = Truncation(self.data_dir, self.config.data.get("tool_output") or {}, self.masker)
        self.agents: dict[str, Agent] = self._build_agents()

    def masked(self, value: T) -> T:
        """A value with the known secrets in its texts masked."""
        masker = self.masker()
        return value if masker is None else masker.value(value)

    def _build_agents(self) -> dict[str, Agent]:
        return build_agents(
            self.config,
            directory=self.directory,
            worktree=self.worktree,
            data_dir=self.data_dir,
            truncate_glob=self.truncation.glob,
            skill_directories=self._skill_folders,
        )

    def allow_skill_dirs(self, folders: Sequence[Path]) -> None:
        """Let every agent read in these folders, as in OpenCode; running calls keep the rules they started with.

        A folder whose name would be a pattern is left out.
        """
        spellings = [name for folder in folders for name in (str(folder), os.path.realpath(folder))]
        readable = [name for name in dict.fromkeys(spellings) if not {"*", "?"} & set(name)]
        if readable != self._skill_folders:
            self._skill_folders = readable
            self.agents = self._build_agents()

    def change_directory(self, directory: str | os.PathLike[str]) -> None:
        """Run later calls in another folder, with that folder's config; sessions, rules and approvals stay.

        Raises:
            NotADirectoryError: it is no folder.
            ConfigError: its configuration can't be read; the workspace stays where it was.
        """
        folder, worktree = paths.folders(directory)
        config = self._read_config(folder, worktree)  # first: no call there by another's rules
        self.directory, self.worktree = folder, worktree
        self.use_config(config)

    def reload_config(self) -> None:
        """Read the config files again; if they can't be read (ConfigError), the present configuration stays."""
        self.use_config(self._read_config(self.directory, self.worktree))

    def warnings(self) -> list[ConfigWarning]:
        """What is wrong in files that were read (configuration, skills, tool files); the rest of them works."""
        return [*self.config.warnings, *(warning for list_more in self.warning_lists for warning in list_more())]

    def save_rules(
        self, permission: str, patterns: Sequence[str], action: str = "allow", *, agent: str | None = None
    ) -> SavedRules:
        """Write rules to the project's configuration (`core.config.save`) and read it again.

        Args:
            permission: the rules' key, such as ``bash``.
            patterns: one rule each, as a config file has them.
            action: ``allow``, ``deny`` or ``ask``.
            agent: for whom remaining rules are reported; the default one if left out.

        Raises:
            ToolError: none could be saved; it names the rule or the file that prevents it.
        """
        from . import project_rules  # here: few sessions save rules

        return project_rules.save(self, permission, patterns, action, agent=agent)

    def allow_in_project(self, permission: str, patterns: Sequence[str], *, agent: str | None = None) -> SavedRules:
        """Save what a person allowed in reply to a request. Unlike `save_rules` it never overrules a rule that denies.

        Raises:
            ToolError: none of the patterns could be saved.
        """
        from . import project_rules  # here: few sessions save rules

        return project_rules.save(self, permission, patterns, "allow", agent=agent, literal=True, keep_denies=True)

    def forget_rule(self, rule: Rule) -> str | None:
        """Remove a rule from the project's config file that it comes from.

        Returns:
            The file's name; None if the rule comes from no file of the project.

        Raises:
            ToolError: the file can't be rewritten without losing something.
        """
        from . import project_rules  # here: few sessions save rules

        return project_rules.forget(self, rule)

    def trust_project(self) -> list[Subject]:
        """Trust the project as it is now, like ``%tools trust --project``; returns what was not trusted before."""
        return trust_project(self)

    # ------------------------------------------------------------------ calls

    def start(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        agent: str | None = None,
        session: str | Session | None = None,
        message_id: str | None = None,
        timeout: float | None = None,
        by: By = "python",
        **options: Any,
    ) -> Call:
        """A call that has not started: await its `run` once. See `call` for the arguments.

        Raises:
            ToolError: no such agent or session, an option is wrong, or the workspace is closed.
        """
        if self._closed:
            raise ToolError("this Workspace is closed; make a new one")
        check_call_options(by, timeout, name, options, CallOptions)
        call_agent = self.agent(agent)
        call_session = self.sessions.get(session)
        return Call(
            self,
            name,
            {} if arguments is None else arguments,
            agent=call_agent,
            session=call_session,
            message_id=message_id or self.sessions.open_message(call_session, call_agent.name),
            options=CallOptions(timeout=timeout, by=by, **options),
        )

    async def call(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        agent: str | None = None,
        session: str | Session | None = None,
        timeout: float | None = None,
        by: By = "python",
        **options: Any,
    ) -> ToolResult:
        """Call a tool and wait for its result.

        In a notebook's workspace the call gets a card in the cell whose code makes it, with its requests. Elsewhere
        `approve` decides what the rules do not, or the call waits for ``permissions.reply``.

        Args:
            name: the tool's id.
            arguments: its parameters, in OpenCode's spelling (``filePath``) or Python's (``file_path``).
            agent: whose rules apply; the default agent's if left out.
            session: the session it belongs to; the workspace's own if left out.
            timeout: seconds, waiting for a person not counted.
            by: who wrote the call. The agent's rules hold for ``user`` and ``python``, the notebook's stricter
                default for ``model``. The doom-loop guard watches ``python`` and ``model``.
            **options: further `CallOptions` (``call_id``, ``extra``, ``parent_id``, ``on_update``).

        Raises:
            ToolError: see `core.errors`. What the tool itself raises passes through.
        """
        if agent is not None and agent not in self.agents and not self.registry.is_fresh():
            await run_on_loop(self._loop, self.registry.prepare())  # it may be a plugin's
        make = partial(self.start, name, arguments, agent=agent, session=session, timeout=timeout, by=by, **options)
        if self._shows_elsewhere and self.present is not None:
            return await self.present.run(name, make)
        return await make().run()

    def call_sync(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> ToolResult:
        """`call`, from code that can't await. Blocks the thread; an interrupt stops the call."""
        if self._shows_elsewhere and self.present is not None:
            return self.present.run_sync(name, partial(self.start, name, arguments, **options))
        call = self.start(name, arguments, **options)
        future = run_elsewhere(self._loop, call.run())
        try:
            return wait_interruptibly(future)
        except KeyboardInterrupt:
            call.abort("interrupted")
            with contextlib.suppress(BaseException):
                future.result(3)
            raise

    @property
    def _shows_elsewhere(self) -> bool:
        """True if a notebook runs and shows the calls of this code; not for the notebook's own."""
        return self.present is not None and not (self._loop is not None and is_current(self._loop))

    async def dry_run(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> list[Decision]:
        """List the requests a call would make, with the decision on each, without asking or running anything.

        A built-in tool makes its real requests (diffs included). Another tool is not run; the rules on its id decide.

        Raises:
            ToolError: no such tool, or the arguments do not fit.
        """
        return await self.start(name, arguments, dry_run=True, **options).preview()

    def abort(self, call_id: str, reason: str = "stopped") -> bool:
        """End a running call; False if there is none of that id. Any thread may call it."""
        call = self.calls.get(call_id) if isinstance(call_id, str) else None
        if call is not None:
            call.abort(reason)
        return call is not None

    def agent(self, name: str | None = None) -> Agent:
        """An agent by name; the default one for None.

        Raises:
            ToolError: there is none of that name.
        """
        if name is None:
            name = default_agent(self.agents, self.config.data)
        agent = self.agents.get(name) if isinstance(name, str) else None
        if agent is None:
            hint = suggestion(near_names(str(name), self.agents)) or f" The agents are {', '.join(self.agents)}."
            raise ToolError(f"There is no agent {name!r}.{hint}")
        return agent

    # ------------------------------------------------------------------ helpers

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that the workspace was entered on with ``async with``; None if it was not."""
        return self._loop

    def contains(self, path: str | os.PathLike[str]) -> bool:
        """Return whether a path is inside the project: as written and with its links followed."""
        return paths.contains(path, self.directory, self.worktree)

    def relative(self, path: str | os.PathLike[str], *, follow: bool = False) -> str:
        """A path as titles show it and as rules judge it: relative to the worktree.

        With no git around, OpenCode shows a path without its leading slash, which no rule of a project could mean; here
        it is then relative to the folder the workspace was opened in, and absolute outside it.

        Args:
            path: absolute.
            follow: compare real paths, with links followed on both sides.
        """
        return paths.relative(path, self.directory, self.worktree, follow=follow)

    def service(self, make: Callable[[Any], S]) -> S:
        """A service that a tool keeps between calls (language servers, an index), created at its first use.

        Args:
            make: the service's class, called with the workspace. A ``close()`` of it, plain or async, is called when
                the workspace closes.

        Raises:
            ToolError: the workspace is closed.
        """
        service = self._services.get(make)
        if service is None:
            if self._closed:
                raise ToolError("this Workspace is closed; make a new one")
            service = self._services[make] = make(self)
        return cast("S", service)

    def publish(self, event: str, payload: Callable[[], dict[str, Any]]) -> None:
        """Publish an event whose payload is only built if it has subscribers."""
        if self.bus.has_subscribers(event):
            self.bus.publish(event, payload())

    # ------------------------------------------------------------------ opening and closing

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._sweeper = asyncio.create_task(self._sweep())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _sweep(self) -> None:
        while True:
            await asyncio.to_thread(self.truncation.cleanup)
            await asyncio.sleep(CLEANUP_INTERVAL)

    async def aclose(self) -> None:
        """End every call, reject every request, write what is to be stored. Twice is harmless."""
        if self._closed:
            return
        self._stop()
        for _ in range(300):
            if not self.calls and not any(session.run for session in self.sessions.list()):
                break
            await asyncio.sleep(0.01)
        try:
            if self._sweeper is not None:
                loop = self._sweeper.get_loop()
                if loop is asyncio.get_running_loop():
                    self._sweeper.cancel()
                    await asyncio.gather(self._sweeper, return_exceptions=True)
                else:  # closed from another thread than it was opened in
                    call_soon(loop, self._sweeper.cancel)
            for service in self._services.values():
                await close_service(service)
            self._services.clear()
        finally:
            self._close()

    def close(self) -> None:
        """`aclose` for code that can't await."""
        if self._closed:
            return
        self._stop()
        for service in self._services.values():
            with contextlib.suppress(Exception):
                wait_interruptibly(run_elsewhere(None, close_service(service)))
        self._services.clear()
        self._close()

    def _stop(self) -> None:
        for session in self.sessions.list():
            if session.run is not None:
                session.run.abort("closed")
        for call in list(self.calls.values()):
            call.abort("closed")

    def _close(self) -> None:
        self._closed = True
        self.permissions.close()
        self.questions.close()
        self.publish("server.instance.disposed", lambda: {"directory": str(self.directory)})
        if self.store is not None:
            self.store.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.directory)!r})"
