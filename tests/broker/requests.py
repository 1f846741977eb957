"""Reads to be tried on live partitions: everything, slowly, ranges, since a time, a count."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import pylog
from tests.broker.directory_watch import log_start_offset

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.broker.ledger import Ledger

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value")

_ISOLATIONS = ("read_uncommitted", "read_committed")
_SMALL_WINDOW_BYTES = 20_000
_LONGEST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_A_BATCH_SECONDS = 0.01


def _table(scan: pylog.Scan) -> pa.Table:
    return scan.to_table()


def _count(scan: pylog.Scan) -> int:
    return scan.count()


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
        Takes the scan, gives a table or a count.
    start, end
        Offsets, the end exclusive.
    start_timestamp
        Milliseconds; instead of ``start``.
    window_bytes, fail_on_data_loss
        As in `pylog.scan`.
    """

    kind: str
    ledgers: Sequence[Ledger]
    isolation: str
    run: Callable[[pylog.Scan], pa.Table | int] = _table
    start: int | None = None
    end: int | None = None
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
        options: dict[str, Any] = {
            "isolation": self.isolation,
            "fail_on_data_loss": self.fail_on_data_loss,
        }
        if self.start is not None:
            options["start"] = self.start
        if self.end is not None:
            options["end"] = self.end
        if self.start_timestamp is not None:
            options["start"] = pylog.Timestamp(self.start_timestamp)
        if self.window_bytes is not None:
            options["window_bytes"] = self.window_bytes
        if len(self.ledgers) == 1:
            options["assign"] = {self.ledgers[0].topic: [self.ledgers[0].partition]}
        else:
            options["topics"] = {each.topic for each in self.ledgers}
        scan = pylog.scan(log_dir, columns=COLUMNS, timestamp_unit="ms", **options)
        return self.run(scan)


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
            (self._everything, self._slowly, self._count, self._offsets, self._since)
        )
        request = make(self._chance.choice(_ISOLATIONS), self._chance.choice(self._ledgers))
        return replace(request, fail_on_data_loss=self._chance.random() < 0.6)

    def _everything(self, isolation: str, _: Ledger) -> Request:
        return Request(kind="table", ledgers=self._ledgers, isolation=isolation)

    def _slowly(self, isolation: str, ledger: Ledger) -> Request:
        """Plan now and read later, with pauses: files go away in between."""
        first_pause = self._chance.uniform(0, _LONGEST_PAUSE_SECONDS)
        pause = self._chance.uniform(0, _LONGEST_PAUSE_A_BATCH_SECONDS)

        def run(scan: pylog.Scan) -> pa.Table:
            reader = scan.to_reader()
            time.sleep(first_pause)
            batches = []
            for batch in reader:
                batches.append(batch)
                time.sleep(pause)
            return pa.Table.from_batches(batches, schema=reader.schema)

        return Request(
            kind="slow stream",
            ledgers=[each for each in self._ledgers if each.topic == ledger.topic],
            isolation=isolation,
            run=run,
            window_bytes=_SMALL_WINDOW_BYTES,
        )

    def _count(self, isolation: str, ledger: Ledger) -> Request:
        return Request(kind="count", ledgers=[ledger], isolation=isolation, run=_count)

    def _offsets(self, isolation: str, ledger: Ledger) -> Request:
        stable = ledger.mark().stable
        first = min(log_start_offset(self._log_dir / ledger.name), stable)
        start, end = sorted(self._chance.randint(first, stable) for _ in range(2))
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
