from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.errors import CorruptRecordError
from pylog.model import CompressionType, TimestampType
from pylog.record.batch_header import BatchHeader, parse_batch_header
from pylog.record.batch_writer import (
    batch_attributes,
    set_last_offset,
    set_max_timestamp,
    set_partition_leader_epoch,
    write_batch_header,
)
from pylog.record.record_batch import RecordBatch
from tests.support.batches import (
    Stored,
    batch_v2,
    batch_v2_of,
    crc32c,
    message,
    plain_records,
    record_v2,
    wrapper,
)
from tests.support.peers import PEERS, peer_batches

CREATE, APPEND = TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME
NO_TYPE = TimestampType.NO_TIMESTAMP_TYPE
RECORDS = plain_records(10, 3, timestamp=5_000)
FOLLOWING = b"what follows"


def header_of(data: bytes | bytearray) -> BatchHeader:
    return parse_batch_header(bytes(data))


def times_and_offsets(data: bytes | bytearray) -> list[tuple[int, int, TimestampType]]:
    """Return what our reader finds; it verifies nothing, so the checksum is verified here."""
    batch = RecordBatch(bytes(data))
    batch.ensure_valid()
    return [(each.offset, each.timestamp, each.timestamp_type) for each in batch.records()]


def peers_find(data: bytes | bytearray) -> list[list[tuple[int, int, int]]]:
    """Return the same as each peer finds it, checksums verified."""
    return [
        [
            (record.offset, record.timestamp, record.timestamp_type)
            for batch in peer_batches(peer, bytes(data))
            for record in batch
        ]
        for peer in PEERS
    ]


# --- write_batch_header ---------------------------------------------------------------------------

BROKERS_ONE_RECORD = (
    "00000000000000000000003b00000001020318a2700000000000000000015dff7b063c0000015dff7b063cffffffff"
    "ffffffffffffffffffff0000000112000000010631323300"
)
BROKERS_TWO_RECORDS = (
    "0000000000000001000000400000000202c85cbd230000000000010000015dff7cdd6c0000015dff7cde14ffffffff"
    "ffffffffffffffffffff000000020c0000000100000e00d00202010000"
)
GOLDEN = {
    BROKERS_ONE_RECORD: BatchHeader(
        offset=0,
        size_bytes=71,
        magic=2,
        crc=0,
        attributes=0,
        partition_leader_epoch=1,
        base_timestamp=1503229838908,
        max_timestamp=1503229838908,
        record_count=1,
    ),
    BROKERS_TWO_RECORDS: BatchHeader(
        offset=1,
        size_bytes=76,
        magic=2,
        crc=0,
        attributes=0,
        partition_leader_epoch=2,
        last_offset_delta=1,
        base_timestamp=1503229959532,
        max_timestamp=1503229959700,
        record_count=2,
    ),
}


@pytest.mark.parametrize("expected", GOLDEN)
def test_a_brokers_header_is_written_byte_for_byte(expected: str) -> None:
    data = bytearray(61) + bytes.fromhex(expected)[61:] + FOLLOWING
    write_batch_header(data, GOLDEN[expected])
    assert data == bytes.fromhex(expected) + FOLLOWING


int16s = st.integers(-(2**15), 2**15 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)


@given(
    offset=int64s,
    leader_epoch=int32s,
    attributes=st.integers(0, 0x7F),
    last_offset_delta=int32s,
    base_timestamp=st.integers(-1, 2**63 - 1),
    max_timestamp=int64s,
    producer_id=int64s,
    producer_epoch=int16s,
    base_sequence=int32s,
    record_count=int32s,
    payload=st.binary(max_size=100),
)
def test_any_header_has_the_described_bytes(
    payload: bytes, offset: int, leader_epoch: int, **fields: int
) -> None:
    header = BatchHeader(
        offset=offset,
        size_bytes=61 + len(payload),
        magic=2,
        crc=0,
        partition_leader_epoch=leader_epoch,
        **fields,
    )
    data = bytearray(61) + payload
    write_batch_header(memoryview(data), header)
    assert data == batch_v2_of(payload, base_offset=offset, leader_epoch=leader_epoch, **fields)


