"""What an append consists of: its batches, looked at one by one before anything is written.

Source: LogAppendInfo, UnifiedLog.analyzeAndValidateRecords (Kafka 4.3).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    OffsetsOutOfOrderError,
)
from pylog.log_file.batch_walk import PositionedHeader
from pylog.model import NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP, AppendOrigin, CompressionType
from pylog.native.checksum import crc32c, wrong_checksum
from pylog.record.batch_header import (
    ATTRIBUTES_OFFSET,
    HEADER_SIZE_UP_TO_MAGIC,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    parse_batch_header,
    peek_entry_size,
)
from pylog.record.record_batch import RecordBatch
from pylog.validation.record_rules import size_rules

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pylog.config import LogConfig
    from pylog.record.batch_header import BatchHeader

UNKNOWN_OFFSET = -1


@dataclass(slots=True, kw_only=True)
class LogAppendInfo:
    """Outcome of an append.

    Attributes
    ----------
    first_offset
        Of the first record; `UNKNOWN_OFFSET` for v0/v1 messages appended as follower, and for no
        records.
    last_offset
        Of the last record.
    lowest_offset
        Of the first record where the append keeps its offsets, also of a v0/v1 wrapper.
    last_leader_epoch
        Of the last v2 batch, as it was handed in.
    max_timestamp, offset_of_max_timestamp
        Largest timestamp, ms, and the last offset of the first batch that carries it.
    log_append_time
        When a LogAppendTime topic stamped the records, else `NO_TIMESTAMP`.
    log_start_offset
        Of the log, when the records were appended.
    source_compression
        Codec of the last compressed batch.
    valid_bytes
        Length of the whole batches.
    batch_count
        How many there are.
    is_duplicate
        The batch was appended before; nothing was written, and the offsets are those of then.
    """

    first_offset: int = UNKNOWN_OFFSET
    last_offset: int = UNKNOWN_OFFSET
    last_leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    max_timestamp: int = NO_TIMESTAMP
    offset_of_max_timestamp: int = UNKNOWN_OFFSET
    log_append_time: int = NO_TIMESTAMP
    log_start_offset: int = 0
    source_compression: CompressionType = CompressionType.NONE
    valid_bytes: int = 0
    batch_count: int = 0
    lowest_offset: int = UNKNOWN_OFFSET
    is_duplicate: bool = False

    @property
    def record_count(self) -> int:
        """Offsets that the append took; 0 where the first one is not known."""
        if self.first_offset < 0 or self.last_offset < 0:
            return 0
        return self.last_offset - self.first_offset + 1


class AppendedBatches(NamedTuple):
    """Outcome of appending many batches, a row a batch; what `LogAppendInfo` says of one.

    Attributes
    ----------
    first_offsets, last_offsets
        int64, of the first and the last record of each batch.
    is_duplicate
        bool; of a batch that was appended before the offsets are those of then.
    valid_bytes
        Length of the whole batches.
    """

    first_offsets: npt.NDArray[np.int64]
    last_offsets: npt.NDArray[np.int64]
    is_duplicate: npt.NDArray[np.bool_]
    valid_bytes: int


def batches_of(records: memoryview) -> list[PositionedHeader]:
    """Return the headers of the whole batches in ``records``, without one cut short."""
    batches = []
    position = 0
    while len(records) - position >= HEADER_SIZE_UP_TO_MAGIC:
        if position + peek_entry_size(records, position) > len(records):
            break
        header = parse_batch_header(records, position)
        batches.append(PositionedHeader(position, header))
        position += header.size_bytes
    return batches


def ensure_valid(records: memoryview, batch: PositionedHeader) -> None:
    """Raise `CorruptRecordError` unless a batch's stored checksum is the computed one."""
    header = batch.header
    if header.magic == MAGIC_VALUE_V2:
        computed = crc32c(records[batch.position + ATTRIBUTES_OFFSET : batch.end_position])
    else:
        computed = zlib.crc32(records[batch.position + MAGIC_OFFSET : batch.end_position])
    if computed != header.crc:
        what = f"record batch with last offset {header.last_offset}:"
        reason = wrong_checksum(what, header.crc, computed)
        raise CorruptRecordError(reason, position=batch.position)


