"""What a request took, added to its message, its run and its session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.messages import Message
from .events import Usage
from .model import ModelInfo

if TYPE_CHECKING:
    from .run import Run


def count(run: Run, message: Message, info: ModelInfo, usage: Usage) -> float:
    """Add a request's tokens and price.

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
    extra["cost"] = extra.get("cost", 0) + cost
    extra["tokens"] = replace(Usage.from_wire(extra.get("tokens")) + usage, total=None).to_wire()
    return cost
