"""Snapshots of a project's files in a git repository of our own, as OpenCode keeps them.

`git` runs git, one process at a time; `shadow` records and compares; `files` restores; `service` is what the loop uses.
"""

from .service import Snapshots

__all__ = ["Snapshots"]
