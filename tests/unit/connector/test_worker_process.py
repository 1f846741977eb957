"""What a Python worker of Spark is spared between and during tasks; no Spark is running."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest import mock

if TYPE_CHECKING:
    import pytest

from pyspark_pylog import worker_process


def test_a_worker_counts_no_objects_when_its_modules_are_exempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collector = mock.Mock(spec_set=["collect", "freeze", "get_freeze_count"])
    monkeypatch.setattr(worker_process, "gc", collector)
    monkeypatch.setattr(worker_process, "_exempted", [])
    monkeypatch.setattr(worker_process, "is_reused_worker", lambda: True)
    for _ in range(3):
        worker_process.exempt_modules_from_collection()
    # Counting what is frozen walks all of it, in each task.
    assert collector.mock_calls == [mock.call.collect(), mock.call.freeze()]
