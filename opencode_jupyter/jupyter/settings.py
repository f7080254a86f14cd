"""The settings of the notebook interface: ``%config ToolMagics``, or ``c.ToolMagics`` in ipython_config.py.

(What tools may do is set in the configuration of the project, see `core.config`.)
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Any

from traitlets import Bool, Enum, Float, TraitError, Unicode, observe, validate
from traitlets.config import Configurable


@dataclass(slots=True)
class Settings:
    """The values of the settings now; read at each use."""

    on_ask: str = "deny"
    cards: bool = True
    agent: str = ""
    card_after: float = 0.15
    prompt_after: float = 2.0
    timeout: float = 0.0
    quiet: bool = False
    data_dir: str = ""


class SettingTraits(Configurable):
    """The settings as ``%config`` knows them: kinds, limits and help. A change is copied to `Settings`."""

    on_ask = Enum(
        ("deny", "allow"), "deny", help="The reply to a request that nobody can answer (nbclient, papermill)."
    ).tag(config=True)
    cards = Bool(True, help="Show live cards while calls run; False leaves the finished ones.").tag(config=True)
    agent = Unicode("", help="Whose rules apply when a line names no --agent; empty for the default agent.").tag(
        config=True
    )
    card_after = Float(
        0.15,
        min=0,
        max=3600,
        help="Seconds a call may take before its card is shown live; a request for approval shows it at once.",
    ).tag(config=True)
    prompt_after = Float(
        2.0,
        min=0,
        max=60,
        help="Seconds to wait for a page to show the card of a request before a prompt is used instead.",
    ).tag(config=True)
    timeout = Float(
        0,
        min=0,
        help="Seconds a call may take if its line has no --timeout, not counting your answers; 0: no limit.",
    ).tag(config=True)
    quiet = Bool(False, help="Show no cards of %tool lines, as -q does; a request for approval is still shown.").tag(
        config=True
    )
    data_dir = Unicode(
        "",
        help="Folder for full outputs, history and undo; empty for the user's data folder. "
        "For ipython_config.py: it cannot be changed once the tools are in use.",
    ).tag(config=True)

    _settings: Settings | None = None
    """The notebook's settings, to which the values are copied."""

    def _in_use(self) -> bool:
        """Whether the notebook was built."""
        return False

    @validate("data_dir")
    def _folder(self, proposal: dict[str, Any]) -> str:
        folder_name: str = proposal["value"]
        if folder_name == (self._settings.data_dir if self._settings is not None else ""):
            return folder_name
        if self._in_use():
            raise TraitError(
                "data_dir can't be changed once the tools are in use; put c.ToolMagics.data_dir into ipython_config.py"
            )
        folder = os.path.expanduser(folder_name)
        if folder_name and not os.path.isabs(folder):
            raise TraitError(f"data_dir is {folder_name!r}; it must be an absolute path, such as ~/opencode-data")
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise TraitError(f"data_dir: {folder} is not a folder")
        return folder

    @observe(*(field.name for field in fields(Settings)))
    def _changed(self, _: Any) -> None:
        self.apply()

    def apply(self) -> None:
        """Copy the values to the notebook's settings."""
        if self._settings is not None:
            for field in fields(Settings):
                setattr(self._settings, field.name, getattr(self, field.name))
