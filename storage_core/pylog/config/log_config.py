"""What can be configured of one topic's logs.

A field is a topic property with underscores for points: ``segment_bytes`` is ``segment.bytes``.
Names, defaults and bounds are those of Kafka 4.4, with two exceptions:

* ``segment.bytes`` may be as small as 14, as it could until 4.0: 4.1 moved values below 1 MiB to
  an internal property for tests.
* Properties that say nothing about files on a local disk (replication, quotas, remote storage)
  are unknown here.

Source: LogConfig, TopicConfig, ServerLogConfigs (Kafka 4.3, and 4.4 for
``max.decompressed.message.bytes``, which later patches of 3.9 to 4.3 have, too).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pylog.config.config_property import (
    INT64_MAX,
    Boolean,
    Choice,
    Number,
    PropertyConfig,
    WordList,
    config_field,
    integer,
    long,
)
from pylog.errors import PolicyViolationError
from pylog.model import COMPRESSION_LEVELS, CompressionType, TimestampType

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

COMPACT = "compact"
DELETE = "delete"
PRODUCER_COMPRESSION = "producer"
UNCOMPRESSED = "uncompressed"

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_LARGEST_ARRAY = 2**31 - 9  # Java's
_CODECS = sorted(set(CompressionType) - {CompressionType.NONE}, reverse=True)
_COMPRESSION_WORDS = (UNCOMPRESSED, *(codec.label for codec in _CODECS), PRODUCER_COMPRESSION)
_TIMESTAMP_TYPES = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}


def _level_field(codec: CompressionType) -> Any:  # noqa: ANN401 - as `config_field`
    lowest, highest, default = COMPRESSION_LEVELS[codec]
    other = None if lowest <= default <= highest else default
    kind = integer(lowest, at_most=highest, also_allowed=other)
    return config_field(kind, default, broker_name=f"compression.{codec.label}.level")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig(PropertyConfig):
    """Configuration of the logs of a topic.

    Raises
    ------
    ValueError
        A value is out of range, or ``min.compaction.lag.ms`` is above ``max.compaction.lag.ms``.
        The text names the property.
    """

    source: ClassVar[str] = "a topic"
    removed: ClassVar[Mapping[str, str]] = {
        "message.format.version": "4.0",
        "message.timestamp.difference.max.ms": "4.0",
        "message.downconversion.enable": "4.0",
    }

    segment_bytes: int = config_field(
        integer(14), 1 << 30, unit="bytes", broker_name="log.segment.bytes"
    )
    segment_ms: int = config_field(long(1), 7 * _DAY_MS, unit="ms")
    segment_jitter_ms: int = config_field(long(0), 0, unit="ms")
    segment_index_bytes: int = config_field(
        integer(4), 10 << 20, unit="bytes", broker_name="log.index.size.max.bytes"
    )
    index_interval_bytes: int = config_field(
        integer(0), 4096, unit="bytes", broker_name="log.index.interval.bytes"
    )
    max_message_bytes: int = config_field(
        integer(0), 1_048_588, unit="bytes", broker_name="message.max.bytes"
    )
    """Compared with a whole batch, as it is stored: 1 MiB and the 12 bytes before its length."""
    max_decompressed_message_bytes: int = config_field(
        integer(1, at_most=_LARGEST_ARRAY),
        _LARGEST_ARRAY,
        unit="bytes",
        broker_name="max.decompressed.message.bytes",
    )
    """Compared with each record of a compressed batch: see `pylog.record.record_sizes`."""

    message_timestamp_type: TimestampType = config_field(  # noqa: RUF009 - a field, not a value
        Choice(_TIMESTAMP_TYPES),
        TimestampType.CREATE_TIME,
        broker_name="log.message.timestamp.type",
    )
    message_timestamp_before_max_ms: int = config_field(
        long(0), INT64_MAX, unit="ms", broker_name="log.message.timestamp.before.max.ms"
    )
    message_timestamp_after_max_ms: int = config_field(
        long(0), _HOUR_MS, unit="ms", broker_name="log.message.timestamp.after.max.ms"
    )

    compression_type: str = config_field(
        Choice({word: word for word in _COMPRESSION_WORDS}),
        PRODUCER_COMPRESSION,
        broker_name="compression.type",
    )
    compression_gzip_level: int = _level_field(CompressionType.GZIP)
    compression_lz4_level: int = _level_field(CompressionType.LZ4)
    compression_zstd_level: int = _level_field(CompressionType.ZSTD)

    cleanup_policy: frozenset[str] = config_field(
        WordList((COMPACT, DELETE)), frozenset({DELETE}), broker_name="log.cleanup.policy"
    )
    retention_ms: int = config_field(long(-1), 7 * _DAY_MS, unit="ms")
    """-1: unlimited."""
    retention_bytes: int = config_field(
        Number(-INT64_MAX - 1, INT64_MAX), -1, unit="bytes", broker_name="log.retention.bytes"
    )
    """Negative: unlimited."""
    file_delete_delay_ms: int = config_field(
        long(0), 60_000, unit="ms", broker_name="log.segment.delete.delay.ms"
    )
    delete_retention_ms: int = config_field(
        long(0), _DAY_MS, unit="ms", broker_name="log.cleaner.delete.retention.ms"
    )
    min_compaction_lag_ms: int = config_field(
        long(0), 0, unit="ms", broker_name="log.cleaner.min.compaction.lag.ms"
    )
    max_compaction_lag_ms: int = config_field(
        long(1), INT64_MAX, unit="ms", broker_name="log.cleaner.max.compaction.lag.ms"
    )
    min_cleanable_dirty_ratio: float = config_field(
        Number(0, 1, is_whole=False), 0.5, broker_name="log.cleaner.min.cleanable.ratio"
    )

    flush_messages: int = config_field(
        long(1), INT64_MAX, unit="records", broker_name="log.flush.interval.messages"
    )
    flush_ms: int = config_field(long(0), INT64_MAX, unit="ms")
    preallocate: bool = config_field(Boolean(), False, broker_name="log.preallocate")  # noqa: FBT003 - the default itself

    def __post_init__(self) -> None:
        # Not super(): slots=True makes a new class, which a bare super() does not know.
        PropertyConfig.__post_init__(self)
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            msg = (
                f"property min.compaction.lag.ms is {self.min_compaction_lag_ms}, expected at most "
                f"max.compaction.lag.ms, {self.max_compaction_lag_ms}"
            )
            raise ValueError(msg)

    @property
    def is_compact(self) -> bool:
        """Whether older records of a key are removed."""
        return COMPACT in self.cleanup_policy

    @property
    def is_delete(self) -> bool:
        """Whether segments are removed by age and size."""
        return DELETE in self.cleanup_policy

    def ensure_records_may_be_deleted(self, topic_partition: str) -> None:
        """Return if the start of a partition's log may be moved on request.

        Raises
        ------
        PolicyViolationError
            The topic is compacted and nothing else.
        """
        if self.cleanup_policy and not self.is_delete:
            reason = (
                "the topic's cleanup.policy does not contain delete, so no record can be deleted"
            )
            raise PolicyViolationError(reason, topic_partition)

    @property
    def max_segment_ms(self) -> int:
        """After how many ms a segment is rolled, before jitter.

        A compacted log rolls in time for ``max.compaction.lag.ms``, because the active segment is
        never compacted.
        """
        if self.is_compact:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    @property
    def target_compression_level(self) -> int | None:
        """Level of the topic's own codec; None if it has none or the codec has no levels."""
        levels = {
            "gzip": self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type)

    def target_compression_type(self, producer_type: CompressionType) -> CompressionType:
        """Return the codec to store with what came compressed with ``producer_type``."""
        if self.compression_type == PRODUCER_COMPRESSION:
            return producer_type
        if self.compression_type == UNCOMPRESSED:
            return CompressionType.NONE
        return CompressionType[self.compression_type.upper()]

    def random_segment_jitter(self, random: Random) -> int:
        """Return by how many ms a segment is rolled earlier, drawn for each.

        At least 0 and below the smaller one of ``segment.jitter.ms`` and ``segment.ms``, so that
        logs made at the same time do not all roll at the same time.
        """
        if self.segment_jitter_ms == 0:
            return 0
        # 31 bits, as Kafka: no jitter is above 24.8 days.
        return random.getrandbits(31) % min(self.segment_jitter_ms, self.segment_ms)
