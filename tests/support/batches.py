"""Builders of v0, v1 and v2 bytes, written from the format's description, not from ``pylog``.

Oracles must not reuse what they check: varints, CRCs (crcmod, zlib) and layouts are the tests' own.
Every builder returns a `Built`: the bytes, and what a reader must find in them.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import crcmod.predefined

from tests.support.codecs import CODEC_IDS, compress

if TYPE_CHECKING:
    from collections.abc import Sequence

crc32c = crcmod.predefined.mkPredefinedCrcFun("crc-32c")

NO_TIMESTAMP_TYPE, CREATE_TIME, LOG_APPEND_TIME = -1, 0, 1
ABORT, COMMIT = 0, 1
V2_HEADER_SIZE = 61
INT64_MAX = 2**63 - 1

Headers = tuple[tuple[str, bytes | None], ...]


class Stored(NamedTuple):
    """A record to be written, and one as a consumer would see it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_type: int = CREATE_TIME

    @classmethod
    def of_client(cls, record: Any) -> Stored:  # noqa: ANN401 - of packages without types
        """Return a record as aiokafka or kafka-python has it."""
        return cls(
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            tuple((name, content) for name, content in record.headers),
            record.timestamp_type,
        )


@dataclass(frozen=True)
class Built:
    """Bytes of one batch, and what is in them.

    ``records`` are all of them, control records included, as a reader must report them.
    """

    data: bytes
    records: tuple[Stored, ...]
    magic: int
    base_offset: int
    last_offset: int
    max_timestamp: int = -1
    producer_id: int = -1
    is_transactional: bool = False
    control_type: int | None = None
    """The marker's type; None for data."""
    codec: str = "none"

    @property
    def is_control(self) -> bool:
        return self.control_type is not None

    @property
    def visible(self) -> tuple[Stored, ...]:
        """The records that an application sees under READ_UNCOMMITTED."""
        return () if self.is_control else self.records


def wrap(value: int, bits: int) -> int:
    """Return ``value`` as a two's complement integer of that width."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def unsigned_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """Return a zig-zag varint; a varlong is the same with larger values."""
    return unsigned_varint(2 * value if value >= 0 else -2 * value - 1)


def _length_and_bytes(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record_v2(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str | bytes, bytes | None]] = (),
) -> bytes:
    body = b"\x00" + varint(timestamp_delta) + varint(offset_delta)
    body += _length_and_bytes(key) + _length_and_bytes(value) + varint(len(headers))
    for name, content in headers:
        raw = name.encode() if isinstance(name, str) else name
        body += varint(len(raw)) + raw + _length_and_bytes(content)
    return varint(len(body)) + body


def batch_v2_of(
    payload: bytes,
    *,
    base_offset: int = 0,
    last_offset_delta: int = 0,
    record_count: int = 1,
    attributes: int = 0,
    leader_epoch: int = 0,
    base_timestamp: int = 0,
    max_timestamp: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    crc: int | None = None,
) -> bytes:
    """Return a v2 batch around any bytes: ``payload`` follows its 61 header bytes."""
    covered = struct.pack(
        ">hiqqqhii",
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    covered += payload
    stored = crc32c(covered) if crc is None else crc
    head = struct.pack(">qiibI", base_offset, 9 + len(covered), leader_epoch, 2, stored)
    return head + covered


def batch_v2(
    records: Sequence[Stored],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    codec: str = "none",
    append_time: int | None = None,
    base_timestamp: int | None = None,
    delete_horizon: int | None = None,
    leader_epoch: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    control_type: int | None = None,
) -> Built:
    """Return a v2 batch that holds ``records``; offsets between them may be missing.

    ``append_time`` makes it a LogAppendTime batch: the records keep their own times on disk, and
    all report that one. ``delete_horizon`` takes the place of the base timestamp.
    """
    first = records[0].offset if base_offset is None else base_offset
    last = records[-1].offset if last_offset is None else last_offset
    base_time = records[0].timestamp if base_timestamp is None else base_timestamp
    if delete_horizon is not None:
        base_time = delete_horizon
    payload = b"".join(
        record_v2(
            wrap(record.timestamp - base_time, 64),
            record.offset - first,
            record.key,
            record.value,
            record.headers,
        )
        for record in records
    )
    attributes = CODEC_IDS[codec] | (0x08 if append_time is not None else 0)
    attributes |= 0x10 if is_transactional else 0
    attributes |= 0x20 if control_type is not None else 0
    attributes |= 0x40 if delete_horizon is not None else 0
    highest = max(record.timestamp for record in records) if append_time is None else append_time
    data = batch_v2_of(
        compress(codec, payload),
        base_offset=first,
        last_offset_delta=last - first,
        record_count=len(records),
        attributes=attributes,
        leader_epoch=leader_epoch,
        base_timestamp=base_time,
        max_timestamp=highest,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )
    reported = tuple(
        record._replace(
            timestamp=record.timestamp if append_time is None else append_time,
            timestamp_type=CREATE_TIME if append_time is None else LOG_APPEND_TIME,
        )
        for record in records
    )
    return Built(
        data=data,
        records=reported,
        magic=2,
        base_offset=first,
        last_offset=last,
        max_timestamp=highest,
        producer_id=producer_id,
        is_transactional=is_transactional,
        control_type=control_type,
        codec=codec,
    )


def marker(
    offset: int,
    control_type: int,
    *,
    producer_id: int = 1,
    producer_epoch: int = 0,
    timestamp: int = 1000,
    coordinator_epoch: int = 0,
    leader_epoch: int = 0,
) -> Built:
    """Return the control batch that ends a transaction."""
    key = struct.pack(">hh", 0, control_type)
    value = struct.pack(">hi", 0, coordinator_epoch)
    return batch_v2(
        [Stored(offset, timestamp, key, value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=leader_epoch,
        is_transactional=True,
        control_type=control_type,
    )


def empty_batch_v2(
    base_offset: int,
    last_offset: int,
    *,
    max_timestamp: int = -1,
    producer_id: int = 7,
    is_transactional: bool = False,
) -> Built:
    """Return what compaction leaves of a live producer's last batch: the header alone."""
    data = batch_v2_of(
        b"",
        base_offset=base_offset,
        last_offset_delta=last_offset - base_offset,
        record_count=0,
        attributes=0x10 if is_transactional else 0,
        base_timestamp=-1,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=5,
    )
    return Built(
        data,
        (),
        magic=2,
        base_offset=base_offset,
        last_offset=last_offset,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        is_transactional=is_transactional,
    )


