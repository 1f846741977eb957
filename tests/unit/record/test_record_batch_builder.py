from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.model import CompressionType, ControlRecordType, TimestampOffset, TimestampType
from pylog.record.batch_header import parse_batch_header
from pylog.record.compressor import Compressor
from pylog.record.control_record import EndTransactionMarker
from pylog.record.record import Record, RecordHeader
from pylog.record.record_batch import RecordBatch
from pylog.record.record_batch_builder import RecordBatchBuilder
from tests.support.batches import Headers, Stored, batch_v2, marker
from tests.support.codecs import CODEC_IDS, CODECS
from tests.support.peers import PEERS, build_v2, peer_batches, peer_records

CREATE, APPEND = TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME
ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
PRODUCER = {"producer_id": 23423, "producer_epoch": 145, "base_sequence": 983}
RECORDS = [
    Stored(0, 5_000, b"key", b"value", (("trace", b"7f"), ("trace", None), ("größe", b""))),
    Stored(1, 4_999, None, b"123"),
    Stored(2, 5_168, b"key", None),
    Stored(3, 5_001, b"", b""),
    Stored(4, 2**40, b"k" * 100, b"v" * 9_000),
]


def codec_of(name: str) -> CompressionType:
    return CompressionType(CODEC_IDS[name])


def built(records: list[Stored], **options: Any) -> bytes:  # noqa: ANN401 - handed on
    builder = RecordBatchBuilder(**options)
    for record in records:
        builder.append_with_offset(
            record.offset, record.timestamp, record.key, record.value, record.headers
        )
    return builder.build()


def records_by_pylog(data: bytes) -> list[Record]:
    batch = RecordBatch(data)
    batch.ensure_valid()
    return list(batch.records())


# --- bytes ----------------------------------------------------------------------------------------


BROKERS_ONE_RECORD = (
    "00000000000000000000003b00000001020318a2700000000000000000015dff7b063c0000015dff7b063cffffffff"
    "ffffffffffffffffffff0000000112000000010631323300"
)
BROKERS_TWO_RECORDS = (
    "0000000000000001000000400000000202c85cbd230000000000010000015dff7cdd6c0000015dff7cde14ffffffff"
    "ffffffffffffffffffff000000020c0000000100000e00d00202010000"
)
BROKERS_HEADER = (
    "00000000000000000000004500000000025cd8ef520000000000000000016585b6f3c10000016585b6f3c1ffffffff"
    "ffffffffffffffffffff000000012600000001066864720208686b6579086876616c"
)


def test_batches_of_brokers_are_built_byte_for_byte() -> None:
    one = RecordBatchBuilder(partition_leader_epoch=1)
    one.append(0x015DFF7B063C, None, b"123")
    assert one.build().hex() == BROKERS_ONE_RECORD
    two = RecordBatchBuilder(base_offset=1, partition_leader_epoch=2)
    two.append(0x015DFF7CDD6C, None, b"")
    two.append(0x015DFF7CDE14, None, b"")
    assert two.build().hex() == BROKERS_TWO_RECORDS
    with_header = RecordBatchBuilder(partition_leader_epoch=0)
    with_header.append(0x016585B6F3C1, None, b"hdr", [("hkey", b"hval")])
    assert with_header.build().hex() == BROKERS_HEADER


@pytest.mark.parametrize("peer", PEERS)
def test_an_uncompressed_batch_is_what_the_peers_producer_builds(peer: str) -> None:
    expected = build_v2(peer, RECORDS, "none", **PRODUCER)
    # Producers leave the leader epoch to the broker: one writes 0, the other -1.
    epoch = parse_batch_header(expected).partition_leader_epoch
    assert built(RECORDS, partition_leader_epoch=epoch, **PRODUCER) == expected


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("peer", PEERS)
def test_peers_read_every_record_of_every_codec(peer: str, codec: str) -> None:
    records = [record._replace(offset=record.offset + 7) for record in RECORDS]
    data = built(records, base_offset=7, compression=codec_of(codec), **PRODUCER)
    assert peer_records(peer, data) == records
    (batch,) = peer_batches(peer, data)
    assert (batch.base_offset, batch.magic) == (7, 2)
    assert batch.compression_type == CODEC_IDS[codec]
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (23423, 145, 983)
    assert (batch.first_timestamp, batch.max_timestamp) == (5_000, 2**40)


