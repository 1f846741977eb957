from __future__ import annotations

import struct

import pytest

from pylog.errors import CorruptRecordError, UnsupportedCodecError
from pylog.model import CompressionType, TimestampType
from pylog.record import batch_header
from pylog.record import batch_header as layout
from pylog.record.batch_header import codec_of, parse_batch_header, peek_entry_size
from tests.support.batches import (
    ABORT,
    Stored,
    batch_v2,
    batch_v2_of,
    empty_batch_v2,
    marker,
    message,
    message_bytes,
    plain_records,
    wrapper,
)


def test_every_field_of_a_v2_header_is_read() -> None:
    data = batch_v2_of(
        b"",
        base_offset=2**40,
        last_offset_delta=2**31 - 1,
        record_count=3,
        attributes=0x7C,
        leader_epoch=9,
        base_timestamp=-5,
        max_timestamp=2**63 - 1,
        producer_id=2**50,
        producer_epoch=-2,
        base_sequence=2**31 - 1,
        crc=0xFFFFFFFF,
    )
    header = parse_batch_header(data)
    assert (header.offset, header.size_bytes, header.magic) == (2**40, 61, 2)
    assert (header.crc, header.attributes) == (0xFFFFFFFF, 0x7C)
    assert header.partition_leader_epoch == 9
    assert (header.last_offset_delta, header.last_offset) == (2**31 - 1, 2**40 + 2**31 - 1)
    assert header.next_offset == header.last_offset + 1
    assert header.base_offset == 2**40
    assert (header.base_timestamp, header.max_timestamp) == (-5, 2**63 - 1)
    assert (header.producer_id, header.producer_epoch) == (2**50, -2)
    assert (header.base_sequence, header.record_count) == (2**31 - 1, 3)
    assert header.compression is CompressionType.ZSTD
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.is_transactional
    assert header.is_control_batch
    assert header.delete_horizon_ms == -5


def test_the_high_attribute_byte_is_not_read() -> None:
    header = parse_batch_header(batch_v2_of(b"", attributes=0x7F00))
    assert header.attributes == 0
    assert not header.is_compressed
    assert not header.is_control_batch


def test_there_is_a_delete_horizon_only_with_its_bit() -> None:
    records = plain_records(0, 2, timestamp=500)
    assert parse_batch_header(batch_v2(records).data).delete_horizon_ms is None
    header = parse_batch_header(batch_v2(records, delete_horizon=9_000).data)
    assert header.delete_horizon_ms == 9_000


def test_an_empty_batch_keeps_its_offsets_and_producer() -> None:
    header = parse_batch_header(empty_batch_v2(10, 14, max_timestamp=77).data)
    assert (header.size_bytes, header.record_count) == (61, 0)
    assert (header.base_offset, header.last_offset, header.max_timestamp) == (10, 14, 77)
    assert (header.producer_id, header.base_sequence, header.base_timestamp) == (7, 5, -1)


def test_a_marker_takes_78_bytes() -> None:
    header = parse_batch_header(marker(5, ABORT).data)
    assert header.size_bytes == 78
    assert header.is_control_batch
    assert header.is_transactional


