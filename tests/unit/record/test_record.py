from __future__ import annotations

import pytest

from pylog.errors import InvalidRecordError
from pylog.record.record import RecordDeltas, RecordHeader, decode_record, wrap_int64
from tests.support.batches import record_v2, varint


def decode(data: bytes, following: bytes = b"") -> RecordDeltas:
    deltas, after = decode_record(memoryview(data + following), 0, len(data + following))
    assert after == len(data)
    return deltas


def record_of(body: bytes) -> bytes:
    return varint(len(body)) + body


PREFIX = b"\x00" + varint(3) + varint(1)  # attributes, timestamp delta, offset delta


def test_a_record_has_every_field() -> None:
    data = record_v2(168, 1, b"k", b"v", [("h", b"1"), ("h", None), ("ключ", b"")])
    assert decode(data, following=b"\x99") == RecordDeltas(
        168,
        1,
        b"k",
        b"v",
        (RecordHeader("h", b"1"), RecordHeader("h", None), RecordHeader("ключ", b"")),
    )


def test_null_and_empty_are_different() -> None:
    assert decode(record_v2(0, 0, None, None))[2:4] == (None, None)
    assert decode(record_v2(0, 0, b"", b""))[2:4] == (b"", b"")


def test_any_negative_length_is_null() -> None:
    deltas = decode(record_of(PREFIX + varint(-5) + varint(-(2**31)) + varint(0)))
    assert (deltas.key, deltas.value) == (None, None)


def test_attributes_of_a_record_are_ignored() -> None:
    body = b"\xff" + PREFIX[1:] + varint(-1) + varint(-1) + varint(0)
    assert decode(record_of(body)).offset_delta == 1


def test_deltas_may_be_negative() -> None:
    assert decode(record_v2(-(2**63), -3, None, None))[:2] == (-(2**63), -3)


def test_a_malformed_header_key_gets_replacement_characters() -> None:
    data = record_v2(0, 0, None, None, [(b"a\xffb", None)])
    assert decode(data).headers == (RecordHeader("a\ufffdb", None),)


NULLS = varint(-1) + varint(-1)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(varint(0), "record length is 0", id="length 0"),
        pytest.param(varint(-2) + b"\x00" * 9, "record length is -2", id="negative length"),
        pytest.param(varint(30) + b"\x00" * 9, "record length is 30", id="longer than the rest"),
        pytest.param(record_of(b"\x00\x80"), "runs past the end", id="timestamp delta cut"),
        pytest.param(record_of(PREFIX + varint(9)), "key of 9 bytes", id="key too long"),
        pytest.param(
            record_of(PREFIX + varint(-1) + varint(9)), "value of 9 bytes", id="value too long"
        ),
        pytest.param(
            record_of(PREFIX + NULLS + varint(-1)), "header count is -1", id="negative count"
        ),
        pytest.param(
            record_of(PREFIX + NULLS + varint(4) + b"\x00" * 3), "header count is 4", id="count"
        ),
        pytest.param(
            record_of(PREFIX + NULLS + varint(1) + varint(-1) + varint(-1)),
            "header key length is negative",
            id="null header key",
        ),
        pytest.param(
            record_of(PREFIX + NULLS + varint(1) + varint(5) + b"a"),
            "header key of 5 bytes",
            id="header key too long",
        ),
        pytest.param(
            record_of(PREFIX + NULLS + varint(1) + varint(1) + b"a" + varint(7)),
            "header value of 7 bytes",
            id="header value too long",
        ),
        pytest.param(
            record_of(PREFIX + NULLS + varint(0) + b"\x00"),
            "record length is 7, but its fields take 6 bytes",
            id="bytes left in the record",
        ),
        pytest.param(
            record_of(PREFIX + NULLS), "runs past the end of its record", id="no header count"
        ),
    ],
)
def test_a_record_that_breaks_the_format_is_invalid(data: bytes, text: str) -> None:
    with pytest.raises(InvalidRecordError, match=text):
        decode_record(memoryview(data), 0, len(data))


@pytest.mark.parametrize(
    ("value", "wrapped"),
    [(0, 0), (2**63 - 1, 2**63 - 1), (2**63, -(2**63)), (-(2**63) - 1, 2**63 - 1)],
)
def test_sums_wrap_as_in_java(value: int, wrapped: int) -> None:
    assert wrap_int64(value) == wrapped
