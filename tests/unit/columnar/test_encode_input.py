"""Columns as they are encoded: their types, nulls and bounds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.columnar.encode import RecordEncoder
from tests.support.batches import Stored
from tests.support.decoding import kernel_records
from tests.unit.columnar.encoded import batch_of, encoded


def test_columns_that_are_not_there_are_null_and_stamped_by_the_caller() -> None:
    data = batch_of(value=pa.array([b"a", None], pa.binary()))
    assert kernel_records(encoded(data, timestamp_ms=77)) == [
        Stored(0, 77, None, b"a"),
        Stored(1, 77, None, None),
    ]
    assert [record.timestamp for record in kernel_records(encoded(data))] == [-1, -1]


def test_columns_of_type_null_are_null() -> None:
    nothing = pa.nulls(2)
    data = batch_of(key=nothing, value=nothing, timestamp=nothing, headers=nothing)
    assert kernel_records(encoded(data, timestamp_ms=7)) == [
        Stored(0, 7, None, None),
        Stored(1, 7, None, None),
    ]


def test_other_columns_are_left_alone() -> None:
    data = batch_of(value=pa.array([b"a"]), offset=pa.array([99]), topic=pa.array(["t"]))
    assert kernel_records(encoded(data)) == [Stored(0, -1, None, b"a")]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_text_is_written_as_utf8(kind: pa.DataType) -> None:
    data = batch_of(key=pa.array(["ä", None], kind), value=pa.array([None, "€"], kind))
    found = [(record.key, record.value) for record in kernel_records(encoded(data))]
    assert found == [("ä".encode(), None), (None, "€".encode())]


def test_bytes_of_a_fixed_size_are_written() -> None:
    key = pa.array([b"xyz", b"abc", None, b"def"], pa.binary(3)).slice(1)
    found = [record.key for record in kernel_records(encoded(batch_of(key=key)))]
    assert found == [b"abc", None, b"def"]


def test_headers_may_have_values_of_type_null() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.null())]))
    headers = pa.array([[{"key": "a"}], None, [{"key": "b"}, {"key": "c"}]], kind)
    found = [record.headers for record in kernel_records(encoded(batch_of(headers=headers)))]
    assert found == [(("a", None),), (), (("b", None), ("c", None))]


@pytest.mark.parametrize(
    ("kind", "stored", "expected"),
    [
        (pa.timestamp("s"), [2, 0], [2_000, 0]),
        (pa.timestamp("s"), [(2**63 - 1) // 1_000], [(2**63 - 1) // 1_000 * 1_000]),
        (pa.timestamp("ms", tz="Europe/Berlin"), [2, -1, 2**63 - 1], [2, -1, 2**63 - 1]),
        (pa.timestamp("us"), [1_999, -1_000, 2**63 - 1], [1, -1, (2**63 - 1) // 1_000]),
        (pa.timestamp("ns"), [1_999_999, -1_000_000], [1, -1]),
        (pa.int64(), [5, -1], [5, -1]),
        (pa.int64(), [None, 5, None], [88, 5, 88]),
        (pa.timestamp("us"), [None, 5_000, None], [88, 5, 88]),
    ],
)
def test_timestamps_of_every_unit_become_milliseconds(
    kind: pa.DataType, stored: list[int | None], expected: list[int]
) -> None:
    timestamp = pa.array(stored, pa.int64()).cast(kind)
    for column in (timestamp, pa.concat_arrays([timestamp, timestamp]).slice(len(stored))):
        found = kernel_records(encoded(batch_of(timestamp=column), timestamp_ms=88))
        assert [record.timestamp for record in found] == expected


def test_what_lies_under_a_null_timestamp_does_not_matter() -> None:
    stamps = np.array([5, -7], dtype=np.int64)
    timestamp = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(stamps)])
    found = kernel_records(encoded(batch_of(timestamp=timestamp), timestamp_ms=6))
    assert [record.timestamp for record in found] == [5, 6]


@pytest.mark.parametrize(
    ("kind", "wrong", "text"),
    [
        (pa.int64(), -2, "timestamp -2 ms is below 0 and not -1 ms (none)"),
        (pa.timestamp("us"), -1, "timestamp -1 us is below 0 and not -1 ms (none)"),
        (pa.timestamp("s"), -1, "timestamp -1 s is below 0 and not -1 ms (none)"),
        (pa.timestamp("s"), 2**60, f"timestamp {2**60} s does not fit 64 bits of ms"),
    ],
)
def test_a_timestamp_out_of_range_is_refused_with_its_row(
    kind: pa.DataType, wrong: int, text: str
) -> None:
    timestamp = pa.array([0, 1, wrong, 1], pa.int64()).cast(kind)
    encoder = RecordEncoder(max_records=1)
    found = []
    with pytest.raises(ValueError, match="row 2: ") as caught:
        found += list(encoder.encode(batch_of(timestamp=timestamp)))
    assert str(caught.value) == f"row 2: {text}"
    assert found == []
    assert encoder.next_offset == 0


def test_a_default_timestamp_below_0_is_refused() -> None:
    with pytest.raises(ValueError, match="timestamp_ms -2 is below 0 and not -1"):
        encoded(batch_of(value=pa.array([b"a"])), timestamp_ms=-2)


ENTRY = HEADERS_TYPE.value_type


@pytest.mark.parametrize(
    "headers",
    [
        pa.array([None, [], [{"key": "a"}, {"key": None, "value": b"1"}]], HEADERS_TYPE),
        pa.array([[{"key": "a"}], [], [{"key": "a"}, None]], HEADERS_TYPE),
        pa.array([[], [None], [], [], [None], []], HEADERS_TYPE).slice(2),
    ],
)
def test_a_header_without_a_key_is_refused_with_its_row(headers: pa.Array) -> None:
    with pytest.raises(ValueError, match=r"^row 2: a header, or the key of one, is null$"):
        encoded(batch_of(headers=headers))


def test_headers_that_no_row_has_may_be_null() -> None:
    entries = pa.array([{"key": "a"}, None, {"key": "b"}, None], ENTRY)
    ends = pa.py_buffer(np.array([0, 1, 2, 3], dtype=np.int32))
    headers = pa.Array.from_buffers(
        HEADERS_TYPE, 3, [pa.py_buffer(b"\x05"), ends], children=[entries]
    )
    found = [record.headers for record in kernel_records(encoded(batch_of(headers=headers)))]
    assert found == [(("a", None),), (), (("b", None),)]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"key": pa.array([b"a"])}, "no column 'value'; the columns are: key"),
        ({"value": pa.array([1])}, "column 'value' is of type int64; those of bytes and text are"),
        ({"value": pa.array([b"a"]), "key": pa.array([1.5])}, "column 'key' is of type double"),
        (
            {"value": pa.array([b"a"]), "timestamp": pa.array([1], pa.int32())},
            "column 'timestamp' is of type int32, neither a timestamp nor int64 milliseconds",
        ),
        (
            {"value": pa.array([b"a"]), "headers": pa.array([["a"]])},
            "column 'headers' is of type list<item: string>, not list<struct<key, value>>",
        ),
        (
            {"value": pa.array([b"a"]), "headers": pa.array([[{"key": "a"}]])},
            "column 'headers' is of type list<item: struct<key: string>>, not list<struct<key,",
        ),
        ({"value": pa.array([b"a"]), "headers": pa.array([b"x"])}, "column 'headers' is of type"),
    ],
)
def test_columns_of_other_types_are_refused(columns: dict[str, pa.Array], text: str) -> None:
    with pytest.raises(ValueError, match="column") as caught:
        encoded(pa.RecordBatch.from_pydict(columns))
    assert text in str(caught.value)


def test_a_column_that_is_there_twice_is_refused() -> None:
    value = pa.array([b"a"])
    with pytest.raises(ValueError, match="there is more than one column 'value'"):
        encoded(pa.RecordBatch.from_arrays([value, value], ["value", "value"]))


def test_offsets_outside_of_a_columns_bytes_are_refused_with_their_row() -> None:
    ends = pa.py_buffer(np.array([0, 1, 9, 3], dtype=np.int32))
    value = pa.Array.from_buffers(pa.binary(), 3, [None, ends, pa.py_buffer(b"abc")])
    encoder = RecordEncoder(max_records=1)
    found = []
    with pytest.raises(ValueError, match=r"^row 1: the offsets of a column do not lie within its"):
        found += [batch.record_count for batch in encoder.encode(batch_of(value=value))]
    assert encoder.next_offset == 1
