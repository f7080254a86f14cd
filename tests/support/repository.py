"""A git repository for a test."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    """Run git there, as nobody in particular."""
    settings = ("-c", "user.name=T", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode(errors="surrogateescape")


def repository(folder: Path) -> Path:
    """Make an empty repository in a folder, which is made if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    return folder
