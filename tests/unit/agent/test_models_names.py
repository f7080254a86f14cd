"""From a name to a model: spellings, typos, the configuration's entries, keys, trust."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.model import Cost, Model
from opencode_jupyter.agent.models import api_keys, catalogue, known, resolve, untrusted
from opencode_jupyter.agent.models.api_keys import KeySource
from opencode_jupyter.agent.models.model_resolver import ollama_url
from opencode_jupyter.agent.models.providers import BUILT_IN, Provider, split_name

pytestmark = pytest.mark.anyio
SECRET = "sk-secret-0123456789abcdef"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key and no address of the machine's own."""
    for provider in BUILT_IN.values():
        for name in (*provider.keys, *provider.url_from):
            monkeypatch.delenv(name, raising=False)
    for name in ("OLLAMA_HOST", "OLLAMA_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    monkeypatch.setenv("OPENCODE_TEST_HOME", str(tmp_path / "home"))


def workspace(folder: Path, provider: dict[str, Any] | None = None, **config: Any) -> Workspace:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    return Workspace(project, config={"provider": provider or {}, **config}, data_dir=folder / "data", store=False)


async def get(folder: Path, name: str, provider: dict[str, Any] | None = None, **config: Any) -> Model:
    async with workspace(folder, provider, **config) as ws:
        return await resolve(ws, name)


async def refused(folder: Path, name: str, provider: dict[str, Any] | None = None, **config: Any) -> ModelError:
    with pytest.raises(ModelError) as error:
        await get(folder, name, provider, **config)
    return error.value


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("openai:gpt-5", ("openai", "gpt-5")),
        ("openai/gpt-5", ("openai", "gpt-5")),
        ("openrouter:qwen/qwen3:free", ("openrouter", "qwen/qwen3:free")),
        ("openrouter/qwen/qwen3:free", ("openrouter", "qwen/qwen3:free")),
        ("ollama/qwen3:8b", ("ollama", "qwen3:8b")),
        ("ollama:hf.co/x/y:Q4", ("ollama", "hf.co/x/y:Q4")),
        ("gpt-5", ("", "gpt-5")),
        (" openai : gpt-5 ", ("openai", "gpt-5")),
        ("openai:", ("openai", "")),
    ],
)
def test_spellings(name: str, parts: tuple[str, str]) -> None:
    assert split_name(name) == parts


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("openai:gpt-5", "openai:gpt-5"),
        ("anthropic/claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("google-gla:gemini-2.5-flash", "google:gemini-2.5-flash"),
        ("ollama/qwen3:8b", "ollama:qwen3:8b"),
        ("openrouter:qwen/qwen3:free", "openrouter:qwen/qwen3:free"),
    ],
)
async def test_built_in_providers(tmp_path: Path, name: str, full: str) -> None:
    assert (await get(tmp_path, name)).info.full == full


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("opanai:gpt-5", "setup", "Did you mean openai"),
        ("gpt-5", "setup", "openai:gpt-5"),
        ("gtp-5-mini", "setup", "openai:gpt-5-mini"),
        ("openai", "setup", "openai:"),
        ("openai:", "not_found", "openai:"),
        ("", "setup", "provider:model"),
        ("azure:gpt-5", "setup", "not spoken"),
        ("scripted:", "script", "scripted:lesson.yaml"),
        ("scripted:none.yaml", "script", "none.yaml"),
    ],
)
async def test_names_that_mean_nothing(tmp_path: Path, name: str, kind: str, words: str) -> None:
    error = await refused(tmp_path, name)
    assert error.kind == kind
    assert words in str(error)


async def test_a_provider_of_the_configuration(tmp_path: Path) -> None:
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "My server",
        "options": {"baseURL": "http://127.0.0.1:1/v1/", "apiKey": SECRET, "headers": {"a": "b"}, "timeout": 1500},
        "models": {
            "small": {
                "id": "org/small",
                "name": "Small",
                "limit": {"context": 8000, "output": 1000},
                "cost": {"input": 1, "output": 2, "cache_read": 0.1},
                "modalities": {"input": ["text", "image"], "output": ["text"]},
                "reasoning": True,
            }
        },
    }
    model = await get(tmp_path, "mine/small", {"mine": entry})
    info = model.info
    assert (info.full, info.api_id, info.name) == ("mine:small", "org/small", "Small")
    assert (info.context, info.output, info.images, info.documents, info.reasons) == (8000, 1000, True, False, True)
    assert info.cost == Cost(1, 2, 0.1, 0)
    assert SECRET not in repr(model)
    error = await refused(tmp_path, "mine:smal", {"mine": entry})
    assert error.kind == "not_found"
    assert "mine:small" in str(error)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "no address"),
        ({"options": {"baseURL": "localhost:1"}}, "must start with"),
        ({"options": {"baseURL": "http://127.0.0.1:99999/v1"}}, "a port is a number"),
        ({"options": {"baseURL": "http://x", "timeout": "soon"}}, "milliseconds"),
        ({"npm": "@ai-sdk/amazon-bedrock", "options": {"baseURL": "http://x"}}, "npm"),
        ({"options": []}, "options must be an object"),
        ({"options": {"baseURL": "http://x"}, "models": {"a": 1}}, "models.a must be an object"),
    ],
)
async def test_mistakes_in_an_entry_are_named(tmp_path: Path, entry: dict[str, Any], words: str) -> None:
    error = await refused(tmp_path, "mine:a", {"mine": entry})
    assert error.kind == "setup"
    assert words in str(error)


