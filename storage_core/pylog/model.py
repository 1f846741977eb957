"""Value types, sentinels and enumerations that every layer shares. Imports nothing of ours."""

from __future__ import annotations

import datetime as dt
import difflib
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Literal, NamedTuple

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


class CompressionLevels(NamedTuple):
    """The levels of a codec, both ends included (Kafka: CompressionType.levelValidator).

    gzip's default is none of them.
    """

    lowest: int
    highest: int
    default: int


COMPRESSION_LEVELS = {
    CompressionType.GZIP: CompressionLevels(1, 9, -1),
    CompressionType.LZ4: CompressionLevels(1, 17, 9),
    CompressionType.ZSTD: CompressionLevels(-131_072, 22, 3),
}
"""Of the codecs that have some."""


class TimestampType(IntEnum):
    """Who stamped a record (Kafka: TimestampType)."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


IsolationName = Literal["read_uncommitted", "read_committed"]


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


# Where in a log to begin and to end, as a caller says it: a word, an offset, or a time.
#
# A time is an offset *look-up*, as in Kafka and in Spark's ``kafka`` source, and not a filter: with
# timestamps out of order, the range may hold earlier records and leave out later ones. Which
# offset each stands for in a log, `pylog.reading.offset_resolution` finds.


EARLIEST = "earliest"
"""The log start offset."""

LATEST = "latest"
"""The end that a consumer would read up to."""

MAX_TIMESTAMP = "max_timestamp"
"""The offset of the record with the highest timestamp."""

_WORDS = (EARLIEST, LATEST, MAX_TIMESTAMP)

# What Spark's kafka source writes into offset JSON.
EARLIEST_OFFSET = -2
LATEST_OFFSET = -1

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Timestamp:
    """The first offset whose record has a timestamp of at least ``milliseconds``.

    Attributes
    ----------
    milliseconds
        Since 1970-01-01 UTC; 0 or more.
    if_missing
        What happens if no record is that late, and this is a *start*: "error", or "latest" for an
        empty range. If this is an end, it is then the end of the log.
    """

    milliseconds: int
    if_missing: str = "error"

    def __post_init__(self) -> None:
        given = self.milliseconds
        try:
            object.__setattr__(self, "milliseconds", operator.index(given))
        except TypeError:
            msg = (
                f"timestamp {given!r} is not a whole number of milliseconds since 1970; pass a "
                "datetime with a time zone as it is, or to pylog.Timestamp.of()"
            )
            raise ValueError(msg) from None
        if not 0 <= self.milliseconds < 1 << 63:
            msg = f"timestamp {self.milliseconds} ms is not in 0 .. 2^63-1"
            raise ValueError(msg)
        if self.if_missing not in ("error", LATEST):
            msg = f"{self.if_missing!r} is neither 'error' nor 'latest'"
            raise ValueError(msg)

    @classmethod
    def of(cls, instant: dt.datetime, if_missing: str = "error") -> Timestamp:
        """Return the first whole millisecond that is not before an instant.

        Raises
        ------
        ValueError
            ``instant`` has no time zone, or lies before 1970.
        """
        if instant != instant:  # noqa: PLR0124 - NaT, the missing time of pandas, is a datetime
            msg = "NaT is not a time"
            raise ValueError(msg)
        if instant.tzinfo is None:
            msg = f"datetime {instant} has no time zone: say which, as in .replace(tzinfo=UTC)"
            raise ValueError(msg)
        return cls(-((_EPOCH - instant) // dt.timedelta(milliseconds=1)), if_missing)


@dataclass(frozen=True, slots=True)
class FromEnd:
    """The offset that is ``offsets`` before the end that a consumer would read up to.

    In a log that has fewer, it is the log start offset. Where compaction has removed records, or
    transactions have markers, there are fewer records than offsets; `Scan.last` counts records.

    Attributes
    ----------
    offsets
        How many; 0 or more.
    """

    offsets: int

    def __post_init__(self) -> None:
        given: object = self.offsets
        if isinstance(given, bool) or not isinstance(given, int) or given < 0:
            msg = f"{given!r} offsets before the end: expected a whole number, 0 or more"
            raise ValueError(msg)


OffsetSpec = str | int | Timestamp | FromEnd
"""One of the words, an offset (-2 earliest, -1 latest), a `Timestamp`, or a `FromEnd` (Kafka:
OffsetSpec)."""

OffsetSpecs = (
    OffsetSpec
    | dt.datetime
    | Mapping[TopicPartition | tuple[str, int] | str, "OffsetSpec | dt.datetime"]
)
"""One position for all partitions, or a mapping from partition or topic to one; partitions that are
not named take the default. A datetime with a time zone stands for its `Timestamp`."""


def parse_offset_spec(value: object) -> OffsetSpec:
    """Return ``value`` as a spec, with words in lower case and datetimes as timestamps."""
    if isinstance(value, Timestamp | FromEnd):
        return value
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _WORDS:
            return word
    elif isinstance(value, dt.datetime):
        return Timestamp.of(value)
    elif hasattr(value, "__index__") and not isinstance(value, bool):  # also NumPy's integers
        value = operator.index(value)
        if value == EARLIEST_OFFSET:
            return EARLIEST
        if value == LATEST_OFFSET:
            return LATEST
        if 0 <= value < 1 << 63:
            return value
    msg = (
        f"{value!r} is not a position{_hint(value)} Give 'earliest', 'latest', 'max_timestamp', an "
        "offset of 0 or more, a pylog.Timestamp, a datetime with a time zone or a pylog.FromEnd"
    )
    raise ValueError(msg)


def _hint(value: object) -> str:
    """Return the end of the sentence about what is not a position: what was probably meant."""
    if isinstance(value, dt.date):
        value = value.isoformat()
    if not isinstance(value, str):
        return "."
    near = difflib.get_close_matches(value.strip().lower(), _WORDS, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    try:
        instant = dt.datetime.fromisoformat(value.strip())
    except ValueError:
        return "."
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=dt.UTC)
    return f"; did you mean datetime.fromisoformat({instant.isoformat()!r})?"


def spec_for(
    specs: OffsetSpecs, topic_partition: TopicPartition, default: OffsetSpec
) -> OffsetSpec:
    """Return the spec that ``specs`` has for a partition: its own, its topic's, or the default."""
    if not isinstance(specs, Mapping):
        return parse_offset_spec(specs)
    for key in (topic_partition, topic_partition.topic):
        if key in specs:
            return parse_offset_spec(specs[key])
    return default


def check_specs(specs: OffsetSpecs, known: list[TopicPartition]) -> None:
    """Raise `ValueError` for what is not a position, or is one of a partition that is not read.

    Examples
    --------
    >>> pylog.jobs.check_specs({("orders", 1): 10}, [pylog.TopicPartition("orders", 0)])
    Traceback (most recent call last):
        ...
    ValueError: a position is given for orders-1, which is not read; partitions read: orders-0
    """
    if not isinstance(specs, Mapping):
        parse_offset_spec(specs)
        return
    names = {*known, *(each.topic for each in known)}
    for key, spec in specs.items():
        parse_offset_spec(spec)
        if (TopicPartition(*key) if isinstance(key, tuple) else key) not in names:
            text = f"{key[0]}-{key[1]}" if isinstance(key, tuple) else key
            listed = ", ".join(map(str, known[:20])) or "none"
            msg = f"a position is given for {text}, which is not read; partitions read: {listed}"
            raise ValueError(msg)
