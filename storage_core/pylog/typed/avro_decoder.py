"""Avro payloads to Arrow columns: memory for the kernel, arrays of what it has filled, and reasons.

A level has room for as many slots as the last payloads needed; where that is too few, the kernel
stops before the payload, and goes on in memory that is larger. How large is bounded: schemas and
payloads may be made to decode to more than fits anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import allocate
from pylog.kernels import decode_avro as kernel
from pylog.kernels.decode_avro import copy_spans, decode_avro, measure_spans
from pylog.typed.avro_columns import Form
from pylog.typed.avro_defaults import encoded_long
from pylog.typed.avro_program import AvroProgram
from pylog.typed.decoder import Decoded, DecodedTooLargeError, Payloads
from pylog.typed.uuid_text import uuid_texts

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.typed.avro_columns import AvroColumn, ColumnBuffer
    from pylog.typed.avro_schema import AvroType

MOST_BYTES = 1 << 29
"""Of all columns that one call makes."""
_ALIGNMENT = 64
_FAILURES_A_CALL = 256
_MOST_TEXT_BYTES = (1 << 31) - 1

_REASONS = {
    kernel.CUT: "the payload ends within the value",
    kernel.LONG_TOO_LONG: "a number has more than 64 bits",
    kernel.OUT_OF_RANGE: "the number {} is out of range",
    kernel.NOT_BOOLEAN: "a boolean is the byte {}, expected 0 or 1",
    kernel.NOT_UTF8: "the text is not UTF-8",
    kernel.BAD_LENGTH: "the length is {}, which is negative or more than the payload has left",
    kernel.BAD_BRANCH: "the union has no type {}",
    kernel.BAD_SYMBOL: "the enum has no symbol {}, or the reader does not know it",
    kernel.BAD_COUNT: "a block has {} items, more than the payload has bytes left",
    kernel.TOO_MANY_EMPTY: "a block has {} items that take no bytes",
    kernel.TRAILING: "{} bytes follow the value",
    kernel.TOO_MANY_DIGITS: "the decimal has more digits than its precision",
    kernel.BAD_BLOCK_SIZE: "the size of a block is {}, more than the payload has left",
}


class AvroDecoder:
    """Decodes what one writer's schema wrote into the columns of a reader's; see `Decoder`.

    With ``is_raw_bytes``, values of the bare type bytes are the payload itself, as Confluent's
    serializers write them.
    """

    def __init__(self, writer: AvroType, reader: AvroType, *, is_raw_bytes: bool = False) -> None:
        is_raw = is_raw_bytes and writer.kind == "bytes"
        self._adds_lengths = is_raw and bool(writer.logical)
        self._program = AvroProgram(writer, reader, is_raw_bytes=is_raw and not writer.logical)
        self._layout = self._program.layout
        self._items_a_payload = np.ones(self._layout.level_count)
        self._is_nullable = reader.kind == "null" or any(
            each.kind == "null" for each in reader.branches
        )

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        return self._layout.root.type

    def decode(self, payloads: Payloads) -> Decoded:
        """Return a value for each payload; see `Decoder`."""
        if self._adds_lengths:
            payloads = _with_lengths(payloads)
        memory = _Memory(self._layout.buffers, self._estimate(len(payloads)))
        failures = self._run(payloads, memory)
        made = _Arrays(payloads.data, self._program.literals, memory)
        root = self._layout.root
        values = made.array(root, keeps_validity=bool(failures) or self._is_nullable)
        return Decoded(values, failures)

    def _estimate(self, rows: int) -> npt.NDArray[np.int64]:
        capacities = (self._items_a_payload * (1.125 * rows)).astype(np.int64) + 8
        capacities[0] = rows
        return capacities

    def _run(self, payloads: Payloads, memory: _Memory) -> dict[int, str]:
        program = self._program
        rows = len(payloads)
        committed = np.zeros_like(memory.counts)
        stack = np.zeros((max(1, program.depth), 2), dtype=np.int64)
        failed = np.zeros((_FAILURES_A_CALL, kernel.FAILURE_WORDS), dtype=np.int64)
        state = np.zeros(2, dtype=np.int64)
        failures: dict[int, str] = {}
        steps = program.placed(memory.bases, memory.span_bases)
        while True:
            done, why, count, needed = decode_avro(
                *(payloads.data, payloads.starts, payloads.ends, steps),
                *(program.fill_step, program.jumps, program.constants, program.literals),
                *(memory.capacities, *memory.views),
                *(memory.positions, memory.counts, committed, stack, failed, state),
            )
            for line in failed[:count].tolist():
                failures[line[0]] = self._reason(line)
            state[0] = memory.counts[0] = done
            if why == kernel.ALL_DONE:
                break
            if why == kernel.LEVEL_FULL:
                level = int(state[1])
                left = rows / max(1, done)
                guess = int(memory.counts[level] * min(left, 2) * 1.125)
                memory.grow(level, max(needed, guess, 2 * int(memory.capacities[level])))
                steps = program.placed(memory.bases, memory.span_bases)
        if rows:
            self._items_a_payload = np.maximum(self._items_a_payload, memory.counts / rows)
        return failures

    def _reason(self, line: list[int]) -> str:
        _, step, why, detail, *places = line
        step //= kernel.STEP_BYTES
        path = self._program.paths[step]
        for place in places:
            path = path.replace("[]", f"[{place}]", 1)
        reason = self._program.refusals.get(step) or _REASONS[why].format(detail)
        return f"{path}: {reason}" if path else reason


def _with_lengths(payloads: Payloads) -> Payloads:
    """Return payloads that start with how many bytes follow: of the few that have none."""
    data, starts, ends = payloads
    contents = [
        data[start:end].tobytes() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    made = [encoded_long(len(each)) + each for each in contents]
    bounds = np.cumsum([0, *map(len, made)], dtype=np.int64)
    return Payloads(np.frombuffer(b"".join(made), np.uint8), bounds[:-1], bounds[1:])


class _Memory:
    """The buffers of all columns, as one memory, and how full the levels are."""

    def __init__(self, buffers: list[ColumnBuffer], capacities: npt.NDArray[np.int64]) -> None:
        self._buffers = buffers
        self._is_span = np.array([each.form is Form.SPANS for each in buffers], dtype=np.bool_)
        self.capacities = capacities
        self.counts = np.zeros_like(capacities)
        self._allocate()
        for number, each in enumerate(buffers):
            if each.form in (Form.SPANS, Form.ENDS):
                self.views[1][self.bases[number]] = 0

    def _allocate(self) -> None:
        starts = []
        at = spans = 0
        span_bases = []
        for each in self._buffers:
            capacity = int(self.capacities[each.level])
            starts.append(at)
            at += -(-_size_of(each, capacity) // _ALIGNMENT) * _ALIGNMENT
            span_bases.append(spans)
            spans += capacity if each.form is Form.SPANS else 0
        if at + 8 * spans > MOST_BYTES:
            raise DecodedTooLargeError
        self.starts = starts
        self.whole, memory = allocate(max(at, _ALIGNMENT))
        memory = memory[: memory.size // 8 * 8]
        self.views = (
            *(memory, memory.view(np.int32), memory.view(np.int64)),
            *(memory.view(np.float32), memory.view(np.float64)),
        )
        self.positions = np.empty(max(spans, 1), dtype=np.int64)
        units = [_unit_of(each) for each in self._buffers]
        self.bases = np.array(starts or [0], dtype=np.int64) // np.array(units or [1])
        self.span_bases = np.array(span_bases or [0], dtype=np.int64)

    def grow(self, level: int, capacity: int) -> None:
        """Give a level room for ``capacity`` slots; what is filled stays."""
        self.capacities[level] = capacity
        old, old_starts, old_positions = self.views[0], self.starts, self.positions
        old_span_bases = self.span_bases
        kept = self.whole  # noqa: F841 - the memory of the old view
        self._allocate()
        for number, each in enumerate(self._buffers):
            used = int(self.counts[each.level])
            size = _size_of(each, used)
            start, old_start = self.starts[number], old_starts[number]
            self.views[0][start : start + size] = old[old_start : old_start + size]
            if each.form is Form.SPANS:
                to, source = self.span_bases[number], old_span_bases[number]
                self.positions[to : to + used] = old_positions[source : source + used]

    def buffer(self, number: int) -> pa.Buffer:
        """Return the filled part of a buffer."""
        each = self._buffers[number]
        size = _size_of(each, int(self.counts[each.level]))
        return self.whole.slice(self.starts[number], size)

    def spans(self, number: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return positions, and lengths after a zero."""
        count = int(self.counts[self._buffers[number].level])
        base, span_base = int(self.bases[number]), int(self.span_bases[number])
        return (
            self.positions[span_base : span_base + count],
            self.views[1][base : base + count + 1],
        )