@pytest.mark.parametrize("codec", CODECS)
def test_the_fields_of_the_header_are_those_of_the_records(codec: str) -> None:
    data = built(RECORDS, compression=codec_of(codec), is_transactional=True, **PRODUCER)
    header = parse_batch_header(data)
    assert header.size_bytes == len(data)
    assert header.last_offset_delta == 4
    assert header.record_count == 5
    assert header.base_timestamp == 5_000
    assert header.max_timestamp == 2**40
    assert header.partition_leader_epoch == -1
    assert header.compression is codec_of(codec)
    assert header.is_transactional
    assert not header.is_control_batch
    assert [tuple(record[:5]) for record in records_by_pylog(data)] == [
        (record.offset, record.timestamp, CREATE, record.key, record.value) for record in RECORDS
    ]


header_lists = st.lists(
    st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=9)), max_size=2
).map(tuple)
payloads = st.none() | st.binary(max_size=300)
any_records = st.lists(
    st.tuples(st.integers(1, 1_000), st.integers(-1, 2**63 - 1), payloads, payloads, header_lists),
    min_size=1,
    max_size=8,
)


@given(
    any_records,
    st.integers(-(2**40), 2**40),
    st.none() | st.integers(0, 2**63 - 1),
    st.none() | st.integers(0, 2**63 - 1),
)
def test_any_uncompressed_batch_has_the_described_bytes_and_the_predicted_size(
    drawn: list[tuple[int, int, bytes | None, bytes | None, Headers]],
    base_offset: int,
    append_time: int | None,
    delete_horizon: int | None,
) -> None:
    builder = RecordBatchBuilder(
        base_offset=base_offset,
        timestamp_type=CREATE if append_time is None else APPEND,
        log_append_time=-1 if append_time is None else append_time,
        delete_horizon_ms=delete_horizon,
        partition_leader_epoch=0,
    )
    records, offset = [], base_offset
    for step, timestamp, key, value, headers in drawn:
        offset += step
        record = Stored(offset, timestamp, key, value, headers)
        records.append(record)
        builder.append_with_offset(*record[:5])
    predicted = builder.estimated_size_bytes
    data = builder.build()
    expected = batch_v2(
        records, base_offset=base_offset, append_time=append_time, delete_horizon=delete_horizon
    )
    assert data == expected.data
    assert predicted == len(data) == builder.estimated_size_bytes


def test_no_records_make_no_batch() -> None:
    # As in testWriteEmptyRecordSet.
    for codec in CODECS:
        builder = RecordBatchBuilder(compression=codec_of(codec))
        assert builder.build() == b""
        assert builder.estimated_size_bytes == 0


def test_building_twice_gives_the_same_bytes() -> None:
    builder = RecordBatchBuilder(compression=CompressionType.ZSTD)
    builder.append(1, b"k", b"v")
    first = builder.build()
    assert builder.build() is first
    with pytest.raises(ValueError, match="the batch is built, no record can be added"):
        builder.append(2, b"k", b"v")
    with pytest.raises(ValueError, match="the batch is built, its last offset cannot change"):
        builder.override_last_offset(5)


def test_the_level_reaches_the_codec() -> None:
    values = [Stored(0, 0, None, b"".join(b"%d;" % (n * n % 9_973) for n in range(9_000)))]
    sizes = [len(built(values, compression=CompressionType.ZSTD, level=at)) for at in (19, -100)]
    assert sizes[0] < sizes[1]
    with pytest.raises(ValueError, match="gzip level is 10"):
        RecordBatchBuilder(compression=CompressionType.GZIP, level=10)


def test_builders_may_share_a_compressor() -> None:
    shared = Compressor()
    for codec in CODECS:
        assert built(RECORDS, compression=codec_of(codec), compressor=shared) == built(
            RECORDS, compression=codec_of(codec)
        )


def test_what_is_appended_is_copied() -> None:
    value = bytearray(b"before")
    builder = RecordBatchBuilder()
    builder.append(0, None, value)
    value[:] = b"after!"
    assert records_by_pylog(builder.build())[0].value == b"before"


# --- offsets and sequences ------------------------------------------------------------------------