async def test_providers_that_are_switched_off(tmp_path: Path) -> None:
    assert "switched off" in str(await refused(tmp_path, "openai:gpt-5", disabled_providers=["openai"]))
    assert "switched off" in str(await refused(tmp_path, "openai:gpt-5", enabled_providers=["google"]))


async def test_the_same_object_until_the_configuration_changes(tmp_path: Path) -> None:
    async with workspace(tmp_path) as ws:
        first = await resolve(ws, "openai:gpt-5")
        assert await resolve(ws, "openai:gpt-5") is first
        ws.reload_config()
        assert await resolve(ws, "openai:gpt-5") is not first


# ---------------------------------------------------------------------- addresses and keys


async def url(folder: Path, name: str, provider: dict[str, Any] | None = None) -> str:
    model: Any = await get(folder, name, provider)
    return str(model.adapter.url())


async def test_addresses_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await url(tmp_path, "openai:m") == "https://api.openai.com/v1/chat/completions"
    assert await url(tmp_path, "anthropic:m") == "https://api.anthropic.com/v1/messages"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:7/v1/")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:8")
    monkeypatch.setenv("OLLAMA_HOST", "0.0.0.0:9")
    assert await url(tmp_path, "openai:m") == "http://127.0.0.1:7/v1/chat/completions"
    assert await url(tmp_path, "anthropic:m") == "http://127.0.0.1:8/v1/messages"
    assert await url(tmp_path, "ollama:m") == "http://127.0.0.1:9/v1/chat/completions"
    own = {"openai": {"options": {"baseURL": "http://127.0.0.1:5/x"}}}
    assert await url(tmp_path, "openai:m", own) == "http://127.0.0.1:5/x/chat/completions"


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://localhost:11434/v1"),
        ("box", "http://box:11434/v1"),
        ("box:80", "http://box:80/v1"),
        ("https://box/", "https://box/v1"),
        ("http://box:1/v1", "http://box:1/v1"),
    ],
)
def test_ollama_hosts(host: str, address: str) -> None:
    assert ollama_url(host) == address


async def test_where_a_key_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await KeySource(BUILT_IN["google"]).key() is None
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    key = await KeySource(BUILT_IN["google"]).key()
    assert key is not None
    assert (key.value, key.source) == (SECRET, "GEMINI_API_KEY")
    assert SECRET not in repr(key)
    own = Provider("google", "G", "google", "http://x", keys=("GEMINI_API_KEY",), key="own")
    key = await KeySource(own).key()
    assert key is not None
    assert key.value == "own"
    assert "own" not in repr(own)


async def test_a_key_of_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    import keyring
    from keyring.backend import KeyringBackend

    class Memory(KeyringBackend):
        priority = 5  # type: ignore[assignment]

        def get_password(self, service: str, username: str) -> str | None:
            return SECRET if (service, username) == ("opencode-jupyter", "openai") else None

        def set_password(self, service: str, username: str, password: str) -> None:
            raise NotImplementedError

    monkeypatch.setattr(keyring, "get_keyring", Memory)
    key = await KeySource(BUILT_IN["openai"]).key()
    assert key is not None
    assert (key.value, key.source) == (SECRET, "the system's keyring")
    assert await KeySource(BUILT_IN["groq"]).key() is None
    usernames: list[str] = []

    def count(self: Memory, service: str, username: str) -> str | None:
        usernames.append(username)
        return None

    monkeypatch.setattr(Memory, "get_password", count)
    own = KeySource(Provider("mine", "Mine", "openai", "https://mine.example/v1", keyless=True))
    assert [await own.key(), await own.key()] == [None, None]
    assert await KeySource(Provider("here", "Here", "openai", "http://localhost:1/v1", keyless=True)).key() is None
    assert await KeySource(BUILT_IN["ollama"]).key() is None
    assert usernames == ["mine"]


