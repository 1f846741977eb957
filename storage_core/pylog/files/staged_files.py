"""Files of write jobs in a log directory: their names, and what is known of those that are staged.

All are plain files, which brokers pass over. A directory of ours would keep a broker from starting.

================================================== ===============================================
name                                               what it is
================================================== ===============================================
``.pylog-staged-<job>-<random>-<number>.batches``  v2 batches of one partition that are to be
                                                   appended, with offsets from zero
``.pylog-staged-<job>-<random>-<number>.entries``  a row for each of them, laid out below
``.pylog-manifest``                                what is being appended to which logs: see
                                                   `pylog.files.commit_manifest`
``.pylog-ledger``                                  which jobs have been written: see
                                                   `pylog.files.ledger`
``.pylog-ledger-<random>``                         older ones: see `pylog.files.job_archive`
``.pylog-bookmark-<random>``                       how far the source of a job has been read: see
                                                   `pylog.files.bookmark_file`
================================================== ===============================================

``<job>`` is a hash of the job's id and batch id, 16 hex digits: it tells which job a file belongs
to. ``<random>``, 8 hex digits, is drawn for each attempt of a task, so that no two attempts ever
write to one file, whatever their names. That of archives and bookmarks has 32 hex digits.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.files.file_names import ensure_valid_topic_partition
from pylog.lazy_modules import LazyModule
from pylog.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    from pylog.native import checksum

    Int64Array = npt.NDArray[np.int64]
else:
    checksum = LazyModule("pylog.native.checksum")
    np = LazyModule("numpy")


STAGED_PREFIX = ".pylog-staged-"
BATCHES_SUFFIX = ".batches"
ENTRIES_SUFFIX = ".entries"

MAX_STAGED_BYTES = 2**31 - 1
"""As of a ``.log`` file, which a staged file may become."""
_MAX_INT64 = 2**63 - 1
MAX_CRC = 2**32 - 1
_ANY_NAME = re.compile(r"(\.pylog-staged-[0-9a-f]{16}-)[0-9a-f]{8}-[0-9]{1,9}\.(?:batches|entries)")
_NAME = re.compile(r"\.pylog-staged-([0-9a-f]{16})-([0-9a-f]{8})-([0-9]{1,9})\.batches")


class JobKey(NamedTuple):
    """The name of a job in the ledger."""

    job_id: str  # the job's own id, or that of a streaming query
    # The micro-batch of a streaming query; None for a job that writes once.
    batch_id: int | None = None

    def __str__(self) -> str:
        if self.batch_id is None:
            return f"job {self.job_id!r}"
        return f"batch {self.batch_id} of query {self.job_id!r}"

    @property
    def file_prefix(self) -> str:
        """How the names of all staged files of the job begin."""
        content = f"{self.job_id}\0{'' if self.batch_id is None else self.batch_id}".encode()
        return f"{STAGED_PREFIX}{hashlib.sha256(content).hexdigest()[:16]}-"


class StagedFile(NamedTuple):
    """One staged file, as its writer left it."""

    name: str  # of the file with the batches, in the log directory
    topic_partition: TopicPartition  # where its batches are to be appended
    # size_bytes, batch_count, record_count: What it holds.
    size_bytes: int
    batch_count: int
    record_count: int
    # first_crc, last_crc: The checksums that the first and the last batch store.
    first_crc: int
    last_crc: int
    entries_crc: int  # CRC-32C of the file with the entries

    @property
    def entries_name(self) -> str:
        """The name of the file with the entries."""
        return entries_name(self.name)

    def to_json(self) -> dict[str, Any]:
        """Return the fields but topic and partition, as they stand in a manifest."""
        fields = self._asdict()
        del fields["topic_partition"]
        return fields

    @classmethod
    def from_json(cls, content: object, topic_partition: TopicPartition) -> StagedFile:
        """Return the file that a manifest describes."""
        fields = as_object(content, cls._fields[:1] + cls._fields[2:], "staged file")
        name = fields["name"]
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            msg = f"{name!r} is not the name of a staged file"
            raise ValueError(msg)
        return cls(
            name,
            topic_partition,
            as_integer(fields["size_bytes"], "size_bytes", 1, MAX_STAGED_BYTES),
            as_integer(fields["batch_count"], "batch_count", 1, MAX_STAGED_BYTES),
            as_integer(fields["record_count"], "record_count", 1, MAX_STAGED_BYTES),
            *(as_integer(fields[crc], crc, 0, MAX_CRC) for crc in cls._fields[-3:]),
        )


class TopicRules(NamedTuple):
    """What rows were held against when they were staged; a commit finds the same or refuses."""

    topic: str
    # The numbers of its partitions; of a topic that was not there, of those it is to get.
    partitions: tuple[int, ...]
    # Name and text of the properties that rows are held against.
    properties: tuple[tuple[str, str], ...]


class StagedRecords(NamedTuple):
    """What one attempt of a task has staged; small, and pickled on its way to the committer.

    Attributes
    ----------
    key
        Of the job.
    attempt
        What the attempt was called.
    files
        In the order in which they were written; those of one partition follow each other's rows.
    rules
        Of the topics that rows were staged for.
    record_count, size_bytes
        Of all files.
    """

    key: JobKey
    attempt: str
    files: tuple[StagedFile, ...]
    rules: tuple[TopicRules, ...]

    @property
    def record_count(self) -> int:
        """Number of staged records."""
        return sum(each.record_count for each in self.files)

    @property
    def size_bytes(self) -> int:
        """Size of the staged batches."""
        return sum(each.size_bytes for each in self.files)


def staged_file_name(key: JobKey, attempt_token: str, number: int) -> str:
    """Return the name of a staged file with batches."""
    return f"{key.file_prefix}{attempt_token}-{number}{BATCHES_SUFFIX}"


def entries_name(name: str) -> str:
    """Return the name of the file with the entries of a staged file."""
    return name.removesuffix(BATCHES_SUFFIX) + ENTRIES_SUFFIX


def job_prefix_of(name: str) -> str | None:
    """Return how the names of all files of the same job begin; None if it is no staged file's."""
    match = _ANY_NAME.fullmatch(name)
    return None if match is None else match[1]


