"""Models by name: everything between ``provider:model`` and the events of `agent.events`.

`ProviderModel` (`provider_model`) asks a model; a `ProviderAdapter` writes its requests and a `ResponseParser` reads
its answers, one pair for each format: `openai`, `anthropic`, `google`. An `EventAssembler` makes events of what the
parser reads. Nothing here uses a provider's own library: their work on each request grows with the conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...core.host import ToolHost
    from ...core.trust import Subject
    from ..model import Model, ModelInfo

__all__ = ["known", "resolve", "untrusted"]


async def resolve(workspace: ToolHost, name: str) -> Model:
    """The model of a name: ``provider:model``, ``provider/model`` or ``scripted:FILE``.

    The same object is given for the same name, as long as the configuration does not change; it is closed with the
    workspace. Nothing is sent.

    Raises:
        ModelError: kind ``setup`` (no such provider, a mistake in its entry, not trusted), ``not_found`` (a model that
            the provider's entry does not list), ``script``. A key is looked for at the first request.
    """
    from .model_resolver import ModelResolver  # here: the three formats take 50 ms to load

    return await workspace.service(ModelResolver).model(name)


def known(workspace: ToolHost) -> list[ModelInfo]:
    """Models for completion: those that the configuration lists, and well-known ones of providers with a key. No
    network.
    """
    from .model_resolver import ModelResolver

    return workspace.service(ModelResolver).known()


def untrusted(workspace: ToolHost) -> list[Subject]:
    """Model providers of the project's files that wait for a person's trust (`trusting`)."""
    from .trust import untrusted

    return untrusted(workspace)
