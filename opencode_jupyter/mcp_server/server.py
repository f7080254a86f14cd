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

from .. import __version__
from ..core.errors import PermissionRejectedError, QuestionRejectedError, ToolError
from ..core.hooks import BEFORE
from ..core.permission import PermissionRequest, Reply, Rule
from ..core.repair import INVALID
from . import asks
from .changes import watch
from .offer import Offer, described
from .options import Options
from .outputs import Outputs
from .results import failed, result_of
from .running import CantAskError, Parked, RunningCall

if TYPE_CHECKING:
    from ..core.call import Call
    from ..core.question_request import Answers, QuestionRequest
    from ..core.workspace import Workspace

log = logging.getLogger(__name__)

NAME = "opencode-jupyter"
PARKED = 3600.0
"""Seconds a call waits for its client to come back with a person's answer."""

Context = ServerRequestContext[Any, Any]


class ToolServer:
    """Serves a workspace's tools. The workspace's asks and questions go to the clients from now on.

    Args:
        workspace: open, on the running loop.
        options: what to offer and how to ask.

    Raises:
        ToolError: there is no such agent.

    Attributes:
        server: the SDK's server: ``server.server.run(...)`` serves one connection, and ``mcp.Client(server.server)``
            speaks with it in this process.
    """

    def __init__(self, workspace: Workspace, options: Options | None = None) -> None:
        self._workspace = workspace
        self._options = options or Options()
        agent = workspace.agent(self._options.agent)
        self._agent_key = next(key for key, one in workspace.agents.items() if one is agent)
        self._offer = Offer(workspace, agent, self._options.model, self._options.tools)
        self._session = workspace.sessions.create("MCP client")
        self._running: dict[str, RunningCall] = {}
        self._parked = Parked(PARKED)
        self._outputs = Outputs()
        self._events = InMemorySubscriptionBus()
        self._listener: ServerSession | None = None
        workspace.permissions.approve = self._approve
        allowed = [Rule(name, pattern, "allow", "--allow") for name, pattern in self._options.allow]
        workspace.permissions.approved += allowed
        workspace.questions.answer = self._answer
        if self._options.tools:
            workspace.hooks.add(BEFORE, self._only_offered)
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
        """What a client is told when it connects."""
        return self.server.create_initialization_options(NotificationOptions(tools_changed=True))

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Server[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        watching = asyncio.create_task(watch(self._workspace, self._offer, self._tools_changed))
        watching.add_done_callback(_tell_trouble)
        try:
            yield {}
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    # ------------------------------------------------------------------ tools

    async def _list_tools(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        self._listener = context.session
        bound = await self._offer.tools(questions=self._can_ask(context))
        registry = self._workspace.registry
        listed = []
        for one in bound:
            tool = registry.get(one.id)
            listed.append(described(one, builtin=tool is not None and tool.builtin))
        return types.ListToolsResult(tools=listed)

    async def _tools_changed(self) -> None:
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
            running = self._parked.take(params.request_state, key)
            if running is None:
                raise MCPError(
                    code=types.INVALID_PARAMS, message="No such call waits for answers (anymore); call the tool again"
                )
            running.answer(params.input_responses)
        else:
            try:
                running = await self._begin(context, *key)
            except ToolError as error:
                return failed(str(error))
        needed = await running.attend(context)
        if needed:
            token = self._parked.put(running, lambda: secrets.token_urlsafe(24))
            return types.InputRequiredResult(input_requests=needed, request_state=token)
        return result_of(running.call.part, self._outputs)

    async def _begin(self, context: Context, name: str, arguments: dict[str, Any]) -> RunningCall:
        """Start a call.

        Raises:
            MCPError: there is no such tool.
            ToolError: the configured agent is gone.
        """
        registry = self._workspace.registry
        if not registry.settled(name):
            await registry.prepare(name)
        if not self._offer.includes(name, questions=self._can_ask(context)):
            # One whose code nobody trusts yet is not listed, but may be called: the call asks for trust.
            reason = registry.why_not(name)
            if not reason or not self._offer.allows(name):
                known = [one.id for one in await self._offer.tools(questions=self._can_ask(context))]
                raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {name}. Tools: {', '.join(known)}")
        call = self._workspace.start(
            name,
            copy.deepcopy(arguments),
            agent=self._agent_key,
            session=self._session,
            timeout=self._options.timeout,
            by="model",
        )
        id = call.part.call_id
        running = self._running[id] = RunningCall(call, (name, arguments), lambda: self._running.pop(id, None))
        return running

    def _only_offered(self, call: dict[str, Any], _: dict[str, Any]) -> None:
        """Hold a call that another call makes (a batch) to the same choice of tools."""
        if call["tool"] != INVALID and not self._offer.allows(call["tool"]):
            raise ToolError(f"The tool {call['tool']} is not served here: the server was started with --tools")

    # ------------------------------------------------------------------ asks

    def _can_ask(self, context: Context) -> bool:
        return self._options.ask == "elicit" and asks.can_ask(context.session.client_capabilities)

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
            form = asks.permission_form(request, asking.part.tool)
            reply = asks.reply_of(await running.ask(form), request)
        except CantAskError as error:
            refusal = PermissionRejectedError(asks.nobody(request, str(error)))
            self._workspace.permissions.reply(request.id, "reject", by="policy", error=refusal)
            return "reject"
        self._workspace.permissions.reply(request.id, reply, by="client")
        return reply

    async def _answer(self, request: QuestionRequest) -> Answers | None:
        try:
            _, running = self._asking(request.tool)
            return asks.answers_of(await running.ask(asks.question_form(request)), request)
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


def _tell_trouble(watching: asyncio.Task[None]) -> None:
    if not watching.cancelled() and (error := watching.exception()) is not None:
        log.error("changes of the tools and of the configuration are no longer noticed", exc_info=error)
