"""A job that writes rows to a log directory as a whole: staged by many processes, committed by one.

Tasks stage rows in files of their own, without a lock; the commit appends all of them, or nothing,
and never twice. How, and what a crash leaves, stands in `pylog.writing.job_commit`.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - of a dataclass field
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylog.files.commit_ledger import read_ledger
from pylog.files.staged_files import JobKey, as_job_key
from pylog.files.topic_name import ensure_valid_topic
from pylog.files.writable_directory import writable_log_directory
from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylog.files.staged_files import StagedRecords
    from pylog.log.log_context import LogContext
    from pylog.writing import job_commit, job_stage, staged_leftovers  # import Arrow and Numba
    from pylog.writing.job_stage import JobStage
    from pylog.writing.write_summary import WriteJobSummary
else:
    job_commit = LazyModule("pylog.writing.job_commit")
    job_stage = LazyModule("pylog.writing.job_stage")
    staged_leftovers = LazyModule("pylog.writing.staged_leftovers")

DEFAULT_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    topic: str | None = None
    partitions: int | None = None
    partitioner: str = "default"
    compression: str = "none"
    level: int | None = None
    batch_size_bytes: int = 16_384
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteJob(_Options):
    """What is to be written, where and how; pickled to every task.

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

    Examples
    --------
    >>> job = pylog.WriteJob("/data/logs", "nightly-2026-11-22", topic="orders")
    >>> with job.stage("task-0") as stage:
    ...     stage.append(record_batch)
    >>> job.commit([stage.staged])
    """

    directory: str
    job_id: str
    batch_id: int | None = None

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

    def is_committed(self) -> bool:
        """Whether the ledger has the job. Takes no lock.

        Raises
        ------
        CorruptCheckpointError, LogDirectoryError
            The ledger is malformed, or cannot be read.
        """
        return self.key in read_ledger(writable_log_directory(self.directory))

    def stage(self, attempt: str, *, context: LogContext | None = None) -> JobStage:
        """Return what takes the rows of one attempt of a task, within its ``with`` block.

        It changes nothing but files of its own; where it fails, it leaves none.

        Parameters
        ----------
        attempt
            What the attempt is called, in `StagedRecords`.
        context
            Clock and disk; the real ones if None.

        Raises
        ------
        LogDirectoryError, ValueError
            The directory is not one that can be written to, or an option is wrong.
        """
        return job_stage.JobStage(self, attempt, context)

    def commit(
        self,
        staged: Iterable[StagedRecords],
        *,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        context: LogContext | None = None,
    ) -> WriteJobSummary:
        """Append what was staged, all of it or nothing, and return when it is on the disk.

        Of a job that has been committed nothing is written; its staged files are removed.

        Parameters
        ----------
        staged
            What the successful attempt of each task has staged; rows are appended in this order.
        timeout
            How many seconds to wait for somebody else to let go of the log directory.
        context
            Clock, disk and background work; the real ones if None.

        Raises
        ------
        LogLockedError
            A broker, or another process, has held the directory for that long.
        ValueError
            Something of another job is to be committed.
        LogStorageError
            A topic has changed since rows were staged for it, a staged file is gone or damaged, or
            the disk failed. If the manifest was published before, the next owner of the directory
            completes the commit.
        """
        return job_commit.commit(self, list(staged), timeout, context)

    def abort(
        self, staged: Sequence[StagedRecords | None] = (), *, context: LogContext | None = None
    ) -> None:
        """Remove what was staged for the job, also by attempts that failed or are not named.

        What a commit has published stays, and so do the files of a commit that is to be completed.
        May be repeated.

        Parameters
        ----------
        staged
            What attempts have staged; None for one that failed.
        context
            The disk; the real one if None.

        Raises
        ------
        LogStorageError
            The directory cannot be listed, or a file not be removed.
        """
        staged_leftovers.abort(self.directory, self.key, staged, context)
