"""Build one v2 batch, record by record.

Rules, all of them Kafka's:

* offsets rise strictly, no more than 2^31-1 above the base offset; a gap is allowed;
* a timestamp is `NO_TIMESTAMP` or not negative; the base timestamp is the first record's, or the
  delete horizon where one is set;
* the max timestamp is the highest of the records, or with LOG_APPEND_TIME the append time: the
  records keep their own times on disk and all report that one;
* a control batch holds control records alone, any other batch none;
* a transactional batch needs a producer id, a producer id needs an epoch, and unless it is a
  control batch a base sequence;
* without a record there is no batch: zero bytes.

Source: MemoryRecordsBuilder (Kafka 4.3); KIP-98, KIP-32.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from pylog.model import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    CompressionType,
    ControlRecordType,
    TimestampOffset,
    TimestampType,
)
from pylog.record.batch_header import MAGIC_VALUE_V2, RECORD_BATCH_OVERHEAD, BatchHeader
from pylog.record.batch_writer import (
    MAX_INT32,
    batch_attributes,
    ensure_offset_rises,
    ensure_timestamp,
    write_batch_header,
)
from pylog.record.compressor import Compressor, ensure_level
from pylog.record.control_record import (
    EndTransactionMarker,
    encode_control_record_key,
    encode_end_transaction_value,
)
from pylog.record.record import Record, wrap_int64
from pylog.record.record_encoder import encode_record, size_of_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.record.record_encoder import Bytes, HeaderPair


# What builders of batches have in common, whatever the format: offsets, and one result.
#
# Source: MemoryRecordsBuilder (Kafka 4.3), which is one class for all formats.


class BatchBuilder(ABC):
    """Collects records and gives their bytes as they lie in a ``.log`` file. One thread.

    Parameters
    ----------
    base_offset
        The first record's offset unless it is appended with a higher one.
    compression, level
        Codec, and its level; None is Kafka's default level.
    timestamp_type, log_append_time
        Who stamps the records; the time is written with LOG_APPEND_TIME only.
    compressor
        Shared between the builders of one thread to keep its memory; a new one if None.

    Attributes
    ----------
    record_count
        Records appended so far.

    Raises
    ------
    ValueError
        The codec has no such level.
    """

    _RESULT = "the batch is"

    def __init__(
        self,
        *,
        base_offset: int,
        compression: CompressionType,
        level: int | None,
        timestamp_type: TimestampType,
        log_append_time: int,
        compressor: Compressor | None,
    ) -> None:
        ensure_level(compression, level)
        self.base_offset = base_offset
        self.compression = compression
        self.timestamp_type = timestamp_type
        self.log_append_time = log_append_time
        self.record_count = 0
        self._compressor = compressor or Compressor()
        self._level = level
        self._encoded = bytearray()
        self._last_offset: int | None = None
        self._result: bytes | None = None

    def append(
        self,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Sequence[HeaderPair] = (),
    ) -> None:
        """Add a record at the next offset; otherwise as `append_with_offset`."""
        self.append_with_offset(self.next_offset, timestamp, key, value, headers)

    @abstractmethod
    def append_with_offset(
        self,
        offset: int,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Sequence[HeaderPair] = (),
    ) -> None:
        """Add a record at ``offset``; its bytes are copied.

        Raises
        ------
        ValueError
            The record breaks a rule of the format, or the result is built. The builder is as
            before then.
        """

    def _ensure_appendable(self, offset: int, timestamp: int) -> None:
        """Raise ``ValueError`` unless there may be another record, with these."""
        if self._result is not None:
            msg = f"{self._RESULT} built, no record can be added"
            raise ValueError(msg)
        ensure_offset_rises(offset, self.next_offset, self.base_offset)
        ensure_timestamp(timestamp)

    @property
    def last_offset(self) -> int | None:
        """The last offset so far; None before the first record."""
        return self._last_offset

    @property
    def next_offset(self) -> int:
        """The offset that `append` gives to the next record."""
        return self.base_offset if self._last_offset is None else self._last_offset + 1

    @property
    @abstractmethod
    def max_timestamp(self) -> int:
        """What the header says, or would say now, as the highest timestamp."""

    @property
    @abstractmethod
    def shallow_max_timestamp(self) -> TimestampOffset:
        """The max timestamp and the offset that time indexes hold with it; -1 for none."""

    @property
    @abstractmethod
    def estimated_size_bytes(self) -> int:
        """Bytes of the result: exact without codec and once it is built, else an estimate."""

    def build(self) -> bytes:
        """Return the bytes, none if there is no record; the same bytes when called again.

        Raises
        ------
        ValueError
            The result would be too large for its format, or a field does not fit its width.
        """
        if self._result is None:
            self._result = self._built() if self.record_count else b""
            self._encoded = bytearray()
        return self._result

    @abstractmethod
    def _built(self) -> bytes:
        """Return the bytes of at least one record."""


COMPRESSION_RATIO_MARGIN = 1.05
"""By what an estimate exceeds the expected size (Kafka: COMPRESSION_RATE_ESTIMATION_FACTOR)."""


class RecordBatchBuilder(BatchBuilder):
    """Collects records and gives the bytes of one v2 batch.

    Invariant: `build` gives a batch that a broker accepts as it is, or nothing. One thread.

    Parameters
    ----------
    base_offset
        Of the batch; the first record's offset unless it is appended with a higher one.
    compression, level
        Codec, and its level; None is Kafka's default level.
    timestamp_type, log_append_time
        Who stamps the records; the time is written with LOG_APPEND_TIME only.
    producer_id, producer_epoch, base_sequence
        Of an idempotent or transactional producer.
    is_transactional, is_control_batch
        Flags of the batch.
    partition_leader_epoch
        Of the leader that appends the batch; not covered by the checksum.
    delete_horizon_ms
        When tombstones in the batch may go; None for no horizon.
    size_limit_bytes
        What `has_room_for` and `is_full` compare with; nothing is refused because of it.
    compressor
        Shared between the builders of one thread to keep its memory; a new one if None.

    Raises
    ------
    ValueError
        The arguments break a rule above, or the codec has no such level.
    """

    def __init__(  # noqa: PLR0913 - keyword-only fields of the batch
        self,
        *,
        base_offset: int = 0,
        compression: CompressionType = CompressionType.NONE,
        level: int | None = None,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        log_append_time: int = NO_TIMESTAMP,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        is_control_batch: bool = False,
        partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
        delete_horizon_ms: int | None = None,
        size_limit_bytes: int | None = None,
        compressor: Compressor | None = None,
    ) -> None:
        super().__init__(
            base_offset=base_offset,
            compression=compression,
            level=level,
            timestamp_type=timestamp_type,
            log_append_time=log_append_time,
            compressor=compressor,
        )
        if delete_horizon_ms is not None and delete_horizon_ms < 0:
            msg = f"delete horizon is {delete_horizon_ms}, expected None or no negative time"
            raise ValueError(msg)
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.is_transactional = is_transactional
        self.is_control_batch = is_control_batch
        self.partition_leader_epoch = partition_leader_epoch
        self.delete_horizon_ms = delete_horizon_ms
        self.size_limit_bytes = size_limit_bytes
        self.estimated_compression_ratio = 1.0
        self._base_timestamp = delete_horizon_ms  # or else the first record's, once there is one
        self._highest_timestamp = NO_TIMESTAMP
        self._attributes()  # refuses a type of timestamp that v2 does not have
        self._ensure_producer_state()

    def _ensure_producer_state(self) -> None:
        if self.producer_id == NO_PRODUCER_ID:
            if self.is_transactional:
                msg = "a transactional batch needs a producer id"
                raise ValueError(msg)
            return
        if self.producer_epoch == NO_PRODUCER_EPOCH:
            msg = f"a batch of producer id {self.producer_id} needs a producer epoch"
            raise ValueError(msg)
        if self.base_sequence < 0 and not self.is_control_batch:
            msg = (
                f"a batch of producer id {self.producer_id} needs a base sequence, "
                f"not {self.base_sequence}"
            )
            raise ValueError(msg)

    def append_with_offset(
        self,
        offset: int,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Sequence[HeaderPair] = (),
    ) -> None:
        """Add a record at ``offset``; its bytes are copied.

        Parameters
        ----------
        offset
            Above the last record's, not below the base offset.
        timestamp
            In ms; `NO_TIMESTAMP` for none.
        key, value
            One-dimensional bytes, or None.
        headers
            Pairs of key and value.

        Raises
        ------
        ValueError
            The record breaks a rule of this module, a header key is None, or the batch is built.
            The builder is as before then.
        """
        if self.is_control_batch:
            msg = "a control batch holds control records alone"
            raise ValueError(msg)
        self._append(offset, timestamp, key, value, headers)

    def append_record(self, record: Record) -> None:
        """Add a record that was read, at its own offset: a control record to a control batch.

        Whether the record is a control record is not looked at; whoever copies a batch keeps its
        kind. Errors as in `append_with_offset`.
        """
        self._append(record.offset, record.timestamp, record.key, record.value, record.headers)

    def append_control_record(
        self, timestamp: int, control_type: ControlRecordType, value: Bytes | None
    ) -> None:
        """Add a control record at the next offset.

        Raises
        ------
        ValueError
            The batch is not a control batch, the type is UNKNOWN, or as in `append_with_offset`.
        """
        if not self.is_control_batch:
            msg = "a control record needs a control batch"
            raise ValueError(msg)
        key = encode_control_record_key(control_type)
        self._append(self.next_offset, timestamp, key, value, ())

    def append_end_transaction_marker(self, timestamp: int, marker: EndTransactionMarker) -> None:
        """Add the marker that ends the producer's transaction, at the next offset.

        Raises
        ------
        ValueError
            The batch is not transactional, or as in `append_control_record`.
        """
        if not self.is_transactional:
            msg = "a transaction marker needs a transactional batch"
            raise ValueError(msg)
        value = encode_end_transaction_value(marker)
        self.append_control_record(timestamp, marker.control_type, value)

    def _append(
        self,
        offset: int,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Sequence[HeaderPair],
    ) -> None:
        self._ensure_appendable(offset, timestamp)
        if self.record_count == MAX_INT32:
            msg = f"a batch holds at most {MAX_INT32} records"
            raise ValueError(msg)
        base_timestamp = timestamp if self._base_timestamp is None else self._base_timestamp
        delta = wrap_int64(timestamp - base_timestamp)
        self._encoded += encode_record(delta, offset - self.base_offset, key, value, headers)
        self._base_timestamp = base_timestamp
        self._highest_timestamp = max(self._highest_timestamp, timestamp)
        self._last_offset = offset
        self.record_count += 1

    def override_last_offset(self, offset: int) -> None:
        """Make the batch end at ``offset``, above its last record: what compaction keeps.

        Raises
        ------
        ValueError
            The offset is below the last record's or too far above the base offset, or the batch is
            built.
        """
        if self._result is not None:
            msg = "the batch is built, its last offset cannot change"
            raise ValueError(msg)
        lowest = self.base_offset if self._last_offset is None else self._last_offset
        ensure_offset_rises(offset, lowest, self.base_offset)
        self._last_offset = offset

    @property
    def max_timestamp(self) -> int:
        """What the header says, or would say now: the append time or the highest timestamp."""
        if self.timestamp_type is TimestampType.LOG_APPEND_TIME:
            return self.log_append_time
        return self._highest_timestamp

    @property
    def shallow_max_timestamp(self) -> TimestampOffset:
        """The max timestamp and the batch's last offset, which time indexes hold; -1 for none."""
        last_offset = -1 if self._last_offset is None else self._last_offset
        is_append_time = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        if self.max_timestamp == NO_TIMESTAMP and not is_append_time:
            return TimestampOffset(NO_TIMESTAMP, -1)
        return TimestampOffset(self.max_timestamp, last_offset)

    @property
    def estimated_size_bytes(self) -> int:
        """Bytes of the batch: exact without codec and once it is built, else an estimate.

        The estimate is the uncompressed size times `estimated_compression_ratio`, which may be set
        from earlier batches, and `COMPRESSION_RATIO_MARGIN`.
        """
        if self._result is not None:
            return len(self._result)
        if self.compression is CompressionType.NONE:
            return RECORD_BATCH_OVERHEAD + len(self._encoded)
        ratio = self.estimated_compression_ratio * COMPRESSION_RATIO_MARGIN
        return RECORD_BATCH_OVERHEAD + int(len(self._encoded) * ratio)

    @property
    def is_full(self) -> bool:
        """Whether the size limit is reached; never before the first record."""
        if self._result is not None:
            return True
        if self.size_limit_bytes is None or self.record_count == 0:
            return False
        return self.estimated_size_bytes >= self.size_limit_bytes

    def has_room_for(
        self,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Sequence[HeaderPair] = (),
    ) -> bool:
        """Return whether the record fits below the size limit; the first one always does.

        The compression of this record is not counted on.
        """
        if self.is_full:
            return False
        if self.size_limit_bytes is None or self.record_count == 0:
            return True
        base_timestamp = timestamp if self._base_timestamp is None else self._base_timestamp
        delta = wrap_int64(timestamp - base_timestamp)
        offset_delta = self.next_offset - self.base_offset
        size = size_of_record(delta, offset_delta, key, value, headers)
        return self.estimated_size_bytes + size <= self.size_limit_bytes

    def _attributes(self) -> int:
        return batch_attributes(
            self.compression,
            self.timestamp_type,
            is_transactional=self.is_transactional,
            is_control_batch=self.is_control_batch,
            has_delete_horizon=self.delete_horizon_ms is not None,
        )

    def _built(self) -> bytes:
        payload = self._compressor.compress(
            self.compression, self._encoded, magic=MAGIC_VALUE_V2, level=self._level
        )
        batch = bytearray(RECORD_BATCH_OVERHEAD) + payload
        header = BatchHeader(
            offset=self.base_offset,
            size_bytes=len(batch),
            magic=MAGIC_VALUE_V2,
            crc=0,
            attributes=self._attributes(),
            partition_leader_epoch=self.partition_leader_epoch,
            last_offset_delta=self.next_offset - 1 - self.base_offset,
            base_timestamp=NO_TIMESTAMP if self._base_timestamp is None else self._base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            record_count=self.record_count,
        )
        write_batch_header(batch, header)
        return bytes(batch)
