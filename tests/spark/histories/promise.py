"""What docs/jobs.md promises of a topic after a run that reads by a column.

A row has a position, its `mark`. A run reads the rows whose marks are at most ``lag`` behind the
newest one that was read, up to a limit, and writes those that it has not written yet.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
DAY_US = 24 * HOUR_US
TIMES = ("timestamp", "timestamp_ntz")
_DEFAULT_LAGS = {"timestamp": HOUR_US, "timestamp_ntz": HOUR_US, "date": 1, "integer": 1_000}


class BrokenPromiseError(AssertionError):
    """A run did not do what the page says."""


class Row(NamedTuple):
    """A row as a source has it."""

    id: int
    mark: int | None
    text: str
    key: object  # what identifies it with its mark; None where the whole row does
    is_settled: bool = True  # no transaction that is older than its own is open
    is_kept: bool = False  # the source promises it, however late it was committed

    @property
    def shown(self) -> tuple[str, str]:
        """The row as the topic has it."""
        return str(self.id), self.text

    @property
    def identity(self) -> tuple[object, ...]:
        return (self.mark, self.key) if self.key is not None else (self.mark, self.id, self.text)


class Limits(NamedTuple):
    """Where a run ends: rows before the first are read, and rows from the second on are not."""

    sure: int | None = None
    possible: int | None = None


class LeftOut(NamedTuple):
    """What the summary counts, as `pylog_jobs.left_out` does; None where it need not."""

    null: range
    late: int | None


def now_us() -> int:
    """Return the time of the machine's clock."""
    return time.time_ns() // 1_000


def effective_lag(kind: str, lag: int | None, *, is_final: bool, has_fixed_zone: bool) -> int:
    """Return how far behind the newest row a run reads again.

    ``is_final``: the source says which rows are final, so that the default is no lag.
    """
    if lag is None:
        lag = 0 if is_final else _DEFAULT_LAGS[kind]
    if kind == "date":
        return lag
    if kind == "timestamp_ntz" and not has_fixed_zone:
        return max(lag, 3 * HOUR_US)
    return max(lag, 1)


class ColumnPromise:
    """What one topic must have."""

    def __init__(self, lag: int) -> None:
        self.lag = lag
        self.topic: Counter[Row] = Counter()
        self.was_open = False  # whether transactions were open at a run
        self.was_changed = False  # whether rows were removed, or moved by their mark
        self._seen: list[Row] = []  # what the source had when the last bookmark was written

    def start_over(self) -> None:
        """Take note that a run replaces all (``--full``)."""
        self.topic.clear()
        self._seen = []

    @property
    def end(self) -> int | None:
        """After the newest mark that was read."""
        marks = [row.mark for row in self.topic if row.mark is not None]
        return max(marks) + 1 if marks else None

    @property
    def start(self) -> int | None:
        return None if self.end is None else self.end - self.lag

    def has_gone_back(self, rows: Iterable[Row]) -> bool:
        """Whether all rows of the source are before what was read of it."""
        marks = [row.mark for row in rows if row.mark is not None]
        return self.end is not None and (not marks or max(marks) + 1 < self.end)

    def left_out(self, rows: Collection[Row]) -> LeftOut:
        """Return what is left out now."""
        nulls = [row.is_settled for row in rows if row.mark is None]
        null = range(sum(nulls), len(nulls) + 1)
        start = self.start
        if start is None or self.was_open or self.was_changed:
            return LeftOut(null, None)
        now, then = (
            sum(row.mark is not None and row.mark < start for row in each)
            for each in (rows, self._seen)
        )
        return LeftOut(null, now - then)

    def check(self, rows: Collection[Row], limits: Limits, found: Counter[tuple[str, str]]) -> None:
        """Hold a topic against the rows that its source had at the run."""
        due = self._new(row for row in rows if self._is_due(row, limits))
        possible = self._new(row for row in rows if self._is_possible(row, limits))
        least, most = _shown(self.topic + due), _shown(self.topic + (due | possible))
        if lost := least - found:
            raise BrokenPromiseError(f"lost: {dict(lost)}")
        if extra := found - most:
            raise BrokenPromiseError(f"too much: {dict(extra)}")
        self._take(due, possible, found - least, rows)

    def _take(
        self,
        due: Counter[Row],
        possible: Counter[Row],
        more: Counter[tuple[str, str]],
        rows: Collection[Row],
    ) -> None:
        for row in (possible - due).elements():
            if more[row.shown]:
                more[row.shown] -= 1
                due[row] += 1
        self.topic += due
        if due:
            self._seen = list(rows)

    def _new(self, rows: Iterable[Row]) -> Counter[Row]:
        """Return what is not in the topic yet; of equal rows as many as are missing."""
        found = Counter(row._replace(is_settled=True, is_kept=False) for row in rows)
        known = {row.identity for row in self.topic if row.key is not None}
        return Counter(
            {row: count for row, count in found.items() if row.identity not in known}
        ) - Counter({row: count for row, count in self.topic.items() if row.key is None})

    def _is_due(self, row: Row, limits: Limits) -> bool:
        if row.mark is None or not row.is_settled:
            return False
        if limits.sure is not None and row.mark >= limits.sure:
            return False
        start = self.start
        if start is None or row.mark >= start:
            return True
        return row.is_kept and not any(
            known.id == row.id and known.mark == row.mark for known in self.topic
        )

    def _is_possible(self, row: Row, limits: Limits) -> bool:
        if row.mark is None or (limits.possible is not None and row.mark >= limits.possible):
            return False
        return self.was_open or self.start is None or row.mark >= self.start or row.is_kept


def _shown(rows: Mapping[Row, int]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for row, count in rows.items():
        found[row.shown] += count
    return found
