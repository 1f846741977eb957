"""What a write job is to write, where and how: plain values, pickled to every task."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - of a dataclass field
from dataclasses import KW_ONLY, dataclass, field

from pylog.files.file_names import ensure_valid_topic
from pylog.files.staged_files import JobKey, as_job_key

DEFAULT_BATCH_SIZE_BYTES = 16_384
"""The default of producer property ``batch.size``."""


@dataclass(frozen=True, slots=True)
class JobDescription:
    """The values of a `pylog.WriteJob`.

    Parameters
    ----------
    directory
        A log directory on a file system that all tasks and the committer share.
    job_id
        Names the job in the ledger of the directory: what was committed under it is not written
        again.
    batch_id
        The micro-batch of a streaming query, whose id ``job_id`` is then. None for other jobs.
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

    def __post_init__(self) -> None:
        as_job_key(self.job_id, self.batch_id)
        if self.topic is not None:
            ensure_valid_topic(self.topic)
        if self.partitions is not None and self.partitions < 1:
            msg = f"a new topic has 1 partition or more, not {self.partitions}"
            raise ValueError(msg)
        if self.batch_size_bytes < 1:
            msg = f"batch_size_bytes is {self.batch_size_bytes}, it must be at least 1"
            raise ValueError(msg)

    @property
    def key(self) -> JobKey:
        """What names the job in the ledger."""
        return JobKey(self.job_id, self.batch_id)
