"""One whole batch of any format, in plain Python: what the formats mean, readable.

This is the reference that the Numba kernels are checked against, and what is used where speed
does not matter: offset look-ups, control batches, tools. It is about thirty times slower than
`pylog.columnar.decode`.

Record timestamps of v2 are ``base timestamp + delta``, also where the base timestamp holds a
delete horizon (the deltas were rewritten against it), except in LogAppendTime batches, where every
record reports the batch's max timestamp. Offsets and sequences are base plus delta; compaction
removes records and keeps the header, so a batch may have fewer records than its offsets span.

Source: DefaultRecordBatch (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.model import NO_SEQUENCE, ControlRecordType, TimestampType
from pylog.native.checksum import crc32c, wrong_checksum
from pylog.record import legacy_batch
from pylog.record.batch_header import (
    ATTRIBUTES_OFFSET,
    MAGIC_VALUE_V2,
    RECORDS_OFFSET,
    BatchHeader,
    parse_batch_header,
)
from pylog.record.byte_buffer import over_limit
from pylog.record.compression import Decompressor
from pylog.record.control_record import parse_control_record_type
from pylog.record.record import Record, decode_record, wrap_int64
from pylog.text.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOWEST_OFFSET = -(2**63)
_MAX_CONTROL_BYTES = 1 << 20
"""A broker's control records have some hundred bytes at the most."""


class RecordBatch:
    """A read-only view of one whole batch; nothing is copied until records are asked for."""

    __slots__ = ("_data", "_decompressor", "header")

    def __init__(
        self, data: bytes | bytearray | memoryview, decompressor: Decompressor | None = None
    ) -> None:
        view = memoryview(data).toreadonly()
        self.header: BatchHeader = parse_batch_header(view)
        if len(view) < self.header.size_bytes:
            reason = f"batch of {self.header.size_bytes} bytes is cut short after {len(view)}"
            raise CorruptRecordError(reason)
        self._data = view[: self.header.size_bytes]
        self._decompressor = decompressor or Decompressor()

    def computed_crc(self) -> int:
        """Return the checksum that the batch should store."""
        if self.header.magic < MAGIC_VALUE_V2:
            return legacy_batch.computed_crc(self._data)
        return crc32c(self._data[ATTRIBUTES_OFFSET:])

    def ensure_valid(self) -> None:
        """Raise `CorruptRecordError` unless the stored checksum is the computed one."""
        computed = self.computed_crc()
        if computed != self.header.crc:
            reason = wrong_checksum("batch", self.header.crc, computed)
            raise CorruptRecordError(reason)

    def records(self) -> Iterator[Record]:
        """Yield every record, control records included, in the order they are stored."""
        header = self.header
        lowest = _LOWEST_OFFSET if header.base_offset is None else header.base_offset
        for record in self.unassigned_records():
            if not lowest <= record.offset <= header.last_offset:
                expected = f"{max(0, lowest)} to {header.last_offset}"
                reason = f"record has offset {record.offset}, expected {expected}"
                raise InvalidRecordError(reason)
            lowest = record.offset + 1
            yield record

    def unassigned_records(self) -> Iterator[Record]:
        """Yield every record of a batch that a producer sent, whose offsets nobody has assigned.

        They mean nothing before the log assigns them, so that they are not looked at; errors
        otherwise as of `records`.
        """
        if self.header.magic < MAGIC_VALUE_V2:
            return legacy_batch.iter_legacy_records(self._data, self._decompressor)
        return self._records_v2()

    def _records_v2(self) -> Iterator[Record]:
        header = self.header
        if header.record_count < 0:
            reason = f"record count is {header.record_count}"
            raise InvalidRecordError(reason)
        if header.record_count == 0 and not header.is_compressed:
            return  # as Kafka, which looks at what follows where there is a stream to open
        payload = self._data[RECORDS_OFFSET:]
        codec = header.compression
        if header.is_compressed:
            self._decompressor.buffer.clear()
            start, end = self._decompressor.append(codec, payload, header.magic)
            payload = self._decompressor.buffer.view(start, end)
        yield from self.records_in(payload)

    def records_in(self, payload: memoryview) -> Iterator[Record]:
        """Yield the records of a v2 batch whose decompressed records are ``payload``."""
        header = self.header
        position = 0
        for _ in range(header.record_count):
            deltas, position = decode_record(payload, position, len(payload))
            timestamp = wrap_int64(header.base_timestamp + deltas.timestamp_delta)
            if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
                timestamp = header.max_timestamp
            yield Record(
                header.offset + deltas.offset_delta,
                timestamp,
                header.timestamp_type,
                deltas.key,
                deltas.value,
                deltas.headers,
                _sequence(header.base_sequence, deltas.offset_delta),
            )
        if position != len(payload):
            reason = (
                f"{counted(len(payload) - position, 'byte')} left after the batch's "
                f"{counted(header.record_count, 'record')}"
            )
            raise InvalidRecordError(reason)

    def control_record(self) -> Record | None:
        """Return the first record of a control batch; None for an empty or data batch."""
        if not self.header.is_control_batch:
            return None
        size = self.header.size_bytes
        if size > _MAX_CONTROL_BYTES:
            raise InvalidRecordError(
                over_limit(f"control batch has {size} bytes", _MAX_CONTROL_BYTES, "")
            )
        bounded = RecordBatch(self._data, Decompressor(_MAX_CONTROL_BYTES, ""))
        return next(iter(bounded.unassigned_records()), None)

    def control_type(self) -> ControlRecordType | None:
        """Return the type of a control batch's first record; None for an empty or data batch."""
        record = self.control_record()
        return None if record is None else parse_control_record_type(record.key)


def _sequence(base_sequence: int, offset_delta: int) -> int:
    """Sequences wrap from 2^31-1 to 0."""
    if base_sequence < 0:
        return NO_SEQUENCE
    return (base_sequence + offset_delta) & 0x7FFFFFFF
