"""How large the records of a compressed batch are: ``max.decompressed.message.bytes``.

The size of a v2 record is the length that it begins with, that of a v0 or v1 message its field
*size*. Neither counts the bytes before it. A broker compares each record of a compressed batch with
the property when a client sends it, when it is cleaned, and when an offset is looked up by time;
batches that are not compressed are not held against it.

Source: DefaultRecord.readFrom, AbstractLegacyRecordBatch (Kafka 4.4).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import InvalidRecordError
from pylog.kernels.split_batch import (
    PIECE_END,
    PIECE_FIELDS,
    PIECE_RECORDS,
    PIECE_START,
    split_batch,
)
from pylog.record.batch_header import LOG_OVERHEAD, SIZE_OFFSET
from pylog.record.varint import decode_varint, size_of_varint

if TYPE_CHECKING:
    from pylog.record.record_encoder import Bytes

_INT32 = struct.Struct(">i")


class OversizedRecord(NamedTuple):
    """A record above the limit: its place in the batch from 0 on, and its size."""

    place: int
    size_bytes: int


def find_large_record(payload: Bytes, limit: int, *, is_v2: bool) -> OversizedRecord | None:
    """Return the first record above ``limit`` in decompressed records; None if there is none.

    What is malformed is passed over: whoever decodes the records says so.
    """
    view = memoryview(payload).toreadonly()
    if len(view) <= limit:
        return None
    # A piece above this has one record.
    most = limit + (size_of_varint(limit) if is_v2 else LOG_OVERHEAD)
    pieces = np.empty((2 * (len(view) // most) + 2, PIECE_FIELDS), dtype=np.int64)
    buffer = np.frombuffer(view, dtype=np.uint8)
    count = split_batch(buffer, 0, len(view), is_v2, most, len(view), pieces)
    pieces = pieces[:count]
    for at in np.flatnonzero(pieces[:, PIECE_END] - pieces[:, PIECE_START] > most).tolist():
        start, end = int(pieces[at, PIECE_START]), int(pieces[at, PIECE_END])
        try:
            size_bytes = _size_at(view, start, end, is_v2=is_v2)
        except InvalidRecordError:
            return None
        if size_bytes > limit:
            return OversizedRecord(int(pieces[:at, PIECE_RECORDS].sum()), size_bytes)
    return None


def _size_at(view: memoryview, start: int, end: int, *, is_v2: bool) -> int:
    if is_v2:
        return decode_varint(view, start, end)[0]
    size: int = _INT32.unpack_from(view, start + SIZE_OFFSET)[0]
    return size


def ensure_record_sizes(
    payload: Bytes, limit: int | None, *, is_v2: bool, advice: str = ""
) -> None:
    """Raise `InvalidRecordError` if decompressed records have one above ``limit``; None: none."""
    large = None if limit is None else find_large_record(payload, limit, is_v2=is_v2)
    if large is not None:
        reason = (
            f"record {large.place} of the batch has {large.size_bytes} bytes, "
            f"max.decompressed.message.bytes is {limit}{advice}"
        )
        raise InvalidRecordError(reason)
