"""The database file of the tests of the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from opencode_jupyter.core.store.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store(path)
    yield opened
    opened.close()
