"""What the builders of aiokafka and kafka-python write, we read."""

from __future__ import annotations

import pytest

from tests.support.batches import Stored
from tests.support.codecs import CODECS, LEGACY_CODECS
from tests.support.decoding import kernel_records, reference_records
from tests.support.peers import PEERS, build_legacy, build_v2

RECORDS = [
    Stored(0, 1_700_000_000_000, b"key", b"value" * 200, (("h", b"1"), ("h", None), ("ключ", b""))),
    Stored(1, 1_700_000_000_500, None, b"", ()),
    Stored(2, 1_699_999_999_000, b"", None, ()),
    *(Stored(3 + i, 1_700_000_001_000 + i, b"k%d" % i, bytes([i]) * 700) for i in range(200)),
]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("peer", PEERS)
def test_v2_batches_of_every_codec(peer: str, codec: str) -> None:
    data = build_v2(peer, RECORDS, codec)
    assert kernel_records(data) == reference_records(data) == RECORDS


@pytest.mark.parametrize("peer", PEERS)
def test_v2_batches_of_idempotent_and_transactional_producers(peer: str) -> None:
    data = build_v2(
        peer, RECORDS, "lz4", is_transactional=1, producer_id=7, producer_epoch=2, base_sequence=9
    )
    assert kernel_records(data) == RECORDS


LEGACY_CASES = [
    (peer, magic, codec)
    for peer in PEERS
    for magic in (0, 1)
    for codec in ("none", *LEGACY_CODECS)
    if (peer, magic, codec) != ("aiokafka", 0, "lz4")  # which it refuses to write
]


@pytest.mark.parametrize(("peer", "magic", "codec"), LEGACY_CASES)
def test_legacy_messages_of_every_codec(peer: str, magic: int, codec: str) -> None:
    data = build_legacy(peer, RECORDS, codec, magic)
    expected = [
        record._replace(
            headers=(),
            timestamp=record.timestamp if magic else -1,
            timestamp_type=0 if magic else -1,
        )
        for record in RECORDS
    ]
    if codec != "none":
        # A producer's wrapper has offset 0; the broker writes the last one, as Kafka's would.
        data = (len(RECORDS) - 1).to_bytes(8, "big") + data[8:]
    assert kernel_records(data) == reference_records(data) == expected
