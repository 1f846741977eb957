"""Random schedules of an incremental ingest, stopped at random system calls: each row once.

Runs are missed, repeated and overlap; rows come late, and while a source is read; the clock jumps;
attempts of tasks are lost. All but Spark is real: bookmarks, staging, ledger and logs. What Spark
does, choosing rows by position and digest, the source here does over a list. ``tests/spark`` and
``tests/kills`` have it done by Spark.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

import pylog
from pylog_jobs.bookmark import (
    DIGEST_BYTES,
    INTEGER,
    Bookmark,
)
from pylog_jobs.read_range import next_bookmark, plan_range, start_after
from pylog_jobs.record_write import DIGEST, POSITION, RecordWrite
from pylog_jobs.target import Target
from tests.kills.stopped_at import Stopped, StoppedAt

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pylog_jobs.read_range import ReadRange
    from pylog_jobs.record_write import StagedRows
    from tests.conftest import Counted, HowMany

SEED = 35
STEPS = 12
COLUMNS = ("key", "value", "partition")


class Row(NamedTuple):
    """A row of the source."""

    number: int
    position: int

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(f"{self.number} {self.position}".encode()).digest()[:DIGEST_BYTES]


class Run(NamedTuple):
    """What a run has planned and staged."""

    write: RecordWrite
    found: ReadRange
    staged: StagedRows
    about: Bookmark


class Schedule:
    """One source, one topic, and the runs between them."""

    def __init__(self, directory: Path, rng: random.Random, stopped: StoppedAt) -> None:
        directory.mkdir()
        self._rng = rng
        self._stopped = stopped
        self._target = Target(
            directory=str(directory), topic="orders", partitions=2, job_id="orders"
        )
        self._lag = rng.choice((0, 5, 50))
        self.rows: list[Row] = []
        self._now = 1_000
        self._read_to: int | None = None
        self._is_ending = False

    def _last(self) -> tuple[int, Bookmark | None]:
        newest = self._target.write_job().newest_run()
        if newest is None or newest.bookmark is None:
            return -1, None
        return newest.batch_id, Bookmark.from_text(newest.bookmark)

    def add_rows(self) -> None:
        """Add rows near the clock's time, or as late as may be."""
        # Late is what comes after a run that has read beyond it, also one that was stopped.
        earliest = self._now - 20 if self._read_to is None else self._read_to - self._lag
        for _ in range(self._rng.randrange(6)):
            latest = max(self._now + 10, earliest)
            self.rows.append(Row(len(self.rows), self._rng.randint(earliest, latest)))

    def jump(self) -> None:
        """Let the clock go on, or jump, also back."""
        self._now += self._rng.choice((5, 10, 20, 30, -30, 100))

    def stage(self) -> Run | None:
        """Plan and stage a run, as `pylog_jobs.ingest` does; None if there is nothing new."""
        number, last = self._last()
        start = None if last is None else start_after(last, self._lag)
        seen = [row.position for row in self.rows if start is None or row.position >= start]
        found = plan_range(
            last, initial=None, lag=self._lag, upper=self._now, newest=max(seen, default=None)
        )
        if found is None:
            return None
        self._read_to = max(found.end, self._read_to or found.end)
        if self._rng.random() < 0.3 and self._lag and not self._is_ending:
            self.add_rows()  # while it is read
        known = set() if last is None else {bytes(each) for each in _digests(last)}
        chosen = [
            row
            for row in self.rows
            if (found.start is None or row.position >= found.start)
            and row.position < found.end
            and (not self._lag or row.digest not in known)
        ]
        write = RecordWrite(self._target, "orders", number + 1)
        told = []
        for part in (chosen[::2], chosen[1::2]):
            task = write.staging_task(COLUMNS, found.remember_from)
            for _ in range(self._rng.choice((1, 1, 2))):  # the last attempt counts
                [batch] = task(iter([_batch(part)]))
                answer = batch.column(0)[0].as_py()
            told.append(answer)
        about = Bookmark("position", INTEGER, found.end)
        if last is not None:
            about = replace(about, rows=last.rows)
        return Run(write, found, write.gathered(told), about)

    def commit(self, run: Run) -> None:
        """Commit a run."""
        if not run.staged.rows and not run.found.is_new:
            run.write.abort()
            return
        run.write.commit(
            run.staged, next_bookmark(run.found, run.staged.remembered, run.about).to_text()
        )

    def run(self, stop_at: int | None = None) -> bool:
        """Run once, up to a system call; return whether it came to its end."""
        self._stopped.arm(stop_at)
        try:
            staged = self.stage()
            if staged is not None:
                self.commit(staged)
        except Stopped:
            return False
        finally:
            self._stopped.arm(None)
        return True

    def overlap(self) -> None:
        """Run while another run is between its staging and its commit."""
        first = self.stage()
        self.run()
        if first is None:
            return
        with suppress(pylog.LogStorageError):  # the other one has removed what it staged
            self.commit(first)

    def finish(self) -> list[int]:
        """Run until nothing is new, at a late time; return what the topic has."""
        self._is_ending = True
        self._now = max([self._now, *(row.position for row in self.rows)]) + 1
        before = -1
        while before != len(written := self._written()):
            before = len(written)
            assert self.run()
            assert self.run()  # the first may have found that a stopped one is complete
        return written

    def _written(self) -> list[int]:
        try:
            rows = pylog.scan(self._target.directory, topics="orders").to_table().to_pylist()
        except pylog.LogStorageError:
            return []
        return sorted(int(row["value"]) for row in rows)


def _digests(bookmark: Bookmark) -> list[bytes]:
    count = len(bookmark.rows)
    return [bookmark.rows.digests[DIGEST_BYTES * n : DIGEST_BYTES * (n + 1)] for n in range(count)]


def _batch(rows: list[Row]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "key": pa.array([str(row.number) for row in rows], pa.string()),
            "value": pa.array([str(row.number) for row in rows], pa.string()),
            "partition": pa.array([row.number % 2 for row in rows], pa.int32()),
            POSITION: pa.array([row.position for row in rows], pa.int64()),
            DIGEST: pa.array([row.digest for row in rows], pa.binary()),
        }
    )


def test_random_schedules_stopped_at_system_calls_write_each_row_once(
    memory_path: Path, monkeypatch: pytest.MonkeyPatch, how_many: HowMany, counted: Counted
) -> None:
    stopped = StoppedAt(monkeypatch)
    outcomes: Counter[str] = Counter()
    for number in range(how_many(15, 1_000)):
        rng = random.Random(SEED * 1_000_000 + number)
        schedule = Schedule(memory_path / str(number), rng, stopped)
        for _ in range(STEPS):
            schedule.add_rows()
            schedule.jump()
            step = rng.choices(("run", "stopped", "missed", "twice", "overlap"), (4, 5, 1, 1, 1))[0]
            outcomes[step] += 1
            if step == "run":
                schedule.run()
            elif step == "stopped":
                ended = schedule.run(stop_at=rng.randint(1, 90))
                outcomes["stopped, after its end"] += ended
            elif step == "twice":
                schedule.run()
                schedule.run()
            elif step == "overlap":
                schedule.overlap()
        written = schedule.finish()
        assert written == list(range(len(schedule.rows))), f"schedule {number}, seed {SEED}"
        outcomes["rows"] += len(written)
        outcomes["schedules"] += 1
    counted(f"incremental schedules, seed {SEED}", outcomes)
