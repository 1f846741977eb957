"""Every error that pylog raises on purpose, under one root.

Arguments that make no sense are a ``ValueError``. Everything that can be wrong with a file, a
directory or a requested offset is a `LogStorageError`. Its text is one line: in which file, at
which byte, what is wrong, the stored and the expected value, and what to do if something can be
done. Spark passes on the text of an error and not the object, so that line must suffice by itself.

Every argument is handed to ``Exception.__init__`` positionally, so that errors survive pickling
between processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.locations import printable_location, without_overlay

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence


class LogStorageError(Exception):
    """Root of all errors raised by pylog."""


class _LocatedError(LogStorageError):
    """An error about the bytes of one file.

    Parameters
    ----------
    reason
        What is wrong, with the stored and the expected value.
    path
        The file, if known; kept as it may be printed, without the credentials of a URI.
    position
        The byte position in that file, if known.
    """

    def __init__(
        self,
        reason: str,
        path: str | os.PathLike[str] | None = None,
        position: int | None = None,
    ) -> None:
        path = printable_location(path) if isinstance(path, str) else path
        reason = without_overlay(reason)
        super().__init__(reason, path, position)
        self.reason = reason
        self.path = path
        self.position = position

    def __str__(self) -> str:
        places = []
        if self.path is not None:
            places.append(str(self.path))
        if self.position is not None:
            places.append(f"at byte {self.position}")
        return f"{' '.join(places)}: {self.reason}" if places else self.reason


class CorruptRecordError(_LocatedError):
    """Bytes of a ``.log`` that cannot be what a broker wrote (Kafka: CorruptRecordException)."""


class MisplacedBatchError(CorruptRecordError):
    """A batch whose records begin before those of the previous batch end: one of them is wrong."""


class InvalidRecordError(_LocatedError):
    """A batch of right checksum whose records are wrong (Kafka: InvalidRecordException)."""


class InvalidSchemaError(_LocatedError):
    """The text of a schema that is none, or that no columns can be made for."""


class NoSchemaError(InvalidSchemaError):
    """Nothing says which schema the keys or values of a topic have."""


class UndecodableValueError(LogStorageError):
    """A key or value that does not follow the schema it refers to, or refers to none.

    Parameters
    ----------
    reason
        What is wrong, with the path into the value.
    topic_partition
        The partition as text, such as ``orders-0``.
    offset
        The record.
    column
        ``key`` or ``value``.
    schema_id
        What the value refers to, a number or a UUID; None if that is unknown.
    """

    def __init__(
        self,
        reason: str,
        topic_partition: str,
        offset: int,
        column: str = "value",
        schema_id: int | str | None = None,
    ) -> None:
        super().__init__(reason, topic_partition, offset, column, schema_id)
        self.reason = reason
        self.topic_partition = topic_partition
        self.offset = offset
        self.column = column
        self.schema_id = schema_id

    def __str__(self) -> str:
        schema = "" if self.schema_id is None else f" by schema {self.schema_id}"
        return (
            f"{self.topic_partition}, offset {self.offset}: the {self.column} cannot be decoded"
            f"{schema}: {self.reason}"
        )


class UnsupportedCodecError(InvalidRecordError):
    """A compression codec that the record format does not allow, or that does not exist."""


class InvalidLineError(_LocatedError):
    """A line of input that is no record; the file that is appended to is not to blame."""


class CorruptIndexError(_LocatedError):
    """An index file that cannot belong to its segment (Kafka: CorruptIndexException)."""


class CorruptSnapshotError(_LocatedError):
    """A producer snapshot of wrong version, length or CRC (Kafka: CorruptSnapshotException)."""


class CorruptCheckpointError(_LocatedError):
    """A checkpoint, a properties file or a file of written jobs that does not follow its format."""


class InvalidConfigurationError(_LocatedError):
    """A file of a user's that says what cannot be done (Kafka: InvalidConfigurationException)."""


class UnexpectedFileError(_LocatedError):
    """A file or directory name that cannot stand where it was found."""


