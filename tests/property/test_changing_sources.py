"""Random histories of sources that change under a bookmark: each row once, or a warning.

Each source here is a model with what makes such sources treacherous: open transactions, rows with
equal marks, late rows, clocks, days, updates, a table made again. A run does what
`pylog_jobs.incremental` does, by the same rules (`pylog_jobs.read_range`, `pylog_jobs.bookmark`,
`pylog_jobs.table_versions`). Spark's part, choosing rows by position and digest, is done over
lists. ``tests/spark/test_incremental_histories.py`` has real sources. docs/jobs.md says what each
source promises.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import random
import zoneinfo
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pylog_jobs.bookmark import (
    A_DATE,
    DIGEST_BYTES,
    INTEGER,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Bookmark,
    Checkpoint,
    RememberedRows,
)
from pylog_jobs.job import UsageError
from pylog_jobs.read_range import (
    end_by_clock,
    has_gone_back,
    lag_in_positions,
    next_bookmark,
    plan_range,
    settled_before,
    start_after,
    with_checkpoint,
)
from pylog_jobs.source_identity import ensure_same_tables
from pylog_jobs.table_versions import Snapshot, changes_of, lineage_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.conftest import Counted, HowMany

SEED = 48
HISTORIES = 20_000
SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR
NOON = 1_795_305_600 * SECOND + 12 * HOUR  # 2026-11-22


@dataclass(frozen=True, slots=True)
class Row:
    """A version of a row."""

    number: int
    mark: int


@dataclass(slots=True)
class Horizon:
    """What a look at transactions says."""

    upper: int | None = None
    settled: int | None = None
    checkpoints: tuple[Checkpoint, ...] = ()


@dataclass(slots=True)
class Ingest:
    """The job: its bookmark, as text, and the topic."""

    kind: str
    lag: int | None = 0
    zone: str | None = None
    is_final: bool = False
    topic: list[Row] = field(default_factory=list)
    late: int = 0  # that the last run told of: since the bookmark was written
    late_before: int = 0
    text: str | None = None

    @property
    def last(self) -> Bookmark | None:
        return None if self.text is None else Bookmark.from_text(self.text)

    @property
    def effective_lag(self) -> int:
        return lag_in_positions(self.kind, self.lag, self.zone, is_final=self.is_final)

    def run(
        self,
        read: Callable[[], Iterable[Row]],
        now: int,
        horizon: Horizon | None = None,
        between: Callable[[], None] = lambda: None,
    ) -> bool:
        """Run once, in the steps of the job; return whether it warned that the source went back."""
        horizon = horizon or Horizon()
        last, lag = self.last, self.effective_lag
        start = None if last is None else start_after(last, lag)
        by_clock = end_by_clock(self.kind, now, self.zone, None)
        upper = min((x for x in (by_clock, horizon.upper) if x is not None), default=None)
        seen = [row.mark for row in read() if start is None or row.mark >= start]
        reached = max((each for each in seen if upper is None or each < upper), default=None)
        between()
        before = 0 if last is None else sum(row.mark < last.known_from for row in read())
        if last is not None and last.rows_before is not None:
            self.late = max(0, before - last.rows_before)
        newest = max(seen or (row.mark for row in read()), default=None)
        went_back = has_gone_back(last, newest)
        planned = plan_range(
            last, initial=None, lag=lag, upper=upper, newest=reached, settled=horizon.settled
        )
        if planned is None:
            return went_back
        between()
        known = Counter() if last is None else Counter(_digests(last))
        staged, remembered = [], []
        numbers: Counter[Row] = Counter()
        for row in read():
            if row.mark >= planned.end or (planned.start is not None and row.mark < planned.start):
                continue
            numbers[row] += 1
            digest = _digest(row, numbers[row])
            if known[digest]:
                continue
            staged.append(row)
            if planned.remember_from is not None and row.mark >= planned.remember_from:
                remembered.append((row.mark, digest))
        if not staged and not planned.is_new:
            return went_back
        about = Bookmark("mark", self.kind, planned.end, checkpoints=horizon.checkpoints)
        if last is not None:
            about = replace(about, rows=last.rows)
        before += int((about.rows.positions < planned.known_from).sum())
        before += len(staged) - len(remembered)
        written = RememberedRows(
            np.array([mark for mark, _ in remembered], np.int64),
            b"".join(digest for _, digest in remembered),
        )
        self.text = next_bookmark(planned, written, about, rows_before=before).to_text()
        self.topic += staged
        self.late_before, self.late = self.late_before + self.late, 0
        return went_back


def _digest(row: Row, number: int) -> bytes:
    text = f"{row.number} {row.mark} {number}"
    return hashlib.sha256(text.encode()).digest()[:DIGEST_BYTES]


def _digests(bookmark: Bookmark) -> list[bytes]:
    digests = bookmark.rows.digests
    return [digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)]


class Transactions:
    """A table of a database with transactions: ids and starts are given before rows are visible."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now = NOON
        self._next_transaction = 2**32 - 5
        self._newest_ended = self._next_transaction - 1
        self._next_id = 1
        self._open: list[dict[str, object]] = []
        self.rows: dict[int, tuple[Row, int]] = {}  # what is visible, and its transaction

    def visible(self) -> list[tuple[Row, int]]:
        return list(self.rows.values())

    def event(self, *, by_time: bool) -> None:
        """Let something happen in one of the sessions."""
        rng = self.rng
        self.now += rng.choice((0, 1, SECOND, 30 * SECOND))
        kind = rng.choice(("begin", "write", "write", "write", "commit", "rollback", "ids"))
        if kind == "begin" or not self._open:
            self._open.append({"start": self.now, "id": None, "writes": {}})
            return
        transaction = rng.choice(self._open)
        writes = transaction["writes"]
        assert isinstance(writes, dict)
        if kind == "write":
            if transaction["id"] is None:
                transaction["id"] = self._next_transaction
                self._next_transaction += 1
            number = self._next_id
            if by_time and self.rows and rng.random() < 0.4:
                number = rng.choice(list(self.rows))  # an update
                if any(number in each["writes"] for each in self._open):  # type: ignore[operator]
                    return  # the row is locked
            else:
                self._next_id += rng.choice((1, 1, 2))  # another column took one
            start = transaction["start"]
            assert isinstance(start, int)
            mark = rng.choice((start, self.now)) if by_time else number
            writes[number] = Row(number, mark)
        elif kind == "ids" and not by_time:
            self._next_id += 1  # of a transaction that is rolled back
        elif kind in ("commit", "rollback"):
            self._end(transaction, is_committed=kind == "commit" or rng.random() < 0.7)

    def _end(self, transaction: dict[str, object], *, is_committed: bool) -> None:
        self._open.remove(transaction)
        number = transaction["id"]
        if not isinstance(number, int):
            return
        self._newest_ended = max(self._newest_ended, number)
        writes = transaction["writes"]
        assert isinstance(writes, dict)
        if is_committed:
            for each, row in writes.items():
                self.rows[each] = row, number

    def end_all(self) -> None:
        """Commit all that are open."""
        for each in list(self._open):
            self._end(each, is_committed=True)

    def snapshot(self) -> tuple[int, int]:
        """Return xmin and xmax of a snapshot, as PostgreSQL has them."""
        xmax = self._newest_ended + 1
        running = [each["id"] for each in self._open if isinstance(each["id"], int)]
        return min([xmax, *(each for each in running if each < xmax)]), xmax

    def next_id_above_locks(self) -> int:
        """Return an id above the snapshot's and above all that open transactions hold."""
        running = [each["id"] for each in self._open if isinstance(each["id"], int)]
        return max([self.snapshot()[1], *(each + 1 for each in running)])

    def oldest_start(self) -> int:
        """Return the least start of an open transaction, or now."""
        starts = [each["start"] for each in self._open]
        return min([self.now - SECOND, *(each for each in starts if isinstance(each, int))])

    def settled_rows(self) -> list[Row]:
        """Return visible rows whose transactions are not in the window of a snapshot."""
        xmin, xmax = self.snapshot()
        return [row for row, by in self.visible() if (by - xmin) % 2**32 >= xmax - xmin]


