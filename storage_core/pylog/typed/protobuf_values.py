"""Protobuf messages to a column: the kernel for what is plain, the reader for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.kernels import protobuf_values as kernel
from pylog.kernels.json_values import add_lengths
from pylog.record_lines.arrow_functions import if_else, take
from pylog.typed.kernel_runs import UnreadablePayloadError, Usage, decode_runs
from pylog.typed.protobuf_reader import read_protobuf, read_raw
from pylog.typed.protobuf_types import (
    DURATION,
    IN_BYTES,
    MAP,
    PLAIN,
    TIMESTAMP,
    WRAPPER,
    ProtobufProgram,
    ProtoNode,
    program_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pylog.typed.decoder import Decoded, Payloads
    from pylog.typed.kernel_runs import PayloadRun

    Flags = npt.NDArray[np.uint8]

_NANOS = 10**9


class ProtobufDecoder:
    """Decodes messages of one type.

    Parameters
    ----------
    root
        What they are read as; see `protobuf_types.node_of_message`.
    """

    def __init__(self, root: ProtoNode) -> None:
        self._root = root
        self._program = program_of(root)
        self._guesses = self._program.next_fields.copy()
        program = self._program
        domains = program.table[:, kernel.DOMAIN].tolist()
        self._usage = Usage(domains, program.strings)

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        return self._root.type

    def decode(self, payloads: Payloads) -> Decoded:
        """Return a value for each message; one that cannot be read is null."""
        return decode_runs(
            payloads,
            self.type,
            self._usage,
            lambda slots, room: _Columns(self._program, self._guesses, slots, room),
            lambda payload: read_protobuf(payload, self._root),
        )


class _Columns:
    """What the kernel writes to, and the columns that it is."""

    def __init__(
        self,
        program: ProtobufProgram,
        guesses: npt.NDArray[np.int64],
        slots: Sequence[int],
        room: Sequence[int],
    ) -> None:
        self._program = program
        self._guesses = guesses
        self._table = program.table.copy()
        self._slots = np.array(slots, dtype=np.int64)
        self._begins = np.zeros(len(program.nodes), dtype=np.int64)
        words = valid = size = 0
        for number, node in enumerate(program.nodes):
            row = self._table[number]
            count = slots[row[kernel.DOMAIN]]
            row[kernel.VALID] = valid
            valid += count
            if node.kind != kernel.STRUCT:
                row[kernel.WORDS] = words
                words += count
            self._begins[number] = size
            size += room[number]
            row[kernel.OUT_END] = size
        for members in program.oneofs:
            for number in members:
                self._table[number, kernel.ONEOF] = words
            words += slots[self._table[members[0], kernel.DOMAIN]]
        self._words = np.zeros(words, dtype=np.int64)
        self._valid = np.zeros(valid, dtype=np.uint8)
        self._out = np.empty(size, dtype=np.uint8)
        self._out_ends = self._begins.copy()
        self.counts = np.zeros(len(slots), dtype=np.int64)
        self._refused: list[npt.NDArray[np.int64]] = []

    def read(self, part: PayloadRun, left: Flags) -> bool:
        """Read messages; return whether there was room for all."""
        status, message = kernel.read_protobuf_values(
            *(part.data, part.starts, part.ends, part.first, part.last),
            *(self._table.reshape(-1), self._program.tables, self._slots, self._guesses),
            *(self._words, self._valid, self.counts, np.empty_like(self.counts)),
            *(self._out, self._out_ends, left),
            np.empty(kernel.MOST_DEPTH * kernel.FRAME, dtype=np.int64),
        )
        if status == kernel.BAD_ARGUMENTS:
            raise ValueError(f"message {message} has too few bytes behind it")
        return bool(status == kernel.DONE)

    def finish(self, left: Flags) -> pa.Array:
        """Return the values, and mark messages with times that their columns do not hold."""
        rows = int(self.counts[0])
        valid = self._valid[:rows] & (left == 0)
        values = self._array(0, valid)
        if not self._refused:
            return values
        left[np.concatenate(self._refused)] = 1
        return if_else(pa.array(left == 0), values, pa.nulls(rows, values.type))

    def _array(self, number: int, present: Flags) -> pa.Array:
        """Return the column of a node; ``present`` says where there is what it is a part of."""
        node, row = self._program.nodes[number], self._table[number]
        count = present.size
        own = self._valid[row[kernel.VALID] :][:count]
        valid = present if node.is_present else own
        if node.shape in {TIMESTAMP, DURATION}:
            return self._times(number, valid)
        if node.shape == WRAPPER:
            return self._array(int(row[kernel.FIRST_CHILD]), valid)
        nulls = count - int(np.count_nonzero(valid))
        buffers = [pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None]
        if node.kind == kernel.STRUCT:
            children = self._children(number, valid)
            return pa.Array.from_buffers(node.type, count, buffers, nulls, children=children)
        words = self._words[row[kernel.WORDS] :][:count]
        if node.kind in IN_BYTES:
            return self._bytes(number, own, words, buffers, nulls)
        if node.kind == kernel.LIST:
            return self._list(number, valid, words, buffers, nulls)
        if node.enum is not None:
            return _named(node, own, valid, words)
        if node.default:
            words = np.where(own != 0, words, _word(node))
        buffers.append(pa.py_buffer(_fixed(node, words)))
        return pa.Array.from_buffers(node.type, count, buffers, nulls)

    def _children(self, number: int, present: Flags) -> list[pa.Array]:
        first = int(self._table[number, kernel.FIRST_CHILD])
        children = self._program.nodes[number].children
        return [self._array(first + place, present) for place in range(len(children))]

    def _list(
        self,
        number: int,
        valid: Flags,
        words: npt.NDArray[np.int64],
        buffers: list[pa.Buffer | None],
        nulls: int,
    ) -> pa.Array:
        node = self._program.nodes[number]
        offsets = np.empty(valid.size + 1, dtype=np.int32)
        elements = add_lengths(words, np.ones_like(valid), offsets)
        buffers.append(pa.py_buffer(offsets))
        children = self._children(number, np.ones(elements, dtype=np.uint8))
        if node.shape == MAP:
            entries = pa.struct([node.type.key_field, node.type.item_field])
            fields = [children[0].field(place) for place in range(2)]
            children = [pa.Array.from_buffers(entries, elements, [None], 0, children=fields)]
        return pa.Array.from_buffers(node.type, valid.size, buffers, nulls, children=children)

    def _bytes(
        self,
        number: int,
        own: Flags,
        words: npt.NDArray[np.int64],
        buffers: list[pa.Buffer | None],
        nulls: int,
    ) -> pa.Array:
        node = self._program.nodes[number]
        offsets = np.empty(own.size + 1, dtype=np.int32)
        end = add_lengths(words, own, offsets)
        buffers += [pa.py_buffer(offsets), pa.py_buffer(self._out[self._begins[number] :][:end])]
        if node.shape != PLAIN:
            stored = pa.Array.from_buffers(pa.binary(), own.size, buffers, nulls)
            return self._converted(number, stored)
        found = pa.Array.from_buffers(node.type, own.size, buffers, nulls)
        if not node.default:
            return found
        return if_else(pa.array(own != 0), found, pa.scalar(node.default, node.type))

    def _converted(self, number: int, stored: pa.Array) -> pa.Array:
        """Return what messages are that were kept as their bytes."""
        node = self._program.nodes[number]
        values, wrong = [], []
        for slot, content in enumerate(stored.to_pylist()):
            try:
                is_absent = content is None and not node.is_present
                values.append(None if is_absent else read_raw(content or b"", node))
            except UnreadablePayloadError:
                values.append(None)
                wrong.append(slot)
        self._refuse(number, np.array(wrong, dtype=np.int64))
        return pa.array(values, type=node.type)

    def _times(self, number: int, valid: Flags) -> pa.Array:
        """Return seconds and nanoseconds as one number of the latter."""
        node = self._program.nodes[number]
        first = int(self._table[number, kernel.FIRST_CHILD])
        seconds, nanos = (
            self._words[self._table[place, kernel.WORDS] :][: valid.size]
            for place in (first, first + 1)
        )
        limit = (1 << 63) // _NANOS - 1
        sound = (np.abs(seconds) <= limit) & (seconds != -(1 << 63))
        if node.shape == TIMESTAMP:
            sound &= (nanos >= 0) & (nanos < _NANOS)
        else:
            sound &= (np.abs(nanos) < _NANOS) & ((np.sign(seconds) * np.sign(nanos)) >= 0)
        if not sound.all():
            self._refuse(number, np.flatnonzero(~sound & (valid != 0)))
            seconds, nanos = np.where(sound, seconds, 0), np.where(sound, nanos, 0)
        mask = pa.py_buffer(np.packbits(valid, bitorder="little"))
        buffers = [mask, pa.py_buffer(seconds * _NANOS + nanos)]
        return pa.Array.from_buffers(node.type, valid.size, buffers)

    def _refuse(self, number: int, slots: npt.NDArray[np.int64]) -> None:
        """Have the reader read the messages that slots of a node's domain belong to."""
        if slots.size:
            rows = self._rows(int(self._table[number, kernel.DOMAIN]))
            self._refused.append(rows[slots])

    def _rows(self, domain: int) -> npt.NDArray[np.int64]:
        """Return the message that each slot of a domain belongs to."""
        if domain == 0:
            return np.arange(self.counts[0])
        is_of = (self._table[:, kernel.CHILD_DOMAIN] == domain) & (
            self._table[:, kernel.KIND] == kernel.LIST
        )
        row = self._table[int(np.argmax(is_of))]
        parents = self._rows(int(row[kernel.DOMAIN]))
        return np.repeat(parents, self._words[row[kernel.WORDS] :][: parents.size])


