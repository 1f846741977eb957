from __future__ import annotations

import zlib
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.model import CompressionType, TimestampOffset, TimestampType
from pylog.record.batch_header import parse_batch_header
from pylog.record.compression import Decompressor
from pylog.record.legacy_batch import wrapped_stream
from pylog.record.legacy_builder import LegacyBatchBuilder, encode_message
from pylog.record.record_batch import RecordBatch
from tests.support.batches import Stored, message, message_bytes, message_set
from tests.support.codecs import CODEC_IDS, LEGACY_CODECS
from tests.support.peers import PEERS, build_legacy, peer_batches

CREATE, APPEND = TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME
NO_TYPE = TimestampType.NO_TIMESTAMP_TYPE
ALL_CODECS = ("none", *LEGACY_CODECS)
MAGICS = (0, 1)
# aiokafka refuses lz4 of v0, whatever is in it.
READABLE_BY_PEERS = [
    case for case in product(PEERS, MAGICS, ALL_CODECS) if case != ("aiokafka", 0, "lz4")
]
RECORDS = [
    Stored(0, 5_000, b"key", b"value"),
    Stored(1, 4_999, None, b"123"),
    Stored(2, 2**40, b"key", None),
    Stored(3, 5_001, b"", b""),
    Stored(4, -1, b"k" * 100, b"v" * 9_000),
]


def codec_of(name: str) -> CompressionType:
    return CompressionType(CODEC_IDS[name])


def built(magic: int, records: list[Stored], **options: Any) -> bytes:  # noqa: ANN401 - handed on
    builder = LegacyBatchBuilder(magic, **options)
    for record in records:
        builder.append_with_offset(record.offset, record.timestamp, record.key, record.value)
    return builder.build()


def inner_set(data: bytes) -> bytes:
    """Return the messages in a wrapper, decompressed."""
    header = parse_batch_header(data)
    decompressor = Decompressor()
    stream = wrapped_stream(memoryview(data), header.magic)
    start, end = decompressor.append(header.compression, stream, header.magic)
    return bytes(decompressor.buffer.view(start, end))


def records_by_pylog(
    data: bytes,
) -> list[tuple[int, int, bytes | None, bytes | None, TimestampType]]:
    found, position = [], 0
    while position < len(data):
        batch = RecordBatch(data[position:])
        found += [
            (each.offset, each.timestamp, each.key, each.value, each.timestamp_type)
            for each in batch.records()
        ]
        position += batch.header.size_bytes
    return found


def peer_finds(peer: str, data: bytes) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """Return records as the peer reads them; what a format lacks is -1."""
    return [
        (
            record.offset,
            -1 if record.timestamp is None else record.timestamp,
            record.key,
            record.value,
        )
        for batch in peer_batches(peer, data)
        for record in batch
    ]


def as_reported(magic: int, record: Stored) -> tuple[int, int, bytes | None, bytes | None]:
    return record.offset, record.timestamp if magic else -1, record.key, record.value


# --- bytes ----------------------------------------------------------------------------------------


def test_messages_of_brokers_are_built_byte_for_byte() -> None:
    record = Stored(0, 1503648000942, None, b"123")
    assert built(0, [record]).hex() == (
        "000000000000000000000011feb01dbf0000ffffffff00000003313233"
    )
    assert built(1, [record]).hex() == (
        "000000000000000000000019478628c201000000015e1867abaeffffffff00000003313233"
    )


@pytest.mark.parametrize("magic", MAGICS)
@pytest.mark.parametrize("peer", PEERS)
def test_uncompressed_messages_are_what_the_peers_producer_builds(peer: str, magic: int) -> None:
    assert built(magic, RECORDS) == build_legacy(peer, RECORDS, "none", magic)


@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize("magic", MAGICS)
@pytest.mark.parametrize("peer", PEERS)
def test_what_is_in_a_wrapper_is_what_the_peers_producer_puts_there(
    peer: str, magic: int, codec: str
) -> None:
    data = built(magic, RECORDS, compression=codec_of(codec))
    theirs = build_legacy(peer, RECORDS, "none", magic)
    assert inner_set(data) == theirs == message_set(RECORDS, inner_magic=magic)


@pytest.mark.parametrize(("peer", "magic", "codec"), READABLE_BY_PEERS)
def test_peers_read_every_record_of_every_codec(peer: str, magic: int, codec: str) -> None:
    records = [record._replace(offset=record.offset + 70) for record in RECORDS]
    data = built(magic, records, base_offset=70, compression=codec_of(codec))
    expected = [as_reported(magic, record) for record in records]
    assert peer_finds(peer, data) == expected
    kind = CREATE if magic else NO_TYPE
    assert records_by_pylog(data) == [(*fields, kind) for fields in expected]


