"""The reader under test: ``pylog.scan(directory).to_reader()``, every default column.

The only file of the benchmarks that calls pylog in this process.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import pylog
from benchmarks.data_sets import Bench, DataSet
from benchmarks.measuring import Run, Tally, ensure_equal, timed


def reader_of(directory: Path) -> pa.RecordBatchReader:
    """Return a reader of every record under `directory`."""
    return pylog.scan(str(directory)).to_reader()


def drain(directory: Path) -> int:
    """Return how many records there are, having decoded each into Arrow and dropped it."""
    return sum(batch.num_rows for batch in reader_of(directory))


def count(directory: Path) -> int:
    """Return how many records there are, from batch headers alone."""
    return int(pylog.scan(str(directory)).count())


def examined_records(directory: Path) -> int:
    """Return how many records are sound, of a log with which nothing is wrong; on one thread."""
    report = pylog.doctor(directory, threads=1)
    ensure_equal("doctor", report.worst, None)
    return sum(partition.offsets.records for partition in report.partitions)


def rows_of_a_batch(directory: Path) -> int:
    """Return how many rows the reader's batches have, the small first and last ones aside."""
    return max(int(batch.num_rows) for batch in reader_of(directory))


def _timestamps_ms(column: pa.Array) -> int:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", tz=column.type.tz))
    return int(pc.sum(column.cast(pa.int64())).as_py())


class OurReader:
    """pylog over one data set, whole."""

    name = "pylog"

    def __init__(self, bench: Bench, data_set: DataSet) -> None:
        self._data_set = data_set
        self._directory = bench.directory(data_set.name)
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes

    def check(self) -> None:
        """Compare the sums of everything with what was written."""
        ensure_equal(self.name, self.tally(), self._data_set.tally)

    def tally(self) -> Tally:
        """Read everything and return its sums."""
        records = key_bytes = value_bytes = offsets = timestamps_ms = 0
        for batch in reader_of(self._directory):
            records += batch.num_rows
            key_bytes += pc.sum(pc.binary_length(batch.column("key"))).as_py()
            value_bytes += pc.sum(pc.binary_length(batch.column("value"))).as_py()
            offsets += pc.sum(batch.column("offset")).as_py()
            timestamps_ms += _timestamps_ms(batch.column("timestamp"))
        return Tally(records, key_bytes, value_bytes, offsets, timestamps_ms)

    def repeat(self) -> Run:
        """Read everything into Arrow, counted; a batch is let go before the next."""
        return timed(lambda: drain(self._directory))
