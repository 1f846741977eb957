"""One compiled signature a kernel: a second one would be compiled at run time, for 0.5 s each."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

import pytest

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.columnar.window import Window
from pylog.kernels import (
    decode_control,
    decode_headers,
    decode_legacy,
    decode_records,
    header_keys,
    scan_batches,
    split_batch,
)
from pylog.model import TopicPartition
from pylog.reading.control_batches import control_types
from pylog.record.batch_scan import find_bad_checksum, find_batches
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

KERNELS = (
    *(decode_control, decode_headers, decode_legacy, decode_records),
    *(header_keys, scan_batches, split_batch),
)

ENTRY_POINTS = (
    "decode_control.decode_control_types",
    "decode_headers.decode_headers",
    "decode_legacy.decode_legacy",
    "decode_legacy.find_bad_crc",
    "decode_records.copy_headers",
    "decode_records.decode_records",
    "scan_batches.scan_batches",
)


def dispatchers() -> dict[str, Any]:
    return {
        f"{module.__name__.split('.')[-1]}.{name}": function
        for module in KERNELS
        for name, function in vars(module).items()
        if hasattr(function, "signatures")
    }


def use_every_kernel(data: bytes | bytearray) -> None:
    scan = find_batches(as_buffer(data))
    assert find_bad_checksum(scan) is None
    control_types(scan, scan.headers.is_control.nonzero()[0])
    window = Window(scan.buffer, scan.headers.select(~scan.headers.is_control), "0.log", 0)
    for unit in ("us", "ms"):
        for headers in (True, False):
            schema = record_schema(include_headers=headers, timestamp_unit=unit)
            decoder = RecordDecoder(TopicPartition("orders", 0), schema)
            decoded = list(decoder.decode(window, 0, 2**62))
            assert sum(batch.num_rows for batch in decoded) == 14
            if headers:
                assert len(rows(decoded)) == 14


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled")
def test_bytes_and_bytearrays_share_one_signature() -> None:
    batches = [
        message(Stored(0, -1, b"k", None), magic=0),
        wrapper(plain_records(1, 3), magic=1, codec="lz4"),
        batch_v2([Stored(4, 1, b"k", b"v", (("h", b"1"),))]),
        batch_v2(plain_records(5, 9), codec="gzip"),
        marker(14, COMMIT),
    ]
    use_every_kernel(joined(batches))
    use_every_kernel(bytearray(joined(batches)))
    counts = {name: len(function.signatures) for name, function in dispatchers().items()}
    # Helpers have none of their own where the caller came out of Numba's cache.
    several = [name for name, count in counts.items() if count > 1]
    assert several == []
    assert {name: counts[name] for name in ENTRY_POINTS} == dict.fromkeys(ENTRY_POINTS, 1)


def test_kernels_import_nothing_of_ours() -> None:
    for kernel in KERNELS:
        foreign = [
            value.__name__
            for value in vars(kernel).values()
            if isinstance(value, ModuleType) and value.__name__.startswith("pylog")
        ]
        assert foreign == []
