"""Where tokens are kept: a file only its owner reads, or the system's keyring."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import chainer, fail, null
from keyring.errors import KeyringLocked, PasswordDeleteError

from opencode_jupyter.mcp.tokens import StoredLogin, TokenStore, canonical, system_keyring

URL = "https://example.org/mcp"
ENTRY = StoredLogin(
    tokens={"access_token": "sesame", "refresh_token": "again"}, expires_at=1e9, client={"client_id": "c"}
)


class Ring(KeyringBackend):
    """A keyring in memory."""

    priority = 5  # type: ignore[assignment]

    def __init__(self) -> None:
        self.passwords: dict[tuple[str, str], str] = {}
        self.locked = False
        self.most = 10_000

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.passwords.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        if len(password) > self.most:
            raise OSError("The stub received bad data")  # as Windows says it
        self.passwords[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        if self.passwords.pop((service, username), None) is None:
            raise PasswordDeleteError("not found")

    def _check(self) -> None:
        if self.locked:
            raise KeyringLocked("locked: sesame")


def test_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "data", None)
    assert store.load("one", URL) == StoredLogin()
    store.save("one", URL, ENTRY)
    assert store.load("one", URL) == ENTRY
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert [p.name for p in store.path.parent.iterdir() if p.suffix == ".tmp"] == []
    store.path.chmod(0o644)  # as a copy may be
    assert TokenStore(tmp_path / "data", None).load("one", URL) == ENTRY
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    store.path.chmod(0o644)
    store.save("one", URL, ENTRY)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


def names(store: TokenStore) -> list[str]:
    """The servers with a login."""
    return sorted(json.loads(store.path.read_text()))


def test_an_entry_belongs_to_a_name_and_an_address(tmp_path: Path) -> None:
    store = TokenStore(tmp_path, None)
    store.save("one", URL, ENTRY)
    assert store.load("two", URL) == StoredLogin()
    assert store.load("one", "https://example.com/mcp") == StoredLogin()
    assert store.load("one", "HTTPS://Example.ORG/mcp#x") == ENTRY
    assert canonical("https://example.org") == canonical("https://example.org/")
    store.save("one", "https://example.com/mcp", StoredLogin(client={"client_id": "d"}))
    store.save("two", URL, ENTRY)
    assert names(store) == ["one", "two"]
    assert store.forget("one")
    assert not store.forget("one")
    assert store.load("one", URL) == StoredLogin()
    assert store.load("two", URL) == ENTRY


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"one": 5}',
        b'{"one": {"https://example.org/mcp": []}}',
        b'{"one": {"https://example.org/mcp": {"tokens": "x", "expires_at": true, "client": [1], "more": 2}}}',
        b'{"one": {"https://example.org/mcp": {"keyring": true}}}',
    ],
)
def test_a_file_that_makes_no_sense_is_as_if_empty(tmp_path: Path, content: bytes) -> None:
    store = TokenStore(tmp_path, None)
    store.path.write_bytes(content)
    assert store.load("one", URL) == StoredLogin()
    store.save("one", URL, ENTRY)
    assert store.load("one", URL) == ENTRY


def test_a_folder_that_can_not_be_written(tmp_path: Path) -> None:
    from opencode_jupyter import ToolError

    (tmp_path / "mcp-auth.json").mkdir()
    with pytest.raises(ToolError, match="directory"):
        TokenStore(tmp_path, None).save("one", URL, ENTRY)


def test_many_at_once(tmp_path: Path) -> None:
    stores = [TokenStore(tmp_path, None) for _ in range(3)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: stores[n % 3].save(f"s{n}", URL, ENTRY), range(30)))
    assert names(stores[0]) == sorted(f"s{n}" for n in range(30))


@pytest.mark.skipif(os.name != "posix", reason="another process is kept out by fcntl")
def test_another_process_loses_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from opencode_jupyter.mcp.tokens import StoredLogin, TokenStore\n"
        "store = TokenStore(Path(sys.argv[1]), None)\n"
        "for n in range(10): store.save(f'{sys.argv[2]}{n}', 'https://x/', StoredLogin(client={'client_id': 'c'}))"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in "ab"]
    assert [process.wait(60) for process in running] == [0, 0]
    assert len(names(TokenStore(tmp_path, None))) == 20


def test_the_keyring_has_the_secrets_and_the_file_has_none(tmp_path: Path) -> None:
    ring = Ring()
    store = TokenStore(tmp_path, ring)
    store.save("one", URL, ENTRY)
    assert "sesame" not in store.path.read_text()
    assert json.loads(store.path.read_text()) == {"one": {URL: {"keyring": True}}}
    assert len(ring.passwords) == 1
    assert TokenStore(tmp_path, ring).load("one", URL) == ENTRY
    assert TokenStore(tmp_path, None).load("one", URL) == StoredLogin()  # the package was taken away
    assert store.forget("one")
    assert ring.passwords == {}
    assert names(store) == []


def test_a_keyring_that_refuses(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ring = Ring()
    store = TokenStore(tmp_path, ring)
    ring.most = 10
    store.save("one", URL, ENTRY)  # too long for it: into the file
    assert store.load("one", URL) == ENTRY
    assert ring.passwords == {}
    ring.most = 10_000
    store.save("one", URL, ENTRY)
    ring.locked = True
    assert store.load("one", URL) == StoredLogin()
    assert store.forget("one")
    assert "sesame" not in caplog.text
    store.save("one", URL, ENTRY)
    assert store.load("one", URL) == ENTRY


@pytest.mark.parametrize("priority", [0.5, 1, 5])
def test_which_keyrings_are_used(priority: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def used(backend: Any) -> Any:
        monkeypatch.setattr(keyring, "get_keyring", lambda: backend)
        return system_keyring()

    ring = Ring()
    monkeypatch.setattr(Ring, "priority", priority)
    assert used(ring) is (ring if priority >= 1 else None)
    assert used(fail.Keyring()) is None
    assert used(null.Keyring()) is None
    chain = chainer.ChainerBackend()
    monkeypatch.setattr(chainer.ChainerBackend, "backends", [ring])
    assert used(chain) is (ring if priority >= 1 else None)
    monkeypatch.setattr(chainer.ChainerBackend, "backends", [])
    assert used(chain) is None
    monkeypatch.setattr(keyring, "get_keyring", lambda: 1 / 0)
    assert system_keyring() is None


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    store = TokenStore(tmp_path)
    store.save("one", URL, ENTRY)
    assert store.keyring is None
    assert "sesame" in store.path.read_text()


def test_nothing_is_shown(tmp_path: Path) -> None:
    store = TokenStore(tmp_path, None)
    store.save("one", URL, ENTRY)
    assert "sesame" not in f"{store!r} {ENTRY!r} {store.load('one', URL)!r}"
