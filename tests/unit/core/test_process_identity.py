"""The start time of a process, as systems without /proc report it."""

from __future__ import annotations

import os
import shutil

import pytest

from opencode_jupyter.core.store.process_identity import start_from_ps


@pytest.mark.skipif(not shutil.which("ps"), reason="ps is missing")
def test_the_start_time_of_ps_depends_on_no_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    for zone in ("UTC", "Asia/Tokyo"):
        monkeypatch.setenv("TZ", zone)
        seen.add(start_from_ps(os.getpid()))
    assert len(seen) == 1
    assert seen != {None}
    assert start_from_ps(2**22 + 1) is None
