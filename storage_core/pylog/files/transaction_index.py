"""Transaction index, ``<base offset>.txnindex``: the aborted transactions of a segment.

===== ===== ============================================================
pos   width field (big-endian, signed)
===== ===== ============================================================
0     2     version: 0
2     8     producer id
10    8     first offset: of the transaction in this partition
18    8     last offset: of the ABORT marker
26    8     last stable offset: right after this abort
===== ===== ============================================================

An entry lies in the index of the segment that holds the marker, wherever the transaction's data
is. Entries are appended when a marker is, so ``last offset`` increases strictly. The file has no
header and no checksum, is never preallocated, and exists only once an abort happened. A trailing
partial entry (a torn append) is not an entry.

Source: TransactionIndex, AbortedTxn (KIP-98; Kafka 3.9, 4.3, 4.4). Differs from Kafka up to 4.3,
which accepts negative versions; 4.4 accepts 0 alone, as this reader does.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptIndexError
from pylog.files.file_names import find_segment_file_name
from pylog.files.storage import open_file
from pylog.locations import name_of
from pylog.model import AbortedTransaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.files.byte_source import ByteSource

TRANSACTION_INDEX_VERSION = 0
MAX_TRANSACTION_INDEX_BYTES = 64 * 1024 * 1024
"""Two million aborted transactions in one segment: what is larger is not read."""
ENTRY = struct.Struct(">hqqqq")
_ENTRIES_PER_READ = 4096


class TransactionIndexEntry(NamedTuple):
    """One aborted transaction. Both offsets are inclusive; `last_offset` is that of the marker."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndexSearchResult(NamedTuple):
    """Aborted transactions of a range of offsets."""

    aborted_transactions: list[AbortedTransaction]
    is_complete: bool


def read_transaction_index(
    path: str | os.PathLike[str], *, base_offset: int | None = None
) -> list[TransactionIndexEntry]:
    """Return all entries of a transaction index, in file order."""
    if base_offset is None:
        name = find_segment_file_name(name_of(os.fspath(path)))
        base_offset = 0 if name is None else name.base_offset
    entries: list[TransactionIndexEntry] = []
    lowest = base_offset
    for position, entry in _read_entries(path):
        if entry.version != TRANSACTION_INDEX_VERSION:
            reason = (
                f"transaction index entry has version {entry.version}, "
                f"expected {TRANSACTION_INDEX_VERSION}"
            )
            raise CorruptIndexError(reason, path, position)
        if entry.last_offset < lowest:
            bound = "the base offset" if not entries else "one more than the entry before it"
            reason = (
                f"transaction index entry has last offset {entry.last_offset}, "
                f"expected at least {lowest} ({bound})"
            )
            raise CorruptIndexError(reason, path, position)
        entries.append(entry)
        lowest = entry.last_offset + 1
    return entries


def ensure_readable_size(source: ByteSource) -> None:
    """Raise `CorruptIndexError` if a file is longer than what is read of a transaction index."""
    size = source.size()
    if size > MAX_TRANSACTION_INDEX_BYTES:
        reason = (
            f"transaction index has {size} bytes, expected at most {MAX_TRANSACTION_INDEX_BYTES}"
        )
        raise CorruptIndexError(reason, source.path)


def collect_aborted_transactions(
    entries: Iterable[TransactionIndexEntry], start_offset: int, end_offset: int
) -> TransactionIndexSearchResult:
    """Return the aborted transactions that touch ``start_offset <= offset < end_offset``."""
    collected, is_complete = collect_entries(entries, start_offset, end_offset)
    aborted = [
        AbortedTransaction(entry.producer_id, entry.first_offset, entry.last_offset)
        for entry in collected
    ]
    return TransactionIndexSearchResult(aborted, is_complete)


def collect_entries(
    entries: Iterable[TransactionIndexEntry], start_offset: int, end_offset: int
) -> tuple[list[TransactionIndexEntry], bool]:
    """Return the entries of transactions that touch a range; whether that is all of them."""
    collected = []
    for entry in entries:
        if entry.last_offset >= start_offset and entry.first_offset < end_offset:
            collected.append(entry)
        if entry.last_stable_offset >= end_offset:
            return collected, True
    return collected, False


def _read_entries(path: str | os.PathLike[str]) -> Iterator[tuple[int, TransactionIndexEntry]]:
    """Yield each whole entry and its byte position."""
    position = 0
    with open_file(path) as file:
        ensure_readable_size(file)
        while chunk := file.read_at(position, _ENTRIES_PER_READ * ENTRY.size):
            whole = len(chunk) - len(chunk) % ENTRY.size
            for fields in ENTRY.iter_unpack(chunk[:whole]):
                yield position, TransactionIndexEntry(*fields)
                position += ENTRY.size
            if whole < len(chunk):
                return
