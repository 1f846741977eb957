"""Build messages of formats v0 and v1, plain or in one compressed wrapper.

Layout in `pylog.record.batch_header`, the rules of wrappers in `pylog.record.legacy_batch`. No
broker since 4.0 writes these formats; directories of older ones hold them, and cleaners of older
ones keep a batch's format.

* Without codec the result is one message after the other, each a batch of its own.
* With a codec it is one wrapper: null key, the offset of its last message, and as timestamp the
  highest of its messages or the append time. Inner offsets are absolute in v0, and relative to
  the builder's base offset in v1.
* With LOG_APPEND_TIME every v1 message stores the append time and the type's bit.
* zstd, headers, producers, transactions and control records do not exist in these formats.

Source: MemoryRecordsBuilder, LegacyRecord (Kafka 3.9); KIP-31, KIP-32.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from pylog.model import NO_TIMESTAMP, CompressionType, TimestampOffset, TimestampType
from pylog.record.batch_header import (
    LEGACY_CRC_LENGTH,
    MAGIC_VALUE_V0,
    MAGIC_VALUE_V1,
    MIN_ENTRY_SIZES,
    TIMESTAMP_TYPE_MASK,
)
from pylog.record.record_batch_builder import BatchBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.record.compressor import Compressor
    from pylog.record.record_encoder import Bytes, HeaderPair

_ENTRY = struct.Struct(">qiI")
_START_V0 = struct.Struct(">bB")
_START_V1 = struct.Struct(">bBq")
_INT32 = struct.Struct(">i")
_NULL = _INT32.pack(-1)


def encode_message(
    offset: int,
    key: Bytes | None,
    value: Bytes | None,
    *,
    magic: int,
    attributes: int,
    timestamp: int,
) -> bytes:
    """Return one entry: offset, size, and the message with its checksum."""
    if magic == MAGIC_VALUE_V0:
        start = _START_V0.pack(magic, attributes)
    else:
        start = _START_V1.pack(magic, attributes, timestamp)
    parts: list[Bytes] = [start]
    for data in (key, value):
        parts.append(_NULL if data is None else _INT32.pack(len(data)))
        parts.append(data or b"")
    covered = b"".join(parts)
    return _ENTRY.pack(offset, LEGACY_CRC_LENGTH + len(covered), zlib.crc32(covered)) + covered


class LegacyBatchBuilder(BatchBuilder):
    """Collects records and gives v0 or v1 messages. One thread.

    Parameters
    ----------
    magic
        0 or 1.
    base_offset
        What v1 counts inner offsets from; the first record's offset unless it is appended with a
        higher one.
    compression, level
        Codec, and its level; None is Kafka's default level.
    timestamp_type, log_append_time
        Who stamps the records of v1; the time is written with LOG_APPEND_TIME only.
    compressor
        Shared between the builders of one thread to keep its memory; a new one if None.

    Raises
    ------
    ValueError
        The format is neither v0 nor v1, the codec is zstd or has no such level, or a v1 builder
        is given NO_TIMESTAMP_TYPE.
    """

    _RESULT = "the messages are"

    def __init__(  # noqa: PLR0913 - keyword-only options
        self,
        magic: int,
        *,
        base_offset: int = 0,
        compression: CompressionType = CompressionType.NONE,
        level: int | None = None,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        log_append_time: int = NO_TIMESTAMP,
        compressor: Compressor | None = None,
    ) -> None:
        if magic not in (MAGIC_VALUE_V0, MAGIC_VALUE_V1):
            msg = f"message format is v{magic}, expected v0 or v1"
            raise ValueError(msg)
        if magic < compression.first_magic:
            msg = f"{compression.label} is not allowed in message format v{magic}"
            raise ValueError(msg)
        if magic == MAGIC_VALUE_V1 and timestamp_type is TimestampType.NO_TIMESTAMP_TYPE:
            msg = "a v1 message has a timestamp type: CREATE_TIME or LOG_APPEND_TIME"
            raise ValueError(msg)
        super().__init__(
            base_offset=base_offset,
            compression=compression,
            level=level,
            timestamp_type=timestamp_type,
            log_append_time=log_append_time,
            compressor=compressor,
        )
        self.magic = magic
        self._highest = TimestampOffset(NO_TIMESTAMP, -1)

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
            The offset is not above the last one, below the base offset or more than 2^31-1 above
            it; the timestamp is negative and not `NO_TIMESTAMP`; there are headers; the builder
            has built. The builder is as before then.
        """
        self._ensure_appendable(offset, timestamp)
        if headers:
            msg = f"a record with headers does not fit into message format v{self.magic}"
            raise ValueError(msg)
        is_relative = self.magic == MAGIC_VALUE_V1 and self.compression is not CompressionType.NONE
        stored = self.log_append_time if self._is_log_append_time else timestamp
        self._encoded += encode_message(
            offset - self.base_offset if is_relative else offset,
            key,
            value,
            magic=self.magic,
            attributes=self._timestamp_type_bit,
            timestamp=stored,
        )
        if self.magic == MAGIC_VALUE_V1 and stored > self._highest.timestamp:
            self._highest = TimestampOffset(stored, offset)
        self._last_offset = offset
        self.record_count += 1

    @property
    def _is_log_append_time(self) -> bool:
        return self.timestamp_type is TimestampType.LOG_APPEND_TIME

    @property
    def _timestamp_type_bit(self) -> int:
        return TIMESTAMP_TYPE_MASK if self.magic and self._is_log_append_time else 0

    @property
    def max_timestamp(self) -> int:
        """The highest timestamp stored; `NO_TIMESTAMP` in v0."""
        return self._highest.timestamp

    @property
    def shallow_max_timestamp(self) -> TimestampOffset:
        """The max timestamp, and the last offset of the first batch that has it; -1 for none.

        That is the wrapper's offset, and without codec the offset of the first such message.
        """
        if self._highest.timestamp == NO_TIMESTAMP or self._last_offset is None:
            return TimestampOffset(NO_TIMESTAMP, -1)
        if self.compression is CompressionType.NONE:
            return self._highest
        return TimestampOffset(self._highest.timestamp, self._last_offset)

    @property
    def estimated_size_bytes(self) -> int:
        """Bytes of the result: exact without codec and once it is built, else an upper guess.

        The guess is what a wrapper takes around messages that do not shrink.
        """
        if self._result is not None:
            return len(self._result)
        if self.compression is CompressionType.NONE:
            return len(self._encoded)
        return MIN_ENTRY_SIZES[self.magic] + len(self._encoded)

    def _built(self) -> bytes:
        """Return the messages, or the wrapper around them."""
        if self.compression is CompressionType.NONE:
            return bytes(self._encoded)
        stream = self._compressor.compress(
            self.compression, self._encoded, magic=self.magic, level=self._level
        )
        return encode_message(
            self.next_offset - 1,
            None,
            stream,
            magic=self.magic,
            attributes=self.compression | self._timestamp_type_bit,
            timestamp=self.max_timestamp,
        )
