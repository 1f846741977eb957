r"""Records in a format of kcat's option ``-f``: ``%t [%p] at %o: key %k: %s\n``.

====== =====================================================================================
``%t`` topic                           ``%p`` partition          ``%o`` offset
``%k`` key                             ``%K`` its length in bytes, -1 for null
``%s`` value                           ``%S`` its length in bytes, -1 for null
``%R`` the value's length as a 32-bit integer, big-endian
``%T`` timestamp in milliseconds, -1 if the record has none
``%h`` headers as ``name=value``, with commas between them; ``NULL`` for a null value
``%%`` a percent sign
====== =====================================================================================

Backslashes begin ``\n``, ``\r``, ``\t`` and ``\xNN``, the byte with this hexadecimal number; before
any other character, they stand for that character. Keys and values are their bytes, a null is
nothing. Source: ``format.c`` of kcat 1.7.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pylog.record_lines.text_column import (
    ends_of,
    joined_bytes,
    joined_lists,
    printable_column,
    whole_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_COLUMN_OF = {
    "t": "topic",
    "p": "partition",
    "o": "offset",
    "k": "key",
    "K": "key",
    "s": "value",
    "S": "value",
    "R": "value",
    "T": "timestamp",
    "h": "headers",
}
_FREE_TEXT = ("t", "k", "s", "h")
_NAMED = {"n": b"\n", "r": b"\r", "t": b"\t"}
_PART = re.compile(r"%(.?)|\\(x[0-9A-Fa-f]{1,2}|.?)|[^%\\]+", re.DOTALL)


class KcatFormat(NamedTuple):
    """A format that was read; `parse` makes it."""

    parts: tuple[bytes | str, ...]

    @classmethod
    def parse(cls, text: str) -> KcatFormat:
        """Return the format that ``text`` stands for."""
        parts: list[bytes | str] = []
        for found in _PART.finditer(text):
            field, escape = found[1], found[2]
            if field is not None and field != "%":
                if field not in _COLUMN_OF:
                    known = " ".join(f"%{each}" for each in [*_COLUMN_OF, "%"])
                    msg = f"format {text!r} has %{field}, known are {known}"
                    raise ValueError(msg)
                parts.append(field)
                continue
            literal = _bytes_of(found[0], field, escape)
            match parts:
                case [*_, bytes() as before]:
                    parts[-1] = before + literal
                case _:
                    parts.append(literal)
        return cls(tuple(parts))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a record batch must have, the timestamp in ms; at least one."""
        fields = [_COLUMN_OF[part] for part in self.parts if isinstance(part, str)]
        return tuple(dict.fromkeys(fields)) or ("offset",)

    def lines(self, batch: pa.RecordBatch, *, is_printable: bool = False) -> Iterator[memoryview]:
        """Return the text of each record, one after the other."""
        if not batch.num_rows:
            return
        parts: list[pa.Array | bytes] = []
        for part in self.parts:
            text = part if isinstance(part, bytes) else _text(part, batch)
            if is_printable and part in _FREE_TEXT and isinstance(text, pa.Array):
                text = printable_column(text)
            parts.append(text)
        if not any(isinstance(part, pa.Array) for part in parts):
            yield memoryview(b"".join(self.parts) * batch.num_rows)  # type: ignore[arg-type]
        else:
            yield whole_text(joined_bytes(*parts))


def _text(field: str, batch: pa.RecordBatch) -> pa.Array | bytes:
    return _FIELDS[field](batch.column(_COLUMN_OF[field]))


def _bytes_of(text: str, field: str | None, escape: str | None) -> bytes:
    if field is not None:
        return b"%"
    if escape is None:
        return text.encode("utf-8", "surrogateescape")
    if escape[:1] == "x" and len(escape) > 1:
        return bytes([int(escape[1:], 16)])
    return _NAMED.get(escape, escape.encode("utf-8", "surrogateescape") or b"\\")


def _decimal(column: pa.Array) -> pa.Array:
    return column.cast(pa.large_string())


def _milliseconds(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64()).cast(pa.large_string())


def _lengths(column: pa.Array) -> pa.Array:
    minus_one = pa.Array.from_buffers(pa.int32(), 1, [None, pa.py_buffer(np.int32(-1).tobytes())])
    return pc.binary_length(column).fill_null(minus_one[0])


def _length_bytes(column: pa.Array) -> pa.Array:
    lengths = np.frombuffer(_lengths(column).cast(pa.int32()).buffers()[1], np.int32)
    data = lengths[: len(column)].astype(">i4").tobytes()
    ends = np.arange(len(column) + 1, dtype=np.int64) * 4
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(column), buffers, null_count=0)


def _headers(column: pa.Array) -> pa.Array | bytes:
    if column.null_count == len(column):
        return b""
    ends = ends_of(column)
    entries = column.values.slice(ends[0], ends[-1] - ends[0])
    names, values = entries.field(0).cast(pa.binary()), entries.field(1)
    pairs = joined_bytes(names, b"=", values, null=b"NULL")
    return joined_lists(ends - ends[0], pairs)


_FIELDS: dict[str, Callable[[pa.Array], pa.Array | bytes]] = {
    "t": lambda column: column,
    "p": _decimal,
    "o": _decimal,
    "k": lambda column: column,
    "K": lambda column: _decimal(_lengths(column)),
    "s": lambda column: column,
    "S": lambda column: _decimal(_lengths(column)),
    "R": _length_bytes,
    "T": _milliseconds,
    "h": _headers,
}
