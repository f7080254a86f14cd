"""``config`` hooks: plugins that change the configuration, and with it agents and rules."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..config import Config
from .threads import off_loop

if TYPE_CHECKING:
    from ..workspace import Workspace
    from .plugin import Plugin


class ConfigHooks:
    """Lays what plugins change over the configuration of the files, anew whenever either is another."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._base: Config | None = None
        self._made: Config | None = None
        """The changed configuration; None if nothing was changed."""
        self._done: tuple[Config | None, list[Callable[..., Any]]] = (None, [])

    def before(self) -> Config:
        """The configuration as it is without plugins."""
        config = self._workspace.config
        if self._base is None or config is not self._made:
            self._base = config
        return self._base

    async def run(self, plugins: Sequence[Plugin], limit: float) -> None:
        """Run the hooks in order, if there are others than before or another configuration.

        Args:
            plugins: all that run.
            limit: seconds that each hook may take. One that fails or takes longer changes nothing.
        """
        base = self.before()
        hooks = [(plugin, fn) for plugin in plugins if plugin.offer for fn in plugin.offer.configs]
        functions = [fn for _, fn in hooks]
        done_for, done = self._done
        if (base is done_for and functions == done) or not (hooks or self._made):
            return
        from ..config.amend import amended
        from .contents import described

        config = base
        for plugin, fn in hooks:
            data = copy.deepcopy(config.data)
            try:
                async with asyncio.timeout(limit):
                    await off_loop(fn)(data)
                if data != config.data:
                    config = amended(config, data, f"plugin {plugin.name}")
            except Exception as error:
                plugin.trouble(f"its config hook failed: {described(error)}")
        now = self._workspace.config
        if now is base or now is self._made:  # else it was read again meanwhile, and comes with the next round
            self._done = (base, functions)
            self._made = config if config is not base else None
            self._workspace.use_config(config)
