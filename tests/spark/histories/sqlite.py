"""Histories of an SQLite table: ids that are used again, and times as text."""

from __future__ import annotations

import datetime as dt
import sqlite3
from typing import TYPE_CHECKING

from tests.spark.histories.history import ColumnHistory, IngestJob
from tests.spark.histories.promise import (
    HOUR_US,
    SECOND_US,
    ColumnPromise,
    Limits,
    Row,
    effective_lag,
    now_us,
)
from tests.spark.histories.times import EPOCH, at_clock, moment

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

_FORMATS = {
    "seconds": "%Y-%m-%d %H:%M:%S",  # as CURRENT_TIMESTAMP has it
    "milliseconds": "%Y-%m-%d %H:%M:%S.%f",
    "numbers": "",  # as its JDBC driver has it: milliseconds since 1970
}
_NUMBERS = ("INT", "NUMERIC(18,0)")
_SOURCE = """[source]
format = "jdbc"
[source.options]
url = "jdbc:sqlite:{file}"
driver = "org.sqlite.JDBC"
{access}
"""


class SqliteHistory(ColumnHistory):
    """A table whose writers come one after another."""

    def __init__(self, spark: SparkSession, folder: Path, rng: random.Random) -> None:
        super().__init__(spark, folder, rng)
        self._type = rng.choice(("rowid", "autoincrement", *_NUMBERS, *_FORMATS))
        self._is_time = self._type in _FORMATS
        self.kind = "timestamp_ntz" if self._is_time else "integer"
        self._zone = rng.choice((None, "UTC")) if self._is_time else None
        lags: Sequence[tuple[str | None, int | None]] = (
            ((None, None), ('"0s"', 0), ('"2 hours"', 2 * HOUR_US))
            if self._is_time
            else ((None, None), ('"0"', 0), ("5", 5))
        )
        lag, lag_us = rng.choice(lags)
        self._has_key = rng.random() < 0.5
        counts = rng.choice((None, True, False))
        self.counts_null = counts is not False
        self.counts_late = self.counts_null and not self._is_time
        lines = ['column = "mark"']
        lines += [f"lag = {lag}"] if lag is not None else []
        lines += ['key = "id"'] if self._has_key else []
        lines += [f'zone = "{self._zone}"'] if self._zone is not None else []
        lines += [f"count_left_out = {str(counts).lower()}"] if counts is not None else []
        self.note(f"{self._type}: {lines}")
        file = folder / "source.db"
        self._database = sqlite3.connect(file)
        self._create()
        access = rng.choice(('dbtable = "t"', 'query = "SELECT * FROM t"'))
        source = _SOURCE.format(file=file, access=access)
        self.job = IngestJob(self.spark, folder, source, "\n".join(lines))
        fixed = self._zone == "UTC"
        self.promise = ColumnPromise(
            effective_lag(self.kind, lag_us, is_final=False, has_fixed_zone=fixed)
        )
        self._base = at_clock(rng) // SECOND_US * SECOND_US

    def close(self) -> None:
        self._database.close()

    def _create(self) -> None:
        marks = {
            "rowid": "mark INTEGER PRIMARY KEY",
            "autoincrement": "mark INTEGER PRIMARY KEY AUTOINCREMENT",
            **{each: f"mark {each}" for each in _NUMBERS},
        }.get(self._type, "mark TIMESTAMP")
        self._execute("DROP TABLE IF EXISTS t")
        self._execute(f"CREATE TABLE t ({marks}, id INT, text TEXT)")

    def _execute(self, sql: str, *values: object) -> list[tuple[int, object, str]]:
        found = self._database.execute(sql, values).fetchall()
        self._database.commit()
        return found

    def _number(self, sql: str, *values: object) -> int:
        [number] = self._database.execute(sql, values).fetchone()
        return int(number)

    def rows(self) -> list[Row]:
        return [
            Row(number, self._position(mark), text, number if self._has_key else None)
            for number, mark, text in self._execute("SELECT id, mark, text FROM t")
        ]

    def _position(self, mark: object) -> int | None:
        if isinstance(mark, str):
            found = dt.datetime.fromisoformat(mark).replace(tzinfo=dt.UTC)
            return (found - EPOCH) // dt.timedelta(microseconds=1)
        assert mark is None or isinstance(mark, int)
        return mark * 1_000 if mark is not None and self._is_time else mark

    def limits(self, before: int, after: int) -> Limits:
        if not self._is_time:
            return Limits()
        ahead = 0 if self._zone is not None else 14 * HOUR_US
        return Limits(before + ahead, after + ahead)

    def step(self) -> None:
        steps = {
            self._insert: 8,
            self._update: 2,
            self._delete: 1,
            self._delete_newest: 1,
            self._start_over: 0.5,
        }
        self.rng.choices(list(steps), list(steps.values()))[0]()

    def settle(self) -> None:
        """Nothing is under way."""

    def _mark(self) -> object:
        rng = self.rng
        if not self._is_time:
            end = self.promise.end
            if self._type in _NUMBERS:
                newest = self._number("SELECT coalesce(max(mark), 0) FROM t")
                # The driver cannot say whether a NUMERIC is null.
                missing = None if self._type == "INT" else newest
                return rng.choice((missing, newest, newest + 1, newest + 1, newest + 30))
            if end is not None and rng.random() < 0.1:
                late = max(1, end - rng.choice((2, 3, 50)))
                if not self._number("SELECT count(*) FROM t WHERE mark = ?", late):
                    return late
            return None  # the next one
        if rng.random() < 0.06:
            return None
        if rng.random() < 0.06:
            return self._stored(now_us() + rng.choice((20, 60)) * HOUR_US)
        unit = rng.choice((SECOND_US, 60 * SECOND_US, HOUR_US))
        if rng.random() < 0.7:
            self._base += rng.choice((0, 0, 1, 7)) * unit
            if self._type != "seconds":
                self._base += rng.choice((0, 0, 1_000, 999_000))
            return self._stored(self._base)
        return self._stored(self._base - rng.randrange(1, 5) * unit)

    def _stored(self, mark: int) -> object:
        if self._type == "numbers":
            return mark // 1_000
        text = moment(mark).strftime(_FORMATS[self._type])
        return text[:-3] if self._type == "milliseconds" else text

    def _insert(self) -> None:
        for _ in range(self.rng.choice((1, 2, 3))):
            number = self._number("SELECT coalesce(max(id), 0) FROM t") + 1
            mark, text = self._mark(), self.new_text()
            self._execute("INSERT INTO t (id, mark, text) VALUES (?, ?, ?)", number, mark, text)
            self.note(f"inserted {number} {mark} {text}")

    def _texts_by_mark(self) -> list[str]:
        found = self._execute("SELECT id, mark, text FROM t ORDER BY mark, text")
        return [text for _, _, text in found]

    def _update(self) -> None:
        texts = self._texts_by_mark()
        if not texts:
            return
        old, new = self.rng.choice(texts), self.new_text()
        self._execute("UPDATE t SET text = ? WHERE text = ?", new, old)
        mark = self._mark() if self.rng.random() < 0.6 else None
        if mark is not None:
            self._execute("UPDATE t SET mark = ? WHERE text = ?", mark, new)
        self.promise.was_changed = True
        self.note(f"updated {old}: {new} {mark}")

    def _delete(self) -> None:
        texts = self._texts_by_mark()
        if texts:
            self._delete_row(self.rng.choice(texts))

    def _delete_newest(self) -> None:
        texts = self._texts_by_mark()
        if texts:
            self._delete_row(texts[-1])

    def _delete_row(self, text: str) -> None:
        self._execute("DELETE FROM t WHERE text = ?", text)
        self.promise.was_changed = True
        self.note(f"deleted {text}")

    def _start_over(self) -> None:
        if self.rng.random() < 0.5:
            self._create()
            self.note("made again")
        else:
            self._execute("DELETE FROM t")
            self.note("emptied")
        self.promise.was_changed = True