class LogDirectoryError(_LocatedError):
    """A path that holds no Kafka log, or that cannot be read."""


class UnreadableFileError(LogDirectoryError):
    """A file that exists but cannot be read.

    The cause is a missing permission, an I/O error, something that is not a regular file (a FIFO, a
    device, a directory …), or a link that leads nowhere or in a circle.
    """


class KernelsNotLoadedError(_LocatedError):
    """The compiled part of pylog is not for this machine, or cannot be loaded."""


class TooManyOpenFilesError(_LocatedError):
    """A file or directory that this process, or the system, cannot open beside all others.

    It says nothing of the file: where damage is left out this is an error, too.
    """


class RecoveryRefusedError(_LocatedError):
    """A log that is left closed and unchanged: recovering it would drop intact batches.

    Parameters
    ----------
    reason
        What is damaged.
    path, position
        In which ``.log`` file, and at which byte.
    intact_batches, intact_records
        How much a broker's recovery would drop; a compressed message of v0 or v1 counts as one
        record.
    """

    def __init__(
        self,
        reason: str,
        path: str | os.PathLike[str] | None = None,
        position: int | None = None,
        intact_batches: int = 0,
        intact_records: int = 0,
    ) -> None:
        super().__init__(reason, path, position)
        self.args = (reason, self.path, position, intact_batches, intact_records)
        self.intact_batches, self.intact_records = intact_batches, intact_records

    def __str__(self) -> str:
        batches = f"{self.intact_batches} intact batch{'es' * (self.intact_batches != 1)}"
        records = f"{self.intact_records} record{'s' * (self.intact_records != 1)}"
        return (
            f"{super().__str__()}. A broker's recovery would drop {batches} with {records} from "
            "there on, so the log has been left as it is. See what is damaged with pylog doctor, "
            "save what is intact with pylog doctor --repair-to, or drop it: --recover-as-broker "
            "(recover_as_broker=True)"
        )


class DivergedReplicasError(LogStorageError):
    """Nothing tells which of several histories of a partition is the log's.

    Attributes
    ----------
    divergences
        Of each partition why: both histories, with epochs, offsets and times.
    """

    def __init__(self, divergences: Sequence[str]) -> None:
        super().__init__(divergences)
        self.divergences = list(divergences)

    def __str__(self) -> str:
        return "; ".join(self.divergences)


class UnknownTopicOrPartitionError(LogStorageError):
    """A topic or partition that was asked for and does not exist."""


class UnknownTopicConfigError(LogStorageError):
    """Topics that nothing may be removed from, because nobody has said what they are configured to.

    Parameters
    ----------
    topics
        Their names.
    reason
        Why it is not known; None if there is nothing that could say it.
    """

    _SHOWN_TOPICS = 20

    def __init__(self, topics: Sequence[str], reason: str | None = None) -> None:
        super().__init__(tuple(topics), reason)
        self.topics, self.reason = tuple(topics), reason

    def __str__(self) -> str:
        named = ", ".join(self.topics[: self._SHOWN_TOPICS])
        if len(self.topics) > self._SHOWN_TOPICS:
            named += f" and {len(self.topics) - self._SHOWN_TOPICS} more"
        plural = "s" if len(self.topics) != 1 else ""
        reason = self.reason or (
            "brokers keep it in their cluster, not in the log directory, and Kafka's defaults "
            "would remove all records older than 7 days"
        )
        return (
            f"the configuration of topic{plural} {named} is not known: {reason}. Nothing has been "
            "changed. Give the broker's file (--server-properties) or properties for this run "
            "(--config), or store properties of each topic (pylog alter-topic); or name only "
            "topics that are known (--topic)"
        )


class SegmentVanishedError(_LocatedError):
    """A segment file that was to be read and has since been deleted, renamed or cut."""


class SegmentReplacedError(SegmentVanishedError):
    """An object in a store that was replaced between two reads of it.

    What was read before may come from the old object or the new one; another read gets the new one.
    """


class TimestampOverflowError(_LocatedError):
    """A record timestamp in milliseconds that does not fit into 64-bit microseconds."""


