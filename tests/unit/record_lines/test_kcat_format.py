from __future__ import annotations

import pyarrow as pa
import pytest

from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.record_lines.line_format import LineFormat

BATCH = pa.RecordBatch.from_arrays(
    [
        pa.array(["orders", "web"]),
        pa.array([0, 12], pa.int32()),
        pa.array([5, 70]),
        pa.array([1_700_000_000_000, -1], pa.timestamp("ms", tz="UTC")),
        pa.array([b"k\xff", None], pa.binary()),
        pa.array([None, b"val\nue"], pa.binary()),
        pa.array([[("a", b"1"), ("b", None)], None], HEADERS_TYPE),
    ],
    names=["topic", "partition", "offset", "timestamp", "key", "value", "headers"],
)


def lines(text: str, batch: pa.RecordBatch = BATCH) -> bytes:
    line_format = LineFormat.of_kcat(text)
    return bytes(line_format.lines_of(batch.select(line_format.columns)))


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
    assert bytes(line_format.lines_of(batch)) == b"\x1b[1m" + expected + b"\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"%t[%p]@%o\n", b"orders[0]@5\nweb[12]@70\n"),
        ("%T,", b"1700000000000,-1,"),
        ("<%k|%s>", b"<k\xff|><|val\nue>"),
        ("%K %S;", b"2 -1;-1 6;"),
        ("%R", b"\xff\xff\xff\xff\x00\x00\x00\x06"),
        ("{%h}", b"{a=1,b=NULL}{}"),
        (r"%%\t\r\x41\x0\\\q%o ", b"%\t\rA\x00\\q5 %\t\rA\x00\\q70 "),
        ("same ", b"same same "),
        ("größe%p", "größe0größe12".encode()),
    ],
)
def test_fields_and_escapes_are_kcats(text: str, expected: bytes) -> None:
    assert lines(text) == expected


def test_slices_of_batches_and_records_without_headers_have_their_own_lines() -> None:
    assert lines("%o%h%R;", BATCH.slice(1)) == b"70\x00\x00\x00\x06;"
    assert lines("%o", BATCH.slice(0, 0)) == b""


@pytest.mark.parametrize("text", ["%x", "%", "%o%"])
def test_other_fields_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="known are %t %p %o"):
        LineFormat.of_kcat(text)
