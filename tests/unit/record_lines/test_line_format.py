"""Lines of a user's format in a terminal, and in slices."""

from __future__ import annotations

import pyarrow as pa

from pylog.columnar.arrow_schema import HEADERS_TYPE, TYPED
from pylog.record_lines.line_format import LineFormat
from tests.unit.record_lines.kcat_lines import BATCH, lines


def test_a_terminal_is_given_what_is_printable() -> None:
    columns = {
        "topic": pa.array(["a\x1b[2J"]),
        "key": pa.array([b"\x07\xff"], pa.binary()),
        "value": pa.array(["grün\u202e\\\n".encode()], pa.binary()),
        "headers": pa.array([[("h\x1b", b"\x9b")]], HEADERS_TYPE),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    line_format = LineFormat.of_kcat(r"\x1b[1m%t %k %s %h\n", is_printable=True)
    expected = rb"a\x1b[2J \x07\xff gr" + "ü".encode() + rb"n\u202e\\n h\x1b=\x9b"
    assert b"".join(line_format.lines_of(batch)) == b"\x1b[1m" + expected + b"\n"


def test_slices_of_batches_and_records_without_headers_have_their_own_lines() -> None:
    assert lines("%o%h%R;", BATCH.slice(1)) == b"70\x00\x00\x00\x06;"
    assert lines("%o", BATCH.slice(0, 0)) == b""


def test_typed_keys_and_values_are_json_in_other_lines() -> None:
    fields = [
        pa.field("key", pa.binary()),
        pa.field("value", pa.struct([("a", pa.int64())]), metadata=TYPED),
    ]
    columns = [pa.array([b"k", None]), pa.array([{"a": 1}, None], fields[1].type)]
    batch = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
    text = LineFormat.text().with_json_values()
    assert text.columns == ("key", "value")
    assert b"".join(text.lines_of(batch)) == b'k\t{"a":1}\n\\N\t\\N\n'
