"""Lines as bytes: calls the kernel until all batches and records of a group have been written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.arrow_buffers import allocate
from pylog.kernels import write_lines as kernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from pylog.inspect.dump.line_template import LineTemplate
    from pylog.inspect.dump.record_arrays import RecordArrays

OUTPUT_BYTES = 1 << 21
"""As much text as is made at once; it stays in the processor's cache until it is written."""

_LEAST_OUTPUT_BYTES = 1 << 14


def write_lines(
    template: LineTemplate,
    table: npt.NDArray[np.int64],
    batch_rows: npt.NDArray[np.int64],
    records: RecordArrays,
    *,
    details: Mapping[int, str] | None = None,
    is_continued: bool = False,
) -> Iterator[memoryview]:
    """Yield the lines of batches, each with its records after it.

    Parameters
    ----------
    template
        What they consist of.
    table
        int64, shape (batches, columns): the columns that the template names.
    batch_rows
        How many of ``records`` each batch has.
    records
        Of all these batches, in order.
    details
        Texts of records, by their place; None for none.
    is_continued
        Whether the first batch's own line has been written before.

    Yields
    ------
    memoryview
        UTF-8; it owns its memory.
    """
    if int(batch_rows.sum()) != records.rows or batch_rows.size != table.shape[0]:
        msg = f"{records.rows} records for batches with {int(batch_rows.sum())}"
        raise ValueError(msg)
    detail_ends, detail_data = _details(details, records.rows)
    state = np.zeros(kernel.STATES, dtype=np.int64)
    state[kernel.STATE_HAS_LINE] = is_continued
    size_bytes = _expected_bytes(template, table, records)
    while True:
        buffer, out = allocate(size_bytes)
        written = kernel.write_lines(
            template.steps,
            template.record_step,
            template.most_batch_bytes,
            template.most_record_bytes,
            template.literals,
            template.literal_ends,
            table,
            batch_rows,
            records.offsets,
            records.timestamps,
            records.checks,
            *records.keys,
            *records.values,
            *records.names,
            detail_ends,
            detail_data,
            out,
            state,
        )
        if written:
            yield memoryview(buffer)[:written]
        needed = int(state[kernel.STATE_NEEDED])
        if not needed:
            return
        del buffer, out
        size_bytes = max(OUTPUT_BYTES, needed)


def _expected_bytes(
    template: LineTemplate, table: npt.NDArray[np.int64], records: RecordArrays
) -> int:
    """Return how much memory is worth having at first: little for few lines."""
    lines = table.shape[0] * template.most_batch_bytes + records.rows * template.most_record_bytes
    data = records.keys.data.size + records.values.data.size
    return int(min(max(lines + 3 * data, _LEAST_OUTPUT_BYTES), OUTPUT_BYTES))


def _details(
    details: Mapping[int, str] | None, count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    sizes = np.zeros(count + 1, dtype=np.int64)
    if not details:
        return sizes, np.zeros(0, dtype=np.uint8)
    texts = {row: details[row].encode("utf-8", "replace") for row in sorted(details)}
    for row, text in texts.items():
        sizes[row + 1] = len(text)
    return np.cumsum(sizes), np.frombuffer(b"".join(texts.values()), dtype=np.uint8)
