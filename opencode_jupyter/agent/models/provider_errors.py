"""A provider's errors, and those of the network on the way to it, as `ModelError` with advice on what to do."""

from __future__ import annotations

import html
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ...core.suggestions import suggestion
from ...tools.web.sse import LineTooLongError
from ..errors import Kind, ModelError
from ..retry import LONGEST_REQUESTED_WAIT
from .api_keys import redacted
from .trust import LOOPBACK

MAX_BODY = 2000
"""Characters of a provider's answer that an error keeps."""
MAX_QUOTE = 500
"""Characters of a provider's own sentence that a message repeats."""

STATUS: dict[str, int] = {
    # Anthropic
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    # OpenAI and servers like it
    "invalid_api_key": 401,
    "model_not_found": 404,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "service_unavailable": 503,
    "server_overloaded": 503,
    # Google
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""The HTTP status that an error's own name means, where it comes inside a stream."""

_QUOTA = re.compile(
    r"insufficient_quota|insufficient (balance|credits|funds)|credit balance|billing|out of credits|"
    r"exceeded your current quota|quota exceeded|usage limit|spending limit|payment required",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"content_filter|content_policy|content management policy|responsible ?ai|safety (system|reasons)|flagged|"
    r"violat\w+ .{0,40}polic|usage polic|data_inspection_failed",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|model_not_available|"
    r"\bmodels?\b.{0,120}?(does not exist|doesn't exist|not found|not exist|is not (a )?valid|not supported|unknown)|"
    r"(invalid|unknown|unsupported|no such|not a valid) model\b|no endpoints found",
    re.IGNORECASE | re.DOTALL,
)
_NO_KEY = re.compile(r"API_KEY_INVALID|api key not valid|(invalid|incorrect|missing) api[ _]key", re.IGNORECASE)
_OVERFLOW = (
    r"context_length_exceeded|string_above_max_length|model_context_window_exceeded",  # codes
    r"prompt is too long",  # Anthropic
    r"input is too long|input length and `?max_tokens`? exceed",  # Anthropic, Bedrock
    r"(exceeds?|exceeded|over|beyond) (the |your |this |its |model'?s? )*(maximum )?context",  # many
    r"maximum context length|max(imum)? context (size|window)",  # OpenAI, vLLM, OpenRouter, DeepSeek
    r"input token count.{0,40}exceeds the maximum",  # Google
    r"maximum prompt length is",  # xAI
    r"reduce the length of (the|your) (messages|prompt|input)",  # Groq, OpenAI
    r"exceeded model token limit",  # Moonshot
    r"context window exceeds limit",  # MiniMax
    r"(greater|larger|longer) than the (available )?context (length|size)",  # LM Studio
    r"available context size|context size has been exceeded",  # llama.cpp, LM Studio
    r"exceeded max context length|context length exceeded",  # Ollama
    r"too large for model with \d+ maximum context",  # Mistral
    r"prompt contains \d+ tokens.{0,60}too large",  # Mistral
    r"prompt token count of \d+ exceeds the limit",  # GitHub
    r"tokens in request more than max tokens allowed",  # Zhipu
    r"inputs? tokens?.{0,40}must be (<=|less|at most)",  # text-generation-inference
)
"""How providers report a conversation that does not fit: codes and sentences, as regular expressions."""
_TOO_LONG = re.compile("|".join(_OVERFLOW), re.IGNORECASE)
_SECONDS = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*s?\s*$")
_HTML = re.compile(r"^\s*(<!doctype html|<html|<head|<\?xml)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The request that an error is about.

    Attributes:
        provider: its id.
        model: the model's id.
        url: where it was sent, without the query.
        secrets: texts that must not be shown.
        key_from: where the key came from, for a person; "" if none was sent.
        key_names: variables that may hold a key.
        similar_models: returns ids of models that resemble the requested one; called for errors only.
        local: a server of the user's own (Ollama and the like).
    """

    provider: str
    model: str
    url: str
    secrets: Sequence[str] = ()
    key_from: str = ""
    key_names: Sequence[str] = ()
    similar_models: Callable[[], Sequence[str]] = tuple
    local: bool = False

    def error(
        self, kind: Kind, text: str, *, status: int | None = None, retryable: bool | None = None, body: str = ""
    ) -> ModelError:
        """The error for what went wrong with the request; the text is put after the provider's name."""
        message = f"{self.provider}: {text}"
        return ModelError(message, kind, provider=self.provider, status=status, retryable=retryable, body=body)


def response_error(context: RequestContext, status: int, headers: Mapping[str, str], body: bytes | str) -> ModelError:
    """The error for a response with a status other than 200."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    try:
        value: Any = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, list) and value:  # Google answers a stream with a list
        value = value[0]
    return _model_error(context, status, headers, text, value)


def stream_error(context: RequestContext, value: Mapping[str, Any]) -> ModelError:
    """The error for an error that came inside a stream (status 200)."""
    error = value.get("error", value)
    status: int | None = None
    if isinstance(error, Mapping):
        for name in (error.get("code"), error.get("type"), error.get("status")):
            if isinstance(name, int) and 400 <= name < 600:
                status = name
            elif isinstance(name, str):
                status = STATUS.get(name) or (int(name) if name.isdigit() and 400 <= int(name) < 600 else None)
            if status is not None:
                break
    return _model_error(context, status, {}, json.dumps(value, ensure_ascii=False), value)


def web_page_error(context: RequestContext, status: int, text: str) -> ModelError:
    """The error for an answer that is a web page: from a proxy, a login page, or a wrong address."""
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    quoted_title = f" ({html.unescape(title.group(1)).strip()[:100]})" if title else ""
    page = f"{context.url} answered with a web page{quoted_title}"
    shown = _redacted_body(context, text)
    if status in (401, 403, 407):
        reason = f"{page}, status {status}: a proxy or firewall is in the way"
        return context.error("network", reason, status=status, retryable=False, body=shown)
    if status >= 500 or status == 429:
        kind: Kind = "rate_limit" if status == 429 else "overloaded"
        return context.error(kind, f"{page}, status {status}", status=status, body=shown)
    reason = f"{page}. Is options.baseURL right (most end in /v1), or is a proxy in the way?"
    return context.error("not_found" if status == 404 else "protocol", reason, status=status, body=shown)


def _model_error(
    context: RequestContext, status: int | None, headers: Mapping[str, str], text: str, value: Any
) -> ModelError:
    if _HTML.match(text):
        page_error = web_page_error(context, status or 200, text)
        page_error.retry_after = retry_after(headers)
        return page_error
    text, names = _provider_text(value, text)
    everything = f"{names} {text}"
    kind = _error_kind(status, everything, value)
    message = _error_message(context, kind, status, redacted(text, context.secrets)[:MAX_QUOTE].strip())
    wait = retry_after(headers, value)
    if wait is not None and wait > LONGEST_REQUESTED_WAIT:
        message += "" if message.endswith((".", "!", "?")) else "."
        message += f" It asks to retry in {_duration_text(wait)}, which is too long to wait."
    retryable: bool | None = None
    should_retry = headers.get("x-should-retry")  # of OpenAI and Anthropic
    if should_retry in ("true", "false") and kind not in ("overflow", "quota", "auth", "refused"):
        retryable = should_retry == "true"
    return ModelError(
        message,
        kind,
        provider=context.provider,
        status=status,
        retry_after=wait,
        retryable=retryable,
        body=_redacted_body(context, text),
    )


def _duration_text(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.1f} hours" if hours >= 1 else f"{seconds / 60:.0f} minutes"


def _error_kind(status: int | None, text: str, value: Any) -> Kind:
    if _TOO_LONG.search(text) and status not in (401, 403, 404):
        return "overflow"
    if status == 413:
        return "overflow"
    if status == 407:
        return "network"
    if _NO_KEY.search(text) and (status is None or 400 <= status < 500):
        return "auth"
    if status == 402:
        return "quota"
    if status == 429 or "insufficient_quota" in text:
        return "quota" if _is_quota_used_up(text, value) else "rate_limit"
    if status in (400, 403, 422, 451, None) and _REFUSED.search(text):
        return "refused"
    if status == 404 or (status in (400, 403, 422, None) and _NO_MODEL.search(text)):
        return "not_found"
    if status in (400, 403) and _QUOTA.search(text):
        return "quota"  # Anthropic's status for an empty balance is 400
    if status in (401, 403):
        return "auth"
    if status == 408:
        return "timeout"
    if status is None:
        return "other"
    if status in (409, 425) or status >= 500:
        return "overloaded"
    return "bad_request"


def _is_quota_used_up(text: str, value: Any) -> bool:
    """Google says "exceeded your current quota" for a minute's limit too; its retry delay distinguishes them."""
    entries = list(google_details(value))
    if any("RetryInfo" in str(entry.get("@type")) for entry in entries) and "PerDay" not in text + str(entries):
        return False
    return _QUOTA.search(text) is not None


def _provider_text(value: Any, text: str) -> tuple[str, str]:
    """A provider's own sentence, and the names (code, type, status) it gives the error."""
    if not isinstance(value, Mapping):
        return (value if isinstance(value, str) else text), ""
    error: Any = value.get("error")
    if not isinstance(error, Mapping):
        error = {**value, "message": error} if isinstance(error, str) else value
    names = " ".join(str(error.get(key) or "") for key in ("code", "type", "status"))
    more = error.get("metadata")  # OpenRouter: the answer of the provider that it uses
    raw = more.get("raw") if isinstance(more, Mapping) else None
    for key in ("message", "detail", "error_description", "title"):
        text_of_key = error.get(key)
        if text_of_key:
            text = text_of_key if isinstance(text_of_key, str) else json.dumps(text_of_key, ensure_ascii=False)
            return (f"{text}: {raw}" if isinstance(raw, str) else text), names
    reasons = " ".join(str(detail.get("reason") or "") for detail in google_details(value))
    return text, f"{names} {reasons}"


def _error_message(context: RequestContext, kind: Kind, status: int | None, provider_text: str) -> str:
    code = f" (status {status})" if status is not None else ""
    quoted = f" It said: {provider_text}" if provider_text else ""
    who = context.provider
    if kind == "auth":
        if context.key_from:
            return f"{who} did not accept the key from {context.key_from}{code}.{quoted}"
        names = (
            f" Set {' or '.join(context.key_names)}."
            if context.key_names
            else " Set options.apiKey in its config entry."
        )
        return f"{who} needs a key and none is set{code}.{names}{quoted}"
    if kind == "not_found":
        near = suggestion(context.similar_models())
        pull = f" `ollama pull {context.model}` gets it." if who == "ollama" else ""
        return f"{who} has no model {context.model!r}{code} at {context.url}.{near}{pull}{quoted}"
    plain: dict[Kind, str] = {
        "rate_limit": f"{who} gets too many requests{code}.",
        "quota": f"No credit or quota is left at {who}{code}.",
        "overloaded": f"{who} is busy or broken{code}.",
        "overflow": f"The conversation is too long for {who}:{context.model}{code}.",
        "refused": f"{who} refused the request because of what is in it{code}.",
        "timeout": f"{who} took too long{code}.",
        "network": f"A proxy between here and {who} stopped the request{code}.",
    }
    return plain.get(kind, f"{who} did not take the request{code}.") + quoted


def _redacted_body(context: RequestContext, text: str) -> str:
    return redacted(text, context.secrets)[:MAX_BODY]


# ---------------------------------------------------------------------- when to ask again


def retry_after(headers: Mapping[str, str], body: Any = None) -> float | None:
    """Seconds from now; None if neither the headers nor the body say it.

    Args:
        headers: of the response. ``retry-after-ms`` in milliseconds; ``retry-after`` in seconds or as an HTTP date.
        body: the decoded JSON; Google puts ``{"@type": ".../google.rpc.RetryInfo", "retryDelay": "43s"}`` in there.
    """
    milliseconds = _parse_seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    header = headers.get("retry-after")
    seconds = _parse_seconds(header)
    if seconds is not None:
        return seconds
    if header:
        try:
            when = parsedate_to_datetime(header)
        except ValueError:
            when = None
        if when is not None:
            if when.tzinfo is None:
                when = when.replace(tzinfo=UTC)
            return max(0.0, when.timestamp() - time.time())
    for detail in google_details(body):
        delay = _parse_seconds(detail.get("retryDelay"))
        if delay is not None:
            return delay
    return None


def google_details(body: Any) -> Iterator[Mapping[str, Any]]:
    """The entries of Google's ``error.details``."""
    error = body.get("error") if isinstance(body, Mapping) else None
    entries = error.get("details") if isinstance(error, Mapping) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping):
            yield entry


def _parse_seconds(text: Any) -> float | None:
    match = _SECONDS.match(str(text)) if text is not None else None
    return float(match.group(1)) if match else None


# ---------------------------------------------------------------------- network errors


def network_error(context: RequestContext, error: Exception, *, began: bool, httpx2: Any) -> ModelError:
    """The error for what the HTTP library raised.

    `began` is true after the first part of the answer; `httpx2` is the library, which is imported late.
    """
    host = context.url.split("/")[2] if context.url.count("/") >= 2 else context.url
    reason = redacted(str(error), context.secrets) or type(error).__name__
    causes = list(_causes(error))
    if isinstance(error, LineTooLongError):
        return context.error("protocol", "an event of the answer never ends")
    if isinstance(error, httpx2.ConnectTimeout):
        return context.error("timeout", f"no connection to {host} in time")
    if isinstance(error, httpx2.TimeoutException):
        limit = "options.timeout (ms) of the provider changes the limit"
        return context.error("timeout", f"nothing came from {host} for too long; {limit}")
    if isinstance(error, httpx2.ProxyError):
        login = "407" in reason
        text = f"the proxy refused the request: {reason}"
        return context.error("network", text, status=407 if login else None, retryable=not login)
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.InvalidURL):
        text = f"{context.url!r} is not an address; options.baseURL must start with https:// or http://"
        return context.error("setup", text)
    if isinstance(error, httpx2.LocalProtocolError):
        return context.error("setup", "the key or a header has characters in it that can't be sent (a line end?)")
    if any(isinstance(cause, ssl.SSLError) for cause in causes) or "CERTIFICATE_VERIFY" in reason:
        text = f"no secure connection to {host}: {reason}."
        text += " Behind a proxy of your own, name its certificate in SSL_CERT_FILE"
        return context.error("network", text, retryable=False)
    if any(isinstance(cause, socket.gaierror) for cause in causes) or "Name or service not known" in reason:
        text = f"the name {host} can't be found. Is there a network, and is options.baseURL right?"
        return context.error("network", text)
    if isinstance(error, httpx2.ConnectError):
        proxy = _proxy_of(context.url)
        if proxy:
            text = f"no connection to {host} through the proxy {proxy}: {reason}. Is it running? It is named in"
            text += f" HTTP_PROXY, HTTPS_PROXY or ALL_PROXY; NO_PROXY={host.split(':')[0]} goes without"
            return context.error("network", text)
        hint = " Is its server running?" if context.local else " Is there a network?"
        return context.error("network", f"no connection to {host}: {reason}.{hint}")
    if isinstance(error, httpx2.DecodingError):
        return context.error("protocol", f"the answer cannot be decompressed: {reason}")
    if began:
        return context.error("cut", f"the answer was cut off: {reason}")
    return context.error("network", f"the connection to {host} broke: {reason}")


def _proxy_of(url: str) -> str:
    """The proxy that the environment names for an address, without what logs in to it; "" if there is none."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in LOOPBACK or proxy_bypass(host):
        return ""
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    return proxy.rpartition("@")[2].rpartition("//")[2].rstrip("/")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
