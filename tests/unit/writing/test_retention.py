"""A run of retention and a dry run of it: that they decide the same, also where a crash was."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import KafkaStorageError, UnknownTopicConfigError
from pylog.files.durable_io import DurableIO
from pylog.files.high_watermarks import mark_as_own
from pylog.log.log_context import LogContext
from pylog.testing import ManualClock, ManualScheduler
from tests.support.batches import Stored, batch_v2, message
from tests.support.crash_replay import Kind
from tests.support.log_files import (
    write_high_watermarks,
    write_log_start_offsets,
    write_partition,
)
from tests.support.recording_io import Fault, FaultyIO

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.batches import Built

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def batch(base_offset: int, timestamp: int, magic: int = 2) -> Built:
    record = Stored(base_offset, timestamp, b"k", b"value")
    return batch_v2([record]) if magic == 2 else message(record, magic=magic)


def files(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def context(io: DurableIO | None = None) -> LogContext:
    clock = ManualClock(NOW_MS)
    scheduler = ManualScheduler(clock)
    return LogContext(io=io or DurableIO(), clock=clock, scheduler=scheduler)


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
    before = files(tmp_path)
    for dry_run in (True, False):
        with pytest.raises(UnknownTopicConfigError, match="topic a is not known"):
            pylog.apply_retention(tmp_path, dry_run=dry_run)
    assert files(tmp_path) == before


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


def draw_high_watermark(drawn: random.Random, directory: Path, highest: int) -> None:
    """Make the directory one of our own, or one with a checkpoint, or with neither."""
    if drawn.random() < 0.4:
        mark_as_own(DurableIO(), str(directory))
    elif drawn.random() < 0.8:
        write_high_watermarks(directory, {("t", 0): drawn.randint(0, highest)})


def random_directory(directory: Path, seed: int) -> tuple[dict[str, str], int]:
    """Make a partition at random, perhaps left by a crash; return limits and the time."""
    drawn = random.Random(seed)
    segments: dict[int, list[Built]] = {}
    offset, timestamp = 0, NOW_MS - 100 * HOUR_MS
    for _ in range(drawn.randint(1, 6)):
        batches: list[Built] = []
        segments[offset] = batches
        for _ in range(drawn.choice([0, 1, 1, 2, 5])):
            timestamp += drawn.randint(-20, 30) * HOUR_MS
            magic = drawn.choice([0, 1, 2, 2, 2])
            batches.append(batch(offset, -1 if magic == 0 else timestamp, magic))
            offset += drawn.choice([1, 1, 5])
        offset += 1
    write_partition(
        directory,
        segments,
        name="t-0",
        with_index=drawn.random() < 0.8,
        with_time_index=drawn.random() < 0.8,
    )
    for path in (directory / "t-0").glob("*.log"):
        hours = drawn.randint(0, 200)
        os.utime(path, ns=((NOW_MS - hours * HOUR_MS) * 1_000_000,) * 2)
    for path in (directory / "t-0").glob("*.timeindex"):
        if drawn.random() < 0.3:  # it has lost entries
            os.truncate(path, min(path.stat().st_size, drawn.choice([0, 12, 24])))
    if drawn.random() < 0.5:
        (directory / ".kafka_cleanshutdown").write_bytes(b"")
    elif drawn.random() < 0.5:
        text = f"0\n1\nt 0 {drawn.randint(0, offset)}\n"
        (directory / "recovery-point-offset-checkpoint").write_text(text)
        last = max((directory / "t-0").glob("*.log"))
        last.write_bytes(last.read_bytes() + bytes(drawn.choice([0, 40, 1000])))
    if drawn.random() < 0.5:
        write_log_start_offsets(directory, {("t", 0): drawn.randint(0, max(segments))})
    draw_high_watermark(drawn, directory, max(segments) + 3)
    limits = {
        "cleanup.policy": drawn.choice(["delete", "delete", "compact", "compact,delete"]),
        "retention.ms": str(max(-1, drawn.choice([-1, 0, 10, 50, 100]) * HOUR_MS)),
        "retention.bytes": str(drawn.choice([-1, -1, 0, 100, 300, 600])),
    }
    return limits, NOW_MS + drawn.randint(-50, 50) * HOUR_MS


@pytest.mark.parametrize("first_seed", range(0, 120, 30))
@pytest.mark.thorough(one_in=3)
def test_a_dry_run_says_what_a_run_does(first_seed: int, tmp_path: Path) -> None:
    removed = held_back = 0
    for seed in range(first_seed, first_seed + 30):
        directory = tmp_path / str(seed)
        directory.mkdir()
        limits, now_ms = random_directory(directory, seed)
        before = files(directory)
        planned = pylog.apply_retention(
            directory, config=limits, now_ms=now_ms, dry_run=True, context=context()
        )
        assert files(directory) == before, f"seed {seed}"
        done = pylog.apply_retention(directory, config=limits, now_ms=now_ms, context=context())
        [expected], [found] = planned.partitions, done.partitions
        assert expected.deleted == found.deleted, f"seed {seed}"
        assert expected.failure is found.failure is None
        assert expected.log_start_offset == found.log_start_offset, f"seed {seed}"
        assert expected.log_end_offset == found.log_end_offset, f"seed {seed}"
        assert expected.size_bytes == found.size_bytes, f"seed {seed}"
        assert expected.held_back == found.held_back, f"seed {seed}"
        held_back += found.held_back is not None
        removed += len(found.deleted)
        again = pylog.apply_retention(directory, config=limits, now_ms=now_ms, context=context())
        assert again.totals.segments == 0, f"seed {seed}"
        shutil.rmtree(directory)
    assert removed > 10
    assert held_back > 1