class OffsetOutOfRangeError(LogStorageError):
    """An offset outside ``[log_start_offset, log_end_offset]`` (Kafka: OffsetOutOfRangeException).

    Parameters
    ----------
    topic_partition
        The log that was asked, as text.
    requested
        The offset asked for.
    log_start_offset, log_end_offset
        The offsets that the log holds; the end is exclusive.
    """

    def __init__(
        self,
        topic_partition: str,
        requested: int,
        log_start_offset: int,
        log_end_offset: int,
    ) -> None:
        super().__init__(topic_partition, requested, log_start_offset, log_end_offset)
        self.topic_partition = topic_partition
        self.requested = requested
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset

    def __str__(self) -> str:
        held = f"offsets {self.log_start_offset} to {self.log_end_offset} (exclusive)"
        if self.log_start_offset == self.log_end_offset:
            held = f"no records, and its next offset is {self.log_end_offset}"
        return (
            f"offset {self.requested} of {self.topic_partition} is out of range: the log holds "
            f"{held}"
        )


class OffsetAboveHighWatermarkError(OffsetOutOfRangeError):
    """An offset of records that may not be replicated, which no record may be removed up to.

    Parameters
    ----------
    topic_partition, requested, log_start_offset
        As of `OffsetOutOfRangeError`.
    high_watermark
        Records below it are replicated.
    log_end_offset
        The offset of the log's next record.
    """

    def __init__(
        self,
        topic_partition: str,
        requested: int,
        log_start_offset: int,
        high_watermark: int,
        log_end_offset: int,
    ) -> None:
        super().__init__(topic_partition, requested, log_start_offset, log_end_offset)
        self.args = (topic_partition, requested, log_start_offset, high_watermark, log_end_offset)
        self.high_watermark = high_watermark

    def __str__(self) -> str:
        return (
            f"offset {self.requested} of {self.topic_partition} is above its high watermark "
            f"{self.high_watermark}: by replication-offset-checkpoint the records from there to "
            f"the log's end {self.log_end_offset} may not be replicated. If no other replica is "
            "left, use --high-watermark log-end (high_watermark='log-end')"
        )


class KafkaStorageError(_LocatedError):
    """An operation on a disk that failed (Kafka: KafkaStorageException).

    What was being written is in an unknown state: a log on that disk must be recovered before
    anything is appended to it.

    Parameters
    ----------
    reason, path, position
        What was being done, to which file, at which byte.
    errno
        The system's error number, such as ``errno.ENOSPC``; None if it gave none.
    """

    def __init__(
        self,
        reason: str,
        path: str | os.PathLike[str] | None = None,
        position: int | None = None,
        errno: int | None = None,
    ) -> None:
        super().__init__(reason, path, position)
        self.errno = errno


class LogLoadingError(_LocatedError):
    """A log that ends the broker that loads it (Kafka: IllegalArgumentException there)."""


class LogLockedError(_LocatedError):
    """A log directory that another process, or another manager in this process, has open.

    Parameters
    ----------
    reason
        Who holds it, and what to do.
    path
        The lock file.
    process_id
        The process that holds the lock; None if the system does not say.
    """

    def __init__(
        self,
        reason: str,
        path: str | os.PathLike[str] | None = None,
        process_id: int | None = None,
    ) -> None:
        super().__init__(reason, path)
        self.process_id = process_id


class InvalidOffsetError(_LocatedError):
    """An index entry that does not increase the index's offsets (Kafka: InvalidOffsetException)."""


class IndexOffsetOverflowError(_LocatedError):
    """An offset too far from its index's base offset (Kafka: IndexOffsetOverflowException)."""


class LogSegmentOffsetOverflowError(_LocatedError):
    """A segment whose offsets span more than 31 bits (Kafka: LogSegmentOffsetOverflowException)."""


