"""``%%agent`` and ``%agent`` as IPython knows them."""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, needs_local_scope, no_var_expand

from ..error_display import plain_errors

if TYPE_CHECKING:
    from ..extension_state import ExtensionState
    from .agent_request import AgentRequest


@magics_class
class AgentMagics(Magics):
    """The magics of one shell."""

    def __init__(self, shell: Any, state: ExtensionState) -> None:
        super().__init__(shell)
        self._shell = shell
        self._state = state

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def agent(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> Any:
        """Have a model work with the notebook's tools; the request goes below the line.

        %%agent [-m MODEL] [-a AGENT] [--session ID | --new] [--max-steps N] [--json SCHEMA | --type NAME]
                [--mode MODE] [--record FILE] [-o VAR] [-q] [--bg]
        Say in {df} which columns are empty, and drop them.

        {name} puts a variable's value into the request: a data frame as its head and schema. Plain braces are doubled:
        {{ }}. The answer is the cell's value (_ , or VAR): .text, .parts, .calls.df, .usage, .cost, .value, .session.
        The next %%agent continues the same session.

        -m MODEL       provider:model (openai:gpt-5), provider/model, scripted:FILE; default: the last one used, then
                       "model" in opencode.json
        -a AGENT       build, plan, or one of yours
        --session ID   continue this session (id or title); --new starts one
        --max-steps N  the most steps of the model
        --json SCHEMA  the answer must fit this JSON schema ({...}, a variable, a .json file): r.value
        --type NAME    the same with a type: a pydantic model, a dataclass
        --mode MODE    the session's permission mode: default, ask, accept-edits, plan, bypass
        --record FILE  keep the conversation as a script that scripted:FILE replays
        -o VAR         put the answer into this variable
        -q             show no card (a request for approval is still shown)
        --bg           continue in the background; the value is a handle: .result(), .cancel()

        %agent alone shows the agent, model and session of the next request; %agent NAME switches the agent,
        %agent -m MODEL sets the model for the notebook, %agent models lists models.
        """
        request, answer = self._read(line, cell, local_ns)
        if request is None:
            return answer
        from . import agent_run

        with plain_errors():
            return self._bind(request, agent_run.run_sync(self._state.notebook, request))

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    async def agent_awaited(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> Any:
        """What %%agent becomes where a cell can await; the same but for the waiting."""
        request, answer = self._read(line, cell, local_ns)
        if request is None:
            return answer
        from . import agent_run

        with plain_errors():
            return self._bind(request, await agent_run.run_async(self._state.notebook, request))

    def _read(self, line: str, cell: str | None, local_ns: dict[str, Any] | None) -> tuple[AgentRequest | None, Any]:
        """The prompt that is to be run; or the answer, where it needs no waiting."""
        with plain_errors():
            self._state.report_config_problems()
            from . import agent, agent_run

            if cell is None:
                return None, agent.run(self._state.notebook, line)
            request = agent.read(line, cell, ChainMap(local_ns or {}, self._shell.user_ns))
            if request.background:
                return None, self._bind(request, agent_run.start_background(self._state.notebook, request))
        return request, None

    def _bind(self, request: AgentRequest, value: Any) -> Any:
        if request.output is not None:
            self._shell.user_ns[request.output] = value
        return value
