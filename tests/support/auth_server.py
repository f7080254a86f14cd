"""A server that wants a login, and its authorization server, over loopback: discovery, registration, PKCE, renewal."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit


class AuthServer:
    """What it knows, and what it was asked.

    Attributes:
        requests: method and path of each request, in order.
        lifetime: seconds an access token lives; None: it does not say, and tokens live until `expire`.
        wants: a scope that nobody has.
        resource: the address that logins are for, if it is another server's.
        registration: whether programs may register themselves.
        methods: how a client may show its secret.
    """

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.lifetime: int | None = 3600
        self.registration = True
        self.refuse: str | None = None
        self.methods = ["none", "client_secret_post", "client_secret_basic"]
        self.scopes: list[str] | None = None
        self.token_status = 200
        self.clients: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.access: dict[str, float] = {}
        self.refresh: set[str] = set()
        self.forms: list[dict[str, str]] = []
        self.url = ""
        self.needed = True
        self.resource = ""
        self.wants = ""

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"

    def add_client(self, client_id: str, secret: str | None, redirect: str) -> None:
        self.clients[client_id] = {"client_id": client_id, "client_secret": secret, "redirect_uris": [redirect]}

    def expire(self) -> None:
        """End every access token at once, as a server may."""
        self.access.clear()

    def secrets(self) -> list[str]:
        """Everything that must never be shown."""
        values = [*self.access, *self.refresh, *self.codes, *(f.get("code_verifier", "") for f in self.forms)]
        return [*filter(None, values), *(c["client_secret"] for c in self.clients.values() if c.get("client_secret"))]

    # ------------------------------------------------------------------ endpoints

    def metadata(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "issuer": f"{self.url}/as",
            "authorization_endpoint": f"{self.url}/as/authorize",
            "token_endpoint": f"{self.url}/as/token",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": self.methods,
        }
        if self.registration:
            document["registration_endpoint"] = f"{self.url}/as/register"
        return document

    def register(self, body: dict[str, Any]) -> dict[str, Any]:
        client = {**body, "client_id": secrets.token_hex(8), "token_endpoint_auth_method": "none"}
        self.clients[client["client_id"]] = client
        return client

    def authorize(self, query: dict[str, str]) -> str:
        """The address that the browser is sent back to."""
        client = self.clients[query["client_id"]]
        assert query["redirect_uri"] in client["redirect_uris"], query["redirect_uri"]
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert query["resource"] == (self.resource or self.mcp)
        if self.refuse:
            return f"{query['redirect_uri']}?{urlencode({'error': self.refuse, 'state': query['state']})}"
        code = secrets.token_hex(8)
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], authorization: str | None) -> tuple[int, dict[str, Any]]:
        self.forms.append(form)
        if self.token_status != 200:
            return self.token_status, {"error": "server_error"}
        client = self.clients.get(form.get("client_id", ""))
        if client is None:
            return 401, {"error": "invalid_client"}
        secret = client.get("client_secret")
        if secret:
            basic = "Basic " + base64.b64encode(f"{client['client_id']}:{secret}".encode()).decode()
            shown = authorization == basic if "client_secret_post" not in self.methods else None
            if not (shown or (shown is None and form.get("client_secret") == secret)):
                return 401, {"error": "invalid_client", "error_description": f"secret {form.get('client_secret')}"}
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.refresh:
                return 400, {"error": "invalid_grant"}
            self.refresh.discard(form["refresh_token"])
            return 200, self.issue()
        grant = self.codes.pop(form["code"], None)
        if grant is None:
            return 400, {"error": "invalid_grant", "error_description": "no such code", "hint": form["code"]}
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        if challenge.decode() != grant["code_challenge"] or form["redirect_uri"] != grant["redirect_uri"]:
            return 400, {"error": "invalid_grant", "error_description": "PKCE"}
        return 200, self.issue(grant.get("scope"))

    def issue(self, scope: str | None = None) -> dict[str, Any]:
        access, refresh = secrets.token_hex(16), secrets.token_hex(16)
        self.access[access] = time.time() + (self.lifetime or 1e6)
        self.refresh.add(refresh)
        tokens: dict[str, Any] = {"access_token": access, "token_type": "Bearer", "refresh_token": refresh}
        if self.lifetime is not None:
            tokens["expires_in"] = self.lifetime
        if scope:
            tokens["scope"] = scope
        return tokens

    def allowed(self, authorization: str | None) -> bool:
        token = (authorization or "").removeprefix("Bearer ")
        return not self.needed or self.access.get(token, 0) > time.time()

    def answer(self, authorization: str | None) -> tuple[int, dict[str, Any], str]:
        """The MCP server's status, answer and challenge."""
        if not self.allowed(authorization):
            where = f"{self.url}/.well-known/oauth-protected-resource/mcp"
            return 401, {"error": "invalid_token"}, f'Bearer resource_metadata="{where}"'
        if self.wants:
            return 403, {"error": "insufficient_scope"}, f'Bearer error="insufficient_scope", scope="{self.wants}"'
        return 200, {"jsonrpc": "2.0", "id": 1, "result": {}}, ""


@contextmanager
def auth_server() -> Iterator[AuthServer]:
    """One that runs."""
    server = AuthServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536  # head and body in one packet
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            pass

        def reply(self, status: int, data: Any = None, **headers: str) -> None:
            body = b"" if data is None else json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            server.requests.append(f"GET {parts.path}")
            if parts.path == "/.well-known/oauth-protected-resource/mcp":
                document: dict[str, Any] = {"resource": server.mcp, "authorization_servers": [f"{server.url}/as"]}
                if server.scopes is not None:
                    document["scopes_supported"] = server.scopes
                self.reply(200, document)
            elif parts.path == "/.well-known/oauth-authorization-server/as":
                self.reply(200, server.metadata())
            elif parts.path == "/as/authorize":
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self.reply(302, None, Location=server.authorize(query))
            else:
                self.reply(404)

        def do_POST(self) -> None:
            server.requests.append(f"POST {self.path}")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path == "/as/register" and server.registration:
                self.reply(201, server.register(json.loads(body)))
            elif self.path == "/as/token":
                form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
                self.reply(*server.token(form, self.headers.get("Authorization")))
            elif self.path != "/mcp":
                self.reply(404, {"error": "not_found"})
            else:
                status, data, challenge = server.answer(self.headers.get("Authorization"))
                self.reply(status, data, **({"WWW_Authenticate": challenge} if challenge else {}))

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    server.url = f"http://127.0.0.1:{listening.server_address[1]}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join(5)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def browse(url: str, *, follow: bool = True) -> str:
    """What a browser does with an address: the page it ends at, or where it would be sent to."""
    opener = urllib.request.build_opener(*([] if follow else [_NoRedirect()]))
    try:
        with opener.open(url, timeout=10) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return str(error.headers.get("Location") or error.read().decode())
