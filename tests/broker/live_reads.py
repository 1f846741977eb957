"""Reads beside a writing broker, each judged, and an account of how they ended."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, TypeVar

import polars as pl
import pyarrow as pa

import pylog
from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    OffsetOutOfRangeError,
    SegmentVanishedError,
)
from tests.broker.directory_watch import log_start_offset
from tests.broker.judge import Observed, Row, complaints_about_count, complaints_about_rows
from tests.broker.ways_to_read import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.broker.directory_watch import DirectoryWatch
    from tests.broker.ledger import Ledger, Mark
    from tests.broker.requests import Request

T = TypeVar("T")

LONGEST_READ_SECONDS = 60.0
_SECONDS_BEFORE_A_READ = 0.05
_SECONDS_THE_WATCH_MAY_BE_LATE = 0.05
_MOST_CHANGES = 20
_MOST_DETAILED_FAILURES = 8
_OF_LOSS = re.compile(r"vanished|is gone|was deleted|data loss|failOnDataLoss", re.IGNORECASE)


def is_data_loss(error: BaseException) -> bool:
    """Tell an error that speaks of records or files that are gone from one about damage."""
    if isinstance(error, SegmentVanishedError | OffsetOutOfRangeError):
        return True
    return (
        isinstance(error, pylog.LogStorageError | pl.exceptions.ComputeError)
        and not isinstance(error, CorruptRecordError | InvalidRecordError)
        and _OF_LOSS.search(str(error)) is not None
    )


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return what ``call`` returns, or raise what it raises; `TimeoutError` if it hangs."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)  # a hanging one is left behind
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        msg = f"not done within {seconds:.0f} s"
        raise TimeoutError(msg)
    return results[0]


def rows_by_partition(table: pa.Table) -> dict[tuple[str, int], list[Row]]:
    """Return the rows of a table of `COLUMNS`, in milliseconds, by topic and partition."""
    columns = {name: table.column(name) for name in COLUMNS}
    columns["timestamp"] = columns["timestamp"].cast(pa.int64())
    found: dict[tuple[str, int], list[Row]] = {}
    for topic, partition, *row in zip(
        *(column.to_pylist() for column in columns.values()), strict=True
    ):
        found.setdefault((topic, partition), []).append(tuple(row))
    return found


class LiveReads:
    """Reads one after another; keeps count of how they end.

    Parameters
    ----------
    log_dir
        Of the broker.
    compacted
        Topics in which a later record may replace one.
    watch
        Tells what happened in the directories during a read that failed.

    Attributes
    ----------
    clean, lost
        How many reads of each kind gave what was there, and how many an error of lost data.
    lost_texts
        One such error a kind of it.
    failures
        Everything else: what was asked and what is wrong with the answer.
    longest_seconds
        What the longest read took.
    """

    def __init__(self, log_dir: Path, compacted: frozenset[str], watch: DirectoryWatch) -> None:
        self._log_dir = log_dir
        self._compacted = compacted
        self._watch = watch
        self.clean: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.lost_texts: dict[str, str] = {}
        self.failures: list[str] = []
        self.longest_seconds = 0.0
        self._details: list[str] = []

    def read(self, request: Request) -> None:
        """Read what is asked and judge the outcome."""
        before = {each.name: self._where(each) for each in request.ledgers}
        begun = time.monotonic()
        try:
            answer = within(LONGEST_READ_SECONDS, lambda: request.answer(self._log_dir))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is an outcome
            complaints = self._complaints_about_error(request, error)
        else:
            complaints = self._complaints_about_answer(request, answer, before)
            if not complaints:
                self.clean[request.kind] += 1
        self.longest_seconds = max(self.longest_seconds, time.monotonic() - begun)
        if complaints:
            self.failures.append("\n    ".join([str(request), *complaints]))
            self._details.append(self._directories_since(begun, request))

    def account(self) -> str:
        """Return the numbers for people."""
        lines = [
            f"{sum(self.clean.values())} clean reads {dict(self.clean)}",
            f"{sum(self.lost.values())} ended with an error of lost data {dict(self.lost)}",
            *(f"  {name}, for example: {text}" for name, text in self.lost_texts.items()),
            f"{len(self.failures)} failures; the longest read took {self.longest_seconds:.2f} s",
        ]
        return "\n".join(lines)

    def failures_in_detail(self) -> str:
        """Return all failures, and what happened in the directories during the first of them."""
        detailed = [
            f"{failure}\n    {details}"
            for failure, details in zip(self.failures, self._details, strict=True)
        ]
        listed = detailed[:_MOST_DETAILED_FAILURES]
        return "\n".join(["", *listed, *self.failures[_MOST_DETAILED_FAILURES:]])

    def _complaints_about_error(self, request: Request, error: Exception) -> list[str]:
        name = type(error).__name__
        if not (request.fail_on_data_loss and is_data_loss(error)):
            return [f"{name}: {error}"]
        self.lost[f"{request.kind}: {name}"] += 1
        self.lost_texts.setdefault(name, str(error))
        return []

    def _complaints_about_answer(
        self,
        request: Request,
        answer: pa.Table | int,
        before: Mapping[str, tuple[Mark, int]],
    ) -> list[str]:
        observed = {
            (each.topic, each.partition): self._observed(request, each, *before[each.name])
            for each in request.ledgers
        }
        if isinstance(answer, int):
            (only,) = observed.values()
            return complaints_about_count(only, answer)
        rows = rows_by_partition(answer)
        unasked = [f"rows of {each}, which was not asked for" for each in rows.keys() - observed]
        return unasked + [
            f"{topic}-{partition}: {complaint}"
            for (topic, partition), each in observed.items()
            for complaint in complaints_about_rows(each, rows.get((topic, partition), []))
        ]

    def _observed(
        self, request: Request, ledger: Ledger, before: Mark, log_start_before: int
    ) -> Observed:
        after, log_start_after = self._where(ledger)
        return Observed(
            ledger=ledger,
            before=before,
            after=after,
            log_start_before=log_start_before,
            log_start_after=log_start_after,
            is_compacted=ledger.topic in self._compacted,
            is_committed=request.isolation == "read_committed",
            may_skip_lost=not request.fail_on_data_loss,
            start=request.start,
            end=request.end,
            is_filter=request.is_filter,
            start_timestamp=request.start_timestamp,
        )

    def _where(self, ledger: Ledger) -> tuple[Mark, int]:
        mark = ledger.mark()
        if ledger.topic in self._compacted:
            # Nothing is deleted from its beginning; the first segment may just be being replaced.
            return mark, 0
        return mark, log_start_offset(self._log_dir / ledger.name)

    def _directories_since(self, begun: float, request: Request) -> str:
        ended = time.monotonic()
        time.sleep(_SECONDS_THE_WATCH_MAY_BE_LATE)
        names = {each.name for each in request.ledgers}
        changes = self._watch.changes_since(begun - _SECONDS_BEFORE_A_READ)
        listed = [str(each) for each in changes if each.partition in names][:_MOST_CHANGES]
        span = f"read from {begun:.3f} to {ended:.3f}; in the directories meanwhile:"
        return "\n    ".join([span, *(listed or ["nothing"])])
