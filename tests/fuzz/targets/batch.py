"""Segments of v2 batches, or with older messages among them: boundaries, checksums, records.

An input: a byte of flags, and the segment, or what one is made of. The kernels and the plain-Python
reference must refuse the same segments and find the same records in the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.agreement import check_segment
from tests.fuzz.from_fields import Supply, batch_from_fields
from tests.fuzz.golden_files import golden_files
from tests.fuzz.repair import Repairs, repaired
from tests.support.batches import (
    ABORT,
    Built,
    Stored,
    batch_v2,
    empty_batch_v2,
    joined,
    marker,
    message,
    plain_records,
    wrapper,
)
from tests.support.codecs import CODECS
from tests.support.corruption import entries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_BYTES = 4096

FIELDS, CODECS_TOO, ANY_FORMAT, FROM_FIELDS, AS_IT_IS = 0x01, 0x02, 0x04, 0x08, 0x80
_GOLDEN_BYTES = 1 << 16
_SEED_BYTES = 1500


def check(data: bytes, file: Path) -> None:
    flags, segment = data[:1], data[1:]
    chosen = flags[0] if flags else 0
    if chosen & FROM_FIELDS:
        supply = Supply(segment)
        segment = b"".join(batch_from_fields(supply) for _ in range(1 + (chosen >> 4) % 4))
        check_segment(segment)
        return
    repairs = Repairs(
        magics=(0, 1, 2) if chosen & ANY_FORMAT else (2,),
        fields=bool(chosen & FIELDS),
        codecs=bool(chosen & CODECS_TOO),
        checksums=not chosen & AS_IT_IS,
    )
    check_segment(repaired(segment, repairs))


def seeds() -> Iterator[bytes]:
    for built in _batches():
        yield bytes([0]) + built.data
        yield bytes([AS_IT_IS]) + built.data + built.data[:30]
    plain = joined([built for built in _batches() if built.codec == "none"])
    yield bytes([FIELDS]) + plain
    yield bytes([FIELDS | ANY_FORMAT]) + plain
    for flags in (FROM_FIELDS, FROM_FIELDS | 0x30):
        yield bytes([flags]) + bytes(120)
        yield bytes([flags]) + bytes(range(250)) * 2
    # Codec bits over plain records, which are compressed only on the way.
    for codec in range(1, len(CODECS) + 1):
        data = bytearray(batch_v2(plain_records(0, 3)).data)
        data[22] |= codec
        yield bytes([FIELDS | CODECS_TOO]) + bytes(data)


def _batches() -> Iterator[Built]:
    records = [
        Stored(5, 1_000, b"key", b"value", (("h", b"1"), ("é", None))),
        Stored(6, 999, None, None),
        Stored(400, 2**40, b"", bytes(200), (("", b""),)),
    ]
    for codec in CODECS:
        yield batch_v2(records, codec=codec)
    yield batch_v2(plain_records(7, 4), append_time=5_000, is_transactional=True, producer_id=3)
    yield batch_v2(plain_records(7, 2), delete_horizon=77, last_offset=20)
    yield marker(11, ABORT)
    yield empty_batch_v2(12, 19)
    yield message(Stored(21, 3, b"k", b"v"), magic=1)
    yield wrapper(plain_records(22, 3), magic=1, codec="gzip")


def golden_seeds() -> Iterator[bytes]:
    for _, data in golden_files(".log", max_bytes=_GOLDEN_BYTES):
        kinds = set()
        for entry in entries(data):
            kind = (entry[16:17] + entry[21:23], len(entry).bit_length())
            if entry[16] == 2 and len(entry) <= _SEED_BYTES and kind not in kinds:
                kinds.add(kind)
                yield bytes([0]) + entry
        yield bytes([FIELDS]) + data[:_SEED_BYTES]
