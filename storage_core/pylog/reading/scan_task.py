"""A planned piece of a read: which bytes of which files hold a range of offsets. Limits of rows.

Frozen and picklable: made on a driver, read on an executor. Planning and pickling need neither
NumPy nor Arrow.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pylog.errors import UnreadableFileError
from pylog.lazy_modules import LazyModule, load_name
from pylog.locations import name_of
from pylog.log_file.batch_walk import HIGHEST_OFFSET, OFFSETS_IN_SEGMENT
from pylog.reading.damage import ReadMode
from pylog.reading.segments import DEFAULT_ACCESS, FileAccess, open_segment
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from pylog.columnar import arrow_schema  # imports Arrow
    from pylog.files.byte_source import ByteSource
    from pylog.model import AbortedTransaction, TopicPartition
    from pylog.reading.damage import DamageReport
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.record_filter import RecordFilter
else:
    arrow_schema = LazyModule("pylog.columnar.arrow_schema")


@dataclass(frozen=True, slots=True)
class SegmentSlice:
    """Bytes ``[start_position, end_position)`` of one ``.log`` file from a batch on."""

    path: str
    base_offset: int
    next_base_offset: int | None
    start_position: int
    end_position: int
    runs_to_segment_end: bool
    file_id: int = 0
    leaves_page_cache: bool = False
    defect: str | None = None  # why it cannot be opened; then ``path`` may be the directory
    skipped_below: int = 0  # records below this offset are an earlier slice's: segments overlap
    stamp: int = 0  # of a file that does not grow; see `LogSegmentView`
    # Which file held the segment before it, of that base offset: compaction replaces it where it
    # takes this one away.
    file_before: tuple[int, int, int] | None = None
    is_overlong: bool = False  # more than one batch has offsets that no index could hold

    @property
    def first_offset(self) -> int:
        """The lowest offset that records of this slice may have."""
        return max(self.base_offset, self.skipped_below)

    @property
    def segment_base_offset(self) -> int:
        """Base offset of the segment, as the file's name tells it."""
        return int(name_of(self.path)[:20])

    @property
    def limit_offset(self) -> int:
        """What all its offsets lie below: other segments, or what a segment can hold."""
        most = HIGHEST_OFFSET if self.is_overlong else self.segment_base_offset + OFFSETS_IN_SEGMENT
        return most if self.next_base_offset is None else min(most, self.next_base_offset)

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return self.end_position - self.start_position

    def open(self) -> ByteSource:
        """Open the file; `SegmentVanishedError` if it is gone or has been replaced."""
        if self.defect is not None:
            raise UnreadableFileError(self.defect, self.path)
        return open_segment(
            self.path, self.file_id, self.stamp, leaves_page_cache=self.leaves_page_cache
        )


@dataclass(frozen=True, slots=True)
class ScanTask:
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

    directory: PartitionDirectory
    slices: tuple[SegmentSlice, ...]
    start_offset: int
    end_offset: int
    aborted: tuple[AbortedTransaction, ...] = ()
    fail_on_data_loss: bool = True
    where: RecordFilter | None = None
    is_committed: bool = False
    looks_for_late: bool = True
    earliest_offset: int | None = None
    access: FileAccess = DEFAULT_ACCESS

    @property
    def topic_partition(self) -> TopicPartition:
        """Whose records."""
        return self.directory.topic_partition

    @property
    def size_bytes(self) -> int:
        """Bytes of ``.log`` files to read."""
        return sum(each.size_bytes for each in self.slices)

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
        batches: Iterator[pa.RecordBatch] = self._reader(
            schema, mode, max_decompressed_bytes, damage
        ).record_batches()
        return batches

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
            See `read`.

        Raises
        ------
        LogStorageError
            What `Scan.count` raises.
        ValueError
            There is no such mode.
        """
        schema = arrow_schema.record_schema(("offset",))
        count: int = self._reader(schema, mode, max_decompressed_bytes).count()
        return count

    def _reader(
        self,
        schema: pa.Schema | None,
        mode: str | ReadMode,
        max_decompressed_bytes: int,
        damage: DamageReport | None = None,
    ) -> Any:  # noqa: ANN401 - a `TaskReader`, whose module imports this one
        options = load_name(f"{__package__}.checked_windows", "ReadOptions")(
            mode=ReadMode.parse(mode), max_decompressed_bytes=max_decompressed_bytes
        )
        task_reader = load_name(f"{__package__}.reader", "TaskReader")
        return task_reader(self, schema, options, damage=damage)


def check_limit(limit: int | None) -> None:
    """Raise `ValueError` for a limit that is negative; None stands for no limit."""
    if limit is None:
        return
    try:
        operator.index(limit)
    except TypeError:
        msg = f"limit is {limit!r}, expected a whole number, or None for all"
        raise TypeError(msg) from None
    if limit < 0:
        msg = f"limit is {limit}, expected 0 or more"
        raise ValueError(msg)


def limited(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the first ``limit`` rows, all if it is None, and ask for no batch after them."""
    if limit is None:
        yield from batches
        return
    if limit <= 0:
        return
    for batch in batches:
        yield batch.slice(0, min(limit, batch.num_rows))
        limit -= batch.num_rows
        if limit <= 0:
            return


def limited_count(counts: Iterable[int], limit: int | None) -> int:
    """Return the sum of ``counts``, at most ``limit``; counts that cannot matter are not asked."""
    total = 0
    for count in counts:
        total += count
        if limit is not None and total >= limit:
            return limit
    return total
