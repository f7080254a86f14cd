"""The magics of a shell and their completer, registered and removed.

What only some notebooks use (help, rules, history, dry runs) is imported at its first use, so that loading is quick.
"""

from __future__ import annotations

from collections import ChainMap
from functools import partial
from typing import TYPE_CHECKING, Any

from IPython.core.completer import context_matcher
from IPython.core.magic import (
    Magics,
    line_cell_magic,
    line_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
)

from ...core.errors import ToolError
from ..error_display import for_cell, plain_errors
from ..settings import SettingTraits
from .commands import AGENT_OPTIONS, MCP, PERMISSIONS, SESSIONS, TOOLS
from .input_transformers import ToolQuestion

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext

    from ...agent.answer import Answer
    from ..extension_state import ExtensionState
    from ..kernel.cell_runner import MakeJob
    from ..notebook import Notebook
    from .agent import AgentRequest
    from .tool_line import CallRequest

_LINE = ("tool", "tool_awaited", "agent", "agent_awaited", "tools", "permissions", "mcp", "sessions")
_CELL = ("tool", "tool_awaited", "agent", "agent_awaited")
HIDDEN = "_awaited"
"""Suffix of magics that nobody types: others become these where a cell can await (`input_transformers`)."""


class _ShellMagics(Magics):
    """The base of the magics of tools and of models."""

    def __init__(self, shell: Any, state: ExtensionState, **options: Any) -> None:
        super().__init__(shell, **options)
        self._shell = shell
        self._state = state

    @property
    def notebook(self) -> Notebook:
        """The notebook, built at the first use."""
        return self._state.notebook

    def _variables(self, local_ns: dict[str, Any] | None) -> ChainMap[str, Any]:
        return ChainMap(local_ns or {}, self._shell.user_ns)

    def _bind(self, request: CallRequest | AgentRequest, value: Any) -> Any:
        if request.output is not None:
            self._shell.user_ns[request.output] = value
        return value


