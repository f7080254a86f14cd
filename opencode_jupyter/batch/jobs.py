"""Jobs of a batch, made of the requests that a user writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.option_checks import check_timeout

PROMPT_OPTIONS = ("model", "agent", "session", "files", "format", "max_steps", "tools", "system", "title")
"""Options of a prompt, as in ``sessions.prompt``."""
CALL_OPTIONS = ("agent", "session")
"""Options of a tool call."""
COMMON_OPTIONS = ("directory", "timeout")
TITLE_LENGTH = 60
"""Characters of a request that name its session."""


@dataclass(slots=True)
class BatchJob:
    """One request.

    Attributes:
        index: its place among the requests.
        request: as the user gave it.
        text: the prompt; "" for a tool call.
        tool: the tool to call; "" for a prompt.
        arguments: the call's.
        options: what else `PROMPT_OPTIONS` or `CALL_OPTIONS` names and the user gave.
        directory: where to run; None: the workspace's folder.
        timeout: seconds, waiting for a person not counted; None: no limit.
    """

    index: int
    request: Any
    text: str = ""
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    directory: str | None = None
    timeout: float | None = None

    @property
    def title(self) -> str:
        """A name for its session."""
        if self.options.get("title"):
            return str(self.options["title"])
        text = " ".join((self.text or self.tool).split())
        return text if len(text) <= TITLE_LENGTH else text[: TITLE_LENGTH - 1] + "…"


def create_jobs(requests: Iterable[Any], defaults: Mapping[str, Any], timeout: float | None = None) -> list[BatchJob]:
    """Jobs from requests.

    Args:
        requests: texts; dicts with ``text`` or with ``tool`` and ``arguments``, and options of their own; pairs of a
            tool's name and its arguments.
        defaults: options of all that name none of their own.
        timeout: seconds for each that names none.

    Raises:
        TypeError: it is no list of requests, or one of them is invalid; the message says which and what is allowed.
    """
    if isinstance(requests, (str, bytes, Mapping)) or not isinstance(requests, Iterable):
        raise TypeError("map() takes a list of requests: map(['first', 'second'], model=...)")
    options = {name: value for name, value in defaults.items() if value is not None}
    return [_job(index, request, options, timeout) for index, request in enumerate(requests)]


def _job(index: int, request: Any, defaults: Mapping[str, Any], timeout: float | None) -> BatchJob:
    where = f"request {index}"
    if isinstance(request, str):
        fields: dict[str, Any] = {"text": request}
    elif isinstance(request, Mapping):
        fields = dict(request)
    elif isinstance(request, (tuple, list)) and len(request) == 2 and isinstance(request[0], str):
        fields = {"tool": request[0], "arguments": request[1]}
    else:
        raise TypeError(
            f"{where} is {request!r:.80}; a request is a text, a dict with 'text' or with 'tool' and 'arguments', "
            "or a pair of a tool's name and its arguments"
        )
    if ("text" in fields) == ("tool" in fields):
        raise TypeError(f"{where} needs either 'text' (a prompt) or 'tool' (a call): {fields!r:.120}")
    option_names = PROMPT_OPTIONS if "text" in fields else CALL_OPTIONS
    request_names = {"text"} if "text" in fields else {"tool", "arguments"}
    allowed = {*option_names, *COMMON_OPTIONS, *request_names}
    unknown = [str(name) for name in fields if name not in allowed]
    if unknown:
        raise TypeError(f"{where} has {', '.join(unknown)}; it takes {', '.join(sorted(allowed))}")
    job = BatchJob(index, request, timeout=fields.get("timeout", timeout))
    check_timeout(job.timeout, f"{where}: timeout")
    if fields.get("directory") is not None:
        job.directory = str(fields["directory"])
    job.options = {name: value for name, value in defaults.items() if name in option_names}
    job.options |= {name: fields[name] for name in option_names if fields.get(name) is not None}
    if "text" in fields:
        if not isinstance(fields["text"], str) or not fields["text"].strip():
            raise TypeError(f"{where} has no text")
        job.text = fields["text"]
        return job
    if not isinstance(fields["tool"], str) or not fields["tool"]:
        raise TypeError(f"{where}: 'tool' must be the name of a tool")
    arguments = fields.get("arguments") or {}
    if not isinstance(arguments, Mapping):
        raise TypeError(f"{where}: the arguments of {fields['tool']} must be a dict, not {type(arguments).__name__}")
    job.tool, job.arguments = fields["tool"], dict(arguments)
    return job
