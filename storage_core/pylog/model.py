"""Value types, sentinels and enumerations that every layer shares. Imports nothing of ours."""

from __future__ import annotations

from enum import Enum, IntEnum, auto
from typing import NamedTuple

# Sentinels, named as in Kafka's RecordBatch.
NO_TIMESTAMP = -1
"""The timestamp of a record that has none, in milliseconds as all others."""

NO_PRODUCER_ID = -1
"""The producer id of a batch whose producer is neither idempotent nor transactional."""

NO_PRODUCER_EPOCH = -1
"""The producer epoch of such a batch."""

NO_SEQUENCE = -1
"""The base sequence of such a batch, and of one that holds a marker."""

NO_PARTITION_LEADER_EPOCH = -1
"""The leader epoch of a batch that no leader has stamped."""

INTERNAL_TOPICS = frozenset(
    {
        "__consumer_offsets",
        "__transaction_state",
        "__share_group_state",
        "__cluster_metadata",
        "__remote_log_metadata",
    }
)
"""Topics that a reader of all topics skips.

Kafka: Topic.isInternal, the KRaft log, and the topic in which TopicBasedRemoteLogMetadataManager
keeps what lies in remote storage.
"""


class CompressionType(IntEnum):
    """Codec ids of the three low attribute bits (Kafka: CompressionType)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def label(self) -> str:
        """The lower-case name that Kafka's configuration and tools print."""
        return self.name.lower()

    @property
    def first_magic(self) -> int:
        """The oldest record format that may use it."""
        return 2 if self is CompressionType.ZSTD else 0

    @classmethod
    def is_known(cls, codec_id: int) -> bool:
        """Whether a codec has this id."""
        return codec_id in cls._value2member_map_


class TimestampType(IntEnum):
    """Who stamped a record (Kafka: TimestampType)."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class IsolationLevel(IntEnum):
    """Which records of transactions a reader sees (Kafka: IsolationLevel)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1

    @property
    def label(self) -> str:
        """The text of consumer property ``isolation.level``."""
        return self.name.lower()

    @classmethod
    def parse(cls, text: str | IsolationLevel) -> IsolationLevel:
        """Return the level that ``text`` names, in any case; ``ValueError`` otherwise."""
        if isinstance(text, IsolationLevel):
            return text
        for level in cls:
            if text.strip().lower() == level.label:
                return level
        msg = f"isolation level {text!r} is neither 'read_uncommitted' nor 'read_committed'"
        raise ValueError(msg)


class ControlRecordType(IntEnum):
    """Types of control records (Kafka: ControlRecordType)."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class TopicPartition(NamedTuple):
    """A topic name and a partition number; orders by topic, then by number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetPosition(NamedTuple):
    """A log offset and the byte position of the batch that an index gives for it."""

    offset: int
    position: int


class TimestampOffset(NamedTuple):
    """A timestamp in ms and a log offset."""

    timestamp: int
    offset: int


class AppendOrigin(Enum):
    """Who hands records to a log: how far they are validated (Kafka: AppendOrigin)."""

    REPLICATION = auto()
    """A follower that copies its leader, or a log that reads itself: a leader has checked it."""
    COORDINATOR = auto()
    """A group or transaction coordinator: offset commits, which carry no sequence, and markers."""
    CLIENT = auto()
    """A producer: everything is checked."""
    RAFT_LEADER = auto()
    """The leader of a metadata quorum, which assigns its offsets itself."""


class AbortedTransaction(NamedTuple):
    """Offsets of one aborted transaction; both ends inclusive.

    ``last_offset`` is the offset of the ABORT marker. Transactional batches of ``producer_id``
    with ``first_offset <= base_offset <= last_offset`` are not committed data.
    """

    producer_id: int
    first_offset: int
    last_offset: int
