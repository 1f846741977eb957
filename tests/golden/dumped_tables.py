"""Batches as Kafka's tool dumps them, beside rows of the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.golden import Holds, golden_partitions
from tests.support.kafka_dump import Fields, flag, number, optional_number

if TYPE_CHECKING:
    from tests.support.metadata_rows import Row

LIVE = [each for each in golden_partitions() if not each.endswith("-delete")]
SERVED = golden_partitions(Holds.EXACTLY, Holds.MORE_AT_THE_START)
STAMPS = {"CreateTime": 0, "LogAppendTime": 1, "NoTimestampType": -1}


def batch_as_dumped(segment: str, fields: Fields) -> Row:
    """Return a line of DumpLogSegments since 2.x as a row."""
    stamp = next(name for name in STAMPS if name in fields)
    is_legacy = "offset" in fields
    is_wrapper = is_legacy and fields["compresscodec"].lower() != "none"
    base_offset = int(fields["offset" if is_legacy else "baseOffset"])
    return {
        "segment": segment,
        "position": int(fields["position"]),
        "size_in_bytes": int(fields["size"]),
        "base_offset": None if is_wrapper else base_offset,
        "last_offset": base_offset if is_legacy else int(fields["lastOffset"]),
        "records": None if is_wrapper else int(fields.get("count", 1)),
        "magic": int(fields["magic"]),
        "crc": int(fields["crc"]),
        "is_valid_crc": flag(fields, "isvalid"),
        "codec": fields["compresscodec"].lower(),
        "timestamp_type": STAMPS[stamp],
        "max_timestamp": number(fields, stamp),
        "delete_horizon": optional_number(fields.get("deleteHorizonMs", "None")),
        "partition_leader_epoch": number(fields, "partitionLeaderEpoch"),
        "producer_id": number(fields, "producerId"),
        "producer_epoch": number(fields, "producerEpoch"),
        "base_sequence": number(fields, "baseSequence"),
        "last_sequence": number(fields, "lastSequence"),
        "is_transactional": flag(fields, "isTransactional"),
        "is_control": flag(fields, "isControl"),
    }
