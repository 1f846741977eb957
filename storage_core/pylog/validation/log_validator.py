"""What a leader does with records before it appends them: checks, offsets, timestamps, codec.

Outcomes, by what comes in:

* v2, and its codec is the topic's (or the topic takes the producer's): the header is changed in
  place, the records stay as they are. The levels of codecs do not count.
* anything else (another codec, v0/v1, offsets inside a compressed set that are not 0, 1, 2 …):
  all records are rewritten into one v2 batch with the producer's id, epoch and sequence.

Control batches are never compressed. One wrong record refuses the whole batch.

Differs from Kafka: a batch that decompresses to more than 256 MiB is refused. A broker decompresses
as a stream and has no limit on a batch (but, since 4.4, one on each record of a compressed batch,
``max.decompressed.message.bytes``, which holds here, too); here a batch is decompressed as a whole,
and by default readers refuse one that is larger.

Source: LogValidator (Kafka 4.3; KIP-32, KIP-98, KIP-390).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pylog.errors import InvalidRecordError, InvalidTimestampError, RecordValidationError
from pylog.model import NO_TIMESTAMP, AppendOrigin, CompressionType, TimestampType
from pylog.record.batch_header import MAGIC_VALUE_V2
from pylog.record.batch_writer import (
    set_last_offset,
    set_max_timestamp,
    set_partition_leader_epoch,
)
from pylog.record.byte_buffer import SEND_LESS
from pylog.record.compression import Decompressor
from pylog.record.legacy_batch import wrapped_stream
from pylog.record.record_batch import RecordBatch
from pylog.record.record_batch_builder import RecordBatchBuilder
from pylog.text.words import counted
from pylog.validation.log_append_info import batches_of
from pylog.validation.record_rules import TimestampRange
from pylog.validation.record_summary import RecordSummary, summarize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.config import LogConfig
    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.record.batch_header import BatchHeader


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """Records as they are to be appended."""

    records: memoryview
    batches: list[PositionedHeader]
    next_offset: int
    max_timestamp: int
    message_size_maybe_changed: bool


class LogValidator:
    """Validates one append and assigns offsets; made for one append."""

    def __init__(
        self,
        topic_partition: str,
        config: LogConfig,
        origin: AppendOrigin,
        *,
        now_ms: int,
        leader_epoch: int,
        decompressor: Decompressor | None = None,
    ) -> None:
        self._topic_partition = topic_partition
        self._config = config
        self._origin = origin
        self._now_ms = now_ms
        self._timestamps = TimestampRange.at(now_ms, config)
        self._leader_epoch = leader_epoch
        self._is_append_time = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        self._decompressor = decompressor or Decompressor(advice=SEND_LESS)

    def validate_and_assign_offsets(
        self, records: memoryview, batches: Sequence[PositionedHeader], first_offset: int
    ) -> ValidationResult:
        """Return the records with offsets from ``first_offset`` on."""
        if not batches:
            msg = "there is no record batch"
            raise self._invalid(msg)
        self._check_batches(batches)
        control = batches[0].header.is_control_batch
        summaries = [self._check_records(records, batch) for batch in batches]
        if self._stays(batches, summaries, is_control=control):
            return self._in_place(records, batches, summaries, first_offset)
        return self._rebuilt(records, batches, first_offset)

    def _check_batches(self, batches: Sequence[PositionedHeader]) -> None:
        first = batches[0].header
        is_single = first.magic == MAGIC_VALUE_V2 or any(
            batch.header.is_compressed for batch in batches
        )
        if is_single and len(batches) > 1:
            msg = f"{len(batches)} batches in one append, of v2 or compressed ones only 1 may be"
            raise self._invalid(msg)
        for before, after in pairwise(batches):
            if before.header.magic != after.header.magic:
                msg = f"batches of formats v{before.header.magic} and v{after.header.magic}"
                raise self._invalid(msg)
        if first.magic == MAGIC_VALUE_V2 and self._origin is AppendOrigin.CLIENT:
            self._check_client_batch(first)

    def _check_client_batch(self, header: BatchHeader) -> None:
        span = header.last_offset_delta + 1
        if span <= 0:
            msg = f"batch has offsets {header.offset} to {header.last_offset}"
            raise self._invalid(msg)
        if header.record_count <= 0:
            msg = f"batch counts {counted(header.record_count, 'record')}"
            raise self._invalid(msg)
        if header.record_count != span:
            records, offsets = counted(header.record_count, "record"), counted(span, "offset")
            msg = f"batch counts {records} and spans {offsets}"
            raise self._invalid(msg)
        if header.is_control_batch:
            msg = "clients may not write control batches"
            raise self._invalid(msg)
        if header.producer_id >= 0 and header.base_sequence < 0:
            msg = (
                f"batch of producer id {header.producer_id} has base sequence "
                f"{header.base_sequence}"
            )
            raise self._invalid(msg)

    def _invalid(self, reason: str) -> InvalidRecordError:
        return InvalidRecordError(f"{reason} (partition {self._topic_partition})")

    # ---- records

    def _check_records(self, records: memoryview, batch: PositionedHeader) -> RecordSummary:
        data = records[batch.position : batch.end_position]
        limit = self._config.max_decompressed_message_bytes
        summary = summarize(data, batch.header, self._decompressor, limit)
        inner_magics = self._inner_magics(data, batch.header)
        is_wrong = (
            (self._config.is_compact and summary.null_keys > 0)
            or not self._timestamps_pass(batch.header, summary)
            or any(magic != batch.header.magic for magic in inner_magics)
        )
        if is_wrong and not batch.header.is_control_batch:
            self._refuse_records(data, batch.header, inner_magics)
        return summary

    def _inner_magics(self, batch: memoryview, header: BatchHeader) -> list[int]:
        """Return the formats of the messages in a v0 or v1 wrapper; empty for anything else."""
        if header.magic >= MAGIC_VALUE_V2 or not header.is_compressed:
            return []
        self._decompressor.buffer.clear()
        stream = wrapped_stream(batch, header.magic)
        start, end = self._decompressor.append(header.compression, stream, header.magic)
        inner = self._decompressor.buffer.view(start, end)
        return [message.header.magic for message in batches_of(inner)]

    def _timestamps_pass(self, header: BatchHeader, summary: RecordSummary) -> bool:
        is_broker_stamped = header.timestamp_type is TimestampType.LOG_APPEND_TIME
        if is_broker_stamped and (self._is_append_time or summary.without_timestamp):
            return False
        if self._is_append_time or summary.lowest_timestamp is None:
            return True
        lowest, highest = summary.lowest_timestamp, summary.highest_timestamp
        return self._timestamps.has(lowest) and self._timestamps.has(highest)

    def _refuse_records(
        self, batch: memoryview, header: BatchHeader, inner_magics: Sequence[int]
    ) -> None:
        """Say of each wrong record what is wrong with it."""
        errors = []
        has_timestamp_error = False
        for index, record in enumerate(RecordBatch(batch, self._decompressor).unassigned_records()):
            magic = inner_magics[index] if inner_magics else header.magic
            if magic != header.magic:
                errors.append((index, f"a message of v{magic} in a wrapper of v{header.magic}"))
            elif self._config.is_compact and record.key is None:
                errors.append((index, "a record of a compacted topic needs a key"))
            elif (reason := self._timestamp_error(header, record.timestamp)) is not None:
                has_timestamp_error = True
                errors.append((index, reason))
        kind = InvalidTimestampError if has_timestamp_error else RecordValidationError
        records = counted(max(header.record_count, len(errors)), "record")
        msg = f"{len(errors)} of {records} refused"
        raise kind(msg, tuple(errors), self._topic_partition)

    def _timestamp_error(self, header: BatchHeader, timestamp: int) -> str | None:
        if not self._is_append_time and timestamp != NO_TIMESTAMP:
            if self._timestamps.has(timestamp):
                return None
            lowest, highest = self._timestamps
            return f"timestamp {timestamp} is not in the range {lowest} to {highest}"
        if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            return "a producer may not send LogAppendTime batches"
        return None

    # ---- outcomes

    def _level(self, target: CompressionType) -> int | None:
        is_configured = self._config.target_compression_type(CompressionType.NONE) is target
        return self._config.target_compression_level if is_configured else None

    def _stays(
        self,
        batches: Sequence[PositionedHeader],
        summaries: Sequence[RecordSummary],
        *,
        is_control: bool,
    ) -> bool:
        header = batches[0].header
        if header.magic != MAGIC_VALUE_V2:
            return False
        if is_control:
            return not header.is_compressed
        source = header.compression
        is_numbered = source is CompressionType.NONE or summaries[0].is_consecutive
        return self._config.target_compression_type(source) is source and is_numbered

    def _in_place(
        self,
        records: memoryview,
        batches: Sequence[PositionedHeader],
        summaries: Sequence[RecordSummary],
        first_offset: int,
    ) -> ValidationResult:
        header = batches[0].header
        batch = records[: header.size_bytes]
        last_offset = first_offset + header.last_offset_delta
        set_last_offset(batch, last_offset)
        set_partition_leader_epoch(batch, self._leader_epoch)
        max_timestamp = self._now_ms if self._is_append_time else summaries[0].highest_timestamp
        set_max_timestamp(batch, self._config.message_timestamp_type, max_timestamp)
        return ValidationResult(
            batch,
            batches_of(batch),
            last_offset + 1,
            max_timestamp,
            message_size_maybe_changed=False,
        )

    def _rebuilt(
        self, records: memoryview, batches: Sequence[PositionedHeader], first_offset: int
    ) -> ValidationResult:
        header = batches[0].header
        source = next(
            (batch.header.compression for batch in batches if batch.header.is_compressed),
            CompressionType.NONE,
        )
        target = self._config.target_compression_type(source)
        if header.is_control_batch:
            target = CompressionType.NONE
        builder = RecordBatchBuilder(
            base_offset=first_offset,
            compression=target,
            level=self._level(target),
            timestamp_type=self._config.message_timestamp_type,
            log_append_time=self._now_ms if self._is_append_time else NO_TIMESTAMP,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            is_transactional=header.is_transactional,
            is_control_batch=header.is_control_batch,
            partition_leader_epoch=self._leader_epoch,
        )
        for batch in batches:
            old = records[batch.position : batch.end_position]
            for record in RecordBatch(old, self._decompressor).unassigned_records():
                builder.append_record(record._replace(offset=builder.next_offset))
        data = memoryview(bytearray(builder.build()))
        if not data:
            msg = "there is no record in the batch"
            raise self._invalid(msg)
        return ValidationResult(
            data,
            batches_of(data),
            builder.next_offset,
            builder.max_timestamp,
            message_size_maybe_changed=True,
        )