def as_object(
    content: object, fields: tuple[str, ...], what: str, *, optional: tuple[str, ...] = ()
) -> Mapping[str, Any]:
    """Return ``content`` once it is known to be a JSON object with exactly these fields.

    An optional field that it lacks is None.
    """
    if isinstance(content, dict):
        content = {**dict.fromkeys(optional), **content}
    if not isinstance(content, dict) or set(content) != set(fields):
        found = ", ".join(map(str, content)) if isinstance(content, dict) else type(content)
        msg = f"{what} has fields {found}, expected {', '.join(fields)}"
        raise ValueError(msg)
    return content


def as_list(content: object, what: str) -> list[Any]:
    """Return ``content`` once it is known to be a JSON array; ``ValueError`` if it is not."""
    if not isinstance(content, list):
        msg = f"{what} is of type {type(content).__name__}, expected a list"
        raise ValueError(msg)  # noqa: TRY004 - as every other wrong value
    return content


def as_text(value: object, name: str) -> str:
    """Return ``value`` once it is known to be a text; ``ValueError`` if it is not."""
    if not isinstance(value, str):
        msg = f"{name} is {value!r}, expected text"
        raise ValueError(msg)  # noqa: TRY004 - as every other wrong value
    return value


def as_integer(value: object, name: str, lowest: int, highest: int = _MAX_INT64) -> int:
    """Return ``value`` once it is known to be a whole number in a range."""
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        msg = f"{name} is {value!r}, expected a whole number from {lowest} to {highest}"
        raise ValueError(msg)
    return value


def as_topic_partition(topic: object, partition: object) -> TopicPartition:
    """Return a topic partition; ``ValueError`` unless it is one that Kafka allows."""
    if not isinstance(topic, str):
        msg = f"topic is {topic!r}, expected text"
        raise ValueError(msg)  # noqa: TRY004 - as every other wrong value
    place = TopicPartition(topic, as_integer(partition, "partition", 0, 2**31 - 1))
    ensure_valid_topic_partition(place)
    return place


def as_job_key(job_id: object, batch_id: object) -> JobKey:
    """Return a job's key; ``ValueError`` unless the parts are of the right types and ranges."""
    if not isinstance(job_id, str) or not job_id or len(job_id) > MAX_JOB_ID_LENGTH:
        msg = f"job id is {job_id!r}, expected a text of 1 to {MAX_JOB_ID_LENGTH} characters"
        raise ValueError(msg)
    return JobKey(job_id, None if batch_id is None else as_integer(batch_id, "batch_id", 0))


MAX_JOB_ID_LENGTH = 1_000
