"""Lines with numbers, keys and values in them: a text with placeholders, written by a kernel.

A template is the line as it is printed, ``lastOffset: $lastOffset``. ``$name`` stands for a number
of the batch, one of several words, a text that is known, or a field of the record.
``$name(...$)`` is there for batches or records that meet a condition alone.
"""

from __future__ import annotations

import re
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import (
    all_valid_bitmap,
    allocate,
    bytes_array,
    fixed_width_array,
    present_rows,
)
from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.kernels import write_lines as kernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    Int64Array = npt.NDArray[np.int64]


NO_CHECKS = np.zeros(0, dtype=np.int64)


class Records(NamedTuple):
    """The records of some batches, in order."""

    offsets: Int64Array
    timestamps: Int64Array
    checks: Int64Array
    keys: pa.Array
    values: pa.Array
    headers: pa.Array

    @property
    def rows(self) -> int:
        """Number of records."""
        return int(self.offsets.size)

    def filter(self, is_in: npt.NDArray[np.bool_]) -> Records:
        """Return the records that a mask picks."""
        mask = fixed_width_array(is_in)
        checks = self.checks[is_in] if self.checks.size else self.checks
        arrays = (each.filter(mask) for each in (self.keys, self.values, self.headers))
        return Records(self.offsets[is_in], self.timestamps[is_in], checks, *arrays)

    def as_kernels_take_them(self) -> tuple[npt.NDArray[Any], ...]:
        """Return offsets, timestamps, checks, keys, values and headers as flat arrays."""
        names, values = self.headers.values.field(0), self.headers.values.field(1)
        return (
            *(self.offsets, self.timestamps, self.checks),
            *(*_ends_and_data(self.keys), _bits(self.keys)),
            *(*_ends_and_data(self.values), _bits(self.values)),
            _ends(self.headers),
            *_ends_and_data(names),
            *(*_ends_and_data(values), _bits(values)),
        )


_NO_BYTES = bytes_array([])
NO_RECORDS = Records(
    NO_CHECKS, NO_CHECKS, NO_CHECKS, _NO_BYTES, _NO_BYTES, pa.nulls(0, HEADERS_TYPE)
)


def _ends(array: pa.Array) -> npt.NDArray[np.int32]:
    ends: npt.NDArray[np.int32] = np.frombuffer(array.buffers()[1] or bytes(4), dtype=np.int32)
    return ends[array.offset : array.offset + len(array) + 1]


