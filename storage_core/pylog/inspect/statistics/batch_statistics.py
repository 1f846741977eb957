"""What the headers of batches add up to: how many, how large, with which codec, and when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pylog.inspect.header_sums import first_timestamps
from pylog.inspect.statistics.histograms import SizeHistogram, TimeHistogram

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.record.batch_scan import BatchHeaders

    Int64Array = npt.NDArray[np.int64]

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
    """How timestamps run, by the largest one of each batch.

    Attributes
    ----------
    late_batches
        Whose largest timestamp is below that of an earlier batch of the partition.
    latest_by_ms
        How far, at the most.
    future_batches
        Whose largest timestamp is after the moment that statistics are made at.
    max_timestamp
        The largest one; None without one.
    """

    late_batches: int = 0
    latest_by_ms: int = 0
    future_batches: int = 0
    max_timestamp: int | None = None

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
    """What the headers of some batches add up to, of one partition or of a topic.

    Control batches are counted by themselves: ``data``, the histograms, codecs and times are about
    the others.
    """

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