def ids_of_a_table(rng: random.Random) -> str:
    """Read ids of a table whose transactions commit in any order: each row once, in the end."""
    table = Transactions(rng)
    job = Ingest(INTEGER, lag=rng.choice((0, None, 2)), is_final=True)

    is_quiet = False

    def happen() -> None:
        for _ in range(0 if is_quiet else rng.choice((0, 0, 1, 4))):
            table.event(by_time=False)

    def run() -> None:
        newest = max((row.mark for row, _ in table.visible()), default=None)
        if newest is None:
            return
        happen()
        last = job.last
        checkpoint = Checkpoint(table.next_id_above_locks(), newest)
        known = with_checkpoint(() if last is None else last.checkpoints, checkpoint)
        oldest = table.snapshot()[0]
        for _ in range(rng.choice((0, 1, 3))):
            happen()
            oldest = table.snapshot()[0]
        is_open = oldest < checkpoint.next_transaction
        horizon = Horizon(newest + 1, settled_before(known, oldest), known)
        job.run(
            table.settled_rows if is_open else lambda: [row for row, _ in table.visible()],
            table.now,
            horizon,
            happen,
        )

    for _ in range(rng.randint(2, 12)):
        for _ in range(rng.randint(0, 8)):
            table.event(by_time=False)
        run()
    table.end_all()
    is_quiet = True
    for _ in range(3):
        run()
    expected = sorted(row.number for row, _ in table.visible())
    assert sorted(row.number for row in job.topic) == expected
    return "ids of a table"


