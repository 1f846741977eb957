"""On brokers' own v2 segments, the parsers of aiokafka and kafka-python agree with ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.model import TopicPartition
from pylog.record.batch_scan import Window, find_batches
from tests.support.golden import Holds, golden_partitions
from tests.support.peers import PEERS, peer_records
from tests.support.reading import as_buffer, rows

if TYPE_CHECKING:
    from tests.support.batches import Stored
    from tests.support.golden import GoldenRoot

SERVED = golden_partitions(Holds.EXACTLY, Holds.MORE_AT_THE_START)
NEW_BROKERS = ("0.11.", "2.8.", "3.9.", "4.3.", "4.4.")


def our_records(data: bytes) -> list[Stored]:
    scan = find_batches(as_buffer(data))
    window = Window.of(scan, "0.log", 0).select(~scan.headers.is_control)
    schema = record_schema(include_headers=True, timestamp_unit="ms")
    return rows(RecordDecoder(TopicPartition("t", 0), schema).decode(window, 0, 2**63 - 1))


def v2_segments(golden_root: GoldenRoot, partition_id: str) -> list[bytes]:
    """Return the whole batches of each segment that holds v2 batches only."""
    found = []
    for path in sorted(golden_root.partition(partition_id).directory.glob("*.log")):
        data = path.read_bytes()
        scan = find_batches(as_buffer(data))
        if len(scan.headers) and scan.headers.is_v2.all():
            found.append(data[: scan.valid_bytes])
    return found


@pytest.mark.parametrize("partition_id", [each for each in SERVED if each.startswith(NEW_BROKERS)])
def test_every_record_of_every_segment(golden_root: GoldenRoot, partition_id: str) -> None:
    for data in v2_segments(golden_root, partition_id):
        ours = our_records(data)
        for peer in PEERS:
            assert peer_records(peer, data) == ours, peer


def test_enough_was_compared(golden_root: GoldenRoot) -> None:
    segments = [data for each in SERVED for data in v2_segments(golden_root, each)]
    assert len(segments) > 350
    assert sum(len(our_records(data)) for data in segments) > 8_000