def _size_of(buffer: ColumnBuffer, slots: int) -> int:
    if buffer.form is Form.BITS:
        return (slots + 7) // 8
    if buffer.form in (Form.SPANS, Form.ENDS):
        return 4 * (slots + 1)
    return buffer.size * slots


def _unit_of(buffer: ColumnBuffer) -> int:
    """Return what the base of a buffer counts, in bytes."""
    if buffer.form is Form.WORDS:
        return 8
    return 4 if buffer.size == 4 and buffer.form is not Form.FIXED else 1


class _Arrays:
    """Makes arrays over the memory that the kernel has filled."""

    def __init__(
        self, data: npt.NDArray[np.uint8], literals: npt.NDArray[np.uint8], memory: _Memory
    ) -> None:
        self._data, self._literals, self._memory = data, literals, memory

    def array(self, column: AvroColumn, *, keeps_validity: bool = True) -> pa.Array:
        """Return the array of a column; its values may be null where they are kept."""
        count = int(self._memory.counts[column.level])
        if column.form == "null":
            return pa.nulls(count, column.type)
        validity = None
        if column.validity is not None and keeps_validity:
            validity = self._memory.buffer(column.validity)
        if column.form == "leaf":
            return self._leaf(column, count, validity)
        children = [self.array(each) for each in column.children]
        buffers = [validity]
        if column.form in ("list", "map"):
            buffers.append(self._memory.buffer(column.data))
            if column.form == "map":
                entries = column.type.key_field, column.type.item_field
                children = [pa.StructArray.from_arrays(children, fields=list(entries))]
        return pa.Array.from_buffers(column.type, count, buffers, children=children)

    def _leaf(self, column: AvroColumn, count: int, validity: pa.Buffer | None) -> pa.Array:
        buffer = self._memory.buffer(column.data)
        if column.avro.logical == "uuid" and column.avro.kind == "fixed":
            return uuid_texts(np.frombuffer(buffer, np.uint8), count, validity)
        if column.avro.logical == "duration":
            parts = np.frombuffer(buffer, "<u4").reshape(-1, 3).astype(np.int64)
            children = [
                pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(part.copy())])
                for part in parts.T
            ]
            return pa.Array.from_buffers(column.type, count, [validity], children=children)
        if column.type not in (pa.string(), pa.binary()):
            return pa.Array.from_buffers(column.type, count, [validity, buffer])
        positions, ends = self._memory.spans(column.data)
        size = measure_spans(ends, count)
        if size > _MOST_TEXT_BYTES:
            raise DecodedTooLargeError
        text, view = allocate(size + 16)
        copy_spans(self._data, self._literals, positions, ends, count, view)
        return pa.Array.from_buffers(column.type, count, [validity, buffer, text.slice(0, size)])
