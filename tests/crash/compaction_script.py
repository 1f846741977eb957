"""A compaction in many processes, as a script for crashes: before, the job, and what may be after.

Tasks and owner change the disk through one `DurableIO`, so that a crash may come into either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.log.log_context import LogContext
from pylog.testing import ManualClock, ManualScheduler
from tests.unit.writing.test_compaction import NOW_MS, make_topic

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.files.durable_io import DurableIO

TOPICS = ("bar", "foo")

Row = tuple[str, int, bytes | None, bytes | None]


def prepare(directory: Path) -> None:
    """Write two topics, each of several groups of segments of which each loses records."""
    make_topic(directory, "foo", 76, keys=4, segment_bytes="450")
    make_topic(directory, "bar", 40, keys=3, segment_bytes="450")


def run(directory: Path, io: DurableIO) -> None:
    """Do the whole job."""
    clock = ManualClock(NOW_MS)
    context = LogContext(
        io=io,
        clock=clock,
        scheduler=ManualScheduler(clock),
        failures=LogDirFailureChannel(is_logged=False),
    )
    together = {"segment.bytes": "1000"}  # two segments become one
    with pylog.jobs.CompactionJob(
        directory, config=together, now_ms=NOW_MS, context=context, topics=TOPICS
    ) as job:
        job.commit([task.run(io) for task in job.tasks])


def segments(directory: Path) -> list[tuple[str, int]]:
    """Return where segments begin, in order."""
    return [
        (topic, int(path.stem))
        for topic in TOPICS
        for path in sorted(directory.glob(f"{topic}-0/*.log"))
    ]


def rows(directory: Path) -> list[Row]:
    """Return all records, in order."""
    columns = ["topic", "offset", "key", "value"]
    table = pylog.scan(directory, topics=list(TOPICS), columns=columns).to_table()
    return [tuple(row[name] for name in columns) for row in table.to_pylist()]


class Groups:
    """What a crash of the job may leave, group of segments by group.

    A group is the old one or the new one. In between, old segments of it that begin after the new
    one's last record are still there: they go one after the other once the new one counts.

    Parameters
    ----------
    before, after
        All rows.
    old_segments, new_segments
        Where segments begin; a group begins where a new one does.
    """

    def __init__(
        self,
        before: list[Row],
        after: list[Row],
        old_segments: list[tuple[str, int]],
        new_segments: list[tuple[str, int]],
    ) -> None:
        self.changes = 0
        self.states = [before]
        """In the order in which they come."""
        for start, end in _ranges(new_segments):
            new = _between(after, start, end)
            if new == _between(before, start, end):
                continue
            self.changes += 1
            last = new[-1][1] if new else start[1]
            late = [
                base for topic, base in old_segments if start < (topic, base) < end and base > last
            ]
            for first_left in (*late, None):
                left = [] if first_left is None else _between(before, (start[0], first_left), end)
                rest = [row for row in self.states[-1] if not start <= row[:2] < end]
                self.states.append(sorted([*rest, *new, *left], key=lambda row: row[:2]))


def _ranges(
    starts: list[tuple[str, int]],
) -> list[tuple[tuple[str, int], tuple[str, float]]]:
    ends: list[tuple[str, float]] = [*starts[1:], ("", 0)]
    return [
        (start, end if end[0] == start[0] else (start[0], float("inf")))
        for start, end in zip(starts, ends, strict=True)
    ]


def _between(found: list[Row], start: tuple[str, int], end: tuple[str, float]) -> list[Row]:
    return [row for row in found if start <= row[:2] < end]
