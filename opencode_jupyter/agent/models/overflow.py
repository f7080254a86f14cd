"""How providers say that a conversation does not fit into the model's window."""

from __future__ import annotations

import re

SAID = (
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
"""Codes and sentences, as regular expressions; the providers that use them behind each."""
WORDS = re.compile("|".join(SAID), re.IGNORECASE)


def is_overflow(text: str) -> bool:
    """Return whether an error's text speaks of a conversation that is too long for the model."""
    return WORDS.search(text) is not None