def test_sequences_wrap_after_the_highest() -> None:
    # As in buildDefaultRecordBatchWithSequenceWrapAround.
    data = built(
        RECORDS[:3], producer_id=1, producer_epoch=0, base_sequence=2**31 - 2, is_transactional=True
    )
    assert [record.sequence for record in records_by_pylog(data)] == [2**31 - 2, 2**31 - 1, 0]
    (batch,) = peer_batches("kafka-python", data)
    assert batch.last_sequence == 0


def test_offsets_count_on_from_the_last_one() -> None:
    builder = RecordBatchBuilder(base_offset=10)
    assert (builder.last_offset, builder.next_offset, builder.record_count) == (None, 10, 0)
    builder.append(1, b"a", None)
    builder.append_with_offset(15, 2, b"b", None)
    builder.append(3, b"c", None)
    assert (builder.last_offset, builder.next_offset, builder.record_count) == (16, 17, 3)
    data = builder.build()
    assert [record.offset for record in records_by_pylog(data)] == [10, 15, 16]
    assert [record.offset for record in peer_records("aiokafka", data)] == [10, 15, 16]
    assert parse_batch_header(data).last_offset_delta == 6


@pytest.mark.parametrize("offset", [9, 10, 2**31 + 10])
def test_an_offset_that_does_not_rise_or_is_too_far_away_is_refused(offset: int) -> None:
    # As in testAppendAtInvalidOffset.
    builder = RecordBatchBuilder(base_offset=10)
    builder.append(0, b"first", None)
    size = builder.estimated_size_bytes
    with pytest.raises(ValueError, match=f"offset (is )?{offset}"):
        builder.append_with_offset(offset, 0, b"second", None)
    assert (builder.last_offset, builder.record_count) == (10, 1)
    assert builder.estimated_size_bytes == size


def test_the_first_offset_is_not_below_the_base_offset_and_may_be_above() -> None:
    builder = RecordBatchBuilder(base_offset=10)
    with pytest.raises(ValueError, match="offset is 9, expected 10 or more"):
        builder.append_with_offset(9, 0, None, None)
    builder.append_with_offset(10 + 2**31 - 1, 0, None, None)
    assert parse_batch_header(builder.build()).last_offset_delta == 2**31 - 1


def test_a_last_offset_above_the_last_record_is_kept() -> None:
    builder = RecordBatchBuilder(base_offset=10)
    builder.append_with_offset(12, 1, None, None)
    with pytest.raises(ValueError, match="offset is 11, expected 12 or more"):
        builder.override_last_offset(11)
    with pytest.raises(ValueError, match="above base offset 10"):
        builder.override_last_offset(10 + 2**31)
    builder.override_last_offset(12)
    builder.override_last_offset(19)
    assert builder.shallow_max_timestamp == TimestampOffset(1, 19)
    header = parse_batch_header(builder.build())
    assert (header.offset, header.last_offset, header.record_count) == (10, 19, 1)


