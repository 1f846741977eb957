"""The writers: tasks stage records, the driver commits them whole or not at all.

Spark pickles a writer on the driver, and gives the same bytes to each task and to the process that
commits or aborts. It loses the message of an attempt that fails, and of one whose double won: what
those have staged is found by its name, which holds the job's, and is removed by commit or abort.

A micro-batch is a job of its own, known in the ledger by the query's id and its number, both of
which the checkpoint keeps: one that Spark runs again is skipped.
"""

from __future__ import annotations

import logging
import os
import socket
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pylog.errors import LogDirectoryError
from pyspark_pylog.errors import place_of_write_added
from pyspark_pylog.schemas import columns_to_write
from pyspark_pylog.spark_workarounds.stand_ins import DataSourceStreamArrowWriter
from pyspark_pylog.spark_workarounds.worker_process import prepare_worker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from pylog.jobs import StagedRecords, WriteJob
    from pyspark_pylog.options import WriteOptions

_ONE_DIRECTORY = (
    "the driver and all executors must see one and the same directory under this path; between "
    "machines that is a shared file system"
)
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StagedTask(WriterCommitMessage):
    """The files that one task has staged."""

    host: str  # where the task ran
    # The records; None if the job had been committed before, so that there was nothing to do.
    staged: StagedRecords | None
    # Of the streaming query that the task belongs to; None in a batch job.
    query_id: str | None = None


def _columns(options: WriteOptions, schema: StructType) -> tuple[str, ...]:
    return columns_to_write(schema, has_topic=options.topic is not None, typed=options.schemas)


def _encoders(options: WriteOptions) -> Mapping[str, Any]:
    with place_of_write_added():
        return options.encoders()


def make_directory(job: WriteJob) -> None:
    """Make the log directory if it is not there: on the driver, before any task runs."""
    with place_of_write_added():
        if not job.is_committed():  # looks at what the directory is
            job.ensure_topic_is_meant()
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
    """Stage the rows of this task; none if the job has been committed."""
    prepare_worker()
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
    return StagedTask(host, stage.staged, query_id)


def commit_tasks(
    job: WriteJob, messages: Sequence[WriterCommitMessage | None], options: WriteOptions
) -> None:
    """Commit what tasks have staged."""
    prepare_worker()
    tasks = [each for each in messages if isinstance(each, StagedTask)]
    with place_of_write_added():
        if not job.is_committed():  # else somebody may have removed what is not needed any more
            for task in tasks:
                _ensure_visible(job, task)
        staged = [task.staged for task in tasks if task.staged is not None]
        summary = job.commit(
            staged,
            timeout=options.commit_timeout_ms / 1000,
            recover_as_broker=options.recover_as_broker,
        )
    if summary.already_committed:
        _LOGGER.warning(
            "pylog: %s has been written to %s before, so nothing was written now",
            job.key,
            job.directory,
        )


def abort_tasks(job: WriteJob, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Remove what tasks have staged; what a commit has taken stays."""
    prepare_worker()
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


class PylogBatchWriter(DataSourceArrowWriter):
    """Stages on executors, commits on the driver."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._columns = _columns(options, schema)
        job = options.job(options.job_id or str(uuid.uuid4()))
        make_directory(job)
        self._job = replace(job, encoders=_encoders(options))
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedTask:
        """Stage the rows of one task."""
        return stage_rows(self._job, self._columns, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Write what the tasks have staged to the topics' logs, once for each job id."""
        commit_tasks(self._job, messages, self._options)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove what the tasks have staged and no commit has taken."""
        abort_tasks(self._job, messages)


class PylogStreamWriter(DataSourceStreamArrowWriter):
    """Stages a micro-batch on executors, commits it on the driver."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._columns = _columns(options, schema)
        # Only a task knows the query's id; what is wrong with the options shows before one runs.
        make_directory(options.job("not known yet"))
        self._encoders = _encoders(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedTask:
        """Stage the rows of one task of a micro-batch."""
        query_id, batch_id = _micro_batch()
        job = self._options.job(query_id, batch_id, self._encoders)
        return stage_rows(job, self._columns, iterator, query_id)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Write a micro-batch to the topics' logs, unless that has been done before."""
        query_id = _query_of(messages)
        if query_id is not None:
            job = self._options.job(query_id, batchId)
            commit_tasks(job, messages, self._options)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Remove what the tasks of a micro-batch have staged."""
        query_id = _query_of(messages)
        if query_id is not None:
            abort_tasks(self._options.job(query_id, batchId), messages)


def _micro_batch() -> tuple[str, int]:
    """Return the query's id and the micro-batch's number, as Spark tells its tasks."""
    context = TaskContext.get()
    query_id = None if context is None else context.getLocalProperty(_QUERY_ID)
    batch_id = None if context is None else context.getLocalProperty(_BATCH_ID)
    if query_id is None or batch_id is None:
        raise RuntimeError(
            f"this task has no local properties {_QUERY_ID} and {_BATCH_ID}, so a micro-batch that "
            "is run again would not be recognised; streams are written in micro-batches alone"
        )
    return query_id, int(batch_id)


def _query_of(messages: Sequence[WriterCommitMessage | None]) -> str | None:
    """Return the id of the query whose tasks sent the messages; None if there is none."""
    ids = (each.query_id for each in messages if isinstance(each, StagedTask))
    return next(ids, None)