def test_attribute_bits_without_a_meaning_are_not_written() -> None:
    data = bytearray(61)
    write_batch_header(data, replace(header_of(batch_v2_of(b"")), attributes=0x7F80 | 0x13))
    assert data[21:23] == b"\x00\x13"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"magic": 1}, "batch header has format v1, expected v2"),
        ({"magic": 3}, "batch header has format v3, expected v2"),
        ({"size_bytes": 60}, "batch size is 60 bytes, expected 61 to 2147483659"),
        ({"size_bytes": 2**31 + 12}, "batch size is 2147483660 bytes, expected 61 to 2147483659"),
        ({"size_bytes": 62}, "batch of 62 bytes in a buffer of 61"),
        ({"base_timestamp": -2}, "base timestamp is -2, expected -1 or more"),
        ({"producer_epoch": 2**15}, "does not fit its width"),
        ({"last_offset_delta": 2**31}, "does not fit its width"),
        ({"offset": 2**63}, "does not fit its width"),
    ],
)
def test_a_header_that_cannot_be_is_refused(change: dict[str, int], reason: str) -> None:
    header = header_of(batch_v2_of(b""))
    with pytest.raises(ValueError, match=reason):
        write_batch_header(bytearray(61), replace(header, **change))


def test_attributes_have_the_documented_bits() -> None:
    assert batch_attributes(CompressionType.NONE, CREATE) == 0
    assert [batch_attributes(codec, CREATE) for codec in CompressionType] == [0, 1, 2, 3, 4]
    assert batch_attributes(CompressionType.NONE, APPEND) == 0x08
    assert batch_attributes(CompressionType.NONE, CREATE, is_transactional=True) == 0x10
    assert batch_attributes(CompressionType.NONE, CREATE, is_control_batch=True) == 0x20
    assert batch_attributes(CompressionType.NONE, CREATE, has_delete_horizon=True) == 0x40
    with pytest.raises(ValueError, match="a v2 batch has a timestamp type"):
        batch_attributes(CompressionType.NONE, NO_TYPE)


# --- offsets and leader epoch ---------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_v2_batch_moves_and_its_checksum_stays(codec: str) -> None:
    built = batch_v2(RECORDS, codec=codec).data
    data = bytearray(built + FOLLOWING)
    set_last_offset(memoryview(data), 500)
    assert data == struct.pack(">q", 498) + built[8:] + FOLLOWING
    moved = bytes(data[: len(built)])
    assert [offset for offset, _, _ in times_and_offsets(moved)] == [498, 499, 500]
    for found in peers_find(moved):
        assert [offset for offset, _, _ in found] == [498, 499, 500]


def test_a_batch_whose_last_record_is_gone_still_ends_at_its_last_offset() -> None:
    data = bytearray(batch_v2(RECORDS, last_offset=19).data)
    set_last_offset(data, 109)
    assert header_of(data).offset == 100
    assert header_of(data).last_offset == 109


def test_a_v1_wrapper_moves_and_its_checksum_stays() -> None:
    # As in testSetLastOffsetCompressed.
    built = wrapper(RECORDS, magic=1, codec="gzip").data
    data = bytearray(built)
    set_last_offset(data, 500)
    assert data == struct.pack(">q", 500) + built[8:]
    assert [offset for offset, _, _ in times_and_offsets(data)] == [498, 499, 500]
    for found in peers_find(data):
        assert [offset for offset, _, _ in found] == [498, 499, 500]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_plain_message_moves(magic: int) -> None:
    data = bytearray(message(RECORDS[0], magic=magic).data)
    set_last_offset(data, 2**40)
    assert data == message(RECORDS[0]._replace(offset=2**40), magic=magic).data


def test_the_leader_epoch_lies_outside_the_checksum() -> None:
    built = batch_v2(RECORDS, leader_epoch=-1).data
    data = bytearray(built + FOLLOWING)
    set_partition_leader_epoch(memoryview(data), 387)
    assert data == batch_v2(RECORDS, leader_epoch=387).data + FOLLOWING
    assert data[17:21] == built[17:21]


@pytest.mark.parametrize("magic", [0, 1])
def test_legacy_messages_have_no_leader_epoch(magic: int) -> None:
    before = message(RECORDS[0], magic=magic).data
    data = bytearray(before)
    with pytest.raises(ValueError, match=f"a v{magic} message has no partition leader epoch"):
        set_partition_leader_epoch(data, 1)
    assert data == before


