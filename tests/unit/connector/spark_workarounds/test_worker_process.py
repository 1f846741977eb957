"""What a Python worker of Spark is spared between and during tasks; no Spark is running."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    import pytest

from pyspark_pylog.spark_workarounds import worker_process


def prepared(times: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what a worker asks of the collector at the beginning of so many tasks."""
    collector = mock.Mock(spec_set=["collect", "freeze", "get_freeze_count"])
    monkeypatch.setattr(worker_process, "gc", collector)
    monkeypatch.setattr(worker_process, "_begun", [])
    monkeypatch.setattr(worker_process, "is_reused_worker", lambda: True)
    for _ in range(times):
        worker_process.prepare_worker()
    return collector.mock_calls


def test_the_first_task_of_a_worker_does_not_wait_for_a_collection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert prepared(1, monkeypatch) == []


def test_a_worker_exempts_its_modules_once_and_counts_no_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Counting what is frozen walks all of it, in each task.
    assert prepared(4, monkeypatch) == [mock.call.freeze()]
