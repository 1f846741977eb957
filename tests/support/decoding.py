"""The two ways from bytes to records: through the kernels, and by the plain-Python reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.errors import CorruptRecordError
from pylog.model import TopicPartition
from pylog.record.batch_scan import Window, find_batches
from pylog.record.compression import Decompressor
from pylog.record.record import wrap_int64
from pylog.record.record_batch import RecordBatch
from tests.support.batches import INT64_MAX, Stored
from tests.support.reading import as_buffer, rows, stored

if TYPE_CHECKING:
    import pyarrow as pa

PARTITION = TopicPartition("orders", 7)
SEGMENT = "/logs/orders-7/00000000000000000000.log"
FILE_POSITION = 1_000
MAX_DECOMPRESSED_BYTES = 1 << 22


def kernel_batches(
    data: bytes | bytearray,
    schema: pa.Schema | None = None,
    start_offset: int = -(2**63),
    end_offset: int = INT64_MAX,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> list[pa.RecordBatch]:
    """Return what the compiled way makes of every whole batch, control batches included.

    As in the reader, but for the checksums: they are not looked at.
    """
    scan = find_batches(as_buffer(data))
    if schema is None:
        schema = record_schema(include_headers=True, timestamp_unit="ms")
    decoder = RecordDecoder(PARTITION, schema, max_decompressed_bytes=max_decompressed_bytes)
    window = Window.of(scan, SEGMENT, FILE_POSITION)
    return list(decoder.decode(window, start_offset, end_offset))


def kernel_records(
    data: bytes | bytearray, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> list[Stored]:
    return rows(kernel_batches(data, max_decompressed_bytes=max_decompressed_bytes))


def reference_records(data: bytes | bytearray) -> list[Stored]:
    """Return the records of the same batches by the plain-Python reference."""
    scan = find_batches(as_buffer(data))
    decompressor = Decompressor(MAX_DECOMPRESSED_BYTES)
    records: list[Stored] = []
    before = -1
    for position in scan.headers.positions.tolist():
        batch = RecordBatch(bytes(data)[position:], decompressor)
        found = stored(batch.records())
        is_legacy = batch.header.magic < 2
        # What the reference, which knows one batch only, cannot see: messages that begin below the
        # end of what is before them. Of v2 the header tells, and whoever reads windows looks there.
        if is_legacy and found[0].offset <= before:
            raise CorruptRecordError("messages overlap")
        before = wrap_int64(batch.header.last_offset)
        records += found
    return records
