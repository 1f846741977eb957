"""What records the steps of calls that work on log directories."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from pylog.log.log_context import LogContext
from tests.support.recording_io import RecordingIO

if TYPE_CHECKING:
    from pathlib import Path

_OWNERS = (
    *("checks.repair", "recovery.extract", "recovery.first_aid", "recovery.merge"),
    *("recovery.adopt_cluster", "recovery.adoption_steps", "recovery.cluster_places"),
    *("recovery.partwise_directory", "recovery.running_plan", "writing.new_log_directory"),
)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordingIO:
    """Give what records the steps of every call, below the folder ``recorded``."""
    (tmp_path / "recorded").mkdir()
    io = RecordingIO(tmp_path / "recorded")
    for owner in _OWNERS:
        monkeypatch.setattr(f"pylog.{owner}.DurableIO", lambda: io)
    context = partial(LogContext, io=io)
    monkeypatch.setattr("pylog.writing.owned_directory.LogContext", context)
    return io