def _named(node: ProtoNode, own: Flags, valid: Flags, words: npt.NDArray[np.int64]) -> pa.Array:
    """Return the names of numbers."""
    numbers, places = np.unique(words, return_inverse=True)
    names = node.enum.names if node.enum is not None else {}
    texts = [names.get(each, str(each)) for each in numbers.tolist()]
    places = places.reshape(-1)
    if node.default is not None:
        places = np.where(own != 0, places, len(texts))
        texts.append(node.default)
    indices = pa.array(places, pa.int32(), mask=valid == 0)
    return take(pa.array(texts, pa.string()), indices)


def _word(node: ProtoNode) -> int:
    """Return a number as the kernel writes it."""
    if pa.types.is_floating(node.type):
        kind = np.float64 if node.kind == kernel.FIXED64 else np.float32
        return int(np.array(node.default, dtype=kind).view(f"i{kind().itemsize}"))
    value = int(node.default)
    return value - (1 << 64) if value >> 63 == 1 else value


def _fixed(node: ProtoNode, words: npt.NDArray[np.int64]) -> npt.NDArray[np.generic]:
    """Return words as the values of a column."""
    if node.kind == kernel.BOOL:
        return np.packbits(words.astype(np.uint8), bitorder="little")
    if pa.types.is_float64(node.type):
        return words.view(np.float64)
    if pa.types.is_float32(node.type):
        return words.astype(np.uint32).view(np.float32)
    return words.astype(node.type.to_pandas_dtype(), copy=False)
