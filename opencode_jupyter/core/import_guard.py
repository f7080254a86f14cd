"""Installed code imports installed modules, not files of the notebook's folder.

A kernel and a script look for modules in their folder first, whoever imports. So a file that a model's sandboxed
command wrote there (``tarfile.py``) would run in the kernel, outside the sandbox, as soon as a library imports a module
of that name. The user's own code finds the folder first as ever.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, FrameType, ModuleType

_FOLDERS = (os.path.dirname(os.__file__) + os.sep, os.path.dirname(os.path.dirname(__file__)) + os.sep)
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_MACHINERY = ("<frozen importlib", os.path.join(os.path.dirname(os.__file__), "importlib") + os.sep)


class InstalledFirst:
    """Finds what installed code imports; everything else is left to the next finder."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The installed module of this name, if installed code imports it and there is one."""
        if path is not None or not _is_installed(_importing(sys._getframe(1))):
            return None
        local = _local_folders()
        return PathFinder.find_spec(
            name, [folder for folder in sys.path if folder and os.path.abspath(folder) not in local], target
        )


def install() -> None:
    """Have installed code find installed modules first. A second time does nothing."""
    if InstalledFirst not in sys.meta_path and PathFinder in sys.meta_path:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), InstalledFirst)


def _importing(frame: FrameType | None) -> CodeType | None:
    """The code whose import this is."""
    while frame is not None and frame.f_code.co_filename.startswith(_MACHINERY):
        frame = frame.f_back
    return frame.f_code if frame is not None else None


def _is_installed(code: CodeType | None) -> bool:
    file = code.co_filename if code is not None else ""
    return file.startswith(_FOLDERS) or any(part in file for part in _PACKAGES)


def _local_folders() -> set[str]:
    """The folders that a kernel or a script looks in first."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        return {os.getcwd(), os.path.dirname(os.path.abspath(script))} if script else {os.getcwd()}
    except OSError:  # the folder was deleted
        return set()
