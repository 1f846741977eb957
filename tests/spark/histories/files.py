"""Histories of a folder of Parquet files: by time, by day, by when files were written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from tests.spark.histories.history import ColumnHistory, IngestJob
from tests.spark.histories.promise import (
    DAY_US,
    HOUR_US,
    SECOND_US,
    ColumnPromise,
    Limits,
    Row,
    effective_lag,
    now_us,
)
from tests.spark.histories.times import (
    ZONES_OF_CLOCKS,
    at_clock,
    at_local_clock,
    moment,
    shown_day,
)

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from pyspark.sql import SparkSession

_TYPES = {
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "modified": None,
    "date": None,  # a folder for each
}
_LAGS = ((None, None), ('"0s"', 0), ('"0s"', 0), ('"2 hours"', 2 * HOUR_US))
_LAGS_OF_DAYS = ((None, None), ('"0s"', 0), ('"2 days"', 2))


class FolderHistory(ColumnHistory):
    """A folder that gets files, and loses some."""

    def __init__(self, spark: SparkSession, folder: Path, rng: random.Random) -> None:
        super().__init__(spark, folder, rng)
        self._column = rng.choice(tuple(_TYPES))
        is_day = self._column == "date"
        self.kind = "timestamp" if self._column == "modified" else self._column
        has_zone = self._column in ("timestamp_ntz", "date")
        self._zone = rng.choice((None, "UTC", *ZONES_OF_CLOCKS)) if has_zone else None
        lag, lag_us = rng.choice(_LAGS_OF_DAYS if is_day else _LAGS)
        self._has_key = self._column == "modified" or rng.random() < 0.5
        counts = rng.choice((None, True, False))
        self.counts_null = self.counts_late = counts is not False
        column, key = {
            "modified": ("_metadata.file_modification_time", "_metadata.file_path"),
        }.get(self._column, ("mark", "id"))
        lines = [f'column = "{column}"']
        lines += [f"lag = {lag}"] if lag is not None else []
        lines += [f'key = "{key}"'] if self._has_key else []
        lines += [f'zone = "{self._zone}"'] if self._zone is not None else []
        lines += [f"count_left_out = {str(counts).lower()}"] if counts is not None else []
        self._input = folder / "in"
        self._input.mkdir()
        source = f'[source]\nformat = "parquet"\npath = "{self._input}"'
        self.job = IngestJob(self.spark, folder, source, "\n".join(lines))
        fixed = self._zone == "UTC"
        self.promise = ColumnPromise(
            effective_lag(self.kind, lag_us, is_final=False, has_fixed_zone=fixed)
        )
        self.note(f"{self._column}: {lines}")
        self._files: dict[str, list[Row]] = {}
        self._numbers = 0
        self._ids = 0
        self._base = at_clock(rng)

    def rows(self) -> list[Row]:
        return [row for rows in self._files.values() for row in rows]

    def may_fail(self) -> bool:
        return not self._files

    def limits(self, before: int, after: int) -> Limits:
        if self._column == "timestamp_ntz" and self._zone is None:
            return Limits(before + 14 * HOUR_US, after + 14 * HOUR_US)
        return Limits(self._of_clock(before), self._of_clock(after))

    def _of_clock(self, instant: int) -> int:
        if self.kind == "timestamp":
            return instant
        local = at_local_clock(instant, self._zone or "UTC")
        return local // DAY_US if self.kind == "date" else local

    def step(self) -> None:
        steps = {self._add: 8, self._rewrite: 2, self._remove: 1, self._start_over: 0.4}
        self.rng.choices(list(steps), list(steps.values()))[0]()

    def settle(self) -> None:
        if not self._files:
            self._add()

    def _new_mark(self) -> int | None:
        rng = self.rng
        if self.kind == "date":
            today = self._of_clock(now_us())
            return today - rng.choice((-2, 0, 0, 1, 1, 1, 2, 3, 4))
        if rng.random() < 0.06 and self._column != "modified":
            return None
        if rng.random() < 0.06:
            return self._of_clock(now_us()) + rng.choice((20, 60)) * HOUR_US
        unit = rng.choice((SECOND_US, 60 * SECOND_US, HOUR_US))
        if rng.random() < 0.7:
            odd = 0 if self._column == "modified" else rng.choice((0, 0, 1, 999_999))
            self._base += rng.choice((0, 0, 1, 7)) * unit + odd
            return self._base
        return self._base - rng.randrange(1, 5) * unit

    def _new_row(self, mark: int | None, path: str) -> Row:
        self._ids += 1
        key: object = None
        if self._has_key:
            key = path if self._column == "modified" else self._ids
        return Row(self._ids, mark, self.new_text(), key)

    def _add(self) -> None:
        self._numbers += 1
        shared = self._new_mark()
        path = f"{self._numbers}.parquet"
        if self.kind == "date":
            assert shared is not None
            path = f"mark={shown_day(shared)}/{path}"
        is_shared = self._column in ("date", "modified")
        rows = [
            self._new_row(shared if is_shared else self._new_mark(), path)
            for _ in range(self.rng.choice((1, 1, 2, 3)))
        ]
        if self.rng.random() < 0.2 and (not self._has_key or self._column == "modified"):
            rows.append(rows[-1])
        self._write(path, rows)

    def _rewrite(self) -> None:
        """Write a file again with some rows changed."""
        if not self._files:
            return
        path = self.rng.choice(sorted(self._files))
        rows = self._files[path]
        shared = self._new_mark() if self._column == "modified" else None
        changed = []
        for row in rows:
            if shared is not None:
                changed.append(row._replace(mark=shared, text=self.new_text()))
            elif self.rng.random() < 0.5:
                mark = row.mark if self.kind == "date" else self._new_mark()
                changed.append(row._replace(mark=mark, text=self.new_text()))
            else:
                changed.append(row)
        self.promise.was_changed = True
        self._write(path, changed)

    def _remove(self) -> None:
        if not self._files:
            return
        path = self.rng.choice(sorted(self._files))
        self._unlink(path)
        self.note(f"removed {path}")

    def _start_over(self) -> None:
        for path in sorted(self._files):
            self._unlink(path)
        self._base -= self.rng.choice((0, HOUR_US, 5 * HOUR_US))
        self.note("the folder is empty")

    def _unlink(self, path: str) -> None:
        self.promise.was_changed = True
        del self._files[path]
        (self._input / path).unlink()

    def _write(self, path: str, rows: list[Row]) -> None:
        columns = {
            "id": pa.array([row.id for row in rows], pa.int64()),
            "text": pa.array([row.text for row in rows], pa.string()),
        }
        type_ = _TYPES[self._column]
        if type_ is not None:
            marks = [None if row.mark is None else moment(row.mark) for row in rows]
            if type_.tz is None:
                marks = [None if each is None else each.replace(tzinfo=None) for each in marks]
            columns["mark"] = pa.array(marks, type_)
        whole = self._input / path
        whole.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), whole)
        if self._column == "modified":
            mark = rows[0].mark
            assert mark is not None
            os.utime(whole, ns=(mark * 1_000, mark * 1_000))
        self._files[path] = rows
        self.note(f"wrote {path}: {[(row.id, row.mark, row.text) for row in rows]}")
