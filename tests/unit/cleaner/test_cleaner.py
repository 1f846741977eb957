"""Whom a round asks and tells while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.cleaner.cleanable_offsets import LogToClean
from pylog.cleaner.cleaner import Cleaner
from pylog.config import CleanerConfig
from tests.unit.cleaner.dirty_log import DirtyLog

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.cleaner.cleaner import CleanerProgress


def dirty_log(root: Path) -> DirtyLog:
    """Return a log of two segments with one key, and an active one."""
    dirty = DirtyLog(root)
    for _ in range(2):
        dirty.put((b"k", b"v" * 1_000))
        dirty.log.roll()
    return dirty


def test_all_that_is_read_and_written_is_throttled(tmp_path: Path) -> None:
    dirty = dirty_log(tmp_path)
    size = dirty.log.segments[0].size_bytes
    throttled: list[int] = []
    cleaner = Cleaner(CleanerConfig(), dirty.clock, throttle=throttled.append)
    cleaner.clean(LogToClean(dirty.log, 0, 2))
    # Two segments for the map, two to be copied, of which one stays.
    assert throttled == [size, size, size, size, size]


def test_each_phase_says_how_far_it_is(tmp_path: Path) -> None:
    dirty = dirty_log(tmp_path)
    size = dirty.log.segments[0].size_bytes
    reports: list[CleanerProgress] = []
    cleaner = Cleaner(CleanerConfig(), dirty.clock, progress=reports.append)
    cleaner.clean(LogToClean(dirty.log, 0, 2))
    assert reports == [
        ("map", size),
        ("map", 2 * size),
        ("copy", size),
        ("copy", 2 * size),
    ]


def test_a_cleaner_cleans_one_log_after_the_other(tmp_path: Path) -> None:
    logs = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        logs.append(dirty_log(tmp_path / name))
    cleaner = Cleaner(CleanerConfig(), logs[0].clock)
    for dirty in logs:
        assert cleaner.clean(LogToClean(dirty.log, 0, 2)).stats.records_written == 1
        assert dirty.offsets == [1]
