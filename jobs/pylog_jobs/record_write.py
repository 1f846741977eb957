"""Rows of a batch: staged by Spark's tasks, looked at, and only then committed by the driver.

``format("pylog")`` commits as soon as its tasks are done. Here what tasks have seen decides whether
there is a commit, and what its bookmark says: both are of the very rows that are committed, and not
of a second read of a source that may have changed.
"""

from __future__ import annotations

import logging
import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pylog.errors import LogStorageError
from pylog_jobs.job import UsageError
from pyspark_pylog.errors import place_of_write_added
from pyspark_pylog.options import WriteOptions
from pyspark_pylog.schemas import columns_to_write
from pyspark_pylog.writers import make_directory, stage_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from pylog.jobs import WriteJob
    from pylog_jobs.target import Target
    from pyspark_pylog.writers import StagedTask

POSITION, DIGEST = "_pylog_position", "_pylog_digest"
"""Columns beside those of records: where a row is in its source, and what identifies it."""
DIGEST_BYTES = 16
MOST_REMEMBERED = 100_000
"""Rows within the lag whose digests a bookmark keeps: 24 bytes each, before they are compressed."""

_STAGED = pa.schema([("staged", pa.binary())])
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StagedRows:
    """What tasks have staged, and what they remember of it."""

    tasks: tuple[StagedTask, ...]
    rows: int
    remembered: dict[bytes, int]  # the position by the digest


@dataclass(frozen=True, slots=True)
class StagingTask:
    """Stages the rows of a task; shipped to executors."""

    job: WriteJob
    columns: tuple[str, ...]
    remember_from: int | None  # None: nothing is remembered

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give one row: what `_Memory` and the connector have to say."""
        memory = _Memory(self.remember_from)
        task = stage_rows(self.job, self.columns, map(memory.noted, batches))
        told = pickle.dumps((task, memory.rows, memory.remembered))
        yield pa.record_batch([[told]], schema=_STAGED)


class _Memory:
    """Counts rows, and keeps positions and digests of those within the lag."""

    def __init__(self, remember_from: int | None) -> None:
        self._remember_from = remember_from
        self.rows = 0
        self.remembered: dict[bytes, int] = {}

    def noted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.rows += batch.num_rows
        if self._remember_from is not None and len(self.remembered) <= MOST_REMEMBERED:
            chosen = pc.greater_equal(batch.column(POSITION), self._remember_from)
            digests = batch.column(DIGEST).filter(chosen).to_pylist()
            positions = batch.column(POSITION).filter(chosen).to_pylist()
            self.remembered.update(zip(digests, positions, strict=True))
        return batch


def ensure_few(remembered: int) -> None:
    """Raise `UsageError` if a bookmark would remember too many rows."""
    if remembered > MOST_REMEMBERED:
        raise UsageError(
            f"[incremental]: more than {MOST_REMEMBERED} rows are within the lag, and the bookmark "
            "remembers no more of them: give a shorter lag"
        )


class RecordWrite:
    """The write of one batch to the log directory of a target."""

    def __init__(self, target: Target, job_id: str, batch_id: int | None = None) -> None:
        self._options = WriteOptions.parse({"path": target.directory, **target.write_options()})
        self._job = self._options.job(job_id, batch_id)

    @property
    def is_committed(self) -> bool:
        """Whether the log directory has it already."""
        return self._job.is_committed()

    def stage(
        self,
        records: DataFrame,
        columns: Sequence[str],
        remember_from: int | None = None,
    ) -> StagedRows:
        """Stage the rows of a DataFrame, of which ``columns`` are those of records."""
        has_topic = self._options.topic is not None
        try:
            to_write = tuple(columns_to_write(records.select(*columns).schema, has_topic=has_topic))
            make_directory(self._job)
        except (LogStorageError, ValueError) as error:
            raise UsageError(str(error)) from error
        task = self.staging_task(to_write, remember_from)
        collected = records.mapInArrow(task, "staged binary").collect()
        return self.gathered([each["staged"] for each in collected])

    def staging_task(self, columns: tuple[str, ...], remember_from: int | None) -> StagingTask:
        """Return what stages the rows of one task."""
        return StagingTask(self._job, columns, remember_from)

    def gathered(self, told: Sequence[bytes]) -> StagedRows:
        """Return what the tasks have staged, by what each of them has told."""
        found = [pickle.loads(each) for each in told]  # noqa: S301 - our own
        remembered: dict[bytes, int] = {}
        for _, _, of_task in found:
            remembered.update(of_task)
            ensure_few(len(remembered))
        tasks = tuple(task for task, _, _ in found)
        return StagedRows(tasks, sum(rows for _, rows, _ in found), remembered)

    def commit(self, staged: StagedRows, bookmark: str | None = None) -> bool:
        """Publish what is staged, with its bookmark; return False if that was done before."""
        if self._job.is_committed():
            self.abort()
            return False
        of_tasks = [each.staged for each in staged.tasks if each.staged is not None]
        with place_of_write_added():
            summary = replace(self._job, bookmark=bookmark).commit(
                of_tasks,
                timeout=self._options.commit_timeout_ms / 1000,
                recover_as_broker=self._options.recover_as_broker,
            )
        return not summary.already_committed

    def abort(self) -> None:
        """Remove what is staged; what cannot be removed now is removed by a later commit."""
        try:
            self._job.abort()
        except LogStorageError as error:
            _LOGGER.warning("staged files are left over: %s", error)
