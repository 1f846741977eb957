from __future__ import annotations

import base64

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pylog.record_lines.base64_column import base64_column


@given(
    st.lists(st.none() | st.binary(max_size=7), max_size=20), st.integers(0, 20), st.integers(0, 20)
)
def test_every_value_is_encoded_as_if_it_were_alone(
    values: list[bytes | None], start: int, length: int
) -> None:
    column = base64_column(pa.array(values, pa.binary()).slice(start, length))
    column.validate(full=True)
    assert column.to_pylist() == [
        None if value is None else base64.b64encode(value).decode()
        for value in values[start:][:length]
    ]


def test_bytes_under_a_null_leave_their_neighbours_alone() -> None:
    _, ends, data = pa.array([b"abc", b"defg", b"hij"], pa.binary()).buffers()
    bitmap = pa.array([True, False, True]).buffers()[1]
    column = pa.Array.from_buffers(pa.binary(), 3, [bitmap, ends, data])
    assert base64_column(column).to_pylist() == ["YWJj", None, "aGlq"]
