"""A job that writes rows to a log directory as a whole: staged by many processes, committed by one.

Tasks stage rows in files of their own, without a lock; the commit appends all of them, or nothing,
and never twice. How, and what a crash leaves, stands in `pylog.writing.job_commit`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.files.bookmark_file import read_bookmark
from pylog.files.ledger import ask_ledger
from pylog.files.owned_directories import writable_log_directory
from pylog.lazy_modules import LazyModule
from pylog.writing.write_summary import CommittedRun, JobDescription

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylog.files.ledger import Ledger
    from pylog.files.staged_files import StagedRecords
    from pylog.log.log_context import LogContext
    from pylog.writing import job_commit, staged_topic
    from pylog.writing import stage as staging
    from pylog.writing.stage import JobStage
    from pylog.writing.write_summary import WriteJobSummary
else:
    job_commit = LazyModule("pylog.writing.job_commit")
    staged_topic = LazyModule("pylog.writing.staged_topic")
    staging = LazyModule("pylog.writing.stage")

DEFAULT_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class WriteJob(JobDescription):
    """What is to be written, where and how; pickled to every task.

    Parameters, and the errors of wrong ones, as of `JobDescription`.

    Examples
    --------
    >>> import pyarrow
    >>> job = pylog.jobs.WriteJob("logs", "nightly-2026-11-22", topic="orders", partitions=1)
    >>> with job.stage("task-0") as stage:
    ...     stage.append(pyarrow.record_batch({"value": [b"a", b"b"]}))
    >>> job.commit([stage.staged]).records
    2
    """

    def is_committed(self) -> bool:
        """Whether the ledger has the job. Takes no lock.

        Raises
        ------
        CorruptCheckpointError, LogDirectoryError
            The ledger is malformed, or cannot be read.
        ValueError
            It has the job with another fingerprint.
        """
        local = writable_log_directory(self.directory)
        return ask_ledger(local, lambda ledger: ledger.has_job(self.key, self.fingerprint))

    def newest_run(self, *, with_bookmark: bool = True) -> CommittedRun | None:
        """Return the newest run of ``job_id`` that has a ``batch_id``. Takes no lock.

        The ledger keeps it for good.

        Parameters
        ----------
        with_bookmark
            Whether to read its bookmark; `CommittedRun.bookmark` is None otherwise.

        Returns
        -------
        CommittedRun or None
            None if there is none yet.

        Raises
        ------
        CorruptCheckpointError, LogDirectoryError
            The ledger, or the file of the bookmark, is damaged, gone, or cannot be read.
        """
        local = writable_log_directory(self.directory)

        def newest(ledger: Ledger) -> CommittedRun | None:
            entry = ledger.newest(self.job_id, self.fingerprint)
            if entry is None or entry.key.batch_id is None:
                return None
            return CommittedRun(
                entry.key.batch_id,
                entry.time_ms,
                entry.record_count,
                entry.fingerprint,
                read_bookmark(local, entry.bookmark) if with_bookmark else None,
            )

        return ask_ledger(local, newest)

    def ensure_topic_is_meant(self) -> None:
        """Return unless ``topic`` does not exist, and one of a similar name does. Takes no lock.

        Raises
        ------
        UnknownTopicOrPartitionError
            That is so, and ``creates_similar_topic`` is not given; staging raises it, too.
        ValueError
            ``topic`` does not exist, and a cluster would refuse it beside another one that does.
        LogDirectoryError
            The directory is not one that can be written to, or cannot be read.
        """
        if self.topic is not None:
            local = writable_log_directory(self.directory)
            staged_topic.ensure_topic_is_meant(self, local, self.topic)

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
        UnknownTopicOrPartitionError
            When the first row comes: see `ensure_topic_is_meant`.
        """
        return staging.JobStage(self, attempt, context)

    def commit(
        self,
        staged: Iterable[StagedRecords],
        *,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        context: LogContext | None = None,
        recover_as_broker: bool = False,
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
        recover_as_broker
            Whether recovery may drop intact batches, as a broker's does.

        Raises
        ------
        RecoveryRefusedError
            It would drop some of a log that rows go to, and may not. Nothing has been written.
        LogLockedError
            A broker, or another process, has held the directory for that long.
        ValueError
            Something of another job is to be committed, or the ledger has the job with another
            fingerprint.
        LogStorageError
            A topic has changed since rows were staged for it, a staged file is gone or damaged, or
            the disk failed. If the manifest was published before, the next owner of the directory
            completes the commit.
        """
        return job_commit.commit(
            self, list(staged), timeout, context, recover_as_broker=recover_as_broker
        )

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
        job_commit.abort(self.directory, self.key, staged, context)