@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize("magic", MAGICS)
def test_a_wrapper_has_a_null_key_and_the_last_offset(magic: int, codec: str) -> None:
    records = [record._replace(offset=record.offset + 70) for record in RECORDS]
    data = built(magic, records, base_offset=70, compression=codec_of(codec))
    header = parse_batch_header(data)
    assert (header.offset, header.magic, header.attributes) == (74, magic, CODEC_IDS[codec])
    assert header.max_timestamp == (2**40 if magic else -1)
    assert header.size_bytes == len(data)
    assert header.crc == zlib.crc32(data[16:])
    key_at = 26 if magic else 18
    assert data[key_at : key_at + 4] == b"\xff\xff\xff\xff"


def test_inner_offsets_are_absolute_in_v0_and_relative_to_the_base_offset_in_v1() -> None:
    records = [Stored(offset, 1, None, b"x") for offset in (12, 15, 19)]
    options = {"base_offset": 10, "compression": CompressionType.GZIP}
    v0, v1 = (built(magic, records, **options) for magic in MAGICS)
    assert inner_set(v0) == message_set(records, inner_magic=0)
    assert inner_set(v1) == message_set(records, inner_magic=1, relative_to=10)
    for data in (v0, v1):
        assert [fields[0] for fields in records_by_pylog(data)] == [12, 15, 19]
        for peer in PEERS:
            assert [fields[0] for fields in peer_finds(peer, data)] == [12, 15, 19]


def test_v0_wraps_lz4_with_the_wrong_header_checksum_and_v1_with_the_right_one() -> None:
    # KAFKA-3160
    streams = [
        bytes(
            wrapped_stream(
                memoryview(built(magic, RECORDS, compression=CompressionType.LZ4)), magic
            )
        )
        for magic in MAGICS
    ]
    assert [stream[:7].hex() for stream in streams] == ["04224d1860401a", "04224d18604082"]


payloads = st.none() | st.binary(max_size=200)


@given(
    st.sampled_from(MAGICS),
    st.integers(0, 2**62),
    st.integers(-1, 2**63 - 1),
    payloads,
    payloads,
    st.booleans(),
)
def test_any_message_has_the_described_bytes_and_the_predicted_size(
    magic: int,
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    is_append_time: bool,  # noqa: FBT001 - drawn
) -> None:
    attributes = 0x08 if is_append_time and magic else 0
    encoded = encode_message(
        offset, key, value, magic=magic, attributes=attributes, timestamp=timestamp
    )
    assert encoded == message_bytes(
        offset, key, value, magic=magic, attributes=attributes, timestamp=timestamp
    )


@pytest.mark.parametrize("magic", MAGICS)
def test_the_size_is_exact_without_codec_and_a_guess_with_one(magic: int) -> None:
    overhead = 34 if magic else 26
    plain = LegacyBatchBuilder(magic)
    packed = LegacyBatchBuilder(magic, compression=CompressionType.GZIP)
    for builder in (plain, packed):
        builder.append(1, b"key", b"v" * 1_000)
        builder.append(2, None, None)
    assert plain.estimated_size_bytes == 2 * overhead + 1_003 == len(plain.build())
    assert packed.estimated_size_bytes == 3 * overhead + 1_003
    assert packed.estimated_size_bytes > len(packed.build()) == packed.estimated_size_bytes


@pytest.mark.parametrize("codec", ALL_CODECS)
@pytest.mark.parametrize("magic", MAGICS)
def test_no_records_make_no_message(magic: int, codec: str) -> None:
    builder = LegacyBatchBuilder(magic, compression=codec_of(codec))
    assert builder.build() == b""
    assert builder.estimated_size_bytes == 0


def test_building_twice_gives_the_same_bytes() -> None:
    builder = LegacyBatchBuilder(1)
    builder.append(1, b"k", b"v")
    assert builder.build() is builder.build()
    with pytest.raises(ValueError, match="the messages are built, no record can be added"):
        builder.append(2, b"k", b"v")


# --- timestamps -----------------------------------------------------------------------------------


