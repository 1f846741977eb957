"""v0 and v1 messages and wrappers by the plain-Python reference, rule by rule."""

from __future__ import annotations

import zlib
from typing import NamedTuple

import pytest

from pylog.errors import CorruptRecordError, InvalidRecordError, LogStorageError
from pylog.record.record_batch import RecordBatch
from tests.support.batches import (
    Built,
    Stored,
    message,
    message_bytes,
    message_set,
    plain_records,
    with_bad_crc,
    wrapper,
    wrapper_of,
)
from tests.support.codecs import LEGACY_CODECS, compress, gzip_member, lz4_frame, snappy_raw
from tests.support.reading import stored

# From kafka-python's tests: a real broker's bytes.
GOLDEN_V0 = bytes.fromhex("000000000000000000000011feb01dbf0000ffffffff00000003313233")
GOLDEN_V1 = bytes.fromhex(
    "000000000000000000000019478628c201000000015e1867abaeffffffff00000003313233"
)


def read(data: bytes | Built) -> list[Stored]:
    batch = RecordBatch(data if isinstance(data, bytes) else data.data)
    return stored(batch.records())


def test_a_brokers_v0_message() -> None:
    assert read(GOLDEN_V0) == [Stored(0, -1, None, b"123", (), -1)]
    RecordBatch(GOLDEN_V0).ensure_valid()


def test_a_brokers_v1_message() -> None:
    assert read(GOLDEN_V1) == [Stored(0, 1503648000942, None, b"123")]
    RecordBatch(GOLDEN_V1).ensure_valid()


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("key", [None, b"", b"k"])
@pytest.mark.parametrize("value", [None, b"", b"v" * 300])
def test_null_and_empty_are_different(magic: int, key: bytes | None, value: bytes | None) -> None:
    built = message(Stored(3, 9, key, value), magic=magic)
    assert read(built) == list(built.records)
    assert (built.records[0].key, built.records[0].value) == (key, value)


@pytest.mark.parametrize("magic", [0, 1])
def test_any_negative_length_is_null(magic: int) -> None:
    data = bytearray(message_bytes(0, None, None, magic=magic))
    data[-8:] = b"\x80\x00\x00\x00" + b"\xff\xff\xff\xf0"
    data[12:16] = zlib.crc32(data[16:]).to_bytes(4, "big")
    assert read(bytes(data))[0][2:4] == (None, None)


def test_an_append_time_message_reports_its_own_timestamp() -> None:
    built = message(Stored(3, 1, None, b"v"), magic=1, append_time=99)
    assert read(built) == [Stored(3, 99, None, b"v", (), 1)]


@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_every_codec_of_each_format_comes_back(magic: int, codec: str) -> None:
    built = wrapper(plain_records(40, 30, value_size=300), magic=magic, codec=codec)
    assert read(built) == list(built.records)
    assert [record.offset for record in read(built)] == list(range(40, 70))


def test_a_raw_snappy_block_and_concatenated_gzip_members_come_back() -> None:
    records = plain_records(0, 3)
    inner = message_set(records, inner_magic=1)
    for stream, codec in (
        (snappy_raw(inner), "snappy"),
        (gzip_member(inner[:50]) + gzip_member(inner[50:]), "gzip"),
    ):
        assert read(wrapper_of(stream, offset=2, magic=1, codec=codec)) == records


def test_inner_offsets_of_v1_are_relative_to_the_last_and_may_have_gaps() -> None:
    records = [Stored(offset, 5, b"k", b"v") for offset in (103, 104, 109)]
    built = wrapper(records, magic=1, codec="gzip", first_offset=100)
    assert [record.offset for record in read(built)] == [103, 104, 109]


def test_inner_offsets_of_v0_are_absolute() -> None:
    records = [Stored(offset, -1, b"k", b"v") for offset in (103, 104, 109)]
    built = wrapper(records, magic=0, codec="gzip")
    # The wrapper's own offset does not matter to them, unless it is below the last.
    moved = (200).to_bytes(8, "big") + built.data[8:]
    assert [record.offset for record in read(moved)] == [103, 104, 109]


def test_a_producers_v1_wrapper_at_offset_0_counts_from_0() -> None:
    inner = message_set(plain_records(0, 3), inner_magic=1)
    data = wrapper_of(gzip_member(inner), offset=0, magic=1, codec="gzip")
    found = RecordBatch(data).unassigned_records()
    assert [record.offset for record in found] == [0, 1, 2]


def test_in_a_log_a_wrapper_has_the_offset_of_its_last_message_or_a_higher_one() -> None:
    # A broker gives it that: from offset 0 on, the next batch would hold offset 1 once more.
    inner = message_set(plain_records(0, 3), inner_magic=1)
    data = wrapper_of(gzip_member(inner), offset=0, magic=1, codec="gzip")
    with pytest.raises(InvalidRecordError, match="record has offset 1, expected 1 to 0"):
        read(data)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("inner", [(3, 4, 4), (4, 3, 5), (4, 3, 3)])
def test_offsets_in_a_wrapper_go_up(magic: int, inner: tuple[int, ...]) -> None:
    entries = b"".join(message_bytes(at, None, b"v", magic=magic) for at in inner)
    data = wrapper_of(gzip_member(entries), offset=inner[-1], magic=magic, codec="gzip")
    with pytest.raises(InvalidRecordError, match="record has offset"):
        read(data)


def test_a_v1_wrapper_below_its_last_inner_offset_is_invalid() -> None:
    inner = message_set(plain_records(0, 5), inner_magic=1)
    data = wrapper_of(gzip_member(inner), offset=3, magic=1, codec="gzip")
    with pytest.raises(InvalidRecordError, match="offset is 3, below its last inner offset 4"):
        read(data)


