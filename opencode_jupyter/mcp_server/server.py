"""The protocol's requests, answered from a workspace."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import secrets
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from .._version import __version__
from ..core.config.files import upwards
from ..core.config.load import GLOBAL_FILES, PROJECT_FILES
from ..core.errors import PermissionRejectedError, QuestionRejectedError, ToolError
from ..core.hooks import BEFORE
from ..core.permission import PermissionRequest, Reply, Rule
from ..core.repair import INVALID
from . import forms
from .calls import CantAskError, RunningCall, SavedOutputs, error_result, result_of
from .command import ServeOptions
from .selection import ClientToolFilter

if TYPE_CHECKING:
    from ..core.call import Call
    from ..core.question_request import Answers, QuestionRequest
    from ..workspace import Workspace

log = logging.getLogger(__name__)

NAME = "opencode-jupyter"
ANSWER_SECONDS = 3600.0
"""Seconds a call waits for its client to come back with a person's answer."""
CONFIG_INTERVAL = 1.0
"""Seconds between two looks at the configuration's files."""
TOOLS_INTERVAL = 0.25
"""Seconds between two looks at which tools there are: that reads no file, and a client should know at once."""

Context = ServerRequestContext[Any, Any]


class ToolServer:
    """Serves a workspace's tools. The workspace's requests and questions go to the clients from now on.

    Args:
        workspace: open, on the running loop.
        options: what to offer and how to ask.

    Raises:
        ToolError: there is no such agent.

    Attributes:
        server: the SDK's server: ``server.server.run(...)`` serves one connection, and ``mcp.Client(server.server)``
            speaks with it in this process.
    """

    def __init__(self, workspace: Workspace, options: ServeOptions | None = None) -> None:
        self._workspace = workspace
        self._options = options or ServeOptions()
        agent = workspace.agent(self._options.agent)
        self._agent_key = next(key for key, candidate in workspace.agents.items() if candidate is agent)
        self._selector = ClientToolFilter(workspace, agent, self._options.model, self._options.tools)
        self._session = workspace.sessions.create("MCP client")
        self._running: dict[str, RunningCall] = {}
        self._unanswered: dict[str, RunningCall] = {}
        """By the token with which their clients come back with answers."""
        self._outputs = SavedOutputs()
        self._events = InMemorySubscriptionBus()
        self._listener: ServerSession | None = None
        workspace.permissions.approve = self._approve
        allowed = [Rule(name, pattern, "allow", "--allow") for name, pattern in self._options.allow]
        workspace.permissions.approved += allowed
        workspace.questions.answer = self._answer
        if self._options.tools:
            workspace.hooks.add(BEFORE, self._only_selected)
        self.server: Server[dict[str, Any]] = Server(
            NAME,
            version=__version__,
            title="OpenCode tools",
            instructions=(
                f"Tools of the project in {workspace.directory}; relative paths start there. Calls go by the project's "
                "permission rules: a refused call says which rule would allow it, and only a person can add it."
            ),
            lifespan=self._lifespan,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=ListenHandler(self._events),
        )

    @property
    def initialization(self) -> InitializationOptions:
        """The server's options at the initialization of a connection."""
        return self.server.create_initialization_options(NotificationOptions(tools_changed=True))

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Server[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        watching = asyncio.create_task(self._watch())
        watching.add_done_callback(_log_failure)
        try:
            yield {}
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self) -> None:
        """Report changed tools; read a changed configuration: a rule that a person writes holds for the next call."""
        workspace, registry = self._workspace, self._workspace.registry
        files, tools = _config_state(workspace), self._selector.fingerprint()
        while True:
            if not registry.is_fresh():
                await registry.prepare()
            for _ in range(max(1, round(CONFIG_INTERVAL / TOOLS_INTERVAL))):
                if (now := self._selector.fingerprint()) != tools:
                    tools = now
                    await self._report_changed_tools()
                await asyncio.sleep(min(TOOLS_INTERVAL, CONFIG_INTERVAL))
            if (state := _config_state(workspace)) != files:
                files = state
                try:
                    workspace.reload_config()
                    log.info("the configuration was read again")
                except ToolError as error:
                    log.warning("the configuration stays as it was: %s", error)

    # ------------------------------------------------------------------ tools

    async def _list_tools(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        self._listener = context.session
        return types.ListToolsResult(tools=await self._selector.tools(questions=self._can_ask(context)))

    async def _report_changed_tools(self) -> None:
        await self._events.publish(ToolsListChanged())
        session = self._listener
        if session is not None and session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            with contextlib.suppress(Exception):  # the client is gone
                await session.send_tool_list_changed()

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        key = (params.name, params.arguments or {})
        if params.request_state is not None:
            running = self._unanswered.get(params.request_state)
            if running is None or running.key != key:
                raise MCPError(
                    code=types.INVALID_PARAMS, message="No such call waits for answers (anymore); call the tool again"
                )
            del self._unanswered[params.request_state]
            running.answer(params.input_responses)
        else:
            try:
                running = await self._begin(context, *key)
            except ToolError as error:
                return error_result(str(error))
        if requests := await running.attend(context):
            token = secrets.token_urlsafe(24)
            self._unanswered[token] = running
            running.expect_answers(ANSWER_SECONDS)
            return types.InputRequiredResult(input_requests=requests, request_state=token)
        return result_of(running.call.part, self._outputs)

    async def _begin(self, context: Context, name: str, arguments: dict[str, Any]) -> RunningCall:
        """Start a call.

        Raises:
            MCPError: there is no such tool.
            ToolError: the configured agent is gone.
        """
        registry = self._workspace.registry
        if not registry.is_fresh(name):
            await registry.prepare(name)
        if not self._selector.includes(name, questions=self._can_ask(context)):
            # One whose code nobody trusts yet is not listed, but may be called: the call asks for trust.
            reason = registry.why_not(name)
            if not reason or not self._selector.allows(name):
                names = [tool.name for tool in await self._selector.tools(questions=self._can_ask(context))]
                raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {name}. Tools: {', '.join(names)}")
        call = self._workspace.start(
            name,
            copy.deepcopy(arguments),
            agent=self._agent_key,
            session=self._session,
            timeout=self._options.timeout,
            by="model",
        )
        running = self._running[call.part.call_id] = RunningCall(call, (name, arguments), lambda: self._ended(call))
        return running

    def _ended(self, call: Call) -> None:
        del self._running[call.part.call_id]
        self._unanswered = {token: running for token, running in self._unanswered.items() if running.call is not call}

    def _only_selected(self, call: dict[str, Any], _: dict[str, Any]) -> None:
        """Hold a call that another call makes (a batch) to the same choice of tools."""
        if call["tool"] != INVALID and not self._selector.allows(call["tool"]):
            raise ToolError(f"The tool {call['tool']} is not served here: the server was started with --tools")

    # ------------------------------------------------------------------ permission requests and questions

    def _can_ask(self, context: Context) -> bool:
        return self._options.ask == "elicit" and forms.supports_forms(context.session.client_capabilities)

    def _asking(self, tool: dict[str, str] | None) -> tuple[Call, RunningCall]:
        """The call that asks, and the client's call that it belongs to.

        Raises:
            CantAskError: nobody is to be asked, or nobody can be.
        """
        if self._options.ask == "deny":
            raise CantAskError("this server denies every permission request (--ask deny)")
        asking = outermost = self._workspace.calls.get((tool or {}).get("callID", ""))
        while outermost is not None and outermost.parent is not None:
            outermost = outermost.parent
        running = None if outermost is None else self._running.get(outermost.part.call_id)
        if running is None or asking is None:
            raise CantAskError("the client that made the call is gone")
        return asking, running

    async def _approve(self, request: PermissionRequest) -> Reply:
        try:
            asking, running = self._asking(request.tool)
            form = forms.permission_form(request, asking.part.tool)
            reply = forms.read_reply(await running.ask(form), request)
        except CantAskError as error:
            refusal = PermissionRejectedError(forms.refusal_text(request, str(error)))
            self._workspace.permissions.reply(request.id, "reject", by="policy", error=refusal)
            return "reject"
        self._workspace.permissions.reply(request.id, reply, by="client")
        return reply

    async def _answer(self, request: QuestionRequest) -> Answers | None:
        try:
            _, running = self._asking(request.tool)
            return forms.read_answers(await running.ask(forms.question_form(request)), request)
        except CantAskError as error:
            refusal = QuestionRejectedError(f"Nobody could be asked: {error}.")
            self._workspace.questions.reject(request.id, by="policy", error=refusal)
            return None

    # ------------------------------------------------------------------ saved outputs

    async def _list_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=self._outputs.list())

    async def _list_templates(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """None: outputs have addresses of their own. Clients that list resources ask for both."""
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await asyncio.to_thread(self._outputs.read, params.uri)


def _config_state(workspace: Workspace) -> list[tuple[str, int, int]]:
    """Changes when a configuration file of this workspace does."""
    folders = [*upwards(workspace.directory, workspace.worktree), *workspace.config.directories]
    state = []
    for path in dict.fromkeys(folder / name for folder in folders for name in (*PROJECT_FILES, *GLOBAL_FILES)):
        with contextlib.suppress(OSError):
            status = path.stat()
            state.append((str(path), status.st_mtime_ns, status.st_size))
    return state


def _log_failure(watching: asyncio.Task[None]) -> None:
    if not watching.cancelled() and (error := watching.exception()) is not None:
        log.error("changes of the tools and of the configuration are no longer noticed", exc_info=error)
