"""The start time of a process, as systems without /proc report it."""

from __future__ import annotations

import os
import shutil

import pytest

from opencode_jupyter.core.store.process_identity import start_from_ps


@pytest.mark.skipif(not shutil.which("ps"), reason="ps is missing")
def test_the_start_time_of_ps_depends_on_no_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    start_times = set()
    for zone in ("UTC", "Asia/Tokyo"):
        monkeypatch.setenv("TZ", zone)
        start_times.add(start_from_ps(os.getpid()))
    assert len(start_times) == 1
    assert start_times != {None}
    assert start_from_ps(2**22 + 1) is None
