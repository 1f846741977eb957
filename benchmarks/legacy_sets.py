"""Data sets in formats v0 and v1, as brokers before 0.11 left them: single messages, or wrappers.

Written with `struct` alone. A message is offset i64, size i32 (of what follows), CRC-32 u32 (of
what follows), magic i8, attributes i8, in v1 timestamp i64, key and value with i32 lengths; a
wrapper is a message without a key whose value is a compressed set of messages and whose own offset
is that of the last of them. The offsets of the messages in it are absolute in v0, relative in v1.
"""

import itertools
import struct
import zlib
from collections.abc import Iterator

from benchmarks.batches import CODECS, BatchSpan
from benchmarks.data_sets import QUICK_DIVISOR, Bench, DataSet
from benchmarks.events import Event, events
from benchmarks.framing import COMPRESSORS
from benchmarks.segment_writer import SegmentWriter

LEGACY_SETS = (
    *((100, 0, codec) for codec in ("none", "gzip", "snappy")),
    *((100, 1, codec) for codec in ("none", "gzip", "snappy", "lz4")),
    *((1000, 1, codec) for codec in ("none", "lz4")),
)
"""Value bytes, format, codec. v0 has LZ4 frames with a header checksum of its own, so none here."""
_RECORDS = {100: 500_000, 1000: 100_000}
_WRAPPED_BYTES = 64 << 10  # of messages in a wrapper, before compression, as in v2
_NO_TIMESTAMP = -1
_NULL = struct.pack(">i", -1)


def legacy_name(value_bytes: int, magic: int, codec: str) -> str:
    """Return what the set is called."""
    return f"s{value_bytes}-v{magic}-{codec}"


def _message(
    offset: int, magic: int, attributes: int, timestamp_ms: int, key: bytes, value: bytes
) -> bytes:
    checked = struct.pack(">bb", magic, attributes)
    if magic > 0:
        checked += struct.pack(">q", timestamp_ms)
    checked += key + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(checked) + 4, zlib.crc32(checked)) + checked


def _plain(offset: int, magic: int, event: Event) -> bytes:
    key = struct.pack(">i", len(event.key)) + event.key
    return _message(offset, magic, 0, event.timestamp_ms, key, event.value)


def _entries(
    stream: Iterator[Event], magic: int, codec: str, wrapped: int
) -> Iterator[tuple[bytes, BatchSpan]]:
    """Yield single messages, or wrappers of `wrapped` messages, with what their headers say."""
    first = 0
    while some := list(itertools.islice(stream, 1 if codec == "none" else wrapped)):
        last, latest = first + len(some) - 1, max(each.timestamp_ms for each in some)
        if codec == "none":
            entry = _plain(first, magic, some[0])
        else:
            start = 0 if magic > 0 else first
            inner = b"".join(itertools.starmap(_plain, _numbered(start, magic, some)))
            value = COMPRESSORS[codec](inner)
            entry = _message(last, magic, CODECS.index(codec), latest, _NULL, value)
        yield entry, BatchSpan(0, 0, first, last, codec, len(some), latest if magic else -1)
        first = last + 1


def _numbered(start: int, magic: int, some: list[Event]) -> Iterator[tuple[int, int, Event]]:
    for number, event in enumerate(some, start):
        yield number, magic, event


def legacy_set(bench: Bench, value_bytes: int, magic: int, codec: str) -> DataSet:
    """Return the set of this value size, format and codec, made if it is missing."""
    name = legacy_name(value_bytes, magic, codec)
    if (found := bench.load(name)) is not None:
        return found
    count = _RECORDS[value_bytes] // (QUICK_DIVISOR if bench.quick else 1)
    wrapped = _WRAPPED_BYTES // value_bytes
    with SegmentWriter(bench.clear(name) / f"{name}-0") as writer:
        for entry, span in _entries(events(value_bytes, count), magic, codec, wrapped):
            writer.append(entry, span)
    timestamps = sum(each.timestamp_ms for each in events(value_bytes, count))
    made = DataSet(
        name=name,
        value_bytes=value_bytes,
        codec=codec,
        magic=magic,
        partitions=1,
        records=count,
        offsets=count * (count - 1) // 2,
        timestamps_ms=timestamps if magic else _NO_TIMESTAMP * count,
        batches=writer.batches,
        log_bytes=writer.size_bytes,
        records_bytes=writer.size_bytes if codec == "none" else 0,
    )
    bench.save(made)
    return made
