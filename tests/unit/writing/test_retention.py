"""A run of retention and a dry run of it: that they decide the same, also where a crash was."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import KafkaStorageError, UnknownTopicConfigError
from pylog.files.durable_io import DurableIO
from pylog.files.high_watermarks import mark_as_own
from tests.support.crash_replay import Kind
from tests.support.log_files import tree, write_partition
from tests.support.recording_io import Fault, FaultyIO
from tests.unit.writing.retained import HOUR_MS, NOW_MS, batch, context

if TYPE_CHECKING:
    from pathlib import Path


def write_topic(directory: Path, name: str, hours: list[float]) -> None:
    """Make segments of one batch each, so many hours old."""
    segments = {
        place: [batch(place, NOW_MS - int(each * HOUR_MS))] for place, each in enumerate(hours)
    }
    write_partition(directory, segments, name=name)
    mark_as_own(DurableIO(), str(directory))


SIZE = len(batch(0, NOW_MS).data)


def test_each_topic_has_its_own_sum(tmp_path: Path) -> None:
    write_topic(tmp_path, "a-0", [30, 30, 1])
    write_topic(tmp_path, "a-1", [30, 1])
    write_topic(tmp_path, "b-0", [1])
    summary = pylog.apply_retention(
        tmp_path, config={"retention.ms": str(24 * HOUR_MS)}, context=context()
    )
    assert (summary.now_ms, summary.is_dry_run) == (NOW_MS, False)
    assert summary.by_topic == {
        "a": pylog.results.RetentionTotals(2, 2, 3, None, 3 * SIZE, 2 * SIZE),
        "b": pylog.results.RetentionTotals(1, 0, 0, None, 0, SIZE),
    }
    assert summary.totals == pylog.results.RetentionTotals(3, 2, 3, None, 3 * SIZE, 3 * SIZE)
    assert [each.deleted for each in summary.partitions] == [
        (
            pylog.results.DeletedSegment(0, 1, SIZE, pylog.results.RetentionReason.TIME),
            pylog.results.DeletedSegment(1, 2, SIZE, pylog.results.RetentionReason.TIME),
        ),
        (pylog.results.DeletedSegment(0, 1, SIZE, pylog.results.RetentionReason.TIME),),
        (),
    ]


def test_topics_that_are_not_named_are_left_alone(tmp_path: Path) -> None:
    write_topic(tmp_path, "a-0", [30, 1])
    write_topic(tmp_path, "b-0", [30, 1])
    summary = pylog.apply_retention(
        tmp_path, topics=["b"], config={"retention.ms": "1"}, context=context()
    )
    assert [str(each.topic_partition) for each in summary.partitions] == ["b-0"]
    assert [path.name for path in sorted((tmp_path / "a-0").glob("*.log"))] == [
        f"{0:020}.log",
        f"{1:020}.log",
    ]


def test_progress_counts_the_bytes_of_all_logs(tmp_path: Path) -> None:
    write_topic(tmp_path, "a-0", [30, 1])
    write_topic(tmp_path, "b-0", [1])
    for dry_run in (True, False):
        shown: list[tuple[int, int]] = []
        pylog.apply_retention(
            tmp_path,
            config={"retention.ms": str(24 * HOUR_MS)},
            dry_run=dry_run,
            progress=lambda done, total, shown=shown: shown.append((done, total)),  # type: ignore[misc]
            context=context(),
        )
        assert shown == [(2 * SIZE, 3 * SIZE), (3 * SIZE, 3 * SIZE)]


def test_nothing_is_changed_before_all_topics_are_known(tmp_path: Path) -> None:
    write_topic(tmp_path, "a-0", [30, 30])
    before = tree(tmp_path)
    for dry_run in (True, False):
        with pytest.raises(UnknownTopicConfigError, match="topic a is not known"):
            pylog.apply_retention(tmp_path, dry_run=dry_run)
    assert tree(tmp_path) == before


def test_a_dry_run_needs_no_lock_and_a_run_does(tmp_path: Path) -> None:
    write_topic(tmp_path, "a-0", [30, 1])
    with pylog.logs.LogManager([tmp_path], context=context()):
        code = (
            "import sys, pylog\n"
            "from pylog.errors import LogLockedError\n"
            "limits = {'retention.ms': '1'}\n"
            f"found = pylog.apply_retention({str(tmp_path)!r}, config=limits, dry_run=True)\n"
            "print(found.totals.segments)\n"
            f"try: pylog.apply_retention({str(tmp_path)!r}, config=limits)\n"
            "except LogLockedError: print('locked')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
    assert done.stdout == "2\nlocked\n"


def test_a_disk_that_fails_stops_the_run(tmp_path: Path) -> None:
    write_topic(tmp_path, "a-0", [30, 1])
    write_topic(tmp_path, "b-0", [30, 1])
    io = FaultyIO(Fault(kinds=frozenset({Kind.REPLACE}), path_end="0.log"))
    with pytest.raises(KafkaStorageError):
        pylog.apply_retention(tmp_path, config={"retention.ms": "7200000"}, context=context(io))
    for name in ("a-0", "b-0"):
        assert (tmp_path / name / f"{0:020}.log").exists()
