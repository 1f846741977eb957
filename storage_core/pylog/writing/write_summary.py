"""What a write is told, as a value that travels, and what it has appended."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from pylog.files.bookmark_file import MOST_BOOKMARK_BYTES, bookmark_size
from pylog.files.file_names import ensure_valid_topic
from pylog.files.ledger import MAX_FINGERPRINT_LENGTH
from pylog.files.staged_files import JobKey, as_job_key
from pylog.lazy_modules import LazyModule
from pylog.model import INTERNAL_TOPICS
from pylog.writing.topics import ensure_possible_count

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from pylog.model import TopicPartition
    from pylog.record import compressor
    from pylog.writing.column_encoder import ColumnEncoder
else:
    compressor = LazyModule("pylog.record.compressor")


DEFAULT_BATCH_SIZE_BYTES = 16_384
"""The default of producer property ``batch.size``."""


@dataclass(frozen=True, slots=True)
class JobDescription:
    """The values of a `pylog.jobs.WriteJob`.

    Parameters
    ----------
    directory
        A log directory on a file system that all tasks and the committer share.
    job_id
        Names the job in the ledger of the directory: what was committed under it is not written
        again.
    batch_id
        The micro-batch of a streaming query, whose id ``job_id`` is then. Batches are numbered
        upwards: once one is committed, those of lower numbers count as committed, too. None for
        other jobs.
    topic
        Where all rows go. If None, the rows' column ``topic`` says it.
    partitions
        How many partitions a topic gets that is not there; 1 if None. One that is keeps its own.
    partitioner
        ``default``, ``round_robin`` or ``integer_key``, as of `pylog.write_topic`, for rows whose
        column ``partition`` says nothing.
    compression, level
        As of `pylog.write_topic`.
    batch_size_bytes
        The most bytes of a batch before compression; never more than the topic allows.
    config
        Properties of the topics that are created.
    fingerprint
        Any text of up to 4,000 characters that says what the job writes, such as a hash of its
        source and its topic. The ledger keeps it: a job with the same id and another fingerprint
        is an error. None says nothing, and is never compared.
    bookmark
        How far the source of the job has been read: any text of up to 1 GiB. The commit that
        appends the rows enters it in the ledger, so that both are there, or neither. The next run,
        another batch of the same job, finds it by `pylog.jobs.WriteJob.newest_run`.
    creates_similar_topic
        Whether ``topic`` may be created where one of a similar name exists. Otherwise such a name
        counts as a typing error. The names in a column ``topic`` are taken as they are.
    writes_internal_topics
        Whether rows may go to a topic that Kafka keeps for itself, such as ``__consumer_offsets``.
    encoders
        What encodes keys or values, which then are of any type that the schema takes; needs
        ``topic``. `pylog.jobs.register_schemas` makes them.

    Raises
    ------
    ValueError
        An argument is out of range.
    """

    directory: str
    job_id: str
    batch_id: int | None = None
    _: KW_ONLY
    topic: str | None = None
    partitions: int | None = None
    partitioner: str = "default"
    compression: str = "none"
    level: int | None = None
    batch_size_bytes: int = DEFAULT_BATCH_SIZE_BYTES
    config: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str | None = None
    bookmark: str | None = None
    creates_similar_topic: bool = False
    writes_internal_topics: bool = False
    encoders: Mapping[str, ColumnEncoder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.encoders and self.topic is None:
            raise ValueError("keys and values are encoded by the schemas of one topic: name it")
        as_job_key(self.job_id, self.batch_id)
        if self.bookmark is not None:
            self._ensure_bookmark(self.bookmark)
        length = len(self.fingerprint or "")
        if length > MAX_FINGERPRINT_LENGTH:
            msg = f"the fingerprint has {length} characters, the limit is {MAX_FINGERPRINT_LENGTH}"
            raise ValueError(msg)
        if self.topic is not None:
            self.ensure_topic(self.topic)
        if self.partitions is not None:
            ensure_possible_count(self.partitions)
        if self.level is not None:
            compressor.ensure_level(compressor.parse_compression(self.compression), self.level)
        if self.batch_size_bytes < 1:
            msg = f"batch_size_bytes is {self.batch_size_bytes}, it must be at least 1"
            raise ValueError(msg)

    def _ensure_bookmark(self, bookmark: str) -> None:
        if self.batch_id is None:
            msg = "a bookmark is for a job with a batch_id, of which there are several runs"
            raise ValueError(msg)
        size_bytes = bookmark_size(bookmark)
        if size_bytes > MOST_BOOKMARK_BYTES:
            msg = f"the bookmark has {size_bytes} bytes, the limit is {MOST_BOOKMARK_BYTES}"
            raise ValueError(msg)

    def ensure_topic(self, topic: str) -> None:
        """Raise `ValueError` unless rows may go to a topic of this name."""
        ensure_valid_topic(topic)
        if topic in INTERNAL_TOPICS and not self.writes_internal_topics:
            msg = (
                f"topic {topic!r} is one that Kafka keeps for itself, and nothing is written to "
                "it; if rows are meant to go there, give writes_internal_topics=True (in Spark "
                "option writeInternalTopics, in [target] of ingest internal_topics = true)"
            )
            raise ValueError(msg)

    @property
    def key(self) -> JobKey:
        """The job's key in the ledger: its id and batch id."""
        return JobKey(self.job_id, self.batch_id)


@dataclass(frozen=True, slots=True)
class CommittedRun:
    """One run of a job, as the ledger of a log directory has it.

    Attributes
    ----------
    batch_id
        The number of the run.
    time_ms
        When it was committed, in milliseconds since 1970-01-01 UTC.
    records
        How many records it appended.
    fingerprint, bookmark
        What `pylog.jobs.WriteJob` was given.
    """

    batch_id: int
    time_ms: int
    records: int
    fingerprint: str | None = None
    bookmark: str | None = None


@dataclass(slots=True)
class PartitionSummary:
    """The records and offsets that were appended to one partition.

    Attributes
    ----------
    topic_partition
        The partition.
    end_offset
        The end offset of its log after the write (exclusive).
    records
        How many records were appended.
    size_bytes
        The size of the batches that were appended.
    """

    topic_partition: TopicPartition
    end_offset: int = 0
    records: int = 0
    size_bytes: int = 0

    def add(self, records: int, size_bytes: int, end_offset: int) -> None:
        """Count batches, after which the log ends at ``end_offset``."""
        self.records += records
        self.size_bytes += size_bytes
        self.end_offset = end_offset


@dataclass(frozen=True, slots=True)
class WriteSummary:
    """The partitions to which `pylog.write_topic` has appended.

    Attributes
    ----------
    topic
        The name of the topic.
    topic_id
        The id of the topic; None if it is older than topic ids (Kafka 2.8).
    records, size_bytes
        Records and bytes of batches that were appended, over all partitions.
    end_offsets
        The end offset (exclusive) of every partition of the topic.
    """

    topic: str
    topic_id: uuid.UUID | None
    records: int
    size_bytes: int
    end_offsets: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteJobSummary:
    """What `WriteJob.commit` has done.

    Attributes
    ----------
    job_id, batch_id
        Of the job.
    already_committed
        Whether the ledger had the job, so that nothing was written.
    records, size_bytes
        Records and bytes of batches that were appended, over all partitions.
    partitions
        What was appended to each, sorted.
    """

    job_id: str
    batch_id: int | None
    already_committed: bool
    records: int = 0
    size_bytes: int = 0
    partitions: tuple[PartitionSummary, ...] = ()
