"""Windows of batches to Arrow: what comes out, and what is said of bytes that are wrong."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import GROUP_BYTES, RecordDecoder
from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    LogStorageError,
    TimestampOverflowError,
    UnsupportedCodecError,
)
from pylog.record.batch_scan import LEAST_KERNEL_BYTES, Window, find_batches
from tests.support.batches import (
    Built,
    Stored,
    batch_v2,
    batch_v2_of,
    empty_batch_v2,
    joined,
    message,
    message_bytes,
    plain_records,
    record_v2,
    wrapper,
    wrapper_of,
)
from tests.support.codecs import CODEC_IDS, compress, gzip_member
from tests.support.decoding import FILE_POSITION, PARTITION, SEGMENT, kernel_batches, kernel_records
from tests.support.reading import as_buffer, rows

if TYPE_CHECKING:
    from collections.abc import Sequence


def test_a_window_of_nothing_gives_no_record_batch() -> None:
    assert kernel_batches(b"") == []
    assert kernel_batches(empty_batch_v2(0, 9).data) == []


def test_record_batches_without_rows_are_left_out() -> None:
    assert kernel_batches(batch_v2(plain_records(0, 5)).data, start_offset=5) == []


def test_formats_in_one_window_come_out_in_order() -> None:
    batches = [
        message(Stored(0, -1, b"a", None), magic=0),
        batch_v2(plain_records(1, 2)),
        wrapper(plain_records(3, 2), magic=1, codec="gzip"),
        message(Stored(5, 7, None, b""), magic=1),
        batch_v2(plain_records(6, 2), codec="lz4"),
    ]
    assert kernel_records(joined(batches)) == [r for built in batches for r in built.records]


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_the_timestamp_type_of_each_row_is_its_batchs(codec: str) -> None:
    created = [batch_v2(plain_records(0, 3), codec=codec), batch_v2(plain_records(3, 2))]
    stamped = [batch_v2(plain_records(5, 2), append_time=9), empty_batch_v2(7, 9)]
    legacy = [
        message(Stored(10, 1, None, None), magic=0),
        message(Stored(11, 1, None, None), magic=1, append_time=7),
        wrapper(plain_records(12, 3), magic=1, codec="gzip"),
    ]
    for batches in (created, stamped, legacy, [*created, *stamped], [*stamped, *legacy]):
        expected = [record.timestamp_type for built in batches for record in built.records]
        found = [record.timestamp_type for record in kernel_records(joined(batches))]
        assert found == expected


def test_large_groups_of_compressed_batches_are_cut() -> None:
    batches = [
        batch_v2(plain_records(10 * i, 10, value_size=GROUP_BYTES // 40), codec="zstd")
        for i in range(9)
    ]
    schema = record_schema(include_headers=True, timestamp_unit="ms")
    decoded = kernel_batches_with_limit(joined(batches), schema, 1 << 28)
    assert len(decoded) == 3
    assert rows(decoded) == [record for built in batches for record in built.records]


def test_a_batch_larger_than_a_group_makes_its_own() -> None:
    built = batch_v2(plain_records(0, 3, value_size=GROUP_BYTES), codec="gzip")
    schema = record_schema(["value"])
    table = pa.Table.from_batches(
        kernel_batches_with_limit(built.data, schema, 4 * GROUP_BYTES), schema
    )
    assert [len(value) for value in table.column("value").to_pylist()] == [GROUP_BYTES] * 3


def kernel_batches_with_limit(data: bytes, schema: pa.Schema, limit: int) -> list[pa.RecordBatch]:
    scan = find_batches(as_buffer(data))
    decoder = RecordDecoder(PARTITION, schema, max_decompressed_bytes=limit)
    window = Window.of(scan, SEGMENT, FILE_POSITION)
    return list(decoder.decode(window, 0, 2**62))


def test_decompression_stops_at_the_limit_and_the_batch_is_reported() -> None:
    first = batch_v2(plain_records(0, 1)).data
    bomb = batch_v2(plain_records(1, 1, value_size=100_000), codec="gzip").data
    with pytest.raises(InvalidRecordError) as caught:
        kernel_batches_with_limit(first + bomb, record_schema(), 50_000)
    assert str(caught.value) == (
        f"{SEGMENT} at byte {FILE_POSITION + len(first)}: batch has at least 50001 bytes of "
        "records, more than the limit of 50000 bytes; if the batch is to be trusted, raise "
        "max_decompressed_bytes (in Spark maxDecompressedBytes, on the command line "
        "--max-decompressed-bytes)"
    )


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_the_limit_is_for_plain_batches_as_well(codec: str) -> None:
    first = batch_v2(plain_records(0, 2), codec=codec)
    plain = batch_v2(plain_records(2, 20, value_size=10_000))
    schema = record_schema(["offset"])
    batches = kernel_batches_with_limit(first.data + plain.data, schema, len(plain.data) - 61)
    assert [o for batch in batches for o in batch.column("offset").to_pylist()] == [*range(22)]
    with pytest.raises(InvalidRecordError, match="raise max_decompressed_bytes") as caught:
        kernel_batches_with_limit(first.data + plain.data, schema, len(plain.data) - 62)
    assert caught.value.position == FILE_POSITION + len(first.data)


def test_record_batches_own_their_memory() -> None:
    built = batch_v2(plain_records(0, 4))
    memory = bytearray(built.data)
    decoded = kernel_batches(memory)
    memory[:] = bytes(len(memory))
    assert rows(decoded) == list(built.records)


def test_a_decoder_may_be_used_for_one_window_after_the_other() -> None:
    decoder = RecordDecoder(PARTITION, record_schema(include_headers=True, timestamp_unit="ms"))
    kept = []
    for i in range(4):
        built = batch_v2(plain_records(100 * i, 50), codec=("gzip", "none", "lz4", "zstd")[i])
        scan = find_batches(as_buffer(built.data))
        window = Window.of(scan, SEGMENT, 0)
        kept.append((list(decoder.decode(window, 0, 2**62)), built))
    for decoded, built in kept:
        assert rows(decoded) == list(built.records)


def test_many_nulls_are_each_at_their_row() -> None:
    records = [
        Stored(i, 0, None if i % 3 else b"k", None if i % 5 else b"v", ()) for i in range(200)
    ]
    assert kernel_records(batch_v2(records).data) == records


def test_headers_are_null_where_there_are_none_and_keep_order_duplicates_and_nulls() -> None:
    many = (("a", b"1"), ("a", None), ("ключ", b""), ("", b"x"))
    records = [Stored(0, 0, None, None), Stored(1, 0, None, None, many), Stored(2, 0, None, None)]
    (decoded,) = kernel_batches(batch_v2(records).data)
    column = decoded.column("headers")
    assert column.null_count == 2
    assert column.to_pylist()[1] == [{"key": key, "value": value} for key, value in many]


def test_malformed_header_keys_are_replaced_and_the_others_kept() -> None:
    payload = record_v2(0, 0, None, None, [(b"\xff\xfe", b"1"), ("ключ".encode(), b"2")])
    payload += record_v2(0, 1, None, None, [(b"plain", None)])
    data = batch_v2_of(payload, last_offset_delta=1, record_count=2)
    found = [record.headers for record in kernel_records(data)]
    assert found == [(("\ufffd\ufffd", b"1"), ("ключ", b"2")), (("plain", None),)]


@pytest.mark.parametrize(
    ("stamp", "fits"),
    [
        (2**63 // 1000, True),
        (2**63 // 1000 + 1, False),
        (-(2**63 // 1000), True),
        (-(2**63 // 1000) - 1, False),
        (2**63 - 1, False),
        (-(2**63), False),
    ],
)
def test_a_timestamp_that_microseconds_cannot_hold_is_an_error(stamp: int, *, fits: bool) -> None:
    batches = [
        batch_v2([Stored(0, stamp, None, None)]),
        batch_v2([Stored(1, 0, None, None)], append_time=stamp),
        message(Stored(2, stamp, None, None), magic=1),
        wrapper([Stored(3, stamp, None, None)], magic=1, codec="gzip"),
        wrapper([Stored(4, 0, None, None)], magic=1, codec="lz4", append_time=stamp),
    ]
    for built in batches:
        assert kernel_records(built.data) == list(built.records)
        schema = record_schema(include_headers=True)
        if fits:
            assert rows(kernel_batches(built.data, schema)) == list(built.records)
            continue
        with pytest.raises(TimestampOverflowError) as caught:
            kernel_batches(built.data, schema)
        text = str(caught.value)
        assert "does not fit into 64-bit microseconds" in text
        assert text.startswith(f"{SEGMENT} at byte {FILE_POSITION}: ")
        without = record_schema(["offset"])
        assert kernel_batches(built.data, without)[0].num_rows == 1


ONE = record_v2(0, 0, b"k", b"v")


def v2(payload: bytes, count: int = 1, codec: str = "none") -> bytes:
    return batch_v2_of(compress(codec, payload), record_count=count, attributes=CODEC_IDS[codec])


def set_of(*messages: bytes, offset: int = 0, magic: int = 1) -> bytes:
    return wrapper_of(gzip_member(b"".join(messages)), offset=offset, magic=magic, codec="gzip")


INNER = message_bytes(0, b"k", b"v", magic=1)


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        pytest.param(
            v2(ONE, count=2),
            InvalidRecordError,
            "batch counts 2 records, its bytes have room for 1",
            id="more records than bytes",
        ),
        pytest.param(
            v2(ONE, count=-1),
            InvalidRecordError,
            "batch counts -1 records, its bytes have room for 1",
            id="negative count",
        ),
        pytest.param(
            v2(ONE + ONE, count=1),
            InvalidRecordError,
            "bytes remain after the last record that the batch counts (9 bytes into",
            id="count too low",
        ),
        pytest.param(
            v2(ONE + ONE, count=1, codec="lz4"),
            InvalidRecordError,
            "bytes remain after the last record that the batch counts (9 bytes into",
            id="count too low, compressed",
        ),
        pytest.param(
            v2(record_v2(0, 0, bytes(20), None), count=2),
            InvalidRecordError,
            "a number runs past the end of the record (27 bytes into the batch's records)",
            id="count too high",
        ),
        pytest.param(
            v2(ONE + b"\x40" + ONE[1:], count=2),
            InvalidRecordError,
            "the record's length does not fit into the batch (9 bytes into",
            id="record length",
        ),
        pytest.param(
            v2(ONE[:4] + b"\x10" + ONE[5:]),
            InvalidRecordError,
            "the key's length does not fit into the record (0 bytes into",
            id="key length",
        ),
        pytest.param(
            v2(ONE[:6] + b"\x08" + ONE[7:]),
            InvalidRecordError,
            "the value's length does not fit into the record",
            id="value length",
        ),
        pytest.param(
            v2(ONE[:8] + b"\x02"),
            InvalidRecordError,
            "a header does not fit into the record",
            id="header count",
        ),
        pytest.param(
            v2(b"\x12" + ONE[1:] + b"\x00"),
            InvalidRecordError,
            "the record's fields and its length disagree",
            id="record length too long",
        ),
        pytest.param(
            batch_v2_of(ONE, attributes=5),
            UnsupportedCodecError,
            "compression codec id 5 does not exist (known: 0 to 4)",
            id="codec 5",
        ),
        pytest.param(
            batch_v2_of(ONE, attributes=1), InvalidRecordError, "gzip stream", id="no gzip"
        ),
        pytest.param(
            wrapper_of(b"x", offset=0, magic=0, codec="zstd"),
            UnsupportedCodecError,
            "zstd is not allowed in message format v0",
            id="zstd in v0",
        ),
        pytest.param(
            wrapper_of(None, offset=0, magic=1, codec="gzip"),
            InvalidRecordError,
            "compressed message has a null value",
            id="null value",
        ),
        pytest.param(
            set_of(),
            InvalidRecordError,
            "a compressed message holds no inner message",
            id="empty set",
        ),
        pytest.param(
            set_of(set_of(INNER)),
            InvalidRecordError,
            "an inner message is itself compressed",
            id="nested",
        ),
        pytest.param(
            set_of(INNER, message_bytes(1, None, None, magic=1, crc=3)),
            CorruptRecordError,
            f"an inner message's CRC is wrong ({len(INNER)} bytes into the message set)",
            id="inner CRC",
        ),
        pytest.param(
            set_of(INNER[:16] + b"\x02" + INNER[17:]),
            InvalidRecordError,
            "an inner message is not of format v0 or v1",
            id="inner format",
        ),
        pytest.param(
            set_of(bytes(8) + (13).to_bytes(4, "big") + bytes(50)),
            CorruptRecordError,
            "a message's size is below the minimum of its format",
            id="inner size",
        ),
        pytest.param(
            set_of(*(message_bytes(i, None, None, magic=1) for i in range(5)), offset=3),
            InvalidRecordError,
            "the wrapper's offset is below its last inner offset",
            id="wrapper offset",
        ),
        pytest.param(
            INNER[:29] + b"\x09" + INNER[30:],
            CorruptRecordError,
            "the key's length does not fit into the message",
            id="legacy key length",
        ),
        pytest.param(
            INNER[:34] + b"\x09" + INNER[35:],
            CorruptRecordError,
            "the value's length does not fit into the message",
            id="legacy value length",
        ),
    ],
)
def test_broken_records_are_an_error_that_names_file_batch_and_cause(
    data: bytes, error: type[LogStorageError], text: str
) -> None:
    before: Sequence[bytes] = [INNER, batch_v2(plain_records(1, 3)).data]
    position = FILE_POSITION + sum(map(len, before))
    with pytest.raises(error) as caught:
        kernel_records(b"".join(before) + data)
    assert type(caught.value) is error
    assert text in str(caught.value)
    assert str(caught.value).startswith(f"{SEGMENT} at byte {position}: ")


def noisy_batches(codecs: Sequence[str]) -> list[Built]:
    """Return a batch for each codec, of records of which some do not shrink."""
    noise = random.Random(1)
    batches = []
    for index, codec in enumerate(codecs):
        values = [noise.randbytes(noise.choice([10, 9_000])) for _ in range(noise.randrange(1, 6))]
        records = [Stored(10 * index + at, index, b"", value) for at, value in enumerate(values)]
        batches.append(batch_v2(records, codec=codec))
    return batches


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_whole_window_of_compressed_batches_comes_out_as_it_went_in(codec: str) -> None:
    codecs = [codec] * 90 + ["none", codec, "gzip", "lz4", "zstd"] * 9 + [codec] * 90
    batches = noisy_batches(codecs)
    expected = [record for built in batches for record in built.records]
    assert kernel_records(joined(batches)) == expected


def test_a_plain_batch_with_the_bytes_of_a_compressed_one_is_not_decompressed() -> None:
    batches = noisy_batches(["lz4"] * 90)
    before = joined(batches)
    assert len(before) > LEAST_KERNEL_BYTES
    frame = compress("lz4", record_v2(0, 0, b"", b"value"))
    false = batch_v2_of(frame, base_offset=5_000)
    with pytest.raises(InvalidRecordError) as caught:
        kernel_records(before + false + before)
    assert caught.value.position == FILE_POSITION + len(before)
