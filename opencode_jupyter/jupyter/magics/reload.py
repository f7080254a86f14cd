"""``%tools reload``: the config files, read again, and what they say now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tables import Table

if TYPE_CHECKING:
    from ..notebook import Notebook

_MOST = 6
"""Keys of one file that are named."""


def reload(notebook: Notebook) -> Table:
    """Read them again. Running calls keep the rules they began with.

    Raises:
        ConfigError: one can't be read; what was read before stays in force.
    """
    notebook.follow_folder()
    workspace = notebook.workspace
    before = workspace.config
    notebook.on_engine(workspace.reload_config)
    config = workspace.config
    old = dict(before.sources)
    rows = []
    for name, data in config.sources:
        keys = [key for key in data if key != "$schema"]
        shown = ", ".join(keys[:_MOST]) + (f" and {len(keys) - _MOST} more" if len(keys) > _MOST else "")
        state = "new" if name not in old else "as before" if old[name] == data else "changed"
        rows.append({"file": name, "sets": shown or "nothing", "now": state})
    gone = [name for name in old if name not in dict(config.sources)]
    rows += [{"file": name, "sets": "", "now": "gone"} for name in gone]
    rules, agents = len(config.permission_rules), len(workspace.agents)
    return Table(
        rows,
        ("file", "sets", "now"),
        title=f"{rules} rules for everyone, {agents} agents.",
        notes=[str(warning) for warning in config.warnings],
        empty="There is no config file.",
    )
