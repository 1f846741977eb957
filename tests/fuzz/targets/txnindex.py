"""Transaction indexes: which are refused, what is in the others, what touches a range of offsets.

An input: a byte of flags, two int32 that are a range of offsets, and the file. The flags may ask
for right versions and for last offsets that go up.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pylog.errors import CorruptIndexError
from pylog.files.transaction_index import (
    TransactionIndexEntry,
    collect_aborted_transactions,
    read_transaction_index,
)
from tests.fuzz.golden_files import golden_files
from tests.support.log_files import TRANSACTION_ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_BYTES = 2_000
VERSIONS, ORDER, FAR = 0x01, 0x02, 0x04
_HEAD = struct.Struct(">Bii")
_FAR_BASE_OFFSET = 2**40


def check(data: bytes, file: Path) -> None:
    flags, start, length = _HEAD.unpack(data[: _HEAD.size].ljust(_HEAD.size, b"\0"))
    content = data[_HEAD.size :]
    whole = len(content) - len(content) % TRANSACTION_ENTRY.size
    base_offset = _FAR_BASE_OFFSET if flags & FAR else 0
    entries = list(
        _repaired(list(TRANSACTION_ENTRY.iter_unpack(content[:whole])), flags, base_offset)
    )
    file.write_bytes(
        b"".join(TRANSACTION_ENTRY.pack(*entry) for entry in entries) + content[whole:]
    )
    lasts = [base_offset - 1, *(entry[3] for entry in entries)]
    is_sound = all(entry[0] == 0 for entry in entries) and lasts == sorted(set(lasts))
    try:
        found = read_transaction_index(file, base_offset=base_offset)
    except CorruptIndexError:
        assert not is_sound
        return
    assert is_sound
    assert [tuple(entry) for entry in found] == entries
    _check_range(found, base_offset + start, base_offset + start + abs(length))


def _repaired(
    entries: list[tuple[int, ...]], flags: int, base_offset: int
) -> Iterator[tuple[int, ...]]:
    lowest = base_offset
    for version, producer_id, first, last, stable in entries:
        if flags & ORDER:
            last = max(last, lowest)  # noqa: PLW2901 - repaired
            lowest = min(last + 1, 2**63 - 1)
        yield (0 if flags & VERSIONS else version), producer_id, first, last, stable


def _check_range(entries: list[TransactionIndexEntry], start: int, end: int) -> None:
    result = collect_aborted_transactions(entries, start, end)
    # From the first entry after which everything before the end is decided, none is needed.
    decided = [place for place, entry in enumerate(entries) if entry.last_stable_offset >= end]
    needed = entries[: decided[0] + 1] if decided else entries
    touching = [
        (entry.producer_id, entry.first_offset, entry.last_offset)
        for entry in needed
        if entry.first_offset < end and entry.last_offset >= start
    ]
    assert [tuple(transaction) for transaction in result.aborted_transactions] == touching
    assert result.is_complete == bool(decided)


def seeds() -> Iterator[bytes]:
    entries = [(0, 7, 3, 10, 11), (0, 8, 5, 20, 12), (0, 7, 25, 30, 31), (0, 9, -1, 40, 2**62)]
    content = b"".join(TRANSACTION_ENTRY.pack(*entry) for entry in entries)
    for flags in (0, VERSIONS, ORDER, VERSIONS | ORDER, FAR | ORDER):
        yield _HEAD.pack(flags, 4, 21) + content
    yield _HEAD.pack(0, 0, 5) + content[:50]
    yield _HEAD.pack(0, 0, 0)


def golden_seeds() -> Iterator[bytes]:
    for _, data in golden_files(".txnindex", max_bytes=MAX_BYTES):
        yield _HEAD.pack(0, 0, 100) + data
