"""aiokafka and kafka-python: their record parsers and builders, under one interface."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiokafka.record.default_records as aiokafka_v2
import aiokafka.record.legacy_records as aiokafka_legacy
import aiokafka.record.memory_records as aiokafka_memory
import cramjam

from tests.support.batches import Stored
from tests.support.codecs import CODEC_IDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

with warnings.catch_warnings():
    # kafka-python 3.0 reads its schemas by a function that Python 3.11 and 3.12 call old.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.codec as kafka_python_codec
    import kafka.record.default_records as kafka_python_v2
    import kafka.record.legacy_records as kafka_python_legacy
    import kafka.record.memory_records as kafka_python_memory

if kafka_python_codec.snappy is None:
    # It wants python-snappy for the blocks, and has the xerial framing of its own.
    kafka_python_codec.snappy = SimpleNamespace(
        compress=lambda data: bytes(cramjam.snappy.compress_raw(data)),
        decompress=lambda data: bytes(cramjam.snappy.decompress_raw(data)),
    )

MEMORY_RECORDS: dict[str, Callable[[bytes], Any]] = {
    "aiokafka": aiokafka_memory.MemoryRecords,
    "kafka-python": kafka_python_memory.MemoryRecords,
}
V2_BUILDERS: dict[str, Callable[..., Any]] = {
    "aiokafka": aiokafka_v2.DefaultRecordBatchBuilder,
    "kafka-python": kafka_python_v2.DefaultRecordBatchBuilder,
}
LEGACY_BUILDERS: dict[str, Callable[..., Any]] = {
    "aiokafka": aiokafka_legacy.LegacyRecordBatchBuilder,
    "kafka-python": kafka_python_legacy.LegacyRecordBatchBuilder,
}
PEERS = tuple(MEMORY_RECORDS)


def peer_batches(peer: str, data: bytes) -> Iterator[Any]:
    """Yield the peer's batch objects, checksums verified."""
    memory = MEMORY_RECORDS[peer](data)
    while memory.has_next():
        batch = memory.next_batch()
        assert batch.validate_crc()
        yield batch


def peer_records(peer: str, data: bytes) -> list[Stored]:
    """Return the data records that the peer reads, v2 only."""
    return [
        Stored.of_client(record)
        for batch in peer_batches(peer, data)
        if not batch.is_control_batch
        for record in batch
    ]


def build_v2(peer: str, records: Sequence[Stored], codec: str, **producer: int) -> bytes:
    """Return a v2 batch that the peer's producer would send; offsets count from 0."""
    options = {"is_transactional": 0, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
    builder = V2_BUILDERS[peer](
        magic=2, compression_type=CODEC_IDS[codec], batch_size=1 << 24, **(options | producer)
    )
    for record in records:
        added = builder.append(
            record.offset,
            timestamp=record.timestamp,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
        )
        assert added is not None
    return bytes(builder.build())


def build_legacy(peer: str, records: Sequence[Stored], codec: str, magic: int) -> bytes:
    """Return v0 or v1 messages, in a wrapper if a codec is given; offsets count from 0."""
    builder = LEGACY_BUILDERS[peer](
        magic=magic, compression_type=CODEC_IDS[codec], batch_size=1 << 24
    )
    for record in records:
        stamp = record.timestamp if magic else None
        added = builder.append(record.offset, timestamp=stamp, key=record.key, value=record.value)
        assert added is not None
    return bytes(builder.build())