# --- timestamps -----------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
def test_with_create_time_the_highest_timestamp_counts(codec: str) -> None:
    # As in buildUsingCreateTime.
    builder = RecordBatchBuilder(compression=codec_of(codec), log_append_time=9)
    for timestamp in (0, 2, 1):
        builder.append(timestamp, b"a", b"1")
    assert builder.max_timestamp == 2
    assert builder.shallow_max_timestamp == TimestampOffset(2, 2)
    data = builder.build()
    assert [(each.timestamp, each.timestamp_type) for each in records_by_pylog(data)] == [
        (0, CREATE),
        (2, CREATE),
        (1, CREATE),
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_with_log_append_time_every_record_reports_it_and_keeps_its_own_on_disk(codec: str) -> None:
    # As in buildUsingLogAppendTime.
    records = [Stored(offset, offset, b"a", b"1") for offset in range(3)]
    builder = RecordBatchBuilder(
        compression=codec_of(codec), timestamp_type=APPEND, log_append_time=9_000
    )
    for record in records:
        builder.append(record.timestamp, record.key, record.value)
    assert builder.max_timestamp == 9_000
    assert builder.shallow_max_timestamp == TimestampOffset(9_000, 2)
    data = builder.build()
    header = parse_batch_header(data)
    assert (header.base_timestamp, header.max_timestamp) == (0, 9_000)
    for peer in PEERS:
        assert peer_records(peer, data) == [
            record._replace(timestamp=9_000, timestamp_type=1) for record in records
        ]
    create = bytearray(data)
    create[22] &= ~0x08
    assert [record.timestamp for record in RecordBatch(bytes(create)).records()] == [0, 1, 2]


def test_records_without_timestamps_give_none() -> None:
    builder = RecordBatchBuilder()
    assert builder.shallow_max_timestamp == TimestampOffset(-1, -1)
    builder.append(-1, None, None)
    builder.append(-1, None, None)
    assert builder.shallow_max_timestamp == TimestampOffset(-1, -1)
    header = parse_batch_header(builder.build())
    assert (header.base_timestamp, header.max_timestamp) == (-1, -1)


@pytest.mark.parametrize("timestamp", [-2, -(2**63), 2**63])
def test_any_other_negative_timestamp_is_refused(timestamp: int) -> None:
    builder = RecordBatchBuilder()
    with pytest.raises(ValueError, match=f"timestamp is {timestamp}, expected -1 to"):
        builder.append(timestamp, None, None)
    assert builder.build() == b""


@pytest.mark.parametrize("codec", CODECS)
def test_timestamps_are_the_same_with_a_delete_horizon(codec: str) -> None:
    # As in testRecordTimestampsWithDeleteHorizon.
    data = built(RECORDS, compression=codec_of(codec), delete_horizon_ms=100_000)
    header = parse_batch_header(data)
    assert header.delete_horizon_ms == header.base_timestamp == 100_000
    assert header.max_timestamp == 2**40
    expected = [record.timestamp for record in RECORDS]
    assert [record.timestamp for record in records_by_pylog(data)] == expected
    for peer in PEERS:
        assert [record.timestamp for record in peer_records(peer, data)] == expected


def test_impossible_times_of_the_batch_are_refused() -> None:
    with pytest.raises(ValueError, match="delete horizon is -1"):
        RecordBatchBuilder(delete_horizon_ms=-1)
    with pytest.raises(ValueError, match="a v2 batch has a timestamp type"):
        RecordBatchBuilder(timestamp_type=TimestampType.NO_TIMESTAMP_TYPE)


def test_a_null_header_key_is_refused_and_nothing_is_added() -> None:
    builder = RecordBatchBuilder()
    headers: list[tuple[str, bytes | None]] = [("a", b""), (None, b"")]  # type: ignore[list-item]
    with pytest.raises(ValueError, match="a header key must not be null"):
        builder.append(7, b"k", b"v", headers)
    assert (builder.record_count, builder.max_timestamp, builder.last_offset) == (0, -1, None)
    assert builder.build() == b""


# --- producers and control batches ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        # testWriteTransactionalWithInvalidPID, testWriteIdempotentWithInvalidEpoch and so on.
        (
            {"is_transactional": True, "producer_epoch": 15, "base_sequence": 2},
            "a transactional batch needs a producer id",
        ),
        (
            {"producer_id": 9, "base_sequence": 2},
            "a batch of producer id 9 needs a producer epoch",
        ),
        (
            {"producer_id": 9, "producer_epoch": 15},
            "a batch of producer id 9 needs a base sequence, not -1",
        ),
    ],
)
def test_half_a_producer_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        RecordBatchBuilder(**options)


MARKER_BATCH: dict[str, Any] = {
    "producer_id": 9,
    "producer_epoch": 15,
    "is_transactional": True,
    "is_control_batch": True,
    "partition_leader_epoch": 4,
}


@pytest.mark.parametrize("control_type", [ABORT, COMMIT])
def test_a_marker_is_built(control_type: ControlRecordType) -> None:
    # As in testReadAndWriteControlBatch.
    builder = RecordBatchBuilder(base_offset=15, **MARKER_BATCH)
    builder.append_end_transaction_marker(1_000, EndTransactionMarker(control_type, 10))
    expected = marker(
        15,
        int(control_type),
        producer_id=9,
        producer_epoch=15,
        coordinator_epoch=10,
        leader_epoch=4,
    )
    assert builder.build() == expected.data


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"is_transactional": False}, "needs a transactional batch"),
        ({"is_control_batch": False, "base_sequence": 0}, "needs a control batch"),
    ],
)
def test_a_marker_needs_a_transactional_control_batch(change: dict[str, Any], reason: str) -> None:
    # As in testWriteEndTxnMarkerNonTransactionalBatch and NonControlBatch.
    builder = RecordBatchBuilder(**(MARKER_BATCH | change))
    with pytest.raises(ValueError, match=reason):
        builder.append_end_transaction_marker(0, EndTransactionMarker(ABORT, 0))


