"""Errors of requests to a model, by what a user or the loop can do about them."""

from __future__ import annotations

from typing import Any, Literal

from ..core.errors import ToolError

Kind = Literal[
    "auth",
    "not_found",
    "bad_request",
    "rate_limit",
    "overloaded",
    "quota",
    "overflow",
    "refused",
    "network",
    "timeout",
    "cut",
    "protocol",
    "script",
    "setup",
    "other",
]
"""
auth: no key, or a wrong one. not_found: no such model or address. bad_request: the provider did not accept the request.
rate_limit: too many requests (429). overloaded: the provider is busy or broken (5xx, 529). quota: no credit left.
overflow: the conversation does not fit into the model's window. refused: the provider's filter withheld the answer.
network: no connection, DNS, TLS, a proxy's error. timeout: no data for too long. cut: the stream broke off.
protocol: the answer is not in the provider's form. script: a mistake in a scripted model's file, or a replay that does
not fit. setup: a library or a setting is missing here.
"""

RETRYABLE: frozenset[str] = frozenset({"rate_limit", "overloaded", "network", "timeout", "cut"})
"""Kinds that may go away by themselves."""


class ModelError(ToolError):
    """A request to a model failed.

    Attributes:
        kind: see `Kind`.
        provider: whose; "" if not known.
        status: the HTTP status; None if there was none.
        retry_after: seconds after which the provider wants to be asked again; None if it gave no time.
        retryable: True if another request can help.
        body: the provider's answer, cut to 2,000 characters, without keys.
    """

    def __init__(
        self,
        message: str,
        kind: Kind,
        *,
        provider: str = "",
        status: int | None = None,
        retry_after: float | None = None,
        retryable: bool | None = None,
        body: str = "",
    ) -> None:
        super().__init__(message)
        self._message = message
        self.kind: Kind = kind
        self.provider = provider
        self.status = status
        self.retry_after = retry_after
        self.retryable = kind in RETRYABLE if retryable is None else retryable
        self.body = body

    def with_message(self, message: str) -> ModelError:
        """The same error with another message."""
        error = ModelError(message, self.kind, provider=self.provider, status=self.status, body=self.body)
        error.retry_after, error.retryable = self.retry_after, self.retryable
        return error

    def add_attempts(self, times: int) -> None:
        """Report the number of attempts in the message, where there were several."""
        if times > 1:
            end = "" if self._message.endswith((".", "?", "!")) else "."
            self.args = (f"{self._message}{end} It was asked {times} times.",)

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's form of a message's error."""
        message = str(self)
        if self.kind == "auth":
            return {"name": "ProviderAuthError", "data": {"providerID": self.provider, "message": message}}
        if self.kind == "overflow":
            return {"name": "ContextOverflowError", "data": {"message": message, "responseBody": self.body}}
        if self.kind in ("script", "setup", "other", "protocol"):
            return {"name": "UnknownError", "data": {"message": message}}
        data: dict[str, Any] = {"message": message, "isRetryable": self.retryable}
        if self.status is not None:
            data["statusCode"] = self.status
        if self.body:
            data["responseBody"] = self.body
        return {"name": "APIError", "data": data}