# --- timestamps -----------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_record_of_v2_reports_the_append_time_that_is_set(codec: str) -> None:
    built = batch_v2(RECORDS, codec=codec, producer_id=3, producer_epoch=1, base_sequence=0)
    data = bytearray(built.data + FOLLOWING)
    set_max_timestamp(memoryview(data), APPEND, 7_000)
    covered = bytearray(built.data[21:])
    covered[1] |= 0x08
    covered[14:22] = struct.pack(">q", 7_000)
    expected = built.data[:17] + struct.pack(">I", crc32c(covered)) + bytes(covered)
    assert data == expected + FOLLOWING
    reported = [(offset, 7_000, 1) for offset in (10, 11, 12)]
    assert times_and_offsets(expected) == reported
    assert peers_find(expected) == [reported] * len(PEERS)


def test_back_to_create_time_the_records_report_their_own_again() -> None:
    built = batch_v2(RECORDS, append_time=9_000)
    data = bytearray(built.data)
    set_max_timestamp(data, CREATE, 5_002)
    assert data == batch_v2(RECORDS).data
    assert [time for _, time, _ in times_and_offsets(data)] == [5_000, 5_001, 5_002]


def test_flags_codec_and_delete_horizon_survive_and_bits_without_a_meaning_do_not() -> None:
    data = bytearray(batch_v2_of(record_v2(0, 0, None, None), attributes=0x7FF1, max_timestamp=1))
    set_max_timestamp(data, APPEND, 2)
    assert data[21:23] == bytes([0x00, 0x10 | 0x20 | 0x40 | 0x08 | 0x01])


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_every_message_of_v1_reports_the_append_time_that_is_set(codec: str) -> None:
    # As in testSetLogAppendTimeV1.
    records = RECORDS[:1] if codec == "none" else RECORDS
    built = (
        message(records[0], magic=1) if codec == "none" else wrapper(records, magic=1, codec=codec)
    )
    data = bytearray(built.data + FOLLOWING)
    set_max_timestamp(memoryview(data), APPEND, 7_000)
    covered = bytearray(built.data[16:])
    covered[1] |= 0x08
    covered[2:10] = struct.pack(">q", 7_000)
    expected = built.data[:12] + struct.pack(">I", zlib.crc32(covered)) + bytes(covered)
    assert data == expected + FOLLOWING
    reported = [(record.offset, 7_000, 1) for record in records]
    assert times_and_offsets(expected) == reported
    assert peers_find(expected) == [reported] * len(PEERS)


def test_a_v1_wrapper_goes_back_to_create_time() -> None:
    # As in testSetCreateTimeV1.
    data = bytearray(wrapper(RECORDS, magic=1, codec="gzip").data)
    set_max_timestamp(data, CREATE, 6_000)
    assert header_of(data).max_timestamp == 6_000
    assert [time for _, time, _ in times_and_offsets(data)] == [5_000, 5_001, 5_002]


@pytest.mark.parametrize("timestamp_type", [CREATE, APPEND])
def test_a_v0_message_has_no_timestamp(timestamp_type: TimestampType) -> None:
    for built in (message(RECORDS[0], magic=0), wrapper(RECORDS, magic=0, codec="gzip")):
        data = bytearray(built.data)
        with pytest.raises(ValueError, match="a v0 message has no timestamp to set"):
            set_max_timestamp(data, timestamp_type, 7_000)
        assert data == built.data


@pytest.mark.parametrize("magic", [1, 2])
def test_there_must_be_a_timestamp_type(magic: int) -> None:
    built = batch_v2(RECORDS) if magic == 2 else message(RECORDS[0], magic=1)
    with pytest.raises(ValueError, match="of type CREATE_TIME or LOG_APPEND_TIME"):
        set_max_timestamp(bytearray(built.data), NO_TYPE, 7_000)


@pytest.mark.parametrize("magic", [1, 2])
def test_a_wrong_checksum_is_not_mended_where_nothing_changes(magic: int) -> None:
    built = batch_v2(RECORDS[:1]) if magic == 2 else message(RECORDS[0], magic=1)
    data = bytearray(built.data)
    data[-1] ^= 1
    damaged = bytes(data)
    set_max_timestamp(data, CREATE, 5_000)
    assert data == damaged


def test_an_impossible_header_is_not_patched() -> None:
    data = bytearray(batch_v2(RECORDS).data)
    data[8:12] = struct.pack(">i", 10)
    with pytest.raises(CorruptRecordError, match="batch size is 10, expected at least 49"):
        set_max_timestamp(data, APPEND, 7_000)


def test_read_only_bytes_are_refused() -> None:
    data = batch_v2([Stored(0, 1, None, None)]).data
    with pytest.raises(TypeError):
        set_max_timestamp(memoryview(data), APPEND, 7_000)
    with pytest.raises(TypeError):
        set_last_offset(memoryview(data), 7)
