"""Rows of a batch: staged by Spark's tasks, looked at, and only then committed by the driver.

``format("pylog")`` commits as soon as its tasks are done. Here what tasks have seen decides whether
there is a commit, and what its bookmark says: both are of the very rows that are committed, and not
of a second read of a source that may have changed.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pylog.errors import LogStorageError
from pylog_jobs.bookmark import DIGEST_BYTES, MOST_REMEMBERED, RememberedRows
from pylog_jobs.job import UsageError
from pyspark_pylog.jobs import (
    WriteOptions,
    columns_to_write,
    make_directory,
    place_of_write_added,
    stage_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt
    from pyspark.sql import DataFrame

    from pylog.jobs import WriteJob
    from pylog_jobs.target import Target
    from pyspark_pylog.jobs import StagedTask

POSITION, DIGEST = "_pylog_position", "_pylog_digest"
"""Columns beside those of records: where a row is in its source, and what identifies it."""
UNNUMBERED_BYTES = 32
"""The length of a digest of a row that may have equal ones, before they are told apart."""

_STAGED = pa.schema([("staged", pa.binary())])
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StagedRows:
    """What tasks have staged, and what they remember of it."""

    tasks: tuple[StagedTask, ...]
    rows: int
    remembered: RememberedRows


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
        told = pickle.dumps((task, memory.rows, memory.parts))
        yield pa.record_batch([[told]], schema=_STAGED)


class _Memory:
    """Counts rows, and keeps positions and digests of those near the end."""

    def __init__(self, remember_from: int | None) -> None:
        self._remember_from = remember_from
        self.rows = 0
        self._count = 0  # one task alone may remember too many; the driver says so
        self.parts: list[
            tuple[int, npt.NDArray[np.int64], bytes]
        ] = []  # length of a digest, positions, all

    def noted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.rows += batch.num_rows
        if self._remember_from is not None and self._count <= MOST_REMEMBERED:
            is_near = pc.greater_equal(batch.column(POSITION), self._remember_from)
            near = batch.select([POSITION, DIGEST]).filter(is_near)
            for length in (DIGEST_BYTES, UNNUMBERED_BYTES):
                part = near.filter(pc.equal(pc.binary_length(near.column(DIGEST)), length))
                if part.num_rows:
                    self._count += part.num_rows
                    positions = part.column(POSITION).to_numpy()
                    digests = b"".join(part.column(DIGEST).to_pylist())
                    self.parts.append((length, positions, digests))
        return batch


def _told_apart(parts: Sequence[tuple[int, npt.NDArray[np.int64], bytes]]) -> RememberedRows:
    """Return rows with a digest of 16 bytes for each: of equal ones, of their number, too."""
    found = [RememberedRows(at, digests) for length, at, digests in parts if length == DIGEST_BYTES]
    seen: Counter[bytes] = Counter()
    for length, positions, digests in parts:
        if length != UNNUMBERED_BYTES:
            continue
        numbered = bytearray()
        for start in range(0, len(digests), UNNUMBERED_BYTES):
            digest = digests[start : start + UNNUMBERED_BYTES]
            seen[digest] += 1
            numbered += numbered_digest(digest, seen[digest])
        found.append(RememberedRows(positions, bytes(numbered)))
    return RememberedRows.of(found)


def numbered_digest(digest: bytes, number: int) -> bytes:
    """Return what tells the n-th of equal rows from the others."""
    return hashlib.sha256(f"{digest.hex()} {number}".encode()).digest()[:DIGEST_BYTES]


class RecordWrite:
    """The write of one batch to the log directory of a target."""

    def __init__(self, target: Target, job_id: str, batch_id: int | None = None) -> None:
        self._options = WriteOptions.parse({"path": target.directory, **target.write_options()})
        self._job = self._options.job(job_id, batch_id)

    @property
    def is_committed(self) -> bool:
        """Whether the log directory has the job's records already."""
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
        """Return the function that stages the rows of one task."""
        return StagingTask(self._job, columns, remember_from)

    def gathered(self, told: Sequence[bytes]) -> StagedRows:
        """Return what the tasks have staged, by what each of them has told."""
        found = [pickle.loads(each) for each in told]  # noqa: S301 - our own
        remembered = _told_apart([part for _, _, parts in found for part in parts])
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
