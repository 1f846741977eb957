"""Data sets in format v1, as brokers 0.10 left them: single messages, and lz4 wrappers.

Written with `struct` alone. A message is offset i64, size i32 (of what follows), CRC-32 u32 (of
what follows), magic i8, attributes i8, timestamp i64, key and value with i32 lengths; a wrapper is
a message without a key whose value is an LZ4 frame of messages with relative offsets and whose own
offset is that of the last of them.
"""

import itertools
import json
import struct
import zlib
from pathlib import Path

import lz4.frame

from tests.benchmarks.data_sets import Bench
from tests.benchmarks.events import Event, events

RECORDS = 500_000
_VALUE_BYTES = 100
_WRAPPED_MESSAGES = 500
_MAGIC = 1
_LZ4 = 3
_NULL = struct.pack(">i", -1)


def _message(offset: int, attributes: int, timestamp_ms: int, key: bytes, value: bytes) -> bytes:
    checked = struct.pack(">bbq", _MAGIC, attributes, timestamp_ms) + key
    checked += struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(checked) + 4, zlib.crc32(checked)) + checked


def _plain(offset: int, event: Event) -> bytes:
    key = struct.pack(">i", len(event.key)) + event.key
    return _message(offset, 0, event.timestamp_ms, key, event.value)


def _wrapper(first_offset: int, some: list[Event]) -> bytes:
    inner = b"".join(_plain(number, event) for number, event in enumerate(some))
    frame = lz4.frame.compress(inner, block_linked=False, store_size=False)
    last = first_offset + len(some) - 1
    return _message(last, _LZ4, max(each.timestamp_ms for each in some), _NULL, frame)


def legacy_directories(bench: Bench) -> dict[str, Path]:
    """Return the log directories of format v1 by name, made at the first call."""
    count = RECORDS // 20 if bench.quick else RECORDS
    made = bench.root / "legacy.json"
    names = {name: bench.directory(name) for name in ("s100-v1", "s100-v1-lz4")}
    if not made.exists():
        for name, directory in names.items():
            partition = directory / f"{name}-0"
            partition.mkdir(parents=True, exist_ok=True)
            with (partition / f"{0:020d}.log").open("wb") as log:
                stream = events(_VALUE_BYTES, count)
                if name == "s100-v1":
                    log.writelines(itertools.starmap(_plain, enumerate(stream)))
                    continue
                for first in range(0, count, _WRAPPED_MESSAGES):
                    some = list(itertools.islice(stream, _WRAPPED_MESSAGES))
                    log.write(_wrapper(first, some))
        made.write_text(json.dumps(sorted(names)), encoding="ascii")
    return names