def test_with_log_append_time_every_plain_message_is_stamped() -> None:
    data = built(1, RECORDS, timestamp_type=APPEND, log_append_time=9_000)
    assert data == b"".join(message(each, magic=1, append_time=9_000).data for each in RECORDS)
    for peer in PEERS:
        kinds = [record.timestamp_type for batch in peer_batches(peer, data) for record in batch]
        assert kinds == [1] * len(RECORDS)
        assert [fields[1] for fields in peer_finds(peer, data)] == [9_000] * len(RECORDS)


@pytest.mark.parametrize("codec", LEGACY_CODECS)
def test_with_log_append_time_wrapper_and_messages_are_stamped(codec: str) -> None:
    data = built(
        1, RECORDS, compression=codec_of(codec), timestamp_type=APPEND, log_append_time=9_000
    )
    header = parse_batch_header(data)
    assert header.attributes == CODEC_IDS[codec] | 0x08
    assert header.max_timestamp == 9_000
    expected = [message(each, magic=1, append_time=9_000).data for each in RECORDS]
    assert inner_set(data) == b"".join(expected)
    assert [fields[1] for fields in records_by_pylog(data)] == [9_000] * len(RECORDS)


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_v0_stores_no_time_of_any_type(codec: str) -> None:
    options = {"compression": codec_of(codec)}
    plain = built(0, RECORDS, **options)
    for kind in (APPEND, NO_TYPE):
        assert built(0, RECORDS, timestamp_type=kind, log_append_time=9_000, **options) == plain


SHALLOW = {
    # magic, codec, timestamp type: (max timestamp, its shallow offset) of times 0, 2, 2, 1 from 5
    (1, "none", CREATE): (2, 6),
    (1, "gzip", CREATE): (2, 8),
    (1, "none", APPEND): (9, 5),
    (1, "gzip", APPEND): (9, 8),
    (0, "none", CREATE): (-1, -1),
    (0, "gzip", CREATE): (-1, -1),
}


@pytest.mark.parametrize("case", SHALLOW, ids=str)
def test_the_max_timestamp_belongs_to_the_wrapper_or_to_the_first_message_that_has_it(
    case: tuple[int, str, TimestampType],
) -> None:
    # As in buildUsingCreateTime and buildUsingLogAppendTime.
    magic, codec, kind = case
    builder = LegacyBatchBuilder(
        magic,
        base_offset=5,
        compression=codec_of(codec),
        timestamp_type=kind,
        log_append_time=9,
    )
    assert builder.shallow_max_timestamp == TimestampOffset(-1, -1)
    for timestamp in (0, 2, 2, 1):
        builder.append(timestamp, b"a", b"1")
    assert builder.shallow_max_timestamp == SHALLOW[case]
    assert builder.max_timestamp == SHALLOW[case][0]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("magic", MAGICS)
def test_zstd_is_refused(magic: int) -> None:
    # As in testUnsupportedCompress and testZStdCompressionTypeWithV0OrV1.
    with pytest.raises(ValueError, match=f"zstd is not allowed in message format v{magic}"):
        LegacyBatchBuilder(magic, compression=CompressionType.ZSTD)


def test_options_that_cannot_be_are_refused() -> None:
    for magic in (-1, 2):
        with pytest.raises(ValueError, match=f"message format is v{magic}, expected v0 or v1"):
            LegacyBatchBuilder(magic)
    with pytest.raises(ValueError, match="a v1 message has a timestamp type"):
        LegacyBatchBuilder(1, timestamp_type=NO_TYPE)
    with pytest.raises(ValueError, match="lz4 level is 18"):
        LegacyBatchBuilder(1, compression=CompressionType.LZ4, level=18)


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("magic", MAGICS)
def test_a_record_that_does_not_fit_is_refused_and_nothing_is_added(magic: int, codec: str) -> None:
    builder = LegacyBatchBuilder(magic, base_offset=10, compression=codec_of(codec))
    with pytest.raises(ValueError, match="offset is 9, expected 10 or more"):
        builder.append_with_offset(9, 0, None, None)
    builder.append(0, None, b"first")
    size = builder.estimated_size_bytes
    with pytest.raises(ValueError, match="offset is 10, expected 11 or more"):
        builder.append_with_offset(10, 0, None, None)
    with pytest.raises(ValueError, match="above base offset 10"):
        builder.append_with_offset(10 + 2**31, 0, None, None)
    with pytest.raises(ValueError, match="timestamp is -2, expected -1"):
        builder.append(-2, None, None)
    with pytest.raises(ValueError, match=f"headers does not fit into message format v{magic}"):
        builder.append(0, None, None, [("h", None)])
    assert (builder.record_count, builder.last_offset, builder.next_offset) == (1, 10, 11)
    assert builder.estimated_size_bytes == size