def times_of_a_table(rng: random.Random) -> str:
    """Read a time that is the start of its transaction: each row's last version, none twice."""
    table = Transactions(rng)
    job = Ingest(TIMESTAMP, lag=rng.choice((0, None, 3 * SECOND)), is_final=True)

    def run() -> None:
        horizon = Horizon(table.oldest_start())
        table.event(by_time=True)
        job.run(
            lambda: [row for row, _ in table.visible()],
            table.now,
            horizon,
            lambda: table.event(by_time=True),
        )

    for _ in range(rng.randint(2, 12)):
        for _ in range(rng.randint(0, 8)):
            table.event(by_time=True)
        run()
    table.end_all()
    for _ in range(3):
        table.now += 10 * SECOND
        job.run(lambda: [row for row, _ in table.visible()], table.now, Horizon(table.now))
    assert max(Counter(job.topic).values(), default=1) == 1
    assert {row for row, _ in table.visible()} <= set(job.topic)
    return "times of a table"


def late_rows(rng: random.Random) -> str:
    """Read rows as late as the lag allows, equal ones each, and count later ones; clocks jump."""
    kind = rng.choice((TIMESTAMP, INTEGER))
    unit = SECOND if kind == TIMESTAMP else 1
    lag = rng.choice((0, 3, 10)) * unit
    job = Ingest(kind, lag=lag)
    lag = max(lag, 1)  # the newest value itself is never late
    rows: list[Row] = []
    expected: list[Row] = []
    missed = 0
    now = NOON
    for _ in range(rng.randint(2, 14)):
        now += rng.choice((1, 5, 20, 20, -10, 100)) * unit
        for _ in range(rng.randint(0, 6)):
            mark = now + rng.choice((-15, -10, -4, -1, 0, 0, 0, 1, 5)) * unit
            if rows and rng.random() < 0.4:
                mark = rng.choice(rows).mark
            row = Row(rng.choice((len(rows), 0)), mark)  # some equal others entirely
            last = job.last
            is_late = last is not None and row.mark < last.end - lag
            missed += is_late
            if not is_late:
                expected.append(row)
            rows.append(row)
        job.run(rows.copy, now)
    for _ in range(2):
        now = max([now, *(row.mark for row in rows)]) + unit
        job.run(rows.copy, now)
    assert Counter(job.topic) == Counter(expected)
    assert job.late_before + job.late == missed
    return "late rows"


