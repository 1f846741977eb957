"""What callers hand to the kernels is of the types that these declare."""

from __future__ import annotations

from types import ModuleType

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.model import TopicPartition
from pylog.reading.checked_windows import control_types
from pylog.record.batch_scan import Window, find_bad_checksum, find_batches
from tests.support.batches import (
    COMMIT,
    Stored,
    batch_v2,
    joined,
    marker,
    message,
    plain_records,
    wrapper,
)
from tests.support.reading import as_buffer, rows
from tests.unit.kernels.conftest import KERNELS, MODULES


def use_every_decoding_kernel(data: bytes | bytearray) -> None:
    scan = find_batches(as_buffer(data))
    assert find_bad_checksum(scan) is None
    control_types(scan, scan.headers.is_control.nonzero()[0])
    window = Window.of(scan, "0.log", 0).select(~scan.headers.is_control)
    for unit in ("us", "ms"):
        for headers in (True, False):
            schema = record_schema(include_headers=headers, timestamp_unit=unit)
            decoder = RecordDecoder(TopicPartition("orders", 0), schema)
            decoded = list(decoder.decode(window, 0, 2**62))
            assert sum(batch.num_rows for batch in decoded) == 14
            if headers:
                assert len(rows(decoded)) == 14


def test_bytes_and_bytearrays_are_what_the_kernels_take() -> None:
    batches = [
        message(Stored(0, -1, b"k", None), magic=0),
        wrapper(plain_records(1, 3), magic=1, codec="lz4"),
        batch_v2([Stored(4, 1, b"k", b"v", (("h", b"1"),))]),
        batch_v2(plain_records(5, 9), codec="gzip"),
        marker(14, COMMIT),
    ]
    use_every_decoding_kernel(joined(batches))
    use_every_decoding_kernel(bytearray(joined(batches)))


def test_there_are_kernels() -> None:
    assert len(KERNELS) >= 15


def test_kernels_import_nothing_of_ours() -> None:
    for module in MODULES:
        foreign = [
            value.__name__
            for value in vars(module).values()
            if isinstance(value, ModuleType) and value.__name__.startswith("pylog")
        ]
        assert foreign == []
