"""Providers that a project's own files bring: where a conversation and a key go is not for a project to say.

A file of the project can name an address and put a variable of the user's into a header. So a provider whose address,
key or headers come from there is only used once a person trusts it, but for one on this machine that gets no key of
the user's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...core.trust import Subject, digest
from .providers import BUILT_IN

if TYPE_CHECKING:
    from ...core.host import ToolHost

CONNECTION_OPTIONS = ("baseURL", "apiKey", "headers")
"""Options that decide where requests go and which keys they carry."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def trust_subject(workspace: ToolHost, id: str) -> Subject | None:
    """The subject to trust before a provider is used; None if it is the user's own, or local and without a key."""
    file, address = "", ""
    sent: dict[str, Any] = {}
    for source, data in workspace.config.sources:
        entries = data.get("provider")
        entry = entries.get(id) if isinstance(entries, Mapping) else None
        if not isinstance(entry, Mapping) or source not in workspace.config.project_sources:
            continue
        options = entry.get("options")
        reached = (
            {key: options[key] for key in CONNECTION_OPTIONS if key in options} if isinstance(options, Mapping) else {}
        )
        if entry.get("api"):
            reached.setdefault("baseURL", entry["api"])
        if entry.get("env"):
            reached["env"] = entry["env"]
        if reached:
            file, sent = source, {**sent, **reached}
            address = str(reached.get("baseURL") or address)
    is_local = address and urlsplit(address).hostname in LOOPBACK
    if not sent or (is_local and not _receives_key(workspace, id, sent)):
        return None
    content = json.dumps([address, sorted(_sent_names(sent))])
    names = ", ".join(sorted(_sent_names(sent)))
    text = f"sends requests and your key to {address}" if address else f"says what is sent to {id}"
    shown: dict[str, Any] = {
        "server": id,
        "url": address,
        "content": text + (f", and with it {names}" if names else ""),
    }
    return Subject("model provider", f"{id} of {file}", digest(content), shown)


def is_trusted(workspace: ToolHost, subject: Subject | None) -> bool:
    """Return whether a person trusts it, or need not."""
    return subject is None or workspace.trust.known(subject)


def untrusted(workspace: ToolHost) -> list[Subject]:
    """Providers of the project that wait for a person's trust."""
    entries = workspace.config.get("provider")
    subjects = [trust_subject(workspace, str(id)) for id in (entries if isinstance(entries, Mapping) else ())]
    return [provider for provider in subjects if provider is not None and not workspace.trust.known(provider)]


def _receives_key(workspace: ToolHost, id: str, sent: Mapping[str, Any]) -> bool:
    """True if the address would receive a key of the user's: one from outside the project."""
    sent_text = json.dumps(sent, default=str)
    if sent.get("env") or any(value in sent_text for value in workspace.config.reference_values):
        return True
    if "apiKey" in sent:
        return False
    built_in = BUILT_IN.get(id)
    is_own_provider = any(
        source not in workspace.config.project_sources and id in (data.get("provider") or {})
        for source, data in workspace.config.sources
    )
    return is_own_provider or (
        built_in is not None and (not built_in.keyless or any(os.environ.get(name) for name in built_in.keys))
    )


def _sent_names(sent: Mapping[str, Any]) -> list[str]:
    """The names of the keys, variables and headers that it is sent."""
    headers, variables = sent.get("headers"), sent.get("env")
    more = [str(name) for entries in (headers, variables) if isinstance(entries, Mapping | list) for name in entries]
    return [*(["apiKey"] if "apiKey" in sent else []), *more]
