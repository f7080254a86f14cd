"""A workspace: a project folder with its tools, agents and permissions. Here the layers are put together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from . import sources
from .agent.sessions import AgentSessions
from .agent.tools import agent_tools
from .core.host import Layers, ToolHost
from .core.option_checks import check_option_names
from .core.project_trust import trust_project
from .core.trust import Subject
from .tools import builtin_tools

if TYPE_CHECKING:
    from .adapters.exports import Exports
    from .batch import Batch, Evaluation
    from .core.sampling import Completion, CompletionRequest
    from .core.tool import Tool


class Workspace(ToolHost):
    """OpenCode's tool system for one folder.

    Args:
        directory: where calls run; relative paths start here.
        config: laid over what the config files say.
        data_dir: spill files, the store, undo images; the user's data folder if left out, which is closed to others. An
            existing folder that is given keeps its mode; what is written in it is for this user alone.
        approve: decides permission requests: called with the `PermissionRequest`, returns a `Reply`, may be async.
            Without it a request waits for ``permissions.reply``. If nobody subscribes to ``permission.asked`` either,
            the log says that it waits, and a doom-loop request fails at once.
        answer: answers questions: called with the `QuestionRequest`, returns for each question its list of labels (None
            dismisses them), may be async. Without it a question waits for ``questions.reply``.
        store: keep sessions and parts in SQLite; False keeps nothing.
        trust: trust the project as it is now, as long as the workspace is open: its configuration, tool files, plugins,
            MCP servers, providers. Otherwise `approve` is called once, with the permission ``trust``, before a
            project's configuration does more than make rules stricter; without `approve`, ``config.warnings`` reports
            it.

    Raises:
        NotADirectoryError: `directory` is no folder.
        ConfigError: a config file can't be read.

    Use it as a context manager, ``async with`` or plain ``with``. It runs on the caller's event loop.
    """

    sessions: AgentSessions

    def __init__(
        self,
        directory: str | os.PathLike[str] = ".",
        config: dict[str, Any] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        approve: Callable[..., Any] | None = None,
        answer: Callable[..., Any] | None = None,
        *,
        store: bool = True,
        trust: bool = False,
    ) -> None:
        super().__init__(
            directory,
            config,
            data_dir,
            approve,
            answer,
            store=store,
            layers=Layers(builtin_tools() | agent_tools(), AgentSessions, _adapt),
        )
        self.trust_subjects.append(partial(_untrusted_providers, self))
        self.complete = partial(_complete, self)
        sources.attach(self)
        if trust:
            trust_project(self, keep=False)

    def map(self, requests: Iterable[Any], **options: Any) -> Batch:
        """Many prompts or tool calls side by side: await it for a list of results, or iterate for them as they come.

        Options: ``model``, ``agent``, ``tools``, ``format``, ``files``, ``system``, ``max_steps``, ``timeout``,
        ``concurrency``, ``client`` (Dask), ``isolate``, ``on_error``, ``on_ask``, ``on_progress``; see
        `batch.MapOptions` and `batch.map_runs`.
        """
        from .batch import MapOptions, map_runs  # here: few sessions need it

        check_option_names(MapOptions, options, "map")
        return map_runs(self, requests, **options)

    async def evaluate(self, cases: Iterable[Any], scorers: Any, **options: Any) -> Evaluation:
        """Run cases with one or several models, and score the answers.

        Options: ``model``, ``models``, ``n``, ``agent``, ``tools``, ``format``, ``system``, ``max_steps``, ``timeout``,
        ``concurrency``, ``client``, ``isolate``, ``keep``, ``path``, ``seed``, ``on_ask``, ``on_progress``; see
        `batch.EvaluateOptions` and `batch.evaluate`.
        """
        from .batch import EvaluateOptions, evaluate  # here, as for `map`

        check_option_names(EvaluateOptions, options, "evaluate")
        return await evaluate(self, cases, scorers, **options)

    @property
    def tools(self) -> Exports:
        """The tools for other libraries, from `for_openai`, `for_anthropic`, `for_langchain`, `for_pydantic_ai`."""
        from .adapters.exports import Exports  # here: few sessions need it

        return Exports(self)


def _adapt(tool_like: Any, **options: Any) -> list[Tool] | None:
    from .adapters import adapt  # here: few sessions register tools of other libraries

    return adapt(tool_like, **options)


async def _complete(workspace: Workspace, model: str, request: CompletionRequest) -> Completion:
    from .agent.completion import complete  # here: few servers sample

    return await complete(workspace, model, request)


def _untrusted_providers(workspace: Workspace) -> Iterable[Subject]:
    from .agent.models import untrusted  # here: it reads the catalogue of models

    return untrusted(workspace)
