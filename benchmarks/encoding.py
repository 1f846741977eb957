"""Part ``encode``: Arrow to uncompressed batches with checksums, one core, against Kafka's Java.

Both write the same records, the leading ones of a data set, into batches of 16 KB, and must come to
the same number of batches, the same bytes and the same checksums. Ours begins at an Arrow record
batch in memory, Kafka's at byte arrays in memory; neither keeps a batch longer than it takes to
look at its checksum.
"""

import contextlib
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from benchmarks.data_sets import Bench, DataSet
from benchmarks.java_peer import MEMORY_RECORDS, JavaTools, Jvm, warm_up
from benchmarks.measuring import Figure, Reader, Run, ensure_equal, rounds_of, timed
from benchmarks.ours import reader_of
from pylog.columnar.encode import RecordEncoder

OURS = "pylog RecordEncoder"
JAVA = "Kafka's Java MemoryRecordsBuilder"
BATCH_BYTES = 16_384
_SAMPLE_DIVISOR = 2  # so that a JVM of 1 GB holds the records
_CRC = struct.Struct(">I")
_CRC_POSITION = 17


class Written(NamedTuple):
    """What a repetition came to; equal checksums are equal bytes."""

    records: int
    batches: int
    size_bytes: int
    checksums: int


def leading_columns(bench: Bench, data_set: DataSet, records: int) -> pa.RecordBatch:
    """Return the leading records as one Arrow record batch."""
    with reader_of(bench.directory(data_set.name)) as reader:
        table = reader.read_all().slice(0, records)
    (batch,) = table.select(["key", "value", "timestamp"]).combine_chunks().to_batches()
    return batch


class _OurEncoder:
    """`RecordEncoder` over one record batch."""

    name = OURS

    def __init__(self, columns: pa.RecordBatch) -> None:
        self._columns = columns
        self.records = columns.num_rows
        self.log_bytes = 0
        self.written = Written(0, 0, 0, 0)

    def check(self) -> None:
        """Write once, and keep what it came to."""
        self._write()
        ensure_equal(self.name, self.written.records, self.records)
        self.log_bytes = self.written.size_bytes

    def _write(self) -> None:
        records = batches = size = checksums = 0
        for batch in RecordEncoder(batch_size_bytes=BATCH_BYTES).encode(self._columns):
            records += batch.record_count
            batches += 1
            size += batch.size_bytes
            checksums += _CRC.unpack_from(batch.data, _CRC_POSITION)[0]
        self.written = Written(records, batches, size, checksums)

    def repeat(self) -> Run:
        return timed(self._write)


class _JavaEncoder:
    """``MemoryRecordsBuilder`` over the same records, one warm JVM."""

    name = JAVA

    def __init__(self, jvm: Jvm, ours: _OurEncoder) -> None:
        self._jvm = jvm
        self._ours = ours
        self.records = ours.records
        self.log_bytes = 0

    def check(self) -> None:
        """Warm the JVM up, comparing with our bytes each time."""
        warm_up(self.repeat)
        self.log_bytes = self._ours.written.size_bytes

    def repeat(self) -> Run:
        """Write once by the JVM's own clock."""
        numbers = self._jvm.numbers("again")
        ensure_equal(self.name, Written(*numbers[:4]), self._ours.written)
        return Run(numbers[4] / 1e9, numbers[5] / 1e9)


@dataclass(slots=True)
class EncodeResult:
    """The figures of one value size by peer."""

    value_bytes: int
    figures: dict[str, Figure] = field(default_factory=dict)


@contextlib.contextmanager
def _encoders(
    bench: Bench, data_set: DataSet, tools: JavaTools | None
) -> Iterator[dict[str, Reader]]:
    records = data_set.records // _SAMPLE_DIVISOR
    ours = _OurEncoder(leading_columns(bench, data_set, records))
    encoders: dict[str, Reader] = {OURS: ours}
    with contextlib.ExitStack() as stack:
        if tools is not None:
            log = bench.logs(data_set.name)[0].resolve()
            arguments = [str(log), str(records), str(BATCH_BYTES)]
            jvm = stack.enter_context(Jvm(tools, MEMORY_RECORDS, arguments))
            encoders[JAVA] = _JavaEncoder(jvm, ours)
        yield encoders


def encode_sets(
    bench: Bench,
    value_sizes: Sequence[int],
    rounds: int,
    tools: JavaTools | None,
    say: Callable[[str], None],
) -> list[EncodeResult]:
    """Return a result for each value size."""
    results = []
    for value_bytes in value_sizes:
        data_set = bench.base(value_bytes, "none")
        say(f"encoding the records of {data_set.name}")
        with _encoders(bench, data_set, tools) as encoders:
            figures = rounds_of(list(encoders.values()), rounds)
        for figure in figures:  # known only once something has been written
            figure.log_bytes = encoders[figure.reader].log_bytes
        results.append(EncodeResult(value_bytes, dict(zip(encoders, figures, strict=True))))
    return results