class _PartitionError(LogStorageError):
    """A request to one partition that was refused; the partition is unchanged.

    Parameters
    ----------
    reason
        What is wrong, found against expected.
    topic_partition
        The partition as text, such as ``web-events-0``, if known.
    """

    def __init__(self, reason: str, topic_partition: str | None = None) -> None:
        super().__init__(reason, topic_partition)
        self.reason = reason
        self.topic_partition = topic_partition

    def __str__(self) -> str:
        where = "" if self.topic_partition is None else f" in partition {self.topic_partition}"
        return f"{self.reason}{where}"


class RecordTooLargeError(_PartitionError):
    """A batch above ``max.message.bytes`` (Kafka: RecordTooLargeException)."""


class RecordBatchTooLargeError(_PartitionError):
    """Records larger than ``segment.bytes`` (Kafka: RecordBatchTooLargeException)."""


class RecordValidationError(_PartitionError):
    """Records that cannot be appended (Kafka: RecordValidationException).

    Parameters
    ----------
    reason
        What is wrong with the append as a whole.
    record_errors
        The index in its batch of each wrong record, and what is wrong with it.
    topic_partition
        The partition as text, if known.
    """

    _SHOWN_RECORDS = 3

    def __init__(
        self,
        reason: str,
        record_errors: tuple[tuple[int, str], ...] = (),
        topic_partition: str | None = None,
    ) -> None:
        super().__init__(reason, topic_partition)
        self.args = (reason, record_errors, topic_partition)
        self.record_errors = record_errors

    def __str__(self) -> str:
        shown_errors = self.record_errors[: self._SHOWN_RECORDS]
        details = "".join(f"; record {index}: {text}" for index, text in shown_errors)
        if more := len(self.record_errors) - len(shown_errors):
            details += f"; and {more} more"
        return f"{super().__str__()}{details}"


class InvalidTimestampError(RecordValidationError):
    """Records whose timestamps the topic does not allow (Kafka: InvalidTimestampException)."""


class OffsetsOutOfOrderError(_PartitionError):
    """Appended offsets that do not increase (Kafka: OffsetsOutOfOrderException)."""


class UnexpectedAppendOffsetError(_PartitionError):
    """Appended offsets that begin below the log end offset.

    Kafka: UnexpectedAppendOffsetException.

    Parameters
    ----------
    reason, topic_partition
        What is wrong, and where.
    first_offset, last_offset
        The first and last offset of the records that were to be appended, both inclusive.
    """

    def __init__(
        self,
        reason: str,
        topic_partition: str | None = None,
        first_offset: int | None = None,
        last_offset: int | None = None,
    ) -> None:
        super().__init__(reason, topic_partition)
        self.first_offset = first_offset
        self.last_offset = last_offset


class OutOfOrderSequenceError(_PartitionError):
    """A sequence number that does not follow (Kafka: OutOfOrderSequenceException)."""


class InvalidProducerEpochError(_PartitionError):
    """A producer epoch below the known one (Kafka: InvalidProducerEpochException)."""


class InvalidTxnStateError(_PartitionError):
    """A batch that its producer's transaction does not allow (Kafka: InvalidTxnStateException)."""


class TransactionCoordinatorFencedError(_PartitionError):
    """A replaced coordinator's marker (Kafka: TransactionCoordinatorFencedException)."""


class OffsetInsideBatchError(LogStorageError):
    """A cut of a log at an offset that lies inside a batch.

    Parameters
    ----------
    topic_partition
        The log, as text.
    requested
        Where it was to be cut.
    first, following
        The nearest offsets at which it can be cut: the first of that batch, and the one after it.
    """

    def __init__(self, topic_partition: str, requested: int, first: int, following: int) -> None:
        super().__init__(topic_partition, requested, first, following)
        self.topic_partition = topic_partition
        self.requested = requested
        self.first = first
        self.following = following

    def __str__(self) -> str:
        return (
            f"offset {self.requested} of {self.topic_partition} lies inside a batch of offsets "
            f"{self.first} to {self.following - 1}: the log can be cut at {self.first} or at "
            f"{self.following}"
        )


class PolicyViolationError(_PartitionError):
    """A request that the topic's configuration forbids (Kafka: PolicyViolationException)."""