@magics_class
class ToolMagics(SettingTraits, _ShellMagics):
    """The magics of tools. ``%config ToolMagics`` shows and changes the settings."""

    def __init__(self, shell: Any, state: ExtensionState, **options: Any) -> None:
        super().__init__(shell, state, **options)
        self._settings = state.settings
        self.apply()

    def _in_use(self) -> bool:
        return hasattr(self, "_state") and self._state.existing_notebook is not None

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def tool(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> Any:
        """Call a tool: %tool NAME arguments. %tool alone lists them; %tool NAME? shows its arguments."""
        from . import tool_preparation

        __tracebackhide__ = True
        with plain_errors():
            tool_preparation.prepare(self.notebook, line)
            request, answer = self._read(line, cell, local_ns)
            if request is None:
                return answer
            return self._bind(request, self.notebook.runner.run_sync(self.notebook.call(request)))

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    async def tool_awaited(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> Any:
        """What %tool becomes where a cell can await; the same but for the waiting."""
        from . import tool_preparation

        __tracebackhide__ = True
        with plain_errors():
            await tool_preparation.prepare_async(self.notebook, line)
            request, answer = self._read(line, cell, local_ns)
            if request is None:
                return answer
            return self._bind(request, await self.notebook.runner.run_async(self.notebook.call(request)))

    @no_var_expand
    @line_magic
    @TOOLS.documented
    def tools(self, line: str) -> Any:
        """List the tools, the calls made, and what is wrong here."""
        from . import tools

        with plain_errors():
            return tools.run(self.notebook, line, self.agent or None)

    @no_var_expand
    @line_magic
    @PERMISSIONS.documented
    def permissions(self, line: str) -> Any:
        """Show and change the rules, the mode and the sandbox."""
        from . import permissions

        with plain_errors():
            return permissions.run(self.notebook, line, self.agent or None)

    @no_var_expand
    @line_magic
    @MCP.documented
    def mcp(self, line: str) -> Any:
        """List, add and connect MCP servers."""
        from . import mcp

        with plain_errors():
            return mcp.run(self.notebook, line)

    @no_var_expand
    @line_magic
    @SESSIONS.documented
    def sessions(self, line: str) -> Any:
        """List, open and change the sessions of models."""
        from . import sessions

        with plain_errors():
            return sessions.run(self.notebook, line)

    def _read(self, line: str, cell: str | None, local_ns: dict[str, Any] | None) -> tuple[CallRequest | None, Any]:
        """The requested call; or the answer, where it needs no call (a list, help, a dry run, a handle)."""
        from .tool_line import parse

        workspace = self.notebook.workspace
        self._state.report_config_problems()
        if not line.strip() and not (cell or "").strip():
            from .help import tool_list

            return None, tool_list(workspace, self.agent or None)
        try:
            request = parse(line, cell, workspace.registry, self._variables(local_ns))
        except ToolError as error:
            from ..cards.call_card import show_invalid_line

            is_quiet = bool({"-q", "--quiet"} & set(line.split()))
            is_shown = not is_quiet and show_invalid_line(workspace, line, error)
            raise for_cell(error, whole=not is_shown or not self.notebook.is_attended()) from None
        request.agent = request.agent or self.agent or None
        request.timeout = request.timeout if request.timeout is not None else self.timeout or None
        request.quiet = request.quiet or self.quiet
        if request.hint:
            print(request.hint)  # noqa: T201 - above the card
        if request.help:
            from .help import ToolHelp, tool_list
            from .parameters import spec_of

            tool = workspace.registry.get(request.tool)
            if tool is None:
                return None, tool_list(workspace, request.agent)
            return None, ToolHelp(spec_of(tool, workspace.registry, request.agent))
        if request.dry_run:
            from . import tools

            return None, self._bind(request, tools.dry_run(self.notebook, request))
        if request.background:
            return None, self._bind(request, self.notebook.runner.start_background(self.notebook.call(request)))
        return request, None


@magics_class
class AgentMagics(_ShellMagics):
    """The magics of models."""

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    @AGENT_OPTIONS.documented
    def agent(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> Any:
        """Have a model work with the notebook's tools; the request goes below the line.

        %%agent [-m MODEL] [-a AGENT] [--session ID | --new] ...
        Say in {df} which columns are empty, and drop them.

        {name} puts a variable's value into the request: a data frame as its head and schema. Plain braces are doubled:
        {{ }}. The answer is the cell's value (_ , or VAR): .text, .parts, .calls.df, .usage, .cost, .value, .session.
        The next %%agent continues the same session.

        %agent alone shows the agent, model and session of the next request; %agent NAME switches the agent,
        %agent -m MODEL sets the model for the notebook, %agent models lists models.
        """
        with plain_errors():
            request, answer = self._read(line, cell, local_ns)
            if request is None:
                return answer
            return self._bind(request, self.notebook.runner.run_sync(self._run(request)))

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    async def agent_awaited(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> Any:
        """What %%agent becomes where a cell can await; the same but for the waiting."""
        with plain_errors():
            request, answer = self._read(line, cell, local_ns)
            if request is None:
                return answer
            return self._bind(request, await self.notebook.runner.run_async(self._run(request)))

    def _read(self, line: str, cell: str | None, local_ns: dict[str, Any] | None) -> tuple[AgentRequest | None, Any]:
        """The request to run; or the answer, where it needs no wait."""
        from . import agent

        self._state.report_config_problems()
        if cell is None:
            return None, agent.run(self.notebook, line)
        request = agent.read(line, cell, self._variables(local_ns))
        if request.background:
            return None, self._bind(request, self.notebook.runner.start_background(self._run(request)))
        return request, None

    def _run(self, request: AgentRequest) -> MakeJob[Answer]:
        from .agent_run import RunJob

        return partial(RunJob, self.notebook, request)


def register(shell: Any, state: ExtensionState) -> None:
    """Put the magics into a shell, once."""
    unregister(shell)
    manager = shell.magics_manager
    before = {
        kind: {name: manager.magics[kind][name] for name in names if name in manager.magics[kind]}
        for kind, names in (("line", _LINE), ("cell", _CELL))
    }
    magics = (ToolMagics(shell, state), AgentMagics(shell, state))
    shell.register_magics(*magics)
    manager.lsmagic = partial(_list_typed_magics, manager)
    shell.input_transformer_manager.token_transformers.append(ToolQuestion)
    shell._opencode_magics = (magics, before)


def _list_typed_magics(manager: Any) -> dict[str, dict[str, Any]]:
    """What completion and ``%lsmagic`` list: all magics that are meant to be typed."""
    return {
        kind: {name: magic for name, magic in known.items() if not (name in _LINE and name.endswith(HIDDEN))}
        for kind, known in manager.magics.items()
    }


def unregister(shell: Any) -> None:
    """Take them out; magics of the same names that were there before come back."""
    installed: tuple[tuple[Magics, ...], dict[str, dict[str, Any]]] | None = getattr(shell, "_opencode_magics", None)
    if installed is None:
        return
    magics, before = installed
    manager = shell.magics_manager
    vars(manager).pop("lsmagic", None)
    for kind, names in (("line", _LINE), ("cell", _CELL)):
        for name in names:
            current = manager.magics[kind].get(name)
            if getattr(current, "__self__", None) not in magics:
                continue  # replaced since
            del manager.magics[kind][name]
            if name in before[kind]:
                manager.magics[kind][name] = before[kind][name]
    for registered in magics:
        if manager.registry.get(type(registered).__name__) is registered:
            del manager.registry[type(registered).__name__]
    shell.configurables[:] = [c for c in shell.configurables if c not in magics]
    transformers = shell.input_transformer_manager.token_transformers
    transformers[:] = [t for t in transformers if t is not ToolQuestion]
    shell._opencode_magics = None


COMPLETED = ("%tool", "%agent", "%permissions", "%mcp", "%sessions")
"""Texts of lines and cells that this completes (``%tools`` begins like ``%tool``)."""


def install_matcher(shell: Any, state: ExtensionState) -> None:
    """Put the matcher into the shell's completer."""
    uninstall_matcher(shell)

    @context_matcher()  # type: ignore[untyped-decorator]
    def opencode_matcher(context: CompletionContext) -> dict[str, Any]:
        if not any(word in context.full_text for word in COMPLETED):
            return {"completions": []}
        from .completion import complete

        hidden = shell.user_ns_hidden
        own = {name: value for name, value in shell.user_ns.items() if hidden.get(name, hidden) is not value}
        return complete(state.notebook, own, context.full_text, context.cursor_line, context.text_until_cursor)

    shell._opencode_matcher = opencode_matcher
    shell.Completer.custom_matchers.append(opencode_matcher)


def uninstall_matcher(shell: Any) -> None:
    """Take it out again."""
    matcher = getattr(shell, "_opencode_matcher", None)
    if matcher is not None:
        shell.Completer.custom_matchers = [m for m in shell.Completer.custom_matchers if m is not matcher]
        shell._opencode_matcher = None
