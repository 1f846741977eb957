"""Lines of a format of kcat."""

from __future__ import annotations

import pyarrow as pa

from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.record_lines.line_format import LineFormat

BATCH = pa.RecordBatch.from_arrays(
    [
        pa.array(["orders", "web"]),
        pa.array([0, 12], pa.int32()),
        pa.array([5, 70]),
        pa.array([1_700_000_000_000, -1], pa.timestamp("ms", tz="UTC")),
        pa.array([b"k\xff", None], pa.binary()),
        pa.array([None, b"val\nue"], pa.binary()),
        pa.array([[("a", b"1"), ("b", None)], None], HEADERS_TYPE),
    ],
    names=["topic", "partition", "offset", "timestamp", "key", "value", "headers"],
)


def lines(text: str, batch: pa.RecordBatch = BATCH) -> bytes:
    line_format = LineFormat.of_kcat(text)
    return b"".join(line_format.lines_of(batch.select(line_format.columns)))
