"""Reads to be tried on live partitions: everything, slowly, ranges, since a time, a count.

Each is made of a scan, or through one of the tools that make scans: DuckDB, Polars.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pylog
from tests.broker.directory_watch import log_start_offset
from tests.broker.ways_to_read import (
    COLUMNS,
    DuckDBQuery,
    Pauses,
    PolarsFrame,
    count,
    count_by_duckdb,
    read_table,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from tests.broker.ledger import Ledger
    from tests.broker.ways_to_read import Options

_ISOLATIONS = ("read_uncommitted", "read_committed")
_SMALL_WINDOW_BYTES = 20_000
_LONGEST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_A_BATCH_SECONDS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of some partitions, and how it is read.

    Attributes
    ----------
    kind
        For people.
    ledgers
        Whole topics, or one partition.
    isolation
        As in `pylog.scan`.
    run
        Takes the path and the arguments of the scan, gives a table or a count.
    start, end
        Offsets, the end exclusive.
    is_filter
        Whether the offsets are a filter of ``run``'s own: one that is gone is no error then.
    start_timestamp
        Milliseconds; instead of ``start``.
    window_bytes, fail_on_data_loss
        As in `pylog.scan`.
    """

    kind: str
    ledgers: Sequence[Ledger]
    isolation: str
    run: Callable[[Path, Options], pa.Table | int] = read_table
    start: int | None = None
    end: int | None = None
    is_filter: bool = False
    start_timestamp: int | None = None
    window_bytes: int | None = None
    fail_on_data_loss: bool = True

    def __str__(self) -> str:
        names = ("start", "end", "start_timestamp", "window_bytes", "fail_on_data_loss")
        asked = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        where = " ".join(each.name for each in self.ledgers)
        return f"{self.kind} of {where}, {self.isolation}, {asked}"

    def answer(self, log_dir: Path) -> pa.Table | int:
        """Plan and read."""
        options: Options = {
            "columns": COLUMNS,
            "timestamp_unit": "ms",
            "isolation": self.isolation,
            "fail_on_data_loss": self.fail_on_data_loss,
        }
        if self.start is not None and not self.is_filter:
            options["start"] = self.start
        if self.end is not None and not self.is_filter:
            options["end"] = self.end
        if self.start_timestamp is not None:
            options["start"] = pylog.Timestamp(self.start_timestamp)
        if self.window_bytes is not None:
            options["window_bytes"] = self.window_bytes
        if len(self.ledgers) == 1:
            options["assign"] = {self.ledgers[0].topic: [self.ledgers[0].partition]}
        else:
            options["topics"] = {each.topic for each in self.ledgers}
        return self.run(log_dir, options)


class Requests:
    """Makes requests by chance.

    Parameters
    ----------
    log_dir
        Of the broker.
    ledgers
        All partitions that may be read.
    chance
        Decides.
    """

    def __init__(self, log_dir: Path, ledgers: Sequence[Ledger], chance: random.Random) -> None:
        self._log_dir = log_dir
        self._ledgers = ledgers
        self._chance = chance

    def next(self) -> Request:
        """Return another request."""
        make = self._chance.choice(
            (
                self._everything,
                self._slowly,
                self._count,
                self._offsets,
                self._since,
                self._duckdb,
                self._polars,
            )
        )
        request = make(self._chance.choice(_ISOLATIONS), self._chance.choice(self._ledgers))
        return replace(request, fail_on_data_loss=self._chance.random() < 0.6)

    def _everything(self, isolation: str, _: Ledger) -> Request:
        return Request(kind="table", ledgers=self._ledgers, isolation=isolation)

    def _slowly(self, isolation: str, ledger: Ledger) -> Request:
        """Plan now and read later, with pauses: files go away in between."""
        pauses = self._pauses()
        return Request(
            kind="slow stream",
            ledgers=self._of_topic(ledger),
            isolation=isolation,
            run=lambda path, options: pauses.read(pylog.scan(path, **options).to_reader()),
            window_bytes=_SMALL_WINDOW_BYTES,
        )

    def _pauses(self) -> Pauses:
        return Pauses(
            self._chance.uniform(0, _LONGEST_PAUSE_SECONDS),
            self._chance.uniform(0, _LONGEST_PAUSE_A_BATCH_SECONDS),
        )

    def _of_topic(self, ledger: Ledger) -> Sequence[Ledger]:
        return [each for each in self._ledgers if each.topic == ledger.topic]

    def _count(self, isolation: str, ledger: Ledger) -> Request:
        return Request(kind="count", ledgers=[ledger], isolation=isolation, run=count)

    def _range(self, ledger: Ledger) -> tuple[int, int]:
        stable = ledger.mark().stable
        first = min(log_start_offset(self._log_dir / ledger.name), stable)
        start, end = sorted(self._chance.randint(first, stable) for _ in range(2))
        return start, end

    def _offsets(self, isolation: str, ledger: Ledger) -> Request:
        start, end = self._range(ledger)
        return Request(
            kind="offset range", ledgers=[ledger], isolation=isolation, start=start, end=end
        )

    def _since(self, isolation: str, ledger: Ledger) -> Request:
        first = log_start_offset(self._log_dir / ledger.name)
        there = ledger.between(first, ledger.mark().stable, committed=True)
        start = self._chance.choice(there).timestamp if there else None
        return Request(
            kind="since a time", ledgers=[ledger], isolation=isolation, start_timestamp=start
        )

    def _duckdb(self, isolation: str, ledger: Ledger) -> Request:
        of_topic = Request(
            kind="DuckDB", ledgers=self._of_topic(ledger), isolation=isolation, run=DuckDBQuery()
        )
        match self._chance.randrange(4):
            case 0:
                return of_topic
            case 1:
                return replace(
                    of_topic,
                    kind="DuckDB, slowly",
                    run=DuckDBQuery(pauses=self._pauses()),
                    window_bytes=_SMALL_WINDOW_BYTES,
                )
            case 2:
                return replace(
                    of_topic, kind="DuckDB's count", ledgers=[ledger], run=count_by_duckdb
                )
        start, end = self._range(ledger)
        run = DuckDBQuery(f' WHERE "offset" >= {start} AND "offset" < {end}')
        return self._filter(of_topic, ledger, start, end, run)

    def _polars(self, isolation: str, ledger: Ledger) -> Request:
        of_topic = Request(
            kind="Polars", ledgers=self._of_topic(ledger), isolation=isolation, run=PolarsFrame()
        )
        if self._chance.random() < 0.5:
            return of_topic
        start, end = self._range(ledger)
        return self._filter(of_topic, ledger, start, end, PolarsFrame(start, end))

    @staticmethod
    def _filter(
        of_topic: Request,
        ledger: Ledger,
        start: int,
        end: int,
        run: Callable[[Path, Options], pa.Table],
    ) -> Request:
        return replace(
            of_topic,
            kind=f"filter of {of_topic.kind}",
            ledgers=[ledger],
            run=run,
            start=start,
            end=end,
            is_filter=True,
        )
