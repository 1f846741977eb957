"""Where batches of v0 and v1 begin: a compressed one has only its last offset in its header.

Source: AbstractLegacyRecordBatch.lastOffset, baseOffset (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.files.storage import open_file
from pylog.record.batch_header import (
    ENTRY_START_OF_KAFKA,
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_VALUE_V1,
)
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.record.compression import Decompressor
from pylog.record.legacy_batch import iter_stored_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.comparison.batch_join import BatchPlace, BatchStretch
    from pylog.comparison.replica_log import ReplicaLog


def find_first_offsets(stretches: list[BatchStretch], replicas: Sequence[ReplicaLog]) -> None:
    """Have stretches begin where their records do; they stay in the order of their offsets."""
    for stretch in stretches:
        if stretch.is_legacy:
            replica, place = next(iter(stretch.places.items()))
            first = _first_offset(replicas[replica], place)
            if first is not None:
                stretch.start_offset = first
    stretches.sort(key=lambda each: (each.start_offset, each.end_offset))


def _first_offset(replica: ReplicaLog, place: BatchPlace) -> int | None:
    """Return the first offset of a batch; None where its messages cannot be read."""
    with open_file(replica.segments[place.file].file_path()) as source:
        head = source.read_at(place.position, HEADER_SIZE_UP_TO_MAGIC)
        offset, size, magic = ENTRY_START_OF_KAFKA.unpack(head)
        if magic > MAGIC_VALUE_V1:
            return int(offset)
        data = source.read_at(place.position, LOG_OVERHEAD + size)
    try:
        messages = iter_stored_messages(
            memoryview(data), Decompressor(DEFAULT_MAX_DECOMPRESSED_BYTES)
        )
        return next(messages).record.offset
    except (CorruptRecordError, InvalidRecordError):
        return None