async def test_no_key_says_where_to_put_one(tmp_path: Path) -> None:
    from tests.support.models import collect

    async with workspace(tmp_path) as ws:
        adapter = await resolve(ws, "openai:gpt-5")
        with pytest.raises(ModelError) as error:
            await collect(adapter)
    assert error.value.kind == "auth"
    assert "OPENAI_API_KEY" in str(error.value)
    assert "keyring set opencode-jupyter openai" in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        f"key {SECRET} here",
        "Authorization: Bearer abcdef123456",
        "sk-proj-abcdefghijklmnop",
        "AIzaSyA1234567890abcdefghij",
        "gsk_abcdefghijklmnop12",
    ],
)
def test_redaction(text: str) -> None:
    shown = api_keys.redacted(text, [SECRET])
    assert "***" in shown
    for secret in (SECRET, "abcdef123456", "abcdefghijklmnop", "1234567890"):
        assert secret not in shown


def test_plain_words_are_not_redacted() -> None:
    text = "The model gpt-5-mini-2025-08-07 of sk and key-value stores; the task-runner-of-the-day is there"
    assert api_keys.redacted(text) == text


async def test_nothing_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from tests.support import models

    caplog.set_level(logging.DEBUG)
    with models.server("openai", [{"text": "x"}]) as running:
        async with models.model(tmp_path, "openai", running.url) as adapter:
            await models.collect(adapter)
    assert models.KEY not in caplog.text


# ---------------------------------------------------------------------- trust


async def test_a_project_does_not_say_where_keys_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    project = tmp_path / "project"
    project.mkdir()
    (project / "opencode.json").write_text(
        json.dumps({"provider": {"openai": {"options": {"baseURL": "https://evil.example/v1"}}}})
    )
    async with workspace(tmp_path) as ws:
        with pytest.raises(ModelError) as error:
            await resolve(ws, "openai:gpt-5")
        assert error.value.kind == "setup"
        assert "https://evil.example/v1" in str(error.value)
        assert "trust" in str(error.value)
        (waits,) = untrusted(ws)
        ws.trust.grant(waits)
        assert untrusted(ws) == []
        assert (await resolve(ws, "openai:gpt-5")).info.model == "gpt-5"


async def test_a_project_may_name_a_server_of_this_machine(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    entry = {"provider": {"mine": {"options": {"baseURL": "http://localhost:1/v1"}}}}
    (project / "opencode.json").write_text(json.dumps(entry))
    async with workspace(tmp_path) as ws:
        assert (await resolve(ws, "mine:x")).info.provider == "mine"


async def test_a_project_may_describe_models(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    entry = {"provider": {"openai": {"models": {"gpt-5": {"limit": {"context": 5}}}}}}
    (project / "opencode.json").write_text(json.dumps(entry))
    async with workspace(tmp_path) as ws:
        assert (await resolve(ws, "openai:gpt-5")).info.context == 5


# ---------------------------------------------------------------------- what is known


async def test_what_is_known_needs_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    entry = {"options": {"baseURL": "http://127.0.0.1:1"}, "models": {"a": {}, "b": {}}}
    async with workspace(tmp_path, {"mine": entry, "broken": {"options": 1}}) as ws:
        names = [info.full for info in known(ws)]
    assert names[:2] == ["mine:a", "mine:b"]
    assert "anthropic:claude-sonnet-4-5" in names
    assert not any(name.startswith(("openai:", "broken:")) for name in names)


@pytest.mark.parametrize(
    ("provider", "model", "context", "price"),
    [
        ("openai", "gpt-5", 400_000, 1.25),
        ("openai", "gpt-5-mini-2025-08-07", 400_000, 0.25),
        ("anthropic", "claude-sonnet-4-5-20250929", 200_000, 3.0),
        ("anthropic", "claude-3-5-haiku-20241022", 200_000, 0.8),
        ("openrouter", "anthropic/claude-sonnet-4.5", 200_000, 3.0),
    ],
)
def test_windows_and_prices(provider: str, model: str, context: int, price: float) -> None:
    info = catalogue.describe_model(provider, model, "openai")
    assert info.context == context
    assert info.cost is not None
    assert info.cost.input == price
    assert 0 < info.cost.cache_read <= info.cost.input


def test_a_new_model_is_no_error() -> None:
    info = catalogue.describe_model("openai", "gpt-99", "openai")
    assert (info.context, info.cost, info.images) == (0, None, True)
