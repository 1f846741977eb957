"""What a task stages and tells the driver of it, and what the driver makes of that.

Spark loses the message of an attempt that fails, and of one whose double won (speculation): what
those have staged is found by its name, which holds the job's, and is removed by commit or abort.
"""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from pylog.errors import LogDirectoryError
from pyspark_pylog.errors import place_of_write_added
from pyspark_pylog.worker_process import exempt_modules_from_collection, let_warnings_through

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from pylog import StagedRecords, WriteJob

_ONE_DIRECTORY = (
    "the driver and all executors must see one and the same directory under this path; between "
    "machines that is a shared file system"
)

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StagedTask(WriterCommitMessage):
    """What one task has staged.

    Attributes
    ----------
    host
        Where the task ran.
    staged
        The records; None if the job had been committed before, so that there was nothing to do.
    query_id
        Of the streaming query that the task belongs to; None in a batch job.
    """

    host: str
    staged: StagedRecords | None
    query_id: str | None = None


def make_directory(job: WriteJob) -> None:
    """Make the log directory if it is not there: on the driver, before any task runs.

    So an executor that does not find it has another file system.

    Raises
    ------
    LogDirectoryError
        It is not one that can be written to.
    """
    with place_of_write_added():
        job.is_committed()  # looks at what the directory is
        try:
            os.makedirs(job.directory, exist_ok=True)  # noqa: PTH103 - kept as text
        except OSError as error:
            msg = f"cannot make the directory: {error.strerror}"
            raise LogDirectoryError(msg, job.directory) from error


def stage_rows(
    job: WriteJob,
    columns: Sequence[str],
    batches: Iterator[pa.RecordBatch],
    query_id: str | None = None,
) -> StagedTask:
    """Stage the rows of this task; none if the job has been committed.

    Parameters
    ----------
    job
        What the task is a part of.
    columns
        Those that make up a record; all others are left out.
    batches
        As Spark gives them.
    query_id
        See `StagedTask`.

    Raises
    ------
    LogDirectoryError
        The log directory is not there on this host.
    LogStorageError, ValueError
        A row cannot be written; the text names it.
    """
    let_warnings_through()
    host = socket.gethostname()
    context = TaskContext.get()
    attempt = 0 if context is None else context.taskAttemptId()
    partition = 0 if context is None else context.partitionId()
    with place_of_write_added(f"partition {partition} of the DataFrame"):
        if not os.path.isdir(job.directory):  # noqa: PTH112 - kept as text
            # The driver has made it if it was not there.
            msg = f"no such directory; {_ONE_DIRECTORY}"
            raise LogDirectoryError(msg, job.directory)
        if job.is_committed():
            return StagedTask(host, None, query_id)
        with job.stage(f"task attempt {attempt} on host {host}") as stage:
            for batch in batches:
                stage.append(batch.select(list(columns)))
    exempt_modules_from_collection()
    return StagedTask(host, stage.staged, query_id)


def commit_tasks(
    job: WriteJob, messages: Sequence[WriterCommitMessage | None], timeout: float
) -> None:
    """Commit what tasks have staged.

    Parameters
    ----------
    job
        What the tasks are parts of.
    messages
        `StagedTask`s.
    timeout
        How many seconds to wait for the directory's lock.

    Raises
    ------
    LogDirectoryError
        A file that a task has staged cannot be seen on this host.
    LogStorageError
        See `pylog.WriteJob.commit`.
    """
    let_warnings_through()
    tasks = [each for each in messages if isinstance(each, StagedTask)]
    with place_of_write_added():
        if not job.is_committed():  # else somebody may have removed what is not needed any more
            for task in tasks:
                _ensure_visible(job, task)
        staged = [task.staged for task in tasks if task.staged is not None]
        summary = job.commit(staged, timeout=timeout)
    if summary.already_committed:
        _LOGGER.warning(
            "pylog: %s has been written to %s before, so nothing was written now",
            job.key,
            job.directory,
        )


def abort_tasks(job: WriteJob, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Remove what tasks have staged; what a commit has taken stays."""
    let_warnings_through()
    tasks = [each for each in messages if isinstance(each, StagedTask)]
    with place_of_write_added():
        job.abort([task.staged for task in tasks])


def _ensure_visible(job: WriteJob, task: StagedTask) -> None:
    for file in () if task.staged is None else task.staged.files:
        path = os.path.join(job.directory, file.name)  # noqa: PTH118 - kept as text
        if not os.path.exists(path):  # noqa: PTH110 - kept as text
            msg = (
                f"no such file, though a task on host {task.host} has staged it; {_ONE_DIRECTORY}. "
                "Nothing was written"
            )
            raise LogDirectoryError(msg, path)
