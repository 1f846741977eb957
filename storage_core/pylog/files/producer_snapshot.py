"""Producer snapshot, ``<offset>.snapshot``: idempotent and transactional producers of a partition.

===== ===== ============================================================
pos   width field (big-endian, signed unless said otherwise)
===== ===== ============================================================
0     2     version: 1
2     4     CRC-32C, unsigned, of all bytes from 6 to the end of the file
6     4     entry count
10    46*n  entries
===== ===== ============================================================

===== ===== ============================================================
pos   width field of an entry
===== ===== ============================================================
0     8     producer id
8     2     producer epoch
10    4     last sequence, or -1
14    8     last offset: of the producer's last data record, or -1
22    4     offset delta: last offset minus first offset of its last batch
26    8     timestamp: of that batch, ms, or -1
34    4     coordinator epoch: of its last marker, or -1
38    8     current transaction's first offset, or -1 if none is open
===== ===== ============================================================

The offset in the name is exclusive: the state is the one before it. Entries are in no order. The
file is written in place, so a crash leaves a short one; a broker deletes what it cannot read and
takes the next older snapshot.

Source: ProducerStateManager, ProducerSnapshot.json (KIP-98; Kafka 3.9 and 4.3). Brokers since 0.11.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptSnapshotError
from pylog.files.storage import open_file
from pylog.native.checksum import crc32c, wrong_checksum

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from pylog.files.durable_io import DurableIO

PRODUCER_SNAPSHOT_VERSION = 1
MAX_PRODUCER_SNAPSHOT_BYTES = 64 * 1024 * 1024
NO_OFFSET = -1
"""Stands for "none" in `ProducerSnapshotEntry.last_offset` and `.current_txn_first_offset`."""

_HEADER = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_CHECKSUMMED_POSITION = 6


class ProducerSnapshotEntry(NamedTuple):
    """The state of one producer at the snapshot's offset.

    Fields that the producer has not given rise to yet are -1: `NO_SEQUENCE`, `NO_OFFSET`,
    `NO_TIMESTAMP`. ``last_offset`` is inclusive and never that of a marker.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


def read_producer_snapshot(path: str | os.PathLike[str]) -> list[ProducerSnapshotEntry]:
    """Return the producers of a snapshot file, in file order."""
    with open_file(path) as file:
        size = file.size()
        if size > MAX_PRODUCER_SNAPSHOT_BYTES:
            reason = (
                f"producer snapshot has {size} bytes, expected at most "
                f"{MAX_PRODUCER_SNAPSHOT_BYTES}"
            )
            raise CorruptSnapshotError(reason, path)
        return parse_producer_snapshot(file.read_at(0, size), path)


def parse_producer_snapshot(
    data: bytes, path: str | os.PathLike[str] | None = None
) -> list[ProducerSnapshotEntry]:
    """Return the producers of a snapshot's bytes, in file order."""
    if len(data) < _HEADER.size:
        reason = f"producer snapshot has {len(data)} bytes, expected at least {_HEADER.size}"
        raise CorruptSnapshotError(reason, path, len(data))
    version, stored_crc, count = _HEADER.unpack_from(data)
    if version != PRODUCER_SNAPSHOT_VERSION:
        reason = f"producer snapshot has version {version}, expected {PRODUCER_SNAPSHOT_VERSION}"
        raise CorruptSnapshotError(reason, path, 0)
    expected = _HEADER.size + count * _ENTRY.size
    if count < 0 or len(data) != expected:
        reason = f"producer snapshot with {count} entries has {len(data)} bytes"
        if count >= 0:
            reason += f", expected {expected}"
        raise CorruptSnapshotError(reason, path, _CHECKSUMMED_POSITION)
    computed_crc = crc32c(memoryview(data)[_CHECKSUMMED_POSITION:])
    if computed_crc != stored_crc:
        reason = wrong_checksum("producer snapshot", stored_crc, computed_crc)
        raise CorruptSnapshotError(reason, path, 2)
    return [ProducerSnapshotEntry(*fields) for fields in _ENTRY.iter_unpack(data[_HEADER.size :])]


def producer_snapshot_bytes(entries: Iterable[ProducerSnapshotEntry]) -> bytes:
    """Return the bytes of a snapshot of ``entries``, in their order."""
    try:
        packed = [_ENTRY.pack(*entry) for entry in entries]
    except struct.error as error:
        msg = f"a producer's state does not fit into a snapshot: {error}"
        raise ValueError(msg) from error
    body = struct.pack(">i", len(packed)) + b"".join(packed)
    return struct.pack(">hI", PRODUCER_SNAPSHOT_VERSION, crc32c(body)) + body


def write_producer_snapshot(
    io: DurableIO,
    path: str | os.PathLike[str],
    entries: Iterable[ProducerSnapshotEntry],
    *,
    sync: bool,
) -> None:
    """Write a snapshot in place: a crash leaves a part of it, which its checksum reveals."""
    io.write_file(path, producer_snapshot_bytes(entries), sync=sync)
