"""Fixtures of the unit tests; what they are made of stands in ``tests/support``."""

from __future__ import annotations

from tests.support.asking import service
from tests.support.config_layout import layout
from tests.support.plugin_folders import plugin_folders

__all__ = ["layout", "plugin_folders", "service"]
