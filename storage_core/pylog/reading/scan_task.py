"""The public `ScanTask`: a planned range that reads itself, in any process that unpickles it.

The range is a value of its own (`pylog.reading.planned_range`): the reader imports the range, and
the task imports the reader. Planning and pickling need neither Arrow nor Numba.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.lazy_modules import LazyModule
from pylog.reading.damage import ReadMode
from pylog.reading.planned_range import PlannedRange
from pylog.record.decompression_limit import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pylog.columnar import arrow_schema  # imports Arrow
    from pylog.reading import read_options, reader  # import Arrow and NumPy
    from pylog.reading.damage import DamageReport
else:
    arrow_schema = LazyModule("pylog.columnar.arrow_schema")
    read_options = LazyModule("pylog.reading.read_options")
    reader = LazyModule("pylog.reading.reader")


@dataclass(frozen=True, slots=True)
class ScanTask(PlannedRange):
    """A range of one partition, made by `Scan.plan`; see `PlannedRange` for its attributes.

    Tasks may be read in any order, by any number of processes: pickle the task, and read it with
    the schema of the scan that planned it.

    Examples
    --------
    >>> scan = pylog.scan("/mnt/kafka-logs", topics="orders")
    >>> for task in scan.plan():
    ...     for batch in task.read(scan.schema):
    ...         print(batch.num_rows)
    """

    def read(
        self,
        schema: pa.Schema | None = None,
        *,
        mode: str | ReadMode = ReadMode.FAILFAST,
        damage: DamageReport | None = None,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
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

        Raises
        ------
        LogStorageError
            As for `Scan.to_batches`. The records before the error have been yielded.
        ValueError
            There is no such mode.
        """
        options = read_options.ReadOptions(
            mode=ReadMode.parse(mode), max_decompressed_bytes=max_decompressed_bytes
        )
        return reader.TaskReader(self, schema, options, damage=damage).record_batches()

    def count(
        self,
        *,
        mode: str | ReadMode = ReadMode.FAILFAST,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    ) -> int:
        """Return how many records the task has, from batch headers wherever possible.

        Parameters
        ----------
        mode, max_decompressed_bytes
            As of `read`.

        Raises
        ------
        LogStorageError
            What `Scan.count` raises.
        ValueError
            There is no such mode.
        """
        options = read_options.ReadOptions(
            mode=ReadMode.parse(mode), max_decompressed_bytes=max_decompressed_bytes
        )
        return reader.TaskReader(self, arrow_schema.record_schema(("offset",)), options).count()
