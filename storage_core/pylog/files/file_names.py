"""Names of the files in a partition directory and of the directories in a log directory.

Segment files
    ``<base offset, 20 digits><suffix>`` with suffix ``.log``, ``.index``, ``.timeindex`` or
    ``.txnindex``; producer snapshots ``<offset, 20 digits>.snapshot`` where the offset is
    exclusive. ``.deleted``, ``.cleaned`` and ``.swap`` are appended to such a name.
Directories
    ``<topic>-<partition>``; a topic may hold dashes, so the last dash separates.
    ``<topic>-<partition>.<32 hex digits>-delete`` (topic being deleted), ``-stray`` (not owned by
    this broker) and ``-future`` (a replica on its way between disks).
Topics
    1 to 249 characters of ``[a-zA-Z0-9._-]``, and neither ``.`` nor ``..``. In the name of a
    deleted partition's directory the topic is cut, to keep it within 255 characters.

Source: LogFileUtils, LocalLog.parseTopicPartitionName, LocalLog.logDeleteDirName, UnifiedLog,
Topic.validate (Kafka 3.9 and 4.3).
"""

from __future__ import annotations

import difflib
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import UnexpectedFileError
from pylog.files.java_numbers import parse_integer
from pylog.model import TopicPartition

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable

LOG_FILE_SUFFIX = ".log"
KAFKA_0_7_LOG_FILE_SUFFIX = ".kafka"
INDEX_FILE_SUFFIX = ".index"
TIME_INDEX_FILE_SUFFIX = ".timeindex"
TXN_INDEX_FILE_SUFFIX = ".txnindex"
PRODUCER_SNAPSHOT_FILE_SUFFIX = ".snapshot"
DELETED_FILE_SUFFIX = ".deleted"
CLEANED_FILE_SUFFIX = ".cleaned"
SWAP_FILE_SUFFIX = ".swap"
DELETE_DIR_SUFFIX = "-delete"
STRAY_DIR_SUFFIX = "-stray"
FUTURE_DIR_SUFFIX = "-future"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
REMOTE_LOG_INDEX_CACHE = "remote-log-index-cache"
MANIFEST = ".pylog-manifest"
LEDGER = ".pylog-ledger"
BOOKMARK_PREFIX = ".pylog-bookmark-"
ONLY_REPLICA = ".pylog-only-replica"

_OFFSET_DIGITS = 20
_MAX_OFFSET = 2**63 - 1
MAX_PARTITION = 2**31 - 1
"""The highest number of a partition: a broker reads an int32 from the directory's name."""
METADATA_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
"""Of ``__cluster_metadata-0``; a directory that Kafka 4.4 has formatted holds nothing else."""
_SUFFIXED_DIRECTORY = re.compile(r"(\S+)-(\S+)\.(\S+)-(delete|future|stray)")
SEGMENT_FILE_SUFFIXES = (
    LOG_FILE_SUFFIX,
    INDEX_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
)
_DATA_SUFFIXES = (
    LOG_FILE_SUFFIX,
    INDEX_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
)
_STATE_SUFFIXES = (DELETED_FILE_SUFFIX, CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX)
_ENDINGS = {
    suffix + state: (suffix, state) for suffix in _DATA_SUFFIXES for state in ("", *_STATE_SUFFIXES)
}
"""What may follow the offset in a name."""

MAX_TOPIC_LENGTH = 249
_MAX_DIRECTORY_LENGTH = 255
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


class SegmentFileName(NamedTuple):
    """The parts of a segment file's name."""

    base_offset: int
    suffix: str
    state: str


class SegmentTarget(NamedTuple):
    """Where a segment's files lie: directory, base offset, and what follows their usual names."""

    directory: str
    base_offset: int
    file_suffix: str = ""
    stem: str | None = None

    def path(self, suffix: str) -> str:
        """Return the path of the file with ``suffix``."""
        stem = file_name_prefix(self.base_offset) if self.stem is None else self.stem
        name = f"{stem}{suffix}{self.file_suffix}"
        return os.path.join(self.directory, name)  # noqa: PTH118 - called for every segment


class PartitionDirectoryName(NamedTuple):
    """The parts of a partition directory's name.

    ``state`` is ``""`` for a live partition, else ``-delete``, ``-stray`` or ``-future``. In the
    first two cases Kafka may have cut the topic to keep the name within 255 characters.
    """

    topic_partition: TopicPartition
    state: str


def file_name_prefix(offset: int) -> str:
    """Return ``offset`` as the 20 digits that begin a segment file's name."""
    if not 0 <= offset <= _MAX_OFFSET:
        msg = f"offset {offset} is not in 0 .. 2^63-1"
        raise ValueError(msg)
    return f"{offset:0{_OFFSET_DIGITS}d}"


