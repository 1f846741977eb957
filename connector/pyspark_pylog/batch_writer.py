"""The batch writer: tasks stage records, the driver commits them whole or not at all.

Spark pickles the writer on the driver, and gives the same bytes to each task and to the process
that commits or aborts: what they share is made in ``__init__``.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter

from pyspark_pylog.staged_task import (
    StagedTask,
    abort_tasks,
    commit_tasks,
    make_directory,
    stage_rows,
)
from pyspark_pylog.write_schema import columns_to_write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType

    from pyspark_pylog.write_options import WriteOptions


class PylogBatchWriter(DataSourceArrowWriter):
    """Stages on executors, commits on the driver.

    Parameters
    ----------
    options
        Checked options.
    schema
        Of the DataFrame.

    Raises
    ------
    ValueError
        A column is wrong, or missing; or an option is not possible.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._columns = columns_to_write(schema, has_topic=options.topic is not None)
        self._job = options.job(options.job_id or str(uuid.uuid4()))
        make_directory(self._job)
        self._commit_timeout = options.commit_timeout_ms / 1000

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedTask:
        """Stage the rows of one task."""
        return stage_rows(self._job, self._columns, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Write what the tasks have staged to the topics' logs, once for each job id."""
        commit_tasks(self._job, messages, self._commit_timeout)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove what the tasks have staged and no commit has taken."""
        abort_tasks(self._job, messages)