def test_control_batches_hold_control_records_alone() -> None:
    control = RecordBatchBuilder(is_control_batch=True)
    with pytest.raises(ValueError, match="a control batch holds control records alone"):
        control.append(0, b"k", b"v")
    with pytest.raises(ValueError, match="UNKNOWN cannot be written"):
        control.append_control_record(0, ControlRecordType.UNKNOWN, b"")
    with pytest.raises(ValueError, match="a control record needs a control batch"):
        RecordBatchBuilder().append_control_record(0, ControlRecordType.SNAPSHOT_FOOTER, b"")


def test_any_control_record_is_written_without_a_producer() -> None:
    builder = RecordBatchBuilder(is_control_batch=True)
    builder.append_control_record(5, ControlRecordType.SNAPSHOT_FOOTER, b"\x00\x00\x00")
    data = builder.build()
    header = parse_batch_header(data)
    assert header.is_control_batch
    assert not header.is_transactional
    (record,) = records_by_pylog(data)
    assert (record.key, record.value) == (struct.pack(">hh", 0, 4), b"\x00\x00\x00")


def test_records_that_were_read_are_copied_at_their_offsets_into_either_kind_of_batch() -> None:
    headers = (RecordHeader("h", b"x"), RecordHeader("h", None))
    data = RecordBatchBuilder(base_offset=3)
    data.append_record(Record(7, 12, CREATE, b"k", None, headers, 5))
    assert data.build() == built(
        [Stored(7, 12, b"k", None, (("h", b"x"), ("h", None)))], base_offset=3
    )
    original = marker(20, 1)
    copy = RecordBatchBuilder(
        base_offset=20,
        producer_id=1,
        producer_epoch=0,
        is_transactional=True,
        is_control_batch=True,
        partition_leader_epoch=0,
    )
    for record in RecordBatch(original.data).records():
        copy.append_record(record)
    assert copy.build() == original.data


# --- sizes ----------------------------------------------------------------------------------------


def test_one_record_always_fits() -> None:
    # As in testSmallWriteLimit.
    builder = RecordBatchBuilder(size_limit_bytes=1)
    before = builder.is_full, builder.has_room_for(0, b"foo", b"bar")
    builder.append(0, b"foo", b"bar")
    after = builder.is_full, builder.has_room_for(0, b"foo", b"bar")
    assert (before, after) == ((False, True), (True, False))
    assert [(each.key, each.value) for each in records_by_pylog(builder.build())] == [
        (b"foo", b"bar")
    ]


def test_there_is_room_up_to_the_last_byte() -> None:
    # The batch's header has 61 bytes, the record 9, and 2 more with a header of two empty lengths.
    for limit, fits in ((61 + 9 + 11, True), (61 + 9 + 10, False)):
        builder = RecordBatchBuilder(size_limit_bytes=limit)
        builder.append(0, b"a", b"1")
        assert builder.estimated_size_bytes == 61 + 9
        assert builder.has_room_for(0, b"a", b"1", [("", None)]) is fits
        builder.append(0, b"a", b"1", [("", None)])  # a limit refuses nothing
        assert builder.estimated_size_bytes == len(builder.build()) == 61 + 9 + 11


def test_without_a_limit_there_is_always_room_until_it_is_built() -> None:
    builder = RecordBatchBuilder()
    builder.append(0, b"a", b"1")
    assert builder.has_room_for(0, None, b"x" * 10_000_000)
    builder.build()
    assert not builder.has_room_for(0, None, None)
    assert builder.is_full


def test_the_size_of_a_compressed_batch_is_estimated_until_it_is_built() -> None:
    builder = RecordBatchBuilder(compression=CompressionType.GZIP, size_limit_bytes=2_000)
    builder.append(0, None, b"x" * 991)  # a record of 1,000 bytes
    assert builder.estimated_size_bytes == 61 + 1_050
    assert not builder.has_room_for(0, None, b"x" * 991)
    builder.estimated_compression_ratio = 0.1
    assert builder.estimated_size_bytes == 61 + 105
    assert builder.has_room_for(0, None, b"x" * 991)
    data = builder.build()
    assert builder.estimated_size_bytes == len(data) < 61 + 105