def find_segment_file_name(name: str) -> SegmentFileName | None:
    """Return the parts of ``name``, or None if it does not name a segment file or a snapshot."""
    digits, ending = name[:_OFFSET_DIGITS], _ENDINGS.get(name[_OFFSET_DIGITS:])
    # str.isdecimal alone would let other scripts' digits pass.
    if ending is None or not (digits.isascii() and digits.isdecimal()):
        return None
    base_offset = int(digits)
    return SegmentFileName(base_offset, *ending) if base_offset <= _MAX_OFFSET else None


def is_kafka_0_7_log(name: str) -> bool:
    """Whether ``name`` is that of a segment of Kafka 0.7: 20 digits and ``.kafka``."""
    digits = name.removesuffix(KAFKA_0_7_LOG_FILE_SUFFIX)
    is_number = digits.isascii() and digits.isdecimal()
    return digits != name and is_number and len(digits) == _OFFSET_DIGITS


def is_partition_file(name: str) -> bool:
    """Whether a directory that holds a file of this name is a partition's."""
    return (
        name in (PARTITION_METADATA, LEADER_EPOCH_CHECKPOINT)
        or find_segment_file_name(name) is not None
        or is_kafka_0_7_log(name)
        or METADATA_SNAPSHOT.fullmatch(name) is not None
    )


def parse_partition_directory_name(name: str) -> PartitionDirectoryName:
    """Return the topic, the partition and the state that a directory name tells."""
    state = next(
        (s for s in (DELETE_DIR_SUFFIX, STRAY_DIR_SUFFIX, FUTURE_DIR_SUFFIX) if name.endswith(s)),
        "",
    )
    stem = name
    if state:
        if _SUFFIXED_DIRECTORY.fullmatch(name) is None:
            reason = f"directory name {name!r} ends in {state} but is not <topic>-<n>.<id>{state}"
            raise UnexpectedFileError(reason)
        stem = name[: name.rindex(".")]
    topic, dash, number = stem.rpartition("-")
    reason = f"directory name {name!r} is not <topic>-<partition>"
    if not (dash and topic):
        raise UnexpectedFileError(reason)
    try:
        partition = parse_integer(number, 32)
    except ValueError as error:
        raise UnexpectedFileError(reason) from error
    if not _is_text(topic):
        reason = f"directory name {name!r} has bytes that are not UTF-8, which no topic's name has"
        raise UnexpectedFileError(reason)
    return PartitionDirectoryName(TopicPartition(topic, partition), state)


def _is_text(name: str) -> bool:
    """Whether a name is text: bytes that are not UTF-8 are lone surrogates, which no column has."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def find_partition_directory_name(name: str) -> PartitionDirectoryName | None:
    """Return what `parse_partition_directory_name` does, or None where that raises."""
    try:
        return parse_partition_directory_name(name)
    except UnexpectedFileError:
        return None


def ensure_valid_topic(topic: str) -> None:
    """Raise `ValueError` unless Kafka allows a topic of this name."""
    reason = None
    if not topic:
        reason = "it is empty"
    elif topic in {".", ".."}:
        reason = "it cannot be '.' or '..'"
    elif len(topic) > MAX_TOPIC_LENGTH:
        reason = f"it has {len(topic)} characters, at most {MAX_TOPIC_LENGTH} are allowed"
    elif _LEGAL.fullmatch(topic) is None:
        reason = "it may consist of ASCII letters, digits, '.', '_' and '-' only"
    if reason is not None:
        msg = f"{topic!r} is not a topic name: {reason}"
        raise ValueError(msg)


def nearest_topic(name: str, known: Iterable[str], *, least_similarity: float = 0.6) -> str | None:
    """Return the known topic that ``name`` was probably meant to be; None if none is similar."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=least_similarity)
    return near[0] if near else None


def colliding_topic(name: str, known: Iterable[str]) -> str | None:
    """Return a known topic whose metrics would have the names of another's; None if there is none.

    Source: Topic.hasCollision (Kafka 4.3).
    """
    folded = name.replace(".", "_")
    return next((each for each in sorted(known) if each.replace(".", "_") == folded), None)


def ensure_valid_topic_partition(topic_partition: TopicPartition) -> None:
    """Raise `ValueError` unless Kafka allows the topic, and a directory of the partition's name."""
    topic, partition = topic_partition
    ensure_valid_topic(topic)
    if not 0 <= partition <= MAX_PARTITION:
        msg = f"partition is {partition}, expected 0 to {MAX_PARTITION}"
        raise ValueError(msg)
    length = len(f"{topic}-{partition}")
    if length > _MAX_DIRECTORY_LENGTH:
        msg = (
            f"directory of partition {partition} of topic {topic!r} would have a name of {length} "
            f"characters, at most {_MAX_DIRECTORY_LENGTH} are allowed"
        )
        raise ValueError(msg)


def log_delete_directory_name(topic_partition: TopicPartition, unique_id: uuid.UUID) -> str:
    """Return the name that the directory of a deleted partition gets."""
    suffix = f"-{topic_partition.partition}.{unique_id.hex}{DELETE_DIR_SUFFIX}"
    return topic_partition.topic[: _MAX_DIRECTORY_LENGTH - len(suffix)] + suffix
