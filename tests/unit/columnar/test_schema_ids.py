from __future__ import annotations

import random
import struct

import pyarrow as pa
import pytest

from pylog.columnar.schema_ids import prefixed_ids

SEED = 560


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([None, None], []),
        ([b"", b"\0\0\0\0"], []),  # too short
        ([b"\0\0\0\0\x07"], [7]),  # a prefix alone
        (
            [b"\0\0\x01\x86\xa0x", None, b"\x01\0\0\0\x07xx", b"\0\x7f\xff\xff\xff"],
            [100_000, 2**31 - 1],
        ),
        ([b"\0\xff\xff\xff\xff"], [-1]),
    ],
)
def test_ids_are_big_endian_after_a_zero_byte(
    values: list[bytes | None], expected: list[int]
) -> None:
    assert prefixed_ids(pa.array(values, pa.binary())).tolist() == expected


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_any_slice_of_any_binary_column_is_read(kind: pa.DataType) -> None:
    chance = random.Random(SEED)
    values: list[bytes | None] = []
    for _ in range(500):
        cut = chance.randrange(9)
        data = bytes([chance.choice((0, 0, 1))]) + chance.randbytes(8)
        values.append(chance.choice((None, data[:cut], data)))
    column = pa.array(values, kind)
    for start, length in ((0, 500), (3, 400), (499, 1), (500, 0)):
        expected = [
            struct.unpack_from(">i", each, 1)[0]
            for each in values[start : start + length]
            if each is not None and len(each) >= 5 and each[0] == 0
        ]
        assert prefixed_ids(column.slice(start, length)).tolist() == expected
