"""Sessions, messages, calls and permission decisions in one SQLite file."""

from .store import Store

__all__ = ["Store"]
