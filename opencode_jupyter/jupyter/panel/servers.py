"""The MCP servers of this kernel for the panel: states, last log lines, connecting, disconnecting, signing in.

Slow work is started here and never waited for: its outcome is kept as a text for the person, and pages are notified
of the change. No answer has a secret: command lines and logs come without them, and tokens never leave the
store. A login's address is sent while it is under way, for the person to open.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...core.errors import ToolError, full_text
from ...core.secrets import hide
from ...text.visible import visible

if TYPE_CHECKING:
    from ...mcp import McpServers, ServerSpec
    from ...mcp.logins import Login, Logins
    from ...mcp.status import ServerStatus
    from .service import Panel

log = logging.getLogger(__name__)

LINES = 20
"""Lines of a server's log that are sent."""
LINE = 500
"""Characters of each."""
SCHEMES = ("http", "https")


def servers(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """All servers.

    Returns:
        ``servers``: of each the row of ``%mcp``, ``log`` (the last lines), ``busy`` (what is being done), ``said`` (how
        the last action ended), ``signsIn`` (whether it takes logins) and, while one is under way, ``login``: its
        ``url`` (None while it is not known yet), ``host``, ``comesBack`` (whether the browser's answer reaches this
        kernel by itself).
    """
    panel.watch("mcp.tools.changed", "servers")
    panel.watch("mcp.status.changed", "servers")
    manager = _servers(panel)
    status = manager.status()
    return {"servers": [_server_json(panel, manager, spec, status[name]) for name, spec in manager.specs().items()]}


def _server_json(panel: Panel, manager: McpServers, spec: ServerSpec, status: ServerStatus) -> dict[str, Any]:
    from ..magics.mcp import COLOURS, describe_server  # here: it needs the notebook, which needs this package

    actions = panel.server_actions
    fields = describe_server(panel.notebook.workspace, manager, spec, status)
    fields["note"] = _clean(spec, fields["note"])
    lines = manager.logs(spec.name)[-LINES:]
    fields["log"] = [visible(COLOURS.sub("", line))[:LINE] for line in lines]
    fields["busy"] = actions.running.get(spec.name, "")
    fields["said"] = _clean(spec, actions.outcomes.get(spec.name, ""))
    fields["signsIn"] = bool(spec.url) and spec.oauth is not False
    login = _running_login(panel, spec.name)
    fields["login"] = _login(login) if login is not None else None
    return fields


def connect(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Begin to connect the server ``name``, again if it is connected."""
    manager, spec = _find_server(panel, request)

    async def connect_server() -> str:
        status = await manager.connect(spec.name)
        return "" if status.state == "connected" else status.error

    return _start_action(panel, spec.name, "connecting", connect_server())


def disconnect(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Begin to stop the server ``name``; it stays stopped until it is connected."""
    manager, spec = _find_server(panel, request)

    async def disconnect_server() -> str:
        await manager.disconnect(spec.name)
        return ""

    return _start_action(panel, spec.name, "disconnecting", disconnect_server())


def sign_in(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Begin a login at the server ``name``; `servers` has its address when it is known, and it then connects.

    Raises:
        ToolError: the server is not trusted yet.
    """
    manager, spec = _find_server(panel, request)
    if not manager.is_trusted(spec):
        raise ToolError(f"The MCP server {spec.name} is not trusted yet; run %tools trust")

    async def log_in() -> str:
        login = await _logins(panel).begin(spec, partial(manager.connect, spec.name))
        if await login.wait_for_url() and urlsplit(login.url).scheme not in SCHEMES:
            await login.cancel()
            raise ToolError(f"{spec.name} names an address for the login that no browser should open")
        panel.changed("servers")
        return await login.wait()

    return _start_action(panel, spec.name, "signing in", log_in())


def give_code(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Give the ``address`` that the browser ended at to the login of the server ``name``, where it can't come back.

    Raises:
        ToolError: no login is under way, or the address is not one of this login.
    """
    _, spec = _find_server(panel, request)
    login = _running_login(panel, spec.name)
    if login is None:
        raise ToolError(f"No login at {spec.name} is under way; start one with Sign in.")
    panel.on_engine(login.redirect.paste, str(request.get("address") or "").strip())
    return {}


def cancel(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Cancel the login at the server ``name``."""
    _, spec = _find_server(panel, request)
    panel.on_engine(_logins(panel).cancel, spec.name)
    panel.changed("servers")
    return {}


def sign_out(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Begin to forget the login at the server ``name``, and stop the server if it is connected."""
    from ..magics.mcp_login import forget_login  # here: see `_server_json`

    manager, spec = _find_server(panel, request)

    async def log_out() -> str:
        return await forget_login(manager, _logins(panel), spec.name)

    return _start_action(panel, spec.name, "signing out", log_out())


def _start_action(panel: Panel, name: str, action: str, work: Coroutine[Any, Any, str]) -> dict[str, Any]:
    actions = panel.server_actions
    actions.outcomes.pop(name, None)
    actions.running[name] = action

    async def run() -> None:
        try:
            words = await work
        except ToolError as error:
            words = full_text(error, for_person=True)
        except Exception as error:  # the person must be informed
            log.exception("%s the MCP server %s failed", action, name)
            words = f"{type(error).__name__}: {error}"
        finally:
            if actions.running.get(name) == action:
                del actions.running[name]
            panel.changed("servers", "tools")
        if words:
            actions.outcomes[name] = words

    panel.notebook.engine.submit(run())
    panel.changed("servers")
    return {}


def _login(login: Login) -> dict[str, Any]:
    parts = urlsplit(login.url)
    url = login.url if parts.scheme in SCHEMES else None
    in_the_open = parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1")
    return {
        "url": url,
        "host": parts.hostname or "",
        "comesBack": login.redirect.listening,
        "unencrypted": bool(url) and in_the_open,
    }


def _running_login(panel: Panel, name: str) -> Login | None:
    if "opencode_jupyter.mcp.logins" not in sys.modules:  # slow to import, and no login has started yet
        return None
    return _logins(panel).get(name)


def _logins(panel: Panel) -> Logins:
    from ...mcp.logins import Logins

    return panel.notebook.workspace.service(Logins)


def _servers(panel: Panel) -> McpServers:
    from ...mcp import McpServers

    return panel.notebook.workspace.service(McpServers)


def _find_server(panel: Panel, request: dict[str, Any]) -> tuple[McpServers, ServerSpec]:
    manager, name = _servers(panel), str(request.get("name"))
    spec = manager.specs().get(name)
    if spec is None:
        raise ToolError(f"There is no MCP server {name} (any more).")
    return manager, spec


def _clean(spec: ServerSpec, text: str) -> str:
    return visible(" ".join(hide(text, spec.secrets).split()))


HANDLERS: dict[str, Any] = {
    "servers": servers,
    "server_connect": connect,
    "server_disconnect": disconnect,
    "server_sign_in": sign_in,
    "server_code": give_code,
    "server_cancel": cancel,
    "server_sign_out": sign_out,
}
