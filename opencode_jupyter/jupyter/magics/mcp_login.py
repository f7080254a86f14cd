"""``%mcp auth``: log in to a remote server, with a browser of this machine or of another.

With a browser here the cell opens it and waits. Without one it shows the address and ends; the login continues
in the background, and where the browser can't reach this machine the address that it ended at is pasted.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...core.errors import InvalidArgumentsError, ToolError
from ..tables import Notice
from .mcp import McpLine, server_table

if TYPE_CHECKING:
    from ...mcp import McpServers
    from ...mcp.logins import Login, Logins

REMOTE_VARIABLES = ("SSH_CONNECTION", "SSH_TTY", "JUPYTERHUB_API_URL", "CODESPACES", "COLAB_RELEASE_TAG")
"""Variables that are set where the person works at another machine."""
_TEXT = ("lynx", "w3m", "links", "elinks", "www-browser")
"""Browsers that would take over the terminal."""


class LoginLink:
    """The address to log in at."""

    def __init__(self, server: str, url: str, waits: bool, listening: bool) -> None:
        self.server = server
        self.url = url
        parts = urlsplit(url)
        self.host = parts.hostname or ""
        self.lines = _advice(server, waits, listening)
        if parts.scheme == "http" and self.host not in ("127.0.0.1", "localhost", "::1"):
            self.lines.append("This address is not encrypted: others on the way can read along.")

    def __repr__(self) -> str:
        return "\n".join([f"Log in at {self.server} (on {self.host}):", self.url, *self.lines])

    def _repr_html_(self) -> str:
        link = f'<a href="{escape(self.url)}" target="_blank" rel="noopener noreferrer">'
        lines = [f"{link}Log in at {escape(self.server)}</a> (on {escape(self.host)})", *map(escape, self.lines)]
        return "".join(f"<div>{line}</div>" for line in lines)


def log_in(line: McpLine) -> Any:
    """``%mcp auth``."""
    from ...mcp.logins import Logins

    forget, no_wait = line.flag("--forget"), line.flag("--no-wait")
    code = line.option("--code")
    name = line.only_server()
    if forget and code is not None:
        raise InvalidArgumentsError(f"--forget and --code cannot be combined. {line.usage}")
    logins = line.workspace.service(Logins)
    if forget:
        return Notice(line.wait(forget_login(line.servers, logins, name)))
    if code is not None:
        return _finish(line, logins, name, code)
    if not line.servers.is_trusted(line.spec(name)):
        raise ToolError(f"The MCP server {name} is not trusted yet; run %tools trust")
    login = line.wait(_start_login(line, logins, name))
    if not login.url:
        return Notice(line.wait(login.wait()))
    waits = not no_wait and login.redirect.listening and line.notebook.is_attended() and can_browse()
    link = LoginLink(name, login.url, waits, login.redirect.listening)
    return _wait_for_login(line, login, link) if waits else link


async def _start_login(line: McpLine, logins: Logins, name: str) -> Login:
    login = await logins.begin(line.spec(name), partial(line.servers.connect, name))
    await login.wait_for_url()
    return login


async def forget_login(servers: McpServers, logins: Logins, name: str) -> str:
    """Forget the login at a server, and disconnect it; returns what happened, for a person."""
    if not await logins.forget(name):
        return f"No login at {name} is stored."
    if servers.status()[name].state == "connected":
        await servers.disconnect(name)
    return f"The login at {name} was removed here. If the service still lists it, revoke it there."


def _finish(line: McpLine, logins: Logins, name: str, code: str) -> Any:
    login = logins.get(name)
    if login is None:
        raise ToolError(f"No login at {name} is under way in this kernel; start one: %mcp auth {name}")

    async def log_in() -> str:
        login.redirect.paste(code)
        return await login.wait()

    text = line.wait(log_in())
    return server_table(line, name, line.servers.status()[name], (text,))


def _wait_for_login(line: McpLine, login: Login, link: LoginLink) -> Any:
    """Open the browser and wait. An interrupt ends the wait; the login itself continues until its time limit."""
    from IPython.display import display

    handle: Any = display(link, display_id=True)  # type: ignore[no-untyped-call]
    threading.Thread(target=_open, args=(link.url,), daemon=True).start()
    try:
        text = line.wait(login.wait())
    except ToolError as error:
        _settle(handle, f"{error}")
        raise
    except KeyboardInterrupt:
        if handle is not None:
            handle.update(LoginLink(login.server, login.url, waits=False, listening=login.redirect.listening))
        raise
    _settle(handle, text)
    return server_table(line, login.server, line.servers.status()[login.server], (text,))


def _settle(handle: Any, text: str) -> None:
    """Remove the address from the notebook: it cannot be used any more."""
    if handle is not None:
        handle.update(Notice(text))


def _open(url: str) -> None:
    import webbrowser

    with contextlib.suppress(Exception):  # the link is there to be clicked
        webbrowser.open(url)


def can_browse() -> bool:
    """Whether a browser that is opened here is visible to the person."""
    import webbrowser

    if any(os.environ.get(name) for name in REMOTE_VARIABLES) or os.path.exists("/.dockerenv"):
        return False
    has_display = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    if sys.platform not in ("darwin", "win32") and not has_display:
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    name = os.path.basename(str(getattr(browser, "name", "")))
    return name not in _TEXT


def _advice(server: str, waits: bool, listening: bool) -> list[str]:
    paste = f"%mcp auth {server} --code ADDRESS"
    if waits:
        return [f"The cell waits. If the browser can't come back: interrupt, copy the address it ended at, {paste}"]
    if listening:
        return [
            f"After the login {server} connects by itself. If the browser ends at an error: {paste}, with its address"
        ]
    return [f"Then copy the address that the browser ended at: {paste}"]
