"""Makes segments of any bytes: a fuzzer does not guess a checksum, and seldom a length."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tests.support.batches import V2_HEADER_SIZE
from tests.support.codecs import CODECS, compress
from tests.support.corruption import resealed

SIZE_AT, MAGIC_AT, ATTRIBUTES_AT, RECORD_COUNT_AT = 8, 16, 21, 57
PREFIX_BYTES = 17
MIN_ENTRY_BYTES = {0: 12 + 14, 1: 12 + 22, 2: 12 + 49}
KEY_LENGTH_AT = {0: 18, 1: 26}
CODEC_BITS = 0x07


@dataclass(frozen=True, kw_only=True)
class Repairs:
    """What is made right; each is needed to pass another check of the readers.

    Attributes
    ----------
    magics
        Formats that an entry may have: one of them is put where none is.
    fields
        Sizes that lead out of the data lead to its end, offsets go up, keys and values of messages
        fit into them, and v2 batches count as many records as their lengths say, so that the bytes
        of records are what is wrong.
    codecs
        The records of a v2 batch that has codec bits are compressed with that codec: else every
        change breaks the stream.
    checksums
        Right checksums.
    """

    magics: tuple[int, ...]
    fields: bool = False
    codecs: bool = False
    checksums: bool = True


def repaired(data: bytes, repairs: Repairs) -> bytes:
    """Return the entries of ``data`` after the repairs; what is no entry stays as it is."""
    out, at, next_offset = bytearray(), 0, 0
    while len(data) - at >= PREFIX_BYTES:
        entry = data[at:]
        if repairs.fields:
            entry = _with_fields(entry, repairs.magics, next_offset)
        magic, size = entry[MAGIC_AT], _size_bytes(entry)
        if not MIN_ENTRY_BYTES.get(magic, size + 1) <= size <= len(entry):
            break
        at += size
        entry = entry[:size]
        if magic < 2 and repairs.fields:
            entry = _with_key_and_value(entry)
        if magic == 2:
            entry = _with_records(entry, repairs)
        (offset,) = struct.unpack_from(">q", entry)
        next_offset = min(offset + 1, 2**62)
        out += resealed(entry) if repairs.checksums else entry
    return bytes(out) + data[at:]


def _size_bytes(entry: bytes) -> int:
    (size,) = struct.unpack_from(">i", entry, SIZE_AT)
    return 12 + int(size)


def _with_fields(entry: bytes, magics: tuple[int, ...], next_offset: int) -> bytes:
    magic = entry[MAGIC_AT]
    if magic not in magics:
        magic = magics[magic % len(magics)]
    (offset,) = struct.unpack_from(">q", entry)
    size = _size_bytes(entry)
    if not MIN_ENTRY_BYTES[magic] <= size <= len(entry):
        size = len(entry)
    head = struct.pack(">qi", max(offset, next_offset), size - 12)
    return head + entry[12:MAGIC_AT] + bytes([magic]) + entry[MAGIC_AT + 1 :]


def _with_key_and_value(message: bytes) -> bytes:
    at = KEY_LENGTH_AT[message[MAGIC_AT]]
    key_room = len(message) - at - 8
    (key_length,) = struct.unpack_from(">i", message, at)
    if key_length > key_room:
        key_length %= key_room + 1
    value_at = at + 4 + max(0, key_length)
    value_room = len(message) - value_at - 4
    (value_length,) = struct.unpack_from(">i", message, value_at)
    value_length = min(value_length, value_room)
    key = struct.pack(">i", key_length) + message[at + 4 : value_at]
    return message[:at] + key + struct.pack(">i", value_length) + message[value_at + 4 :]


def _with_records(batch: bytes, repairs: Repairs) -> bytes:
    head, records = batch[:V2_HEADER_SIZE], batch[V2_HEADER_SIZE:]
    codec = batch[ATTRIBUTES_AT + 1] & CODEC_BITS
    is_stream = codec != 0 and not repairs.codecs
    if repairs.fields and not is_stream:
        head = head[:RECORD_COUNT_AT] + struct.pack(">i", _count_records(records))
    if repairs.codecs and codec < len(CODECS):
        records = compress(CODECS[codec], records)
        head = head[:SIZE_AT] + struct.pack(">i", len(head) - 12 + len(records)) + head[12:]
    return head + records


def _count_records(records: bytes) -> int:
    """Return how many records there are by their lengths, one at least."""
    count, at = 0, 0
    while at < len(records):
        length, shift = 0, 0
        while at < len(records):
            byte = records[at]
            length |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        at += length >> 1
        count += 1
    return max(1, count)
