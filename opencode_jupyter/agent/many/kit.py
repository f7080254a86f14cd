"""What the workers of a batch need besides the jobs, and how it reaches them.

A job stands in Dask's task graph, which the scheduler keeps and its dashboard shows. So what may hold a key (the
configuration laid over the files) is no part of it: a worker that has none asks for the kit, and gets it by a direct
call (`Client.run`), which nothing keeps. Keys that the user has in the environment or a keyring are never sent at all:
a worker uses those of its own machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...core.errors import ToolError
from ...core.permission import Rule
from .places import Isolate
from .running import After, Before

if TYPE_CHECKING:
    from ...core.workspace import Workspace
    from .mapping import Settings


@dataclass
class Kit:
    """Everything a worker needs for a batch.

    Attributes:
        batch: its name; the topic of its events.
        directory: the workspace's folder.
        data_dir: its data folder, used where it is the same one (`token` stands in it).
        token: the name of a file in the data folder: whoever sees it works on the same disk.
        overrides: what is laid over the config files.
        rules: the workspace's rules.
        approved: what a person allowed for the session.
        tools: the registered tools.
        reject: refuse every ask.
        isolate: see `Places`.
        keep: see `Runner`.
        before: see `Runner`.
        after: see `Runner`.
    """

    batch: str
    directory: str
    data_dir: str
    token: str
    overrides: dict[str, Any] | None = None
    rules: list[Rule] = field(default_factory=list)
    approved: list[Rule] = field(default_factory=list)
    tools: list[Any] = field(default_factory=list)
    reject: bool = False
    isolate: Isolate | None = None
    keep: bool = True
    before: Before | None = None
    after: After | None = None


def packed(workspace: Workspace, settings: Settings, token: str) -> bytes:
    """The kit of a batch, as bytes.

    Raises:
        ToolError: something in it can't be sent; the message names it.
    """
    import cloudpickle

    kit = Kit(
        settings.batch,
        str(workspace.directory),
        str(workspace.data_dir),
        token,
        workspace.overrides,
        list(workspace.rules),
        list(workspace.permissions.approved),
        list(workspace.registry.registered),
        settings.on_ask == "reject",
        settings.isolate,
        settings.keep,
        settings.before,
        settings.after,
    )
    for tool in kit.tools:
        try:
            cloudpickle.dumps(tool)
        except Exception as error:
            raise ToolError(
                f"the registered tool {tool.id} can't be sent to Dask's workers ({error}); put it into a file of "
                ".opencode/tool, which every worker reads by itself, or unregister it"
            ) from error
    try:
        data: bytes = cloudpickle.dumps(kit)
    except Exception as error:
        raise ToolError(f"what the runs need cannot be sent to Dask's workers: {error}") from error
    return data
