"""Format v2 batches, written with `struct` alone: the benchmark must not trust what it measures.

Header, big endian, 61 bytes: base offset i64, batch length i32 (of what follows it), partition
leader epoch i32, magic i8, CRC-32C u32 (of everything after it), attributes i16 (codec in bits
0-2), last offset delta i32, base and max timestamp i64, producer id i64, producer epoch i16, base
sequence i32, record count i32; then the records, compressed as a whole. The CRC does not cover
the base offset, so a batch moves to another place in a log by eight patched bytes.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from benchmarks.events import Event

HEADER = struct.Struct(">qiibIhiqqqhii")
_AFTER_CRC = struct.Struct(">hiqqqhii")
_LENGTH_PREFIX_BYTES = 12  # base offset and the batch length itself
_CRC_START = 21
_BASE_OFFSET = struct.Struct(">q")
_NO_PRODUCER = -1

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")  # the position is the codec's id


class Payload(NamedTuple):
    """The records of one batch, encoded, not yet compressed."""

    section: bytes
    records: int
    base_timestamp_ms: int
    max_timestamp_ms: int


class BatchSpan(NamedTuple):
    """Where a batch lies in a buffer, and what its header says."""

    start: int
    end: int
    base_offset: int
    last_offset: int
    codec: str
    records: int
    max_timestamp_ms: int

    @property
    def records_start(self) -> int:
        """Position of the first byte after the header."""
        return self.start + HEADER.size


def _varint(number: int) -> bytes:
    zigzag = (number << 1) ^ (number >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


_VARINTS = {number: _varint(number) for number in range(-256, 8192)}


def payloads(events: Iterable[Event], payload_bytes: int) -> Iterator[Payload]:
    """Yield the events as batches of at least `payload_bytes` encoded bytes, save for the last."""
    parts: list[bytes] = []
    size = count = base_ms = max_ms = 0
    for key, value, timestamp_ms in events:
        if count == 0:
            base_ms = max_ms = timestamp_ms
        body = b"".join(
            (
                b"\x00",  # attributes
                _VARINTS[timestamp_ms - base_ms],
                _VARINTS[count],
                _VARINTS[len(key)],
                key,
                _VARINTS[len(value)],
                value,
                b"\x00",  # no headers
            )
        )
        length = _VARINTS[len(body)]
        parts += (length, body)
        size += len(length) + len(body)
        count += 1
        max_ms = max(max_ms, timestamp_ms)
        if size >= payload_bytes:
            yield Payload(b"".join(parts), count, base_ms, max_ms)
            parts, size, count = [], 0, 0
    if count:
        yield Payload(b"".join(parts), count, base_ms, max_ms)


def encode_batch(payload: Payload, base_offset: int, codec: str, section: bytes) -> bytes:
    """Return the whole batch; `section` is the payload's as `codec` compressed it."""
    after_crc = (
        _AFTER_CRC.pack(
            CODECS.index(codec),
            payload.records - 1,
            payload.base_timestamp_ms,
            payload.max_timestamp_ms,
            _NO_PRODUCER,
            _NO_PRODUCER,
            _NO_PRODUCER,
            payload.records,
        )
        + section
    )
    length = _CRC_START - _LENGTH_PREFIX_BYTES + len(after_crc)
    head = struct.pack(">qiibI", base_offset, length, 0, 2, crc32c(after_crc))
    return head + after_crc


def spans(data: bytes | bytearray | memoryview) -> Iterator[BatchSpan]:
    """Yield the batches of a whole, sound log in order; headers only."""
    position = 0
    while position < len(data):
        fields = HEADER.unpack_from(data, position)
        end = position + _LENGTH_PREFIX_BYTES + fields[1]
        yield BatchSpan(
            start=position,
            end=end,
            base_offset=fields[0],
            last_offset=fields[0] + fields[6],
            codec=CODECS[fields[5] & 0x7],
            records=fields[12],
            max_timestamp_ms=fields[8],
        )
        position = end


def leading(data: bytes, records: int) -> bytes:
    """Return the leading batches that hold at least `records` records, or everything."""
    seen = 0
    for span in spans(data):
        seen += span.records
        if seen >= records:
            return data[: span.end]
    return data


def moved(batch: bytes, base_offset: int) -> bytes:
    """Return the same batch at another base offset; its CRC stays right."""
    return _BASE_OFFSET.pack(base_offset) + batch[_BASE_OFFSET.size :]
