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
from ..core.errors import PermissionRejectedError, QuestionRejectedError, ToolError, UnknownToolError
from ..core.hooks import BEFORE
from ..core.permission import PermissionRequest, Reply, Rule
from ..core.repair import INVALID
from ..core.wildcard import match
from . import ServeOptions, forms
from .calls import CantAskError, RunningCall, SavedOutputs, error_result, result_of

if TYPE_CHECKING:
    from ..core.agents import Agent
    from ..core.call import Call
    from ..core.question_request import Answers, QuestionRequest
    from ..core.tool import Effect, Tool
    from ..workspace import Workspace

log = logging.getLogger(__name__)

NAME = "opencode-jupyter"
ANSWER_SECONDS = 3600.0
"""Seconds a call waits for its client to come back with a person's answer."""
CONFIG_INTERVAL = 1.0
"""Seconds between two looks at the configuration's files."""
TOOLS_INTERVAL = 0.25
"""Seconds between two looks at which tools there are: that reads no file, and a client should know at once."""

OWN_LOOP = frozenset({INVALID, "plan_enter", "plan_exit"})
"""Tools for this package's own model loop: what a bad call becomes, and changes of its agent."""
QUESTION = "question"
"""The tool that only a client with forms gets: nobody else could answer."""

HINTS: dict[Effect, types.ToolAnnotations] = {
    "reads": types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    "fetches": types.ToolAnnotations(read_only_hint=True, open_world_hint=True),
    "writes": types.ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False),
    "acts": types.ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True),
    "notes": types.ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
}
"""A built-in tool's effect as the protocol describes it. Of other tools nothing is known, so nothing is said."""

RequestContext = ServerRequestContext[Any, Any]


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

    async def _list_tools(
        self, context: RequestContext, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        self._listener = context.session
        return types.ListToolsResult(tools=await self._selector.tools(questions=self._can_ask(context)))

    async def _report_changed_tools(self) -> None:
        await self._events.publish(ToolsListChanged())
        session = self._listener
        if session is not None and session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            with contextlib.suppress(Exception):  # the client is gone
                await session.send_tool_list_changed()

    async def _call_tool(
        self, context: RequestContext, params: types.CallToolRequestParams
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

    async def _begin(self, context: RequestContext, name: str, arguments: dict[str, Any]) -> RunningCall:
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

    def _can_ask(self, context: RequestContext) -> bool:
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
        self, _: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=self._outputs.list())

    async def _list_templates(
        self, _: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """None: outputs have addresses of their own. Clients that list resources ask for both."""
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def _read_resource(
        self, context: RequestContext, params: types.ReadResourceRequestParams
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


# ---------------------------------------------------------------------- which tools a client sees


class ClientToolFilter:
    """Selects the tools of a workspace for one client.

    Args:
        workspace: whose tools.
        agent: for whom; a tool that all of its rules deny is not listed.
        model: ``provider/model``, for the tools that some models get in place of others.
        requested: names or patterns (``*``, ``?``). Plain ones are listed in place of the usual ones, those after a
            ``+`` beside them, and those after a ``-`` are not.
    """

    def __init__(self, workspace: Workspace, agent: Agent, model: str | None, requested: tuple[str, ...]) -> None:
        self._workspace = workspace
        self._agent = agent
        self._model = model
        self._instead = [name for name in requested if name[0] not in "+-"]
        self._added = [name[1:] for name in requested if name[0] == "+"]
        self._removed = [name[1:] for name in requested if name[0] == "-"]

    def allows(self, id: str) -> bool:
        """Return whether the requested names let a tool of this id run at all, by itself or inside another call."""
        if _matches(id, self._removed):
            return False
        return not self._instead or _matches(id, self._instead) or _matches(id, self._added)

    def includes(self, id: str, *, questions: bool) -> bool:
        """Return whether a client may call a tool of this id, as far as the registry knows it."""
        return any(tool.id == id for tool in self._selected(questions))

    async def tools(self, *, questions: bool) -> list[types.Tool]:
        """The tools to list; the sources are brought up to date, without asking anybody.

        Args:
            questions: whether the client can put questions to its person.
        """
        registry = self._workspace.registry
        await registry.prepare()
        while True:
            selected = {tool.id: tool for tool in self._selected(questions)}
            try:
                bound = await registry.described(list(selected), self._current_agent)
            except UnknownToolError:  # one was removed in between
                continue
            return [
                types.Tool(
                    name=tool.id,
                    title=tool.id.replace("_", " ").strip().capitalize() or tool.id,
                    description=tool.description,
                    input_schema=tool.parameters,
                    annotations=HINTS.get(selected[tool.id].manifest.effect) if selected[tool.id].builtin else None,
                )
                for tool in bound
            ]

    def fingerprint(self) -> tuple[tuple[str, int], ...]:
        """Changes when the list a client has may be out of date."""
        return tuple((tool.id, id(tool)) for tool in self._selected(questions=True))

    @property
    def _current_agent(self) -> Agent:
        """The agent as the configuration has it now."""
        return next((agent for agent in self._workspace.agents.values() if agent.name == self._agent.name), self._agent)

    def _selected(self, questions: bool) -> list[Tool]:
        registry = self._workspace.registry
        usual = {tool.id for tool in registry.offered(self._model)}
        names = registry.names()
        denied = registry.disabled(names, self._current_agent.model_permission)
        selected = []
        for name in names:
            if name in OWN_LOOP or name in denied or (name == QUESTION and not questions) or not self.allows(name):
                continue
            tool = registry.get(name)
            if tool is not None and (name in usual or _matches(name, self._instead) or _matches(name, self._added)):
                selected.append(tool)
        return selected


def _matches(id: str, patterns: list[str]) -> bool:
    return any(match(id, pattern) for pattern in patterns)
