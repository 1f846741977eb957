"""Neighbouring JSON lines of the common form, to columns at once.

What the common form is, says `pylog.kernels.parse_lines`; what lines mean, `record_line`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.kernels import parse_lines as kernel
from pylog.writing.record_rows import ROW_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_MOST_BYTES = 1 << 30
"""Of the lines that are looked at together: places in columns have 31 bits."""


class LineRun(NamedTuple):
    """Records of neighbouring lines that belong to one partition, or are to be given one each.

    Attributes
    ----------
    topic, partition
        What all the lines say; None where they do not.
    rows
        The records; see `pylog.writing.record_rows.rows_to_batch`.
    """

    topic: str | None
    partition: int | None
    rows: pa.RecordBatch


class LineRuns:
    """Finds runs in some lines. One thread.

    Parameters
    ----------
    lines
        Without their ends.
    is_text
        Whether keys and values are text, in lines that do not say.
    """

    def __init__(self, lines: Sequence[bytes], *, is_text: bool) -> None:
        self._is_text = is_text
        content = b"\n".join([*lines, b""])
        self._content = np.frombuffer(content, dtype=np.uint8)
        line_feeds = np.flatnonzero(self._content == ord("\n"))
        # A line feed within a line would be a blank to JSON, and must not be an end to us.
        self._is_possible = len(content) <= _MOST_BYTES and line_feeds.size == len(lines)
        self._starts = np.concatenate([[0], line_feeds + 1])
        rows = len(lines)
        self._timestamps = np.empty(rows, dtype=np.int64)
        self._ends = [np.empty(rows + 1, dtype=np.int32) for _ in range(2)]
        self._data = [np.empty(self._content.size, dtype=np.uint8) for _ in range(2)]
        self._has = [np.empty(rows, dtype=np.uint8) for _ in range(2)]

    def run_from(self, index: int) -> LineRun | None:
        """Return the run that begins with a line; None if that line is not of the common form."""
        if not self._is_possible:
            return None
        run = np.empty(kernel.RUN_FIELDS, dtype=np.int64)
        columns = zip(self._ends, self._data, self._has, strict=True)
        count = kernel.parse_lines(
            self._content,
            self._starts[index:],
            self._is_text,
            self._timestamps,
            *(array for column in columns for array in column),
            run,
        )
        if count == 0:
            return None
        topic = None
        if run[kernel.RUN_TOPIC_START] >= 0:
            name = self._content[run[kernel.RUN_TOPIC_START] : run[kernel.RUN_TOPIC_END]]
            topic = name.tobytes().decode("ascii")
        partition = int(run[kernel.RUN_PARTITION])
        key, value = (self._column(each, count) for each in range(2))
        rows = [key, value, self._times(count), pa.nulls(count, ROW_SCHEMA.field("headers").type)]
        return LineRun(
            topic,
            None if partition == kernel.NONE else partition,
            pa.record_batch(rows, schema=ROW_SCHEMA),
        )

    def _column(self, number: int, count: int) -> pa.Array:
        ends = self._ends[number][: count + 1]
        has = self._has[number][:count]
        return pa.Array.from_buffers(
            pa.binary(),
            count,
            [
                _validity(has.view(np.bool_)),
                pa.py_buffer(ends.tobytes()),
                pa.py_buffer(self._data[number][: ends[-1]].tobytes()),
            ],
        )

    def _times(self, count: int) -> pa.Array:
        times = self._timestamps[:count]
        content = pa.py_buffer(times.tobytes())
        validity = _validity(times != kernel.NULL_TIMESTAMP)
        return pa.Array.from_buffers(pa.int64(), count, [validity, content])


def _validity(is_valid: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    if is_valid.all():
        return None
    return pa.py_buffer(np.packbits(is_valid, bitorder="little").tobytes())