def _ends_and_data(array: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    return _ends(array), np.frombuffer(array.buffers()[2] or b"", dtype=np.uint8)


def _bits(array: pa.Array) -> npt.NDArray[np.uint8]:
    bitmap = array.buffers()[0]
    if bitmap is None:
        return all_valid_bitmap(len(array))
    if array.offset:
        return np.packbits(present_rows(array), bitorder="little")
    return np.frombuffer(bitmap, dtype=np.uint8)


OUTPUT_BYTES = 1 << 21
"""As much text as is made at once; it stays in the processor's cache until it is written."""

_LEAST_OUTPUT_BYTES = 1 << 14
_TOKEN = re.compile(r"\$(?:(\w+)(\(?)|\))")
NONE: Mapping[Any, Any] = MappingProxyType({})


class Style(IntEnum):
    """How bytes are written; see `pylog.kernels.write_lines`."""

    TEXT = kernel.STYLE_TEXT
    JSON = kernel.STYLE_JSON
    BASE64 = kernel.STYLE_BASE64
    VERBATIM = kernel.STYLE_VERBATIM


_OF_RECORD = {
    "offset": (kernel.OFFSET,),
    "timestamp": (kernel.TIMESTAMP,),
    "keySize": (kernel.KEY_SIZE,),
    "valueSize": (kernel.VALUE_SIZE,),
    "recordCrc": (kernel.CRC,),
    "detail": (kernel.DETAIL,),  # the text that was made for the record
    **{f"headerNames{style.name}": (kernel.HEADER_NAMES, style) for style in Style},
    **{f"headers{style.name}": (kernel.HEADERS, style) for style in Style},
    **{f"key{style.name}": (kernel.KEY, style) for style in Style},
    **{f"value{style.name}": (kernel.VALUE, style) for style in Style},
}
_IF_OF_RECORD = {
    "ifKey": (kernel.SKIP_BY_KEY, 1),
    "ifNoKey": (kernel.SKIP_BY_KEY, 0),
    "ifValue": (kernel.SKIP_BY_VALUE, 1),
    "ifNoValue": (kernel.SKIP_BY_VALUE, 0),
}


class LineTemplate(NamedTuple):
    """The steps of a batch's line and, from ``record_step`` on, of a record's, for the kernel."""

    steps: npt.NDArray[np.int64]
    record_step: int
    most_batch_bytes: int  # of literals and numbers
    most_record_bytes: int
    literals: npt.NDArray[np.uint8]
    literal_ends: npt.NDArray[np.int64]


def line_template(
    batch: str,
    record: str = "",
    *,
    columns: Sequence[str] = (),
    words: Mapping[str, Sequence[str]] = NONE,
    conditions: Mapping[str, tuple[str, int]] = NONE,
    texts: Mapping[str, str] = NONE,
) -> LineTemplate:
    """Return the template of a batch's line and of the lines of its records."""
    steps = _Steps(columns, words, conditions, texts)
    most_batch_bytes = steps.add_line(batch)
    record_step = len(steps.steps)
    most_record_bytes = steps.add_line(record)
    literals = b"".join([*steps.literals, bytes(kernel.LITERAL_PADDING)])
    return LineTemplate(
        np.array(steps.steps, dtype=np.int64).reshape(-1, kernel.STEP_FIELDS),
        record_step,
        most_batch_bytes,
        most_record_bytes,
        np.frombuffer(literals, dtype=np.uint8),
        np.cumsum([0, *map(len, steps.literals)], dtype=np.int64),
    )


class _Steps:
    def __init__(
        self,
        columns: Sequence[str],
        words: Mapping[str, Sequence[str]],
        conditions: Mapping[str, tuple[str, int]],
        texts: Mapping[str, str],
    ) -> None:
        self.steps: list[list[int]] = []
        self.literals: list[bytes] = []
        self._columns, self._words = list(columns), words
        self._conditions, self._texts = conditions, texts
        self._is_literal_open = False

    def add_line(self, line: str) -> int:
        """Add the steps of a line; return how many bytes it has, keys and values left out."""
        open_steps: list[list[int]] = []
        plain, *tokens = _TOKEN.split(line)
        most_bytes = self._add_literal(plain, is_new=True)
        for name, begins_condition, text in zip(*[iter(tokens)] * 3, strict=True):
            if begins_condition:
                self._add(*self._condition(name), -len(self.steps) - 1)
                open_steps.append(self.steps[-1])
            elif name is None:
                open_steps.pop()[-1] += len(self.steps)
            else:
                most_bytes += self._add_field(name)
            most_bytes += self._add_literal(text, is_new=name is None)
        return most_bytes

    def _condition(self, name: str) -> tuple[int, int, int]:
        if name in _IF_OF_RECORD:
            return (*_IF_OF_RECORD[name], 0)
        column, value = self._conditions[name]
        return kernel.SKIP_UNLESS, self._columns.index(column), value

    def _add_field(self, name: str) -> int:
        if name in self._texts:
            return self._add_literal(self._texts[name])
        words = [word.encode() for word in self._words.get(name, ())]
        if name == "recordIsValid":
            words = [b"true", b"false"]
            self._add(kernel.VALIDITY, len(self.literals))
        elif words:
            self._add(kernel.CHOICE, self._columns.index(name), len(self.literals), len(words))
        elif name == "sequence":
            self._add(kernel.SEQUENCE, *map(self._columns.index, ("baseSequence", "baseOffset")))
        elif name in self._columns:
            self._add(kernel.NUMBER, self._columns.index(name))
        else:
            self._add(*_OF_RECORD[name])
        self.literals += words
        return max([kernel.NUMBER_BYTES, *map(len, words)])

    def _add_literal(self, text: str, *, is_new: bool = False) -> int:
        data = text.encode()
        if self._is_literal_open and not is_new:
            self.literals[-1] += data
        elif data:
            self._add(kernel.LITERAL, len(self.literals))
            self.literals.append(data)
            self._is_literal_open = True
        return len(data)

    def _add(self, *step: int) -> None:
        self.steps.append([*step, *[0] * (kernel.STEP_FIELDS - len(step))])
        self._is_literal_open = False


def write_lines(
    template: LineTemplate,
    table: npt.NDArray[np.int64],
    batch_rows: npt.NDArray[np.int64] | None = None,
    records: Records = NO_RECORDS,
    *,
    details: Mapping[int, str] = NONE,
    is_continued: bool = False,
) -> Iterator[memoryview]:
    """Yield the lines of a table of batches in UTF-8, each with its records after it."""
    rows = records.rows
    batch_rows = np.zeros(len(table), dtype=np.int64) if batch_rows is None else batch_rows
    if int(batch_rows.sum()) != rows or batch_rows.size != len(table):
        msg = f"{rows} records for batches with {int(batch_rows.sum())}"
        raise ValueError(msg)
    arrays = records.as_kernels_take_them()
    texts = {row: details[row].encode("utf-8", "replace") for row in sorted(details)}
    detail_sizes = np.zeros(rows + 1, dtype=np.int64)
    for row, text in texts.items():
        detail_sizes[row + 1] = len(text)
    detail_data = np.frombuffer(b"".join(texts.values()), dtype=np.uint8)
    state = np.zeros(kernel.STATES, dtype=np.int64)
    state[kernel.STATE_HAS_LINE] = is_continued
    most = len(table) * template.most_batch_bytes + rows * template.most_record_bytes
    most += 3 * sum(each.size for each in arrays if each.dtype == np.uint8)
    size_bytes = min(max(most, _LEAST_OUTPUT_BYTES), OUTPUT_BYTES)
    while True:
        buffer, out = allocate(size_bytes)
        written = kernel.write_lines(
            *template, table, batch_rows, *arrays, np.cumsum(detail_sizes), detail_data, out, state
        )
        if written:
            yield memoryview(buffer)[:written]
        needed = int(state[kernel.STATE_NEEDED])
        if not needed:
            return
        del buffer, out
        size_bytes = max(OUTPUT_BYTES, needed)
