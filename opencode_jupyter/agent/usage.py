"""What a request took, added to its message, its run and its session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.messages import Message
from .events import Usage
from .model import ModelInfo

if TYPE_CHECKING:
    from .run import Run


def count(run: Run, message: Message, info: ModelInfo, usage: Usage) -> float:
    """Add a request's tokens and price.

    Args:
        run: whose request it was.
        message: what came of it.
        info: the model that was asked.
        usage: its tokens.

    Returns:
        What it cost, in US dollars; 0 if the model's prices are not known.
    """
    cost = info.cost.of(usage) if info.cost is not None else 0.0
    run.usage = run.usage + usage
    if info.cost is not None:
        run.cost = (run.cost or 0.0) + cost
    message.info["tokens"] = usage.to_wire()
    message.info["cost"] = message.info.get("cost", 0) + cost
    extra = run.session.extra
    before = extra.get("tokens") or {}
    cache = before.get("cache") or {}
    extra["cost"] = extra.get("cost", 0) + cost
    extra["tokens"] = {
        "input": before.get("input", 0) + usage.input,
        "output": before.get("output", 0) + usage.output,
        "reasoning": before.get("reasoning", 0) + usage.reasoning,
        "cache": {
            "read": cache.get("read", 0) + usage.cache_read,
            "write": cache.get("write", 0) + usage.cache_write,
        },
    }
    return cost
