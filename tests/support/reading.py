"""What ``pylog`` reads, in the tests' own terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import pylog
from tests.support.batches import Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from pylog.reading.damage import DamagedRange
    from pylog.record.record import Record


def as_buffer(data: bytes | bytearray) -> npt.NDArray[np.uint8]:
    """Return ``data`` as the kernels take it: uint8, one-dimensional, read-only."""
    return np.frombuffer(memoryview(data).toreadonly(), dtype=np.uint8)


def stored(records: Iterable[Record]) -> list[Stored]:
    """Return records of the plain-Python reference."""
    return [
        Stored(
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            tuple((header.key, header.value) for header in record.headers),
            int(record.timestamp_type),
        )
        for record in records
    ]


def rows(batches: Iterable[pa.RecordBatch]) -> list[Stored]:
    """Return the rows of record batches that have all of Spark's columns and ``headers``."""
    return [row for batch in batches for row in _rows_of(batch)]


def _rows_of(batch: pa.RecordBatch) -> Iterator[Stored]:
    batch.validate(full=True)
    unit = batch.schema.field("timestamp").type.unit
    scale = 1000 if unit == "us" else 1
    stamps = batch.column("timestamp").cast(pa.int64()).to_pylist()
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names if name in _READ}
    for place, stamp in enumerate(stamps):
        headers = columns["headers"][place] or ()
        yield Stored(
            columns["offset"][place],
            stamp // scale,
            columns["key"][place],
            columns["value"][place],
            tuple((header["key"], header["value"]) for header in headers),
            columns["timestampType"][place],
        )


_READ = ("offset", "key", "value", "timestampType", "headers")


def scanned(path: Path, **options: Any) -> list[Stored]:  # noqa: ANN401 - of pylog.scan
    """Return what `pylog.scan` gives, after checking that its count agrees."""
    scan = pylog.scan(path, include_headers=True, timestamp_unit="ms", **options)
    found = rows(scan.to_batches())
    assert scan.count() == len(found)
    return found


def read_skipping_damage(
    directory: Path,
    **options: Any,  # noqa: ANN401 - of pylog.scan
) -> tuple[list[int], list[DamagedRange]]:
    """Return the offsets that mode DROPMALFORMED reads, and the ranges that it reports."""
    scan = pylog.scan(directory, mode="DROPMALFORMED", **options)
    offsets = scan.to_table()["offset"].to_pylist()
    ranges = list(scan.damage.ranges)
    assert scan.count() == len(offsets)
    assert scan.damage.ranges == ranges
    return offsets, ranges


def spans(ranges: Iterable[DamagedRange]) -> list[tuple[int, int, int, int | None]]:
    """Return where damaged ranges lie: bytes from and to, offsets from and to."""
    return [
        (each.position, each.end_position, each.next_offset, each.end_offset) for each in ranges
    ]
