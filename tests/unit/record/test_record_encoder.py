from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.record.record import RecordHeader, decode_record
from pylog.record.record_encoder import encode_record, size_of_record
from tests.support.batches import Headers, record_v2

RECORDS: dict[str, tuple[int, int, bytes | None, bytes | None, Headers, str]] = {
    # length, attributes, timestamp delta, offset delta, key, value, header count, headers
    "null key": (0, 0, None, b"123", (), "12 00 00 00 01 06313233 00"),
    "nothing": (0, 0, None, None, (), "0c 00 00 00 01 01 00"),
    "empty is not null": (0, 0, b"", b"", (), "0c 00 00 00 00 00 00"),
    "deltas": (168, 1, b"", b"", (), "0e 00 d002 02 00 00 00"),
    "negative timestamp delta": (-1, 0, None, None, (), "0c 00 01 00 01 01 00"),
    "headers": (
        0,
        0,
        None,
        None,
        (("a", b"1"), ("", b""), ("a", None)),
        "1e 00 00 00 01 01 06 0261 0231 00 00 0261 01",
    ),
    "unicode header key": (
        0,
        0,
        None,
        None,
        (("é€", None),),
        "1a 00 00 00 01 01 02 0ac3a9e282ac 01",
    ),
    "longest deltas": (
        -(2**63),
        2**31 - 1,
        None,
        None,
        (),
        "26 00 ffffffffffffffffff01 feffffff0f 01 01 00",
    ),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_written_byte_for_byte(name: str) -> None:
    timestamp_delta, offset_delta, key, value, headers, text = RECORDS[name]
    expected = bytes.fromhex(text)
    assert encode_record(timestamp_delta, offset_delta, key, value, headers) == expected
    assert size_of_record(timestamp_delta, offset_delta, key, value, headers) == len(expected)


header_lists = st.lists(
    st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=70)), max_size=3
).map(tuple)


@given(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**31 - 1),
    st.none() | st.binary(max_size=200),
    st.none() | st.binary(max_size=9_000),
    header_lists,
)
def test_any_record_has_the_described_bytes_and_the_predicted_size(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
) -> None:
    encoded = encode_record(timestamp_delta, offset_delta, key, value, headers)
    assert encoded == record_v2(timestamp_delta, offset_delta, key, value, headers)
    assert size_of_record(timestamp_delta, offset_delta, key, value, headers) == len(encoded)
    decoded, end = decode_record(memoryview(encoded), 0, len(encoded))
    assert end == len(encoded)
    assert decoded[:4] == (timestamp_delta, offset_delta, key, value)
    assert decoded.headers == tuple(RecordHeader(*header) for header in headers)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_keys_and_values_may_be_any_bytes(kind: type) -> None:
    expected = record_v2(0, 0, b"key", b"value", (("h", b"x"),))
    assert encode_record(0, 0, kind(b"key"), kind(b"value"), (("h", kind(b"x")),)) == expected


def test_a_null_header_key_is_refused() -> None:
    headers: list[tuple[str, bytes | None]] = [("a", b""), (None, b"")]  # type: ignore[list-item]
    for function in (encode_record, size_of_record):
        with pytest.raises(ValueError, match="a header key must not be null"):
            function(0, 0, None, None, headers)


@pytest.mark.parametrize(("timestamp_delta", "offset_delta"), [(2**63, 0), (0, 2**31)])
def test_a_delta_that_is_too_wide_is_refused(timestamp_delta: int, offset_delta: int) -> None:
    for function in (encode_record, size_of_record):
        with pytest.raises(ValueError, match="does not fit into"):
            function(timestamp_delta, offset_delta, None, None)