class TimeCase(NamedTuple):
    magic: int
    inner_magic: int
    append_time: int | None
    timestamp: int
    timestamp_type: int


@pytest.mark.parametrize(
    "case",
    [
        TimeCase(0, 0, None, -1, -1),
        TimeCase(1, 1, None, 500, 0),
        TimeCase(1, 1, 900, 900, 1),
        # KAFKA-4298: old cleaners put v1 wrappers around v0 messages, which have no time.
        TimeCase(1, 0, None, -1, 0),
        TimeCase(1, 0, 900, -1, 1),
        TimeCase(0, 1, None, 500, -1),
    ],
)
def test_the_wrapper_gives_the_type_and_the_inner_format_decides_about_the_time(
    case: TimeCase,
) -> None:
    built = wrapper(
        [Stored(8, 500, b"k", b"v")],
        magic=case.magic,
        codec="snappy",
        inner_magic=case.inner_magic,
        append_time=case.append_time,
    )
    (record,) = read(built)
    assert (record.timestamp, record.timestamp_type) == (case.timestamp, case.timestamp_type)


def test_lz4_of_v0_needs_no_right_header_checksum_and_of_v1_does() -> None:
    inner = message_set(plain_records(0, 2), inner_magic=0)
    wrong = lz4_frame(inner, magic=0)
    assert len(read(wrapper_of(wrong, offset=1, magic=0, codec="lz4"))) == 2
    with pytest.raises(InvalidRecordError, match="header checksum"):
        read(wrapper_of(wrong, offset=1, magic=1, codec="lz4"))


def test_a_trailing_inner_entry_cut_short_is_dropped() -> None:
    inner = message_set(plain_records(0, 3), inner_magic=1)
    for cut in (1, 5, len(inner) // 3 - 1, len(inner) // 3 - 12):
        data = wrapper_of(gzip_member(inner[:-cut]), offset=1, magic=1, codec="gzip")
        assert [record.offset for record in read(data)] == [0, 1]


INNER = message_bytes(0, b"k", b"v", magic=1, timestamp=1)


def wrapped(inner: bytes | None, magic: int = 1, codec: str = "gzip") -> bytes:
    stream = None if inner is None else compress(codec, inner, magic)
    return wrapper_of(stream, offset=0, magic=magic, codec=codec)


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        pytest.param(wrapped(None), InvalidRecordError, "has a null value", id="null value"),
        pytest.param(wrapped(b""), InvalidRecordError, "holds no inner message", id="empty set"),
        pytest.param(
            wrapped(INNER[:20]), InvalidRecordError, "holds no inner message", id="only a cut one"
        ),
        pytest.param(
            wrapper_of(b"", offset=0, magic=1, codec="gzip"),
            InvalidRecordError,
            "gzip stream is cut short",
            id="empty value",
        ),
        pytest.param(
            wrapper_of(b"x", offset=0, magic=1, codec="zstd"),
            InvalidRecordError,
            "zstd is not allowed in message format v1",
            id="zstd",
        ),
        pytest.param(wrapped(wrapped(INNER)), InvalidRecordError, "itself compressed", id="nested"),
        pytest.param(
            wrapped(bytes(8) + (13).to_bytes(4, "big") + bytes(20)),
            CorruptRecordError,
            "inner message size is 13, expected at least 14",
            id="inner size",
        ),
        pytest.param(
            wrapped(message_bytes(0, None, b"v", magic=1, crc=1)),
            CorruptRecordError,
            "message CRC stored 0x00000001",
            id="inner crc",
        ),
        pytest.param(
            wrapped(b"".join((INNER[:16], b"\x03", INNER[17:]))),
            LogStorageError,
            r"\(magic\) is 3",
            id="inner format 3",
        ),
    ],
)
def test_a_wrapper_that_breaks_a_rule_is_refused(
    data: bytes, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        read(data)


@pytest.mark.parametrize("magic", [0, 1])
def test_lengths_that_do_not_fit_are_corrupt(magic: int) -> None:
    data = message_bytes(0, b"key", b"value", magic=magic)
    key_at = 26 if magic else 18
    for at, length in ((key_at, 13), (key_at, 2**31 - 1), (key_at + 7, 6)):
        changed = bytearray(data)
        changed[at : at + 4] = length.to_bytes(4, "big")
        changed[12:16] = zlib.crc32(changed[16:]).to_bytes(4, "big")
        with pytest.raises(CorruptRecordError, match=r"message of|field of"):
            read(bytes(changed))


@pytest.mark.parametrize(
    "built",
    [
        message(Stored(0, 1, b"k", b"v"), magic=0),
        message(Stored(0, 1, b"k", b"v"), magic=1),
        wrapper(plain_records(0, 3), magic=1, codec="gzip"),
    ],
)
def test_a_wrong_checksum_is_corrupt(built: Built) -> None:
    broken = RecordBatch(with_bad_crc(built).data)
    with pytest.raises(CorruptRecordError, match="CRC stored 0x"):
        broken.ensure_valid()
    with pytest.raises(CorruptRecordError, match="message CRC stored 0x"):
        list(broken.records())


@pytest.mark.parametrize("golden", [GOLDEN_V0, GOLDEN_V1])
def test_the_offset_lies_outside_the_checksum_and_all_from_byte_16_inside(golden: bytes) -> None:
    moved = bytes(7) + b"\x63" + golden[8:]
    assert read(moved)[0].offset == 0x63
    for at in range(17, len(golden)):
        changed = bytearray(golden)
        changed[at] ^= 0x01
        with pytest.raises(CorruptRecordError):
            RecordBatch(bytes(changed)).ensure_valid()
