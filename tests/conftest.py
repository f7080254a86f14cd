"""Fixtures for all tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Everything runs on asyncio: the notebook's loop is tornado over it."""
    return "asyncio"
