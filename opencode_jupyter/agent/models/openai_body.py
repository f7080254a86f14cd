"""The former path of `agent.models.openai`, which saved notebooks import."""

from __future__ import annotations

from .openai import OpenAIAdapter

__all__ = ["OpenAIAdapter", "OpenAIWire"]

OpenAIWire = OpenAIAdapter