def days(rng: random.Random) -> str:
    """Read days that are over, in the zone of the column, and of older ones late rows."""
    zone = rng.choice((None, "America/New_York", "Asia/Tokyo"))
    lag = rng.choice((0, 1))
    job = Ingest(A_DATE, lag=lag * DAY, zone=zone)
    clock = zoneinfo.ZoneInfo(zone or "UTC")
    rows: list[Row] = []
    expected: list[Row] = []
    now = NOON
    for _ in range(rng.randint(2, 14)):
        now += rng.choice((HOUR, 6 * HOUR, 13 * HOUR, 30 * HOUR))
        shown = dt.datetime.fromtimestamp(now // SECOND, clock).date()
        today = (shown - dt.date(1970, 1, 1)).days
        for _ in range(rng.randint(0, 5)):
            row = Row(len(rows), today - rng.choice((0, 0, 0, 1, 2, -1)))
            last = job.last
            if last is None or row.mark >= last.end - lag:
                expected.append(row)
            rows.append(row)
        job.run(rows.copy, now)
        assert all(row.mark < today for row in job.topic)
    job.run(rows.copy, now + 3 * DAY)
    assert Counter(job.topic) == Counter(expected)
    return "days"


def clocks_without_a_zone(rng: random.Random) -> str:
    """Read local times around the hour that clocks show twice, or leave out: each row once."""
    zone = rng.choice(("America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "UTC"))
    clock = zoneinfo.ZoneInfo(zone)
    change = rng.choice(("2026-11-01T05:00", "2026-10-25T00:00", "2026-04-04T14:00"))
    now = int(dt.datetime.fromisoformat(change + "+00:00").timestamp()) * SECOND
    job = Ingest(TIMESTAMP_NTZ, lag=0, zone=rng.choice((None, zone)))
    rows: list[Row] = []

    def local(instant: int) -> int:
        shown = dt.datetime.fromtimestamp(instant // SECOND, clock).replace(tzinfo=dt.UTC)
        return int(shown.timestamp()) * SECOND + instant % SECOND

    for _ in range(rng.randint(4, 20)):
        now += rng.choice((1, 60 * SECOND, 36 * 60 * SECOND))
        rows.extend(Row(len(rows) + each, local(now)) for each in range(rng.randint(0, 3)))
        job.run(rows.copy, now)
    for _ in range(2):
        now += 30 * HOUR
        job.run(rows.copy, now)
    assert Counter(job.topic) == Counter(rows)
    return "clocks without a zone"


def sources_that_start_over(rng: random.Random) -> str:
    """Empty a table whose ids then start again: no run is silent about it."""
    job = Ingest(INTEGER, lag=rng.choice((0, 3)))
    rows = [Row(number, number) for number in range(1, rng.randint(5, 30))]
    for _ in range(rng.randint(1, 3)):
        assert not job.run(rows.copy, NOON)
    newest = max(row.mark for row in rows)
    rows = [Row(100 + number, number) for number in range(1, rng.randint(1, newest))]
    assert job.run(rows.copy, NOON)
    assert job.run(rows.copy, NOON)
    rows += [Row(200 + number, newest + number) for number in range(1, 4)]
    assert not job.run(rows.copy, NOON)
    assert {row.number for row in job.topic} >= {201, 202, 203}
    return "sources that start over"


@dataclass(slots=True)
class IcebergTable:
    """Snapshots, the rows that each has added, and the identity of the table."""

    rng: random.Random
    uuid: int = 1
    current: int | None = None
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    added: dict[int, set[int]] = field(default_factory=dict)
    parents: dict[int, int | None] = field(default_factory=dict)  # also of those that expired
    rows: int = 0

    def change(self) -> None:
        """Append, rewrite, overwrite, roll back, make again, or expire."""
        kinds = ("append",) * 5 + ("replace", "overwrite", "rollback", "again", "expire")
        kind = self.rng.choice(kinds)
        if kind in ("append", "replace", "overwrite"):
            number = self.rng.getrandbits(62)
            self.snapshots[number] = Snapshot(number, self.current, kind)
            self.parents[number] = self.current
            self.added[number] = {self.rows, self.rows + 1} if kind != "replace" else set()
            self.rows += 2
            self.current = number
        elif kind == "rollback" and self.current is not None:
            parent = self.parents[self.current]
            if parent in self.snapshots:
                self.current = parent
        elif kind == "again":
            self.uuid, self.snapshots, self.current = self.uuid + 1, {}, None
        elif kind == "expire" and self.current is not None:
            self.snapshots = {self.current: self.snapshots[self.current]}

    def since(self, start: int | None) -> list[int] | None:
        """Return the snapshots after ``start`` up to the current one; None if there is no way."""
        found: list[int] = []
        at = self.current
        while at != start:
            if at is None:
                return None
            found.append(at)
            at = self.parents[at]
        return found


def versions_of_a_table(rng: random.Random) -> str:
    """Read snapshots of an Iceberg table: all that was appended, or a run refuses, and rightly."""
    table = IcebergTable(rng)
    bookmark: Bookmark | None = None
    topic: list[int] = []
    for _ in range(rng.randint(3, 15)):
        table.change()
        if rng.random() < 0.4 or table.current is None:
            continue
        tables = {"orders": str(table.uuid)}
        new = table.since(None if bookmark is None else bookmark.end) or []
        if bookmark is not None and _refuses(table, bookmark, tables):
            way = table.since(bookmark.end)
            assert (
                bookmark.tables != tables
                or way is None
                or any(each not in table.snapshots for each in way)
                or any(table.snapshots[each].operation == "overwrite" for each in way)
            )
            bookmark, topic, new = None, [], table.since(None) or []  # with --full
        elif bookmark is not None:
            assert bookmark.tables == tables
            assert table.since(bookmark.end) is not None
            assert all(table.snapshots[each].operation != "overwrite" for each in new)
        topic += [row for each in new for row in table.added[each]]
        text = Bookmark(None, "version", table.current, tables=tables).to_text()
        bookmark = Bookmark.from_text(text)
        assert len(set(topic)) == len(topic)
        everything = table.since(None) or []
        assert sorted(topic) == sorted(row for each in everything for row in table.added[each])
    return "versions of a table"


def _refuses(table: IcebergTable, bookmark: Bookmark, tables: dict[str, str]) -> bool:
    try:
        ensure_same_tables(bookmark, tables)
        lineage = lineage_of(table.snapshots, table.current, bookmark.end, "orders")
    except UsageError:
        return True
    return bool(changes_of(lineage))


SOURCES = (
    ids_of_a_table,
    times_of_a_table,
    late_rows,
    days,
    clocks_without_a_zone,
    sources_that_start_over,
    versions_of_a_table,
)
SHARES = (6, 3, 4, 2, 2, 1, 2)


@pytest.mark.slow
def test_each_row_of_a_changing_source_is_written_once_or_a_run_says_why_not(
    how_many: HowMany, counted: Counted
) -> None:
    outcomes: Counter[str] = Counter()
    chosen = [source for source, share in zip(SOURCES, SHARES, strict=True) for _ in range(share)]
    for number in range(how_many(2_000, HISTORIES)):
        rng = random.Random(SEED * 1_000_000 + number)
        source = chosen[number % len(chosen)]
        try:
            outcomes[source(rng)] += 1
        except AssertionError as error:
            msg = f"history {number} of seed {SEED}: {source.__name__}"
            raise AssertionError(msg) from error
    counted(f"histories of changing sources, seed {SEED}", outcomes)
