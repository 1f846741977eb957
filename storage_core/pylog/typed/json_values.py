"""JSON texts to a column of a given type: the kernel for what is plain, the reader for the rest."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.kernels import json_values as kernel
from pylog.typed.json_reader import read_json
from pylog.typed.json_types import (
    STRINGS,
    JsonNode,
    JsonProgram,
    node_of,
    powers_of_ten,
    program_of,
)
from pylog.typed.kernel_runs import Usage, decode_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pylog.typed.decoder import Decoded, Payloads
    from pylog.typed.kernel_runs import PayloadRun

_powers = functools.cache(powers_of_ten)


class JsonDecoder:
    """Decodes JSON of one type.

    Names of an object that the type has no field for are passed over; what a text lacks is null.

    Parameters
    ----------
    field
        The type, and whether a value may be ``null``. A field, here or within, whose values are
        kept as JSON texts is made by `json_types.as_text`.
    """

    def __init__(self, field: pa.Field | pa.DataType) -> None:
        given = field if isinstance(field, pa.Field) else pa.field("", field)
        self._root = node_of(given)
        self._program = program_of(self._root)
        self._guesses = self._program.next_fields.copy()
        program = self._program
        domains = program.table[:, kernel.DOMAIN].tolist()
        self._usage = Usage(domains, program.strings)

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        return self._root.type

    def decode(self, payloads: Payloads) -> Decoded:
        """Return a value for each text; one that cannot be read is null."""
        return decode_runs(
            payloads,
            self.type,
            self._usage,
            lambda slots, room: _Columns(self._program, self._guesses, slots, room),
            lambda text: read_json(text, self._root),
        )


class _Columns:
    """What the kernel writes to, and the columns that it is."""

    def __init__(
        self,
        program: JsonProgram,
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
            if node.kind not in {kernel.STRUCT, kernel.OTHER}:
                row[kernel.WORDS] = words
                words += count
            self._begins[number] = size
            size += room[number]
            row[kernel.OUT_END] = size
        self._words = np.zeros(words, dtype=np.int64)
        self._valid = np.zeros(valid, dtype=np.uint8)
        self._out = np.empty(size, dtype=np.uint8)
        self._out_ends = self._begins.copy()
        self.counts = np.zeros(len(slots), dtype=np.int64)

    def read(self, part: PayloadRun, left: npt.NDArray[np.uint8]) -> bool:
        """Read texts; return whether there was room for all."""
        program = self._program
        status, text = kernel.read_json_values(
            *(part.data, part.starts, part.ends, part.first, part.last),
            *(self._table.reshape(-1), program.names, program.tables, _powers()),
            *(self._slots, self._guesses, self._words, self._valid),
            *(self.counts, np.empty_like(self.counts), self._out, self._out_ends, left),
            np.empty(kernel.MOST_DEPTH * kernel.FRAME, dtype=np.int64),
            np.empty(kernel.MOST_NESTED, dtype=np.uint8),
        )
        if status == kernel.BAD_ARGUMENTS:
            raise ValueError(f"text {text} has too few bytes behind it")
        return bool(status == kernel.DONE)

    def finish(self, _: npt.NDArray[np.uint8]) -> pa.Array:
        """Return the values."""
        return self.array(0, int(self.counts[0]))

    def array(self, number: int, count: int) -> pa.Array:
        """Return the column of a node, of its first slots."""
        node, row = self._program.nodes[number], self._table[number]
        if node.kind == kernel.OTHER:
            return pa.nulls(count, node.type)
        valid = self._valid[row[kernel.VALID] :][:count]
        nulls = count - int(np.count_nonzero(valid))
        buffers = [pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None]
        words = self._words[row[kernel.WORDS] :][:count]
        children: list[pa.Array] | None = None
        if node.kind in STRINGS:
            offsets = np.empty(count + 1, dtype=np.int32)
            end = kernel.add_lengths(words, valid, offsets)
            strings = self._out[self._begins[number] :][:end]
            buffers += [pa.py_buffer(offsets), pa.py_buffer(strings)]
        elif node.kind == kernel.STRUCT:
            children = self._children(number, count)
        elif node.kind in {kernel.LIST, kernel.MAP}:
            offsets = np.empty(count + 1, dtype=np.int32)
            elements = kernel.add_lengths(words, valid, offsets)
            buffers.append(pa.py_buffer(offsets))
            children = self._children(number, elements)
            if node.kind == kernel.MAP:
                entries = pa.struct([node.type.key_field, node.type.item_field])
                children = [pa.Array.from_buffers(entries, elements, [None], 0, children=children)]
        else:
            buffers.append(pa.py_buffer(_fixed(node, words)))
        return pa.Array.from_buffers(node.type, count, buffers, nulls, children=children)

    def _children(self, number: int, count: int) -> list[pa.Array]:
        first = int(self._table[number, kernel.FIRST_CHILD])
        children = self._program.nodes[number].children
        return [self.array(first + place, count) for place in range(len(children))]


def _fixed(node: JsonNode, words: npt.NDArray[np.int64]) -> npt.NDArray[np.generic]:
    """Return words as the values of a column."""
    if node.kind == kernel.BOOLEAN:
        return np.packbits(words.astype(np.uint8), bitorder="little")
    if node.kind == kernel.DECIMAL:
        return np.stack([words, words >> 63], axis=1)
    if node.kind == kernel.FLOAT:
        floats = words.view(np.float64)
        return floats if node.type == pa.float64() else floats.astype(node.type.to_pandas_dtype())
    if node.kind == kernel.INTEGER:
        return words.astype(node.type.to_pandas_dtype(), copy=False)
    return words.astype(np.int32) if node.kind == kernel.DATE else words
