"""What builders of batches have in common, whatever the format: offsets, and one result.

Source: MemoryRecordsBuilder (Kafka 4.3), which is one class for all formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from pylog.record.append_rules import ensure_offset_rises, ensure_timestamp
from pylog.record.compressor import Compressor, ensure_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.model import CompressionType, TimestampOffset, TimestampType
    from pylog.record.record_encoder import Bytes, HeaderPair


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
