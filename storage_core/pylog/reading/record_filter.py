"""Which records of a range are wanted: the predicates that a reader evaluates by itself.

Exact: what passes is what the same predicate keeps of a full scan. Whole partitions and offset
ranges are left out when the read is planned. Timestamps are compared on the batch headers first,
which tell the latest of a batch, then on the decoded records; keys on the decoded records. Only
batches with a record that passes have their values copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pylog.columnar.arrow_buffers import bytes_array
from pylog.record.batch_layout import MAGIC_VALUE_V2

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.model import TopicPartition
    from pylog.record.batch_scan import BatchHeaders

    BoolArray = npt.NDArray[np.bool_]

_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """A conjunction of predicates; None stands for no restriction.

    Attributes
    ----------
    topics, partitions
        Names and numbers.
    min_offset, max_offset
        Both inclusive.
    min_timestamp, max_timestamp
        Milliseconds, both inclusive. A record without a timestamp has -1.
    keys
        The record's key is one of these; a record without a key never is.
    timestamp_disorder
        Milliseconds by which a record may be earlier than one before it, as the user vouches: then
        reading ends once no record can be early enough any more. None for no such bound.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    min_offset: int | None = None
    max_offset: int | None = None
    min_timestamp: int | None = None
    max_timestamp: int | None = None
    keys: frozenset[bytes] | None = None
    timestamp_disorder: int | None = None

    def is_past(self, headers: BatchHeaders) -> bool:
        """Whether nothing behind these batches can pass."""
        if self.max_timestamp is None or self.timestamp_disorder is None:
            return False
        return int(headers.max_timestamps.max()) > self.max_timestamp + self.timestamp_disorder

    @property
    def needs_records(self) -> bool:
        """Whether it takes records, not only places, to decide."""
        return (self.min_timestamp, self.max_timestamp, self.keys) != (None, None, None)

    @property
    def is_about_records(self) -> bool:
        """Whether a row without offset, timestamp and key cannot pass."""
        return self.needs_records or (self.min_offset, self.max_offset) != (None, None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that `mask` looks at."""
        names = []
        if (self.min_timestamp, self.max_timestamp) != (None, None):
            names.append("timestamp")
        if self.keys is not None:
            names.append("key")
        return tuple(names)

    def covers(self, topic_partition: TopicPartition) -> bool:
        """Whether records of a partition can pass."""
        return (self.topics is None or topic_partition.topic in self.topics) and (
            self.partitions is None or topic_partition.partition in self.partitions
        )

    def clip(self, start_offset: int, end_offset: int) -> tuple[int, int]:
        """Return the part of ``[start, end)`` whose records can pass; empty if none."""
        if self.min_offset is not None:
            start_offset = max(start_offset, self.min_offset)
        if self.max_offset is not None:
            end_offset = min(end_offset, self.max_offset + 1)
        return start_offset, max(start_offset, end_offset)

    def candidates(self, headers: BatchHeaders) -> BoolArray:
        """Mask the batches that can hold a record that passes, as far as headers tell."""
        latest = headers.max_timestamps
        mask: BoolArray = latest >= (_LOWEST if self.min_timestamp is None else self.min_timestamp)
        if len(headers) and not headers.traits.all_v2:
            # A v0 wrapper has no timestamp, but the messages in it may be of v1.
            mask |= (headers.magics == 0) & (headers.codec_ids != 0)
        if self.max_timestamp is not None:
            # Every record of such a batch has the batch's timestamp.
            too_late = headers.is_append_time & (latest > self.max_timestamp)
            if len(headers) and not headers.traits.all_v2:
                # But messages of v0, which cleaners of old left in wrappers of v1, have none.
                too_late &= (headers.magics == MAGIC_VALUE_V2) | (headers.codec_ids == 0)
            mask &= ~too_late
        return mask

    def mask(self, batch: pa.RecordBatch) -> BoolArray:
        """Mask the rows that pass; `columns` are there, the timestamp in any unit."""
        passes = np.ones(batch.num_rows, dtype=np.bool_)
        if "timestamp" in self.columns:
            column = batch.column("timestamp")
            scale = 1000 if column.type.unit == "us" else 1
            stamps = np.frombuffer(column.buffers()[1], np.int64)
            stamps = stamps[column.offset : column.offset + len(column)]
            if self.min_timestamp is not None:
                passes &= stamps >= min(_HIGHEST, self.min_timestamp * scale)
            if self.max_timestamp is not None:
                passes &= stamps <= min(_HIGHEST, self.max_timestamp * scale)
        if self.keys is not None:
            wanted = bytes_array(sorted(self.keys))
            found = pc.is_in(batch.column("key"), value_set=wanted)
            passes &= _bits(found, batch.num_rows)
        return passes


def _bits(values: pa.BooleanArray, rows: int) -> BoolArray:
    """Return a boolean array without nulls as NumPy has it."""
    bits = np.frombuffer(values.buffers()[1], np.uint8)
    unpacked = np.unpackbits(bits, bitorder="little")[values.offset : values.offset + rows]
    return unpacked.astype(np.bool_)
