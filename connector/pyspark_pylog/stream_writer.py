"""The stream writer: each micro-batch is a job of its own, committed once.

The ledger of the log directory knows a micro-batch by its query's id and its number, both of which
the query's checkpoint keeps: one that Spark runs again is skipped. Spark makes a new writer for the
tasks of each micro-batch, and another for its commit: only messages go from one to the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import TaskContext

from pyspark_pylog.staged_task import (
    StagedTask,
    abort_tasks,
    commit_tasks,
    make_directory,
    stage_rows,
)
from pyspark_pylog.stream_arrow_writer import DataSourceStreamArrowWriter
from pyspark_pylog.write_schema import columns_to_write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType

    from pyspark_pylog.write_options import WriteOptions

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


class PylogStreamWriter(DataSourceStreamArrowWriter):
    """Stages a micro-batch on executors, commits it on the driver.

    Parameters
    ----------
    options
        Checked options.
    schema
        Of the DataFrame.

    Raises
    ------
    ValueError
        A column is wrong, or missing.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._columns = columns_to_write(schema, has_topic=options.topic is not None)
        # Only a task knows the query's id; what is wrong with the options shows before one runs.
        make_directory(options.job("not known yet"))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedTask:
        """Stage the rows of one task of a micro-batch."""
        query_id, batch_id = _micro_batch()
        job = self._options.job(query_id, batch_id)
        return stage_rows(job, self._columns, iterator, query_id)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Write a micro-batch to the topics' logs, unless that has been done before."""
        query_id = _query_of(messages)
        if query_id is not None:
            job = self._options.job(query_id, batchId)
            commit_tasks(job, messages, self._options.commit_timeout_ms / 1000)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Remove what the tasks of a micro-batch have staged.

        Where no task came to its end, nobody says which query it was: what a killed one has left
        is removed with the next commit of that micro-batch.
        """
        query_id = _query_of(messages)
        if query_id is not None:
            abort_tasks(self._options.job(query_id, batchId), messages)


def _micro_batch() -> tuple[str, int]:
    """Return the query's id and the micro-batch's number, as Spark tells its tasks."""
    context = TaskContext.get()
    query_id = None if context is None else context.getLocalProperty(_QUERY_ID)
    batch_id = None if context is None else context.getLocalProperty(_BATCH_ID)
    if query_id is None or batch_id is None:
        msg = (
            f"this task has no local properties {_QUERY_ID} and {_BATCH_ID}, so a micro-batch that "
            "is run again would not be recognised; streams are written in micro-batches alone"
        )
        raise RuntimeError(msg)
    return query_id, int(batch_id)


def _query_of(messages: Sequence[WriterCommitMessage | None]) -> str | None:
    """Return the id of the query whose tasks sent the messages; None if there is none."""
    ids = (each.query_id for each in messages if isinstance(each, StagedTask))
    return next(ids, None)