@pytest.mark.parametrize("magic", [0, 1])
def test_a_legacy_message_is_its_own_batch(magic: int) -> None:
    built = message(Stored(7, 1_234, b"k", b"v"), magic=magic)
    header = parse_batch_header(built.data)
    assert (header.offset, header.base_offset, header.last_offset) == (7, 7, 7)
    assert (header.magic, header.record_count, header.size_bytes) == (magic, 1, len(built.data))
    assert header.max_timestamp == header.base_timestamp == (1_234 if magic else -1)
    assert header.timestamp_type == (0 if magic else -1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert header.partition_leader_epoch == -1
    assert not header.is_transactional
    assert not header.is_control_batch
    assert header.delete_horizon_ms is None


def test_unused_attribute_bits_of_a_legacy_message_mean_nothing() -> None:
    data = message_bytes(0, None, None, magic=0, attributes=0xF8)
    header = parse_batch_header(data)
    assert header.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE
    assert not header.is_transactional
    assert not header.is_control_batch


def test_a_v1_message_records_who_stamped_it() -> None:
    built = message(Stored(0, 5, None, None), magic=1, append_time=9)
    header = parse_batch_header(built.data)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.max_timestamp == 9


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_knows_neither_its_first_offset_nor_its_count(magic: int) -> None:
    header = parse_batch_header(wrapper(plain_records(3, 4), magic=magic, codec="gzip").data)
    assert header.offset == header.last_offset == 6
    assert header.base_offset is None
    assert header.record_count == -1


@pytest.mark.parametrize("codec_id", [5, 6, 7])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_codec_that_does_not_exist_is_refused(codec_id: int, magic: int) -> None:
    with pytest.raises(UnsupportedCodecError, match=f"codec id {codec_id} does not exist"):
        codec_of(codec_id, magic)


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_is_refused_below_v2(magic: int) -> None:
    with pytest.raises(UnsupportedCodecError, match=f"not allowed in message format v{magic}"):
        codec_of(4, magic)
    assert codec_of(4, 2) is CompressionType.ZSTD


def header_bytes(size: int, magic: int) -> bytes:
    return struct.pack(">qiiB", 0, size, 0, magic) + b"\x00" * 60


@pytest.mark.parametrize(("magic", "least"), [(0, 14), (1, 22), (2, 49)])
def test_a_size_below_the_formats_minimum_is_corrupt(magic: int, least: int) -> None:
    assert peek_entry_size(header_bytes(least, magic)) == 12 + least
    for size in (least - 1, 0, -1, -(2**31)):
        with pytest.raises(CorruptRecordError) as caught:
            peek_entry_size(header_bytes(size, magic), path="/d/0.log", position=99)
        assert str(caught.value) == (
            f"/d/0.log at byte 99: batch size is {size}, expected at least {least} in format "
            f"v{magic}"
        )


@pytest.mark.parametrize("magic", [3, 127, 128, 255])
def test_a_format_that_does_not_exist_is_corrupt(magic: int) -> None:
    with pytest.raises(CorruptRecordError) as caught:
        parse_batch_header(header_bytes(100, magic), path="/d/0.log", position=7)
    assert str(caught.value) == (
        f"/d/0.log at byte 7: record format (magic) is {magic}, expected 0, 1 or 2"
    )


@pytest.mark.parametrize(("magic", "needed"), [(0, 26), (1, 34), (2, 61)])
def test_fewer_bytes_than_a_header_needs_are_corrupt(magic: int, needed: int) -> None:
    data = header_bytes(200, magic)
    parse_batch_header(data[:needed])
    for length in (needed - 1, 17, 16, 0):
        with pytest.raises(CorruptRecordError, match=rf"/d/0.log at byte 0: only {length} bytes "):
            parse_batch_header(data[:length], path="/d/0.log", position=0)


def test_a_header_may_lie_anywhere_in_a_buffer() -> None:
    data = b"\xff" * 5 + marker(5, ABORT).data
    assert parse_batch_header(data, 5).offset == 5
    assert peek_entry_size(data, 5) == 78


def test_the_chain_of_a_v2_header_ends_at_61() -> None:
    assert layout.RECORDS_OFFSET == layout.RECORD_BATCH_OVERHEAD == 61


def test_each_v2_field_begins_where_the_one_before_ends() -> None:
    names = [
        "PARTITION_LEADER_EPOCH",
        "MAGIC",
        "CRC",
        "ATTRIBUTES",
        "LAST_OFFSET_DELTA",
        "BASE_TIMESTAMP",
        "MAX_TIMESTAMP",
        "PRODUCER_ID",
        "PRODUCER_EPOCH",
        "BASE_SEQUENCE",
        "RECORDS_COUNT",
    ]
    at = layout.LOG_OVERHEAD
    for name in names:
        assert getattr(layout, f"{name}_OFFSET") == at, name
        at += getattr(layout, f"{name}_LENGTH")
    assert at == layout.RECORDS_OFFSET


def test_positions_are_those_of_the_format() -> None:
    assert layout.SIZE_OFFSET == 8
    assert layout.LOG_OVERHEAD == 12
    assert layout.MAGIC_OFFSET == 16
    assert layout.HEADER_SIZE_UP_TO_MAGIC == 17
    assert (layout.KEY_SIZE_OFFSET_V0, layout.KEY_SIZE_OFFSET_V1) == (18, 26)
    assert (layout.RECORD_OVERHEAD_V0, layout.RECORD_OVERHEAD_V1) == (14, 22)
    assert (layout.MIN_ENTRY_SIZE_V0, layout.MIN_ENTRY_SIZE_V1) == (26, 34)


def test_struct_and_chain_agree_on_the_header() -> None:
    assert batch_header._V2.size == layout.RECORDS_OFFSET
    assert struct.calcsize(">qiIbBq") == layout.KEY_SIZE_OFFSET_V1 == batch_header._LEGACY_V1.size
    assert batch_header._LEGACY_V0.size == layout.KEY_SIZE_OFFSET_V0
