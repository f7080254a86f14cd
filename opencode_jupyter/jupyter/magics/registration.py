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
from ..settings import NotebookSettings
from .agent_magics import AgentMagics
from .commands import MCP, PERMISSIONS, SESSIONS, TOOLS
from .question_mark import ToolQuestion

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext

    from ..extension_state import ExtensionState
    from ..notebook import Notebook
    from .arguments import CallRequest

_LINE = ("tool", "tool_awaited", "agent", "agent_awaited", "tools", "permissions", "mcp", "sessions")
_CELL = ("tool", "tool_awaited", "agent", "agent_awaited")
HIDDEN = "_awaited"
"""How the names end of those magics that nobody types: what others become where a cell can await (`awaiting`)."""


@magics_class
class ToolMagics(NotebookSettings, Magics):
    """The magics of one shell. ``%config ToolMagics`` shows and sets what can be set."""

    def __init__(self, shell: Any, state: ExtensionState, **options: Any) -> None:
        super().__init__(shell, **options)
        self._shell = shell
        self._state = state
        self._settings = state.settings
        self.apply()

    def _in_use(self) -> bool:
        return hasattr(self, "_state") and self._state.built is not None

    @property
    def notebook(self) -> Notebook:
        """The notebook, built at the first use."""
        return self._state.notebook

    # ------------------------------------------------------------------ magics

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
        with plain_errors():
            return self._bind(request, self.notebook.run_sync(request))

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
        with plain_errors():
            return self._bind(request, await self.notebook.run_async(request))

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

    # ------------------------------------------------------------------ what both forms of %tool share

    def _read(self, line: str, cell: str | None, local_ns: dict[str, Any] | None) -> tuple[CallRequest | None, Any]:
        """The call that is asked for; or the answer, where it needs no call (a list, help, a dry run, a handle)."""
        from .arguments import parse

        with plain_errors():
            workspace = self.notebook.workspace
            self._state.report_config_problems()
            if not line.strip() and not (cell or "").strip():
                from .help import tool_list

                return None, tool_list(workspace, self.agent or None)
            variables = ChainMap(local_ns or {}, self._shell.user_ns)
            try:
                request = parse(line, cell, workspace.registry, variables)
            except ToolError as error:
                from .refused_line import show_refusal

                shown = show_refusal(workspace, line, error)
                raise for_cell(error, whole=not shown or not self.notebook.is_attended()) from None
            request.agent = request.agent or self.agent or None
            request.timeout = request.timeout if request.timeout is not None else self.timeout or None
            request.quiet = request.quiet or self.quiet
            if request.hint:
                print(request.hint)  # noqa: T201 - it stands above the card
            if request.help:
                from .help import ToolHelp, tool_list
                from .parameters import spec_of

                found = workspace.registry.get(request.tool)
                if found is None:
                    return None, tool_list(workspace, request.agent)
                return None, ToolHelp(spec_of(found, workspace.registry, request.agent))
            if request.dry_run:
                from . import tools

                return None, self._bind(request, tools.dry_run(self.notebook, request))
            if request.background:
                return None, self._bind(request, self.notebook.start_background(request))
        return request, None

    def _bind(self, request: CallRequest, value: Any) -> Any:
        if request.output is not None:
            self._shell.user_ns[request.output] = value
        return value


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
    manager.lsmagic = partial(_listed, manager)
    shell.input_transformer_manager.token_transformers.append(ToolQuestion)
    shell._opencode_magics = (magics, before)


def _listed(manager: Any) -> dict[str, dict[str, Any]]:
    """What completion and ``%lsmagic`` are told of: all magics that are meant to be typed."""
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
                continue  # somebody put another in its place since
            del manager.magics[kind][name]
            if name in before[kind]:
                manager.magics[kind][name] = before[kind][name]
    for one in magics:
        if manager.registry.get(type(one).__name__) is one:
            del manager.registry[type(one).__name__]
    shell.configurables[:] = [c for c in shell.configurables if c not in magics]
    transformers = shell.input_transformer_manager.token_transformers
    transformers[:] = [t for t in transformers if t is not ToolQuestion]
    shell._opencode_magics = None


COMPLETED = ("%tool", "%agent", "%permissions", "%mcp", "%sessions")
"""What a line or cell holds that this completes (``%tools`` begins like ``%tool``)."""


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