def _int32_and_bytes(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def message_bytes(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    magic: int,
    timestamp: int = -1,
    attributes: int = 0,
    crc: int | None = None,
) -> bytes:
    """Return a v0 or v1 message in its entry of offset and size."""
    covered = bytes([magic, attributes])
    if magic == 1:
        covered += struct.pack(">q", timestamp)
    covered += _int32_and_bytes(key) + _int32_and_bytes(value)
    stored = zlib.crc32(covered) if crc is None else crc
    return struct.pack(">qiI", offset, 4 + len(covered), stored) + covered


def message(record: Stored, *, magic: int, append_time: int | None = None) -> Built:
    """Return an uncompressed v0 or v1 message."""
    timestamp = record.timestamp if append_time is None else append_time
    data = message_bytes(
        record.offset,
        record.key,
        record.value,
        magic=magic,
        timestamp=timestamp,
        attributes=0x08 if append_time is not None else 0,
    )
    reported = _legacy_report(record, magic, magic, append_time)
    return Built(
        data, (reported,), magic, record.offset, record.offset, max_timestamp=reported.timestamp
    )


def _legacy_report(record: Stored, magic: int, inner_magic: int, append_time: int | None) -> Stored:
    timestamp = record.timestamp if append_time is None else append_time
    kind = CREATE_TIME if append_time is None else LOG_APPEND_TIME
    return record._replace(
        timestamp=timestamp if inner_magic == 1 else -1,
        timestamp_type=kind if magic == 1 else NO_TIMESTAMP_TYPE,
        headers=(),
    )


def message_set(records: Sequence[Stored], *, inner_magic: int, relative_to: int = 0) -> bytes:
    """Return uncompressed messages in a row; offsets are stored minus ``relative_to``."""
    return b"".join(
        message_bytes(
            record.offset - relative_to,
            record.key,
            record.value,
            magic=inner_magic,
            timestamp=record.timestamp,
        )
        for record in records
    )


def wrapper_of(
    stream: bytes | None,
    *,
    offset: int,
    magic: int,
    codec: str,
    timestamp: int = -1,
    append_time: int | None = None,
    key: bytes | None = None,
) -> bytes:
    """Return a wrapper message around any bytes."""
    return message_bytes(
        offset,
        key,
        stream,
        magic=magic,
        timestamp=timestamp if append_time is None else append_time,
        attributes=CODEC_IDS[codec] | (0x08 if append_time is not None else 0),
    )


def wrapper(
    records: Sequence[Stored],
    *,
    magic: int,
    codec: str,
    inner_magic: int | None = None,
    append_time: int | None = None,
    first_offset: int | None = None,
) -> Built:
    """Return a compressed v0 or v1 message around ``records``.

    v1 stores inner offsets relative to ``first_offset``: the offset of the first message that the
    wrapper was written with, which compaction may have removed.
    """
    inner = magic if inner_magic is None else inner_magic
    base = records[0].offset if first_offset is None else first_offset
    inner_set = message_set(records, inner_magic=inner, relative_to=base if magic == 1 else 0)
    reported = tuple(_legacy_report(record, magic, inner, append_time) for record in records)
    highest = max(record.timestamp for record in reported)
    data = wrapper_of(
        compress(codec, inner_set, magic),
        offset=records[-1].offset,
        magic=magic,
        codec=codec,
        timestamp=highest,
        append_time=append_time,
    )
    return Built(
        data,
        reported,
        magic,
        reported[0].offset,
        reported[-1].offset,
        max_timestamp=-1 if magic == 0 else (highest if append_time is None else append_time),
        codec=codec,
    )


def with_bad_crc(built: Built) -> Built:
    """Return the batch with one bit of its stored checksum flipped."""
    at = 17 if built.magic == 2 else 12
    data = bytearray(built.data)
    data[at] ^= 0x01
    return replace(built, data=bytes(data))


def joined(batches: Sequence[Built]) -> bytes:
    return b"".join(built.data for built in batches)


def plain_records(
    first_offset: int, count: int, *, timestamp: int = 1_000, value_size: int = 10
) -> list[Stored]:
    """Return simple records: consecutive offsets, timestamps one apart."""
    return [
        Stored(offset, timestamp + index, b"k%d" % offset, bytes([offset % 251]) * value_size)
        for index, offset in enumerate(range(first_offset, first_offset + count))
    ]
