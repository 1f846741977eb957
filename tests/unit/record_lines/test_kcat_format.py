from __future__ import annotations

import pytest

from pylog.record_lines.line_format import LineFormat
from tests.unit.record_lines.kcat_lines import lines


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


@pytest.mark.parametrize("text", ["%x", "%", "%o%"])
def test_other_fields_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="known are %t %p %o"):
        LineFormat.of_kcat(text)
