"""The shell of the tests of magics; a file of tests may have its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.shells import Shell, shell


@pytest.fixture
def ip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """A shell with a home and no keyring."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    monkeypatch.setenv("OPENCODE_TEST_HOME", str(tmp_path))
    with shell(tmp_path) as instance:
        yield instance
