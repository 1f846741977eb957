"""A planned piece of a read, which reads itself wherever it is unpickled.

Making one, and pickling, need neither NumPy nor Arrow: the reader is imported when one is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.lazy_modules import LazyModule
from pylog.reading.damage import ReadMode
from pylog.reading.task_range import TaskRange
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pylog.columnar import arrow_schema  # imports Arrow
    from pylog.reading import checked_windows, reader
    from pylog.reading.damage import DamageReport, ReadModeName
    from pylog.reading.typed_records import TypedRecords
else:
    arrow_schema = LazyModule("pylog.columnar.arrow_schema")
    checked_windows = LazyModule("pylog.reading.checked_windows")
    reader = LazyModule("pylog.reading.reader")


@dataclass(frozen=True, slots=True)
class ScanTask(TaskRange):
    """A range of offsets of one partition, and where its records are; made by `Scan.plan`.

    Tasks may be read in any order, by any number of processes: pickle the task, and read it with
    the schema of the scan that planned it.

    Attributes
    ----------
    directory
        Where the partition is.
    slices
        In offset order.
    start_offset, end_offset
        Records with ``start_offset <= offset < end_offset``; the slices may hold more.
    aborted
        Transactions whose batches are left out.
    fail_on_data_loss
        Whether records of the range that are deleted before they are read are an error.
    where
        Which of the records are wanted; None for all.
    is_committed
        Whether the range is read with READ_COMMITTED.
    looks_for_late
        Whether slices may begin with batches too early for ``where``, which are skipped.
    earliest_offset
        Where the log began, of a read that starts with it: a task that begins there begins where
        the log does by then. None for a read from an offset.
    access
        How files are read.

    Examples
    --------
    >>> scan = pylog.scan("kafka/intact", topics="orders")
    >>> sum(batch.num_rows for task in scan.plan() for batch in task.read(scan.schema))
    106
    """

    def read(
        self,
        schema: pa.Schema | None = None,
        *,
        mode: ReadModeName | ReadMode = ReadMode.FAILFAST,
        damage: DamageReport | None = None,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        typed: TypedRecords | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the task's records in offset order, as record batches that own their memory.

        At any time at most one window of a file, and the rows that it decodes to, are in memory.

        Parameters
        ----------
        schema
            `Scan.schema`, or what `pylog.record_schema` returns; None for all of Spark's columns.
            It also decides whether fields are nullable.
        mode
            What happens at damage, as for `pylog.scan`.
        damage
            The report that gets the ranges that are left out, in modes that skip damage.
        max_decompressed_bytes
            As for `pylog.scan`.
        typed
            `Scan.typed` of a scan with typed keys or values; ``schema`` is then its schema.

        Raises
        ------
        LogStorageError
            As for `Scan.to_batches`. The records before the error have been yielded.
        ValueError
            There is no such mode.
        """
        made = self._reader(schema, mode, max_decompressed_bytes, damage, typed)
        return made.record_batches()

    def count(
        self,
        *,
        mode: ReadModeName | ReadMode = ReadMode.FAILFAST,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    ) -> int:
        """Return how many records the task has, from batch headers wherever possible.

        Parameters
        ----------
        mode, max_decompressed_bytes
            See `read`.

        Raises
        ------
        LogStorageError
            What `Scan.count` raises.
        ValueError
            There is no such mode.
        """
        schema = arrow_schema.record_schema(("offset",))
        return self._reader(schema, mode, max_decompressed_bytes).count()

    def _reader(
        self,
        schema: pa.Schema | None,
        mode: ReadModeName | ReadMode,
        max_decompressed_bytes: int,
        damage: DamageReport | None = None,
        typed: TypedRecords | None = None,
    ) -> reader.TaskReader:
        options = checked_windows.ReadOptions(
            mode=ReadMode.parse(mode), max_decompressed_bytes=max_decompressed_bytes, typed=typed
        )
        return reader.TaskReader(self, schema, options, damage=damage)
