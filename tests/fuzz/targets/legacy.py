"""Messages of formats v0 and v1, plain and wrapped: boundaries, checksums, records.

An input: a byte of flags, a byte for the wrapper's offset, and a message set. The flags may ask for
the set to be compressed into a wrapper here, since a fuzzer cannot change what is compressed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.agreement import check_segment
from tests.fuzz.golden_files import golden_files
from tests.fuzz.repair import Repairs, repaired
from tests.support.batches import Stored, message_bytes, message_set, wrapper, wrapper_of
from tests.support.codecs import CODECS, LEGACY_CODECS, compress
from tests.support.corruption import entries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_BYTES = 4096

CODEC, FIELDS, WRAPPER_V1, APPEND_TIME, BROKEN_INSIDE, AS_IT_IS = 0x03, 0x04, 0x08, 0x10, 0x20, 0x80
_GOLDEN_BYTES = 1 << 16
_SEED_BYTES = 1500


def check(data: bytes, file: Path) -> None:
    flags, offset = data[:2].ljust(2, b"\0")
    messages = data[2:]
    checksums = not flags & (BROKEN_INSIDE if flags & CODEC else AS_IT_IS)
    repairs = Repairs(magics=(0, 1), fields=bool(flags & FIELDS), checksums=checksums)
    segment = repaired(messages, repairs)
    if flags & CODEC:
        segment = _wrapped(segment, flags, offset)
    check_segment(segment)


def _wrapped(messages: bytes, flags: int, offset: int) -> bytes:
    """Return a wrapper around the messages, and a plain one after it."""
    magic, codec = int(bool(flags & WRAPPER_V1)), CODECS[flags & CODEC]
    first = wrapper_of(
        compress(codec, messages, magic),
        offset=offset,
        magic=magic,
        codec=codec,
        append_time=9_000 if flags & APPEND_TIME else None,
    )
    return first + message_bytes(offset + 1, b"k", b"v", magic=magic, timestamp=8_000)


def seeds() -> Iterator[bytes]:
    records = [
        Stored(4, 1_000, b"key", b"value"),
        Stored(6, 999, None, b""),
        Stored(7, 5, b"", None),
    ]
    for magic in (0, 1):
        plain = message_set(records, inner_magic=magic)
        yield bytes([0, 0]) + plain
        yield bytes([FIELDS, 0]) + plain
        yield bytes([AS_IT_IS, 0]) + plain + plain[:20]
        for codec in LEGACY_CODECS:
            yield bytes([0, 0]) + wrapper(records, magic=magic, codec=codec).data + plain
    for flags in range(1, CODEC + 1):
        relative = message_set(records, inner_magic=1, relative_to=4)
        yield bytes([flags | WRAPPER_V1, 7]) + relative
        yield bytes([flags | WRAPPER_V1 | APPEND_TIME | FIELDS, 0]) + relative
        yield bytes([flags | BROKEN_INSIDE, 7]) + message_set(records, inner_magic=0)


def golden_seeds() -> Iterator[bytes]:
    for _, data in golden_files(".log", max_bytes=_GOLDEN_BYTES):
        old = [entry for entry in entries(data) if entry[16] < 2]
        kinds = set()
        for entry in old:
            kind = (entry[16:18], len(entry).bit_length())
            if len(entry) <= _SEED_BYTES and kind not in kinds:
                kinds.add(kind)
                yield bytes([0, 0]) + entry
        if old:
            yield bytes([FIELDS, 0]) + b"".join(old)[:_SEED_BYTES]
