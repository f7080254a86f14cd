"""The providers that need no configuration but a key, and names of models."""

from __future__ import annotations

import re

from .settings import Provider


def _like_openai(id: str, name: str, url: str, *keys: str, keyless: bool = False, url_from: str = "") -> Provider:
    return Provider(id, name, "openai", url, (url_from,) if url_from else (), keys, keyless)


BUILT_IN: dict[str, Provider] = {
    one.id: one
    for one in (
        Provider("openai", "OpenAI", "openai", "https://api.openai.com/v1", ("OPENAI_BASE_URL",), ("OPENAI_API_KEY",)),
        Provider(
            "anthropic",
            "Anthropic",
            "anthropic",
            "https://api.anthropic.com/v1",
            ("ANTHROPIC_BASE_URL",),
            ("ANTHROPIC_API_KEY",),
        ),
        Provider(
            "google",
            "Google",
            "google",
            "https://generativelanguage.googleapis.com/v1beta",
            ("GOOGLE_GEMINI_BASE_URL",),
            ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ),
        _like_openai("ollama", "Ollama", "http://localhost:11434/v1", "OLLAMA_API_KEY", keyless=True),
        _like_openai("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1", "LMSTUDIO_API_KEY", keyless=True),
        _like_openai(
            *("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
            url_from="OPENROUTER_BASE_URL",
        ),
        _like_openai("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        _like_openai("deepseek", "DeepSeek", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
        _like_openai("mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
        _like_openai("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY"),
        _like_openai("togetherai", "Together AI", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        _like_openai("fireworks-ai", "Fireworks AI", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
        _like_openai("cerebras", "Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
        _like_openai(
            *("moonshotai", "Moonshot AI", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
            url_from="MOONSHOTAI_BASE_URL",
        ),
        _like_openai("zai", "Z.AI", "https://api.z.ai/api/paas/v4", "ZHIPU_API_KEY", "ZAI_API_KEY"),
        _like_openai("huggingface", "Hugging Face", "https://router.huggingface.co/v1", "HF_TOKEN"),
        _like_openai("nvidia", "NVIDIA", "https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
    )
}
"""By id. Ids and variables are OpenCode's (the models.dev list); addresses are the providers' own."""

ALIASES = {"google-gla": "google", "gemini": "google", "claude": "anthropic", "together": "togetherai"}
"""Other names that people and libraries use."""

SPOKEN = {
    "@ai-sdk/openai-compatible": "openai",
    "@ai-sdk/openai": "openai",
    "@ai-sdk/anthropic": "anthropic",
    "@ai-sdk/google": "google",
    "@openrouter/ai-sdk-provider": "openai",
    "@ai-sdk/groq": "openai",
    "@ai-sdk/mistral": "openai",
    "@ai-sdk/xai": "openai",
    "@ai-sdk/deepseek": "openai",
    "@ai-sdk/togetherai": "openai",
    "@ai-sdk/fireworks": "openai",
    "@ai-sdk/cerebras": "openai",
    "@ai-sdk/deepinfra": "openai",
    "@ai-sdk/perplexity": "openai",
}
"""Wire format of the provider packages that a configuration names."""

UNSUPPORTED = {
    "amazon-bedrock": "Amazon's own signatures",
    "google-vertex": "Google Cloud's logins",
    "google-vertex-anthropic": "Google Cloud's logins",
    "azure": "Azure's addresses",
    "github-copilot": "GitHub's login",
    "opencode": "OpenCode's own service",
}
"""OpenCode's providers that are not spoken to here, and what they would need."""


def split_name(name: str) -> tuple[str, str]:
    """Provider and model of a name; the provider is "" if there is none.

    The first ``:`` or ``/`` separates the two; the model's id may contain both
    (``openrouter/qwen/qwen3:free``, ``ollama:hf.co/x/y:Q4``).
    """
    name = name.strip()
    separator = re.search("[:/]", name)
    if separator is None:
        return "", name
    return name[: separator.start()].strip(), name[separator.end() :].strip()
