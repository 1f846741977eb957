"""An owner of logs has threads of its own only while something waits to be done in them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition

if TYPE_CHECKING:
    from pathlib import Path


def scheduler_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("pylog-scheduler")]


def test_making_a_context_or_a_manager_starts_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    context = LogContext()
    manager = LogManager([tmp_path], context=context)
    LogManager([tmp_path])
    assert threading.active_count() == before
    manager.startup()
    manager.shutdown()
    assert threading.active_count() == before


def test_one_thread_waits_for_all_schedules_of_a_manager(tmp_path: Path) -> None:
    with LogManager([tmp_path]) as manager:
        manager.get_or_create_log(TopicPartition("orders", 0))
        assert scheduler_threads() == ["pylog-scheduler-0"]
    assert scheduler_threads() == []
