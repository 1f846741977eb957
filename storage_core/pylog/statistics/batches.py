"""Sums and histograms of batches, and traffic over time in steps that people count in."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pylog.model import NO_TIMESTAMP
from pylog.record.header_sums import first_timestamps

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.record.batch_scan import BatchHeaders

    Int64Array = npt.NDArray[np.int64]
    from collections.abc import Mapping, Sequence


MINUTE_MS = 60_000
_MOST_INTERVALS = 1 << 12
"""Three days of minutes, half a year of hours."""
_COARSER = (60, 24, 28, 16)
"""A minute, an hour, a day, four weeks, 448 days, and then each time 16 times as long."""
_SIZES = 64


class SizeCount(NamedTuple):
    """Batches of ``[start, end)``, and what they hold."""

    start: int
    end: int
    batches: int
    records: int
    size_bytes: int


class SizeHistogram:
    """Batches by some size of theirs, in ranges from one power of two to the next."""

    def __init__(self) -> None:
        self._sums = np.zeros((3, _SIZES), dtype=np.int64)

    def add(self, sizes: Int64Array, records: Int64Array, sizes_bytes: Int64Array) -> None:
        """Add batches."""
        # The exponent of a float is the number of bits: 0 for 0, 1 for 1, 2 for 2 and 3.
        places = np.frexp(sizes.astype(np.float64))[1]
        self._sums[0] += np.bincount(places, minlength=_SIZES)
        for row, values in ((1, records), (2, sizes_bytes)):
            # In floats, which are exact: a batch holds less than 2^31 of either.
            counted = np.bincount(places, values, minlength=_SIZES)
            self._sums[row] += counted.astype(np.int64)

    def merge(self, other: SizeHistogram) -> None:
        """Add all that another one has."""
        self._sums += other._sums

    def __iter__(self) -> Iterator[SizeCount]:
        for place in np.flatnonzero(self._sums[0]).tolist():
            start = 1 << (place - 1) if place else 0
            yield SizeCount(start, 1 << place, *self._sums[:, place].tolist())


class TimeCount(NamedTuple):
    """What has the timestamps of one interval, by the headers of its batches."""

    start_ms: int  # where it begins
    # All that is counted here
    batches: int
    records: int
    size_bytes: int
    # Of it, what is in batches that began in an earlier interval: these are counted where their
    # largest timestamp is, and some of their records belong before it
    spanning_records: int
    spanning_bytes: int


class TimeHistogram:
    """Batches by the minute, or a longer interval, of their largest timestamp."""

    def __init__(self) -> None:
        self.interval_ms = MINUTE_MS  # how long they are
        self._levels = 0
        self._places = np.empty(0, dtype=np.int64)
        self._sums = np.empty((5, 0), dtype=np.int64)
        self._untimed = np.zeros(5, dtype=np.int64)

    @property
    def untimed(self) -> TimeCount:
        """The counts of batches without a timestamp."""
        return TimeCount(NO_TIMESTAMP, *self._untimed.tolist())

    def add(
        self,
        first_timestamps: Int64Array,
        max_timestamps: Int64Array,
        records: Int64Array,
        sizes_bytes: Int64Array,
    ) -> None:
        """Add batches: the timestamps of their first records, the largest, and what they hold."""
        sums = np.stack([np.ones_like(records), records, sizes_bytes, records, sizes_bytes])
        places = max_timestamps // self.interval_ms
        sums[3:] *= first_timestamps // self.interval_ms < places
        is_timed = max_timestamps >= 0
        self._untimed += sums[:, ~is_timed].sum(axis=1)
        self._add(places[is_timed], sums[:, is_timed])

    def merge(self, other: TimeHistogram) -> None:
        """Add all that another one has, whose intervals may be others."""
        self._untimed += other._untimed
        while self._levels < other._levels:
            self._coarsen()
        places = other._places * other.interval_ms // self.interval_ms
        self._add(places, other._sums)

    def __iter__(self) -> Iterator[TimeCount]:
        for place, sums in zip(self._places.tolist(), self._sums.T.tolist(), strict=True):
            yield TimeCount(place * self.interval_ms, *sums)

    def _add(self, places: Int64Array, sums: Int64Array) -> None:
        if places.size:
            # Batches that follow each other are mostly of one interval.
            starts = np.flatnonzero(np.concatenate([[True], places[1:] != places[:-1]]))
            places, sums = places[starts], np.add.reduceat(sums, starts, axis=1)
        places = np.concatenate([self._places, places])
        sums = np.concatenate([self._sums, sums], axis=1)
        self._places, inverse = np.unique(places, return_inverse=True)
        self._sums = np.zeros((5, self._places.size), dtype=np.int64)
        for total, each in zip(self._sums, sums, strict=True):
            np.add.at(total, inverse, each)
        if self._places.size > _MOST_INTERVALS:
            self._coarsen()

    def _coarsen(self) -> None:
        factor = _COARSER[min(self._levels, len(_COARSER) - 1)]
        self._levels += 1
        self.interval_ms *= factor
        places, sums = self._places // factor, self._sums
        self._places, self._sums = self._places[:0], self._sums[:, :0]
        self._add(places, sums)


_CODECS = 8


@dataclass(slots=True)
class BatchSums:
    """Batches, and what they hold; of compressed v0/v1 wrappers the records are not known."""

    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    uncounted_batches: int = 0

    def add(self, counts: Int64Array, sizes_bytes: Int64Array) -> None:
        """Add batches by the record counts in their headers."""
        self.batches += counts.size
        self.records += int(np.maximum(counts, 0).sum())
        self.size_bytes += int(sizes_bytes.sum())
        self.uncounted_batches += int((counts < 0).sum())

    def merge(self, other: BatchSums) -> None:
        """Add all that another one has."""
        self.batches += other.batches
        self.records += other.records
        self.size_bytes += other.size_bytes
        self.uncounted_batches += other.uncounted_batches


@dataclass(slots=True)
class TimestampOrder:
    """How timestamps run, by the largest one of each batch."""

    # whose largest timestamp is below that of an earlier batch of the partition
    late_batches: int = 0
    latest_by_ms: int = 0  # how far, at the most
    # whose largest timestamp is after the moment that statistics are made at
    future_batches: int = 0
    max_timestamp: int | None = None  # the largest one; None without one

    def add(self, timestamps: Int64Array, now_ms: int) -> None:
        """Add batches that come after those before."""
        timestamps = timestamps[timestamps >= 0]
        if not timestamps.size:
            return
        before = timestamps[0] if self.max_timestamp is None else self.max_timestamp
        highest = np.maximum.accumulate(np.concatenate([[before], timestamps]))
        lateness = highest[:-1] - timestamps
        self.late_batches += int((lateness > 0).sum())
        self.latest_by_ms = max(self.latest_by_ms, int(lateness.max()))
        self.future_batches += int((timestamps > now_ms).sum())
        self.max_timestamp = int(highest[-1])

    def merge(self, other: TimestampOrder) -> None:
        """Add what another partition has: between partitions there is no order."""
        self.late_batches += other.late_batches
        self.latest_by_ms = max(self.latest_by_ms, other.latest_by_ms)
        self.future_batches += other.future_batches
        if other.max_timestamp is not None:
            known = self.max_timestamp
            self.max_timestamp = (
                other.max_timestamp if known is None else max(known, other.max_timestamp)
            )


@dataclass(slots=True)
class BatchStatistics:
    """What the headers of some batches add up to, of one partition or of a topic."""

    data: BatchSums = field(default_factory=BatchSums)
    control: BatchSums = field(default_factory=BatchSums)
    transactional: BatchSums = field(default_factory=BatchSums)
    by_codec: dict[int, BatchSums] = field(default_factory=dict)
    by_size: SizeHistogram = field(default_factory=SizeHistogram)
    by_records: SizeHistogram = field(default_factory=SizeHistogram)
    times: TimeHistogram = field(default_factory=TimeHistogram)
    order: TimestampOrder = field(default_factory=TimestampOrder)

    def add(self, headers: BatchHeaders, now_ms: int) -> None:
        """Add batches that follow those before."""
        is_control = headers.is_control
        if is_control.any():
            markers = headers.select(is_control)
            self.control.add(markers.record_counts, markers.sizes_bytes)
            headers = headers.select(~is_control)
        counts, sizes = headers.record_counts, headers.sizes_bytes
        self.data.add(counts, sizes)
        if headers.is_transactional.any():
            chosen = headers.is_transactional
            self.transactional.add(counts[chosen], sizes[chosen])
        codec_ids = headers.codec_ids
        for codec_id in np.flatnonzero(np.bincount(codec_ids, minlength=_CODECS)).tolist():
            chosen = codec_ids == codec_id
            sums = self.by_codec.setdefault(codec_id, BatchSums())
            sums.add(counts[chosen], sizes[chosen])
        known = np.maximum(counts, 0)
        self.by_size.add(sizes, known, sizes)
        is_counted = counts >= 0
        self.by_records.add(counts[is_counted], counts[is_counted], sizes[is_counted])
        self.times.add(first_timestamps(headers), headers.max_timestamps, known, sizes)
        self.order.add(headers.max_timestamps, now_ms)

    def merge(self, other: BatchStatistics) -> None:
        """Add all that another partition has."""
        for mine, theirs in (
            (self.data, other.data),
            (self.control, other.control),
            (self.transactional, other.transactional),
        ):
            mine.merge(theirs)
        for codec_id, sums in other.by_codec.items():
            self.by_codec.setdefault(codec_id, BatchSums()).merge(sums)
        self.by_size.merge(other.by_size)
        self.by_records.merge(other.by_records)
        self.times.merge(other.times)
        self.order.merge(other.order)


_MINUTE_MS = 60_000
_HOUR = 60  # in minutes
_DAY = 24 * _HOUR
_STEPS_MS = tuple(
    _MINUTE_MS * minutes
    for minutes in (
        *(1, 2, 5, 10, 15, 30),
        *(_HOUR * hours for hours in (1, 2, 3, 6, 12)),
        *(_DAY * days for days in (1, 2, 7, 14, 28, 91, 364)),
    )
)
_MOST_STRAYS = 0.1  # of all bytes
_MOST_CUTS = 8
_LEAST_TIMES = 4


class TimeSteps(NamedTuple):
    """What came in each of some steps of time, one after the other.

    Attributes
    ----------
    start_ms
        Where the first step begins; it is a multiple of the length.
    step_ms
        The length of each.
    records, size_bytes
        By step: what has its largest timestamp there, batch by batch.
    spanning_bytes
        What of it is in batches that began in an earlier interval of the table.
    """

    start_ms: int
    step_ms: int
    records: list[int]
    size_bytes: list[int]
    spanning_bytes: list[int]

    @property
    def end_ms(self) -> int:
        """The end of the last step, in ms since the epoch."""
        return self.start_ms + self.step_ms * len(self.records)

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], most: int) -> TimeSteps | None:
        """Return the steps of some rows of a document's "times"; None if no row has a time.

        Parameters
        ----------
        rows
            Of one topic, or of several.
        most
            How many steps there may be.
        """
        timed = [each for each in rows if each["start"] is not None]
        if not timed:
            return None
        first = min(each["start"] for each in timed)
        last = max(each["start"] for each in timed)
        starts = sorted({each["start"] for each in timed})
        step = _step(first, last, max(each["intervalMs"] for each in timed), most, _pace(starts))
        begin = first // step
        count = last // step - begin + 1
        found = cls(begin * step, step, [0] * count, [0] * count, [0] * count)
        for each in timed:
            place = each["start"] // step - begin
            found.records[place] += each["records"]
            found.size_bytes[place] += each["bytes"]
            found.spanning_bytes[place] += each["spanningBytes"]
        return found


def _pace(starts: Sequence[int]) -> int:
    """Return how far apart times usually are: shorter steps would mostly be empty."""
    if len(starts) < _LEAST_TIMES:
        return 0
    return int(median(after - before for before, after in pairwise(starts)))


def _step(first: int, last: int, interval_ms: int, most: int, pace: int) -> int:
    """Return a length that people count in, if one of those is long enough."""
    for step in _STEPS_MS:
        fits = step % interval_ms == 0 and last // step - first // step < most
        if fits and (step >= pace or step == _STEPS_MS[-1]):
            return step
    return interval_ms * (1 + (last - first) // interval_ms // max(1, most - 1))


def without_strays(
    rows: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Split off what is far from all the rest: a wrong clock would draw years without a record.

    Far is what lies beyond a gap that is longer than everything else, and has less than a tenth of
    all bytes. Rows without a time are neither.
    """
    timed = sorted((each for each in rows if each["start"] is not None), key=lambda x: x["start"])
    strays: list[Mapping[str, Any]] = []
    least = _MOST_STRAYS * sum(each["bytes"] for each in timed)
    for _ in range(_MOST_CUTS):
        gaps = [after["start"] - before["start"] for before, after in pairwise(timed)]
        if not gaps or 2 * max(gaps) <= sum(gaps) + timed[0]["intervalMs"]:
            break
        place = gaps.index(max(gaps)) + 1
        sides = (timed[:place], timed[place:])
        few, many = sorted(sides, key=lambda side: sum(each["bytes"] for each in side))
        if sum(each["bytes"] for each in [*strays, *few]) > least:
            break
        timed, strays = many, [*strays, *few]
    return timed, strays
