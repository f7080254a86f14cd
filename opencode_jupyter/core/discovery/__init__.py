"""Tools that stand in files of the config folders (reference: core.md 4.1 and 14.3).

`find` with `watch` (which files there are), `content` (what a file runs, and so what a person trusts), `glance` (which
ids it may give, without running it), `importing` with `output` (running it, for a limited time), `exports` with `names`
(its tools and their ids), `python_files` (all that for Python), `loading` (from an `entry` to its tools, in any
language), `service` (`FileTools`: the place in the registry, and asking for trust).
"""

from .service import FileTools

__all__ = ["FileTools"]
