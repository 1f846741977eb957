"""The data source whose tasks, commits and aborts are killed where a kill point says.

All is done by the writers of ``format("pylog")``. Option ``kill`` holds the kill point; it travels
with the writer to the tasks, and to the process that commits.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, cast

from pyspark.sql.datasource import DataSourceArrowWriter

from pyspark_pylog.data_source import PylogDataSource
from pyspark_pylog.spark_workarounds.stand_ins import DataSourceStreamArrowWriter
from tests.kills.kill_point import KillPoint

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType

    from pyspark_pylog.writers import PylogBatchWriter, PylogStreamWriter, StagedTask

FORMAT = "pylog_that_is_killed"


class DeadlyDataSource(PylogDataSource):
    """``format("pylog")``, with its option ``kill``."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        given = dict(options.items())
        self._kill = given.pop("kill", None)
        super().__init__(given)

    @classmethod
    def name(cls) -> str:
        """Return another name than the real one."""
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> DeadlyBatchWriter:  # noqa: FBT001
        """Return the batch writer."""
        writer = super().writer(schema, overwrite)
        return DeadlyBatchWriter(cast("PylogBatchWriter", writer), self._kill)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DeadlyStreamWriter:  # noqa: FBT001, N802
        """Return the stream writer."""
        writer = super().streamWriter(schema, overwrite)
        return DeadlyStreamWriter(cast("PylogStreamWriter", writer), self._kill)


def _armed(kill: str | None, step: str) -> AbstractContextManager[None]:
    return nullcontext() if kill is None else KillPoint.from_json(kill).armed(step)


class DeadlyBatchWriter(DataSourceArrowWriter):
    """A batch writer that is killed."""

    def __init__(self, writer: PylogBatchWriter, kill: str | None) -> None:
        self._writer = writer
        self._kill = kill

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedTask:
        """Stage."""
        with _armed(self._kill, "write"):
            return self._writer.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit."""
        with _armed(self._kill, "commit"):
            self._writer.commit(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Abort."""
        with _armed(self._kill, "abort"):
            self._writer.abort(messages)


class DeadlyStreamWriter(DataSourceStreamArrowWriter):
    """A stream writer that is killed."""

    def __init__(self, writer: PylogStreamWriter, kill: str | None) -> None:
        self._writer = writer
        self._kill = kill

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedTask:
        """Stage."""
        with _armed(self._kill, "write"):
            return self._writer.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit."""
        with _armed(self._kill, "commit"):
            self._writer.commit(messages, batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Abort."""
        with _armed(self._kill, "abort"):
            self._writer.abort(messages, batchId)
