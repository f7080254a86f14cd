"""Fixtures of the unit tests; what they are made of stands in ``tests/support``."""

from __future__ import annotations

from tests.support.asking import service
from tests.support.config_place import place
from tests.support.plugin_folders import plugin_folders

__all__ = ["place", "plugin_folders", "service"]