def analyze_records(
    records: memoryview,
    config: LogConfig,
    topic_partition: str,
    origin: AppendOrigin,
    *,
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> tuple[LogAppendInfo, list[PositionedHeader]]:
    """Return what an append consists of, once every batch has been checked."""
    info = LogAppendInfo()
    batches: list[PositionedHeader] = []
    keeps_offsets = origin in (AppendOrigin.REPLICATION, AppendOrigin.RAFT_LEADER)
    for batch in batches_of(records):
        header = batch.header
        if (
            origin is AppendOrigin.REPLICATION
            and leader_epoch != NO_PARTITION_LEADER_EPOCH
            and header.partition_leader_epoch > leader_epoch
        ):
            break
        _check_batch(batch, records, config, topic_partition, origin, leader_epoch)
        if keeps_offsets:
            first_offset = _first_offset(batch, records)
            _ensure_increases(first_offset, batch, info.last_offset, topic_partition)
            if not batches:
                info.lowest_offset = first_offset
        _add_batch(info, header, is_first=not batches)
        batches.append(batch)
        info.valid_bytes = batch.end_position
    info.batch_count = len(batches)
    return info, batches


def _first_offset(batch: PositionedHeader, records: memoryview) -> int:
    base_offset = batch.header.base_offset
    if base_offset is not None:
        return base_offset
    wrapper = RecordBatch(records[batch.position : batch.end_position])
    for record in wrapper.records():
        return record.offset
    reason = f"compressed message with offset {batch.header.offset} holds no records"
    raise InvalidRecordError(reason, position=batch.position)


def _ensure_increases(
    first_offset: int, batch: PositionedHeader, previous_offset: int, topic_partition: str
) -> None:
    # Differs from Kafka, which compares last offsets alone. It takes batches that overlap, and one
    # whose last offset is below its first, and serves some offsets twice, others never.
    last_offset = batch.header.last_offset
    if not previous_offset < first_offset <= last_offset:
        reason = (
            f"batch at byte {batch.position} of the records to append holds offsets {first_offset} "
            f"to {last_offset}, the one before it ends at {previous_offset}: offsets must increase"
        )
        raise OffsetsOutOfOrderError(reason, topic_partition)


def _add_batch(info: LogAppendInfo, header: BatchHeader, *, is_first: bool) -> None:
    if is_first and header.magic == MAGIC_VALUE_V2:
        info.first_offset = header.offset
    info.last_offset = header.last_offset
    info.last_leader_epoch = header.partition_leader_epoch
    if header.max_timestamp > info.max_timestamp:
        info.max_timestamp = header.max_timestamp
        info.offset_of_max_timestamp = header.last_offset
    if header.is_compressed:
        info.source_compression = header.compression


def _check_batch(
    batch: PositionedHeader,
    records: memoryview,
    config: LogConfig,
    topic_partition: str,
    origin: AppendOrigin,
    leader_epoch: int,
) -> None:
    header = batch.header
    if origin is AppendOrigin.CLIENT and header.magic == MAGIC_VALUE_V2 and header.offset != 0:
        reason = (
            f"the base offset of a batch from a client is {header.offset}, expected 0 "
            f"(partition {topic_partition})"
        )
        raise InvalidRecordError(reason, position=batch.position)
    if origin is AppendOrigin.RAFT_LEADER and header.partition_leader_epoch != leader_epoch:
        reason = (
            f"batch has leader epoch {header.partition_leader_epoch}, expected {leader_epoch} "
            f"(partition {topic_partition})"
        )
        raise InvalidRecordError(reason, position=batch.position)
    if origin is not AppendOrigin.REPLICATION:
        ensure_fits_message_size(header.size_bytes, config, topic_partition)
    ensure_valid(records, batch)


def ensure_fits_message_size(size_bytes: int, config: LogConfig, topic_partition: str) -> None:
    """Raise `RecordTooLargeError` if a batch is larger than ``max.message.bytes``."""
    rule, _ = size_rules(config)
    if size_bytes > rule.most_bytes:
        reason = f"record batch has {size_bytes} bytes, {rule.name} is {rule.most_bytes}"
        raise rule.error(reason, topic_partition)
