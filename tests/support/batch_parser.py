"""Reads v2 batches and lists of batches, without a line of the packages: see `batches` for why."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cramjam
import lz4.frame
import zstandard

from tests.support.batches import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    V2_HEADER_SIZE,
    Stored,
    crc32c,
)
from tests.support.codecs import CODEC_IDS, XERIAL_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterator

_CODECS = {number: name for name, number in CODEC_IDS.items()}
_FIELDS = struct.Struct(">hiqqqhii")
_LOG_OVERHEAD = 12
_HAS_APPEND_TIME, _IS_TRANSACTIONAL, _IS_CONTROL, _HAS_HORIZON = 0x08, 0x10, 0x20, 0x40


def split_batches(data: bytes) -> list[bytes]:
    """Return the batches of a ``.log``, of any format, each with its offset and length.

    Raises
    ------
    AssertionError
        The last one is cut short, or a length is impossible.
    """
    found, position = [], 0
    while position < len(data):
        assert position + _LOG_OVERHEAD <= len(data), f"a batch is cut short at byte {position}"
        [length] = struct.unpack_from(">i", data, position + 8)
        end = position + _LOG_OVERHEAD + length
        assert length > 0, f"a length of {length} at byte {position}"
        assert end <= len(data), f"a batch is cut short at byte {position}"
        found.append(data[position:end])
        position = end
    return found


@dataclass(frozen=True)
class ParsedBatch:
    """A v2 batch: its header, and its records before they are compressed."""

    data: bytes
    base_offset: int
    leader_epoch: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    payload: bytes

    @classmethod
    def of(cls, data: bytes) -> ParsedBatch:
        """Parse a batch whose checksum is right."""
        assert data[16] == 2, f"a batch of v{data[16]}"
        base_offset, _, leader_epoch, _, crc = struct.unpack_from(">qiibI", data)
        assert crc32c(data[21:]) == crc, f"the checksum of the batch at {base_offset} is wrong"
        attributes, last_delta, *of_header = _FIELDS.unpack_from(data, 21)
        base_timestamp, max_timestamp, producer_id, epoch, sequence, count = of_header
        codec, payload = _CODECS[attributes & 0x07], data[V2_HEADER_SIZE:]
        return cls(
            data=data,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            attributes=attributes,
            last_offset_delta=last_delta,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            record_count=count,
            payload=decompress(codec, payload) if payload else b"",
        )

    @property
    def codec(self) -> str:
        return _CODECS[self.attributes & 0x07]

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Return that of the last record there was."""
        return (self.base_sequence + self.last_offset_delta) % 2**31

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _IS_CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _IS_TRANSACTIONAL)

    @property
    def delete_horizon(self) -> int | None:
        return self.base_timestamp if self.attributes & _HAS_HORIZON else None

    def records(self) -> list[Stored]:
        """Return what a reader has to find in it."""
        stamp = self.max_timestamp if self.attributes & _HAS_APPEND_TIME else None
        records, position = list[Stored](), 0
        for _ in range(self.record_count):
            size, position = _varint(self.payload, position)
            records.append(self._record(self.payload[position : position + size], stamp))
            position += size
        assert position == len(self.payload), f"{self.base_offset}: bytes after the last record"
        return records

    def _record(self, body: bytes, stamp: int | None) -> Stored:
        time_delta, position = _varint(body, 1)
        offset_delta, position = _varint(body, position)
        key, position = _nullable(body, position)
        value, position = _nullable(body, position)
        count, position = _varint(body, position)
        headers = []
        for _ in range(count):
            name, position = _nullable(body, position)
            content, position = _nullable(body, position)
            headers.append(((name or b"").decode(), content))
        assert position == len(body), f"{self.base_offset}: bytes after a record's last header"
        return Stored(
            self.base_offset + offset_delta,
            self.base_timestamp + time_delta if stamp is None else stamp,
            key,
            value,
            tuple(headers),
            CREATE_TIME if stamp is None else LOG_APPEND_TIME,
        )


def decompress(codec: str, data: bytes) -> bytes:
    """Return the records of a v2 batch."""
    match codec:
        case "gzip":
            return zlib.decompress(data, wbits=31)
        case "snappy":
            return b"".join(_xerial_blocks(data))
        case "lz4":
            return bytes(lz4.frame.decompress(data))
        case "zstd":
            return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return data


def _xerial_blocks(data: bytes) -> Iterator[bytes]:
    position = len(XERIAL_HEADER)
    while position < len(data):
        [size] = struct.unpack_from(">i", data, position)
        position += 4
        yield bytes(cramjam.snappy.decompress_raw(data[position : position + size]))
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position


def _nullable(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = _varint(data, position)
    if size < 0:
        return None, position
    return data[position : position + size], position + size
