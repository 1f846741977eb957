"""Transactions whose coordinator has records of them."""

from __future__ import annotations

import struct

from tests.support.batches import Built, Stored, batch_v2, plain_records

MINUTE = 60_000


def data(offset: int, producer_id: int, timestamp: int = 1000) -> Built:
    return batch_v2(
        plain_records(offset, 1, timestamp=timestamp),
        producer_id=producer_id,
        producer_epoch=3,
        base_sequence=0,
        is_transactional=True,
    )


def coordinated(
    at: int, name: str, producer_id: int, status: int, started: int, *places: tuple[str, int]
) -> Stored:
    """Return a record of ``__transaction_state``, value version 0."""
    partitions = b"".join(
        struct.pack(">h", len(topic)) + topic.encode() + struct.pack(">ii", 1, number)
        for topic, number in places
    )
    value = struct.pack(">hqhib", 0, producer_id, 3, 5 * MINUTE, status)
    value += struct.pack(">i", len(places)) + partitions + struct.pack(">qq", started, started)
    key = struct.pack(">hh", 0, len(name)) + name.encode()
    return Stored(at, 1, key, value)
