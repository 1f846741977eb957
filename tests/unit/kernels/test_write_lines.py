"""Lines as bytes: held against Python's own text, JSON and base64."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pylog.record.java_utf8 import decode_utf8
from pylog.record_lines import line_template as line_writer
from pylog.record_lines.line_template import Style, line_template
from tests.support.java_utf8 import ANSWERS, all_short_inputs
from tests.support.templated_lines import lines_of, records_of

if TYPE_CHECKING:
    from pylog.record_lines.line_template import LineTemplate

TEXTS = [
    *(b"", b"a", b"exactly8", b"more than eight bytes, ASCII alone", b"x" * 200),
    *("gęś".encode(), "你好世界, in one word".encode(), "🙂 emoji 🚀".encode() * 30),
    *(
        b'quote " and \\ backslash',
        b"tab\tline\nreturn\r\b\f",
        b"\x00\x1f\x7f",
        b"1234567\n1234567",
    ),
    *(
        "\u0085\u009f\u061c\u200e\u2028\u202e\u2066 and \u00a0\u200d\u2027".encode(),
        "é\x7f".encode(),
    ),
    *(
        b"\xff",
        b"12345678\xc0\x80",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\x80" * 50,
    ),
]
NUMBERS = [0, 1, 9, 10, 99, 100, 12345, 2**31, 10**18, 2**63 - 1, -1, -10, -(2**63)]


def key_template(style: Style) -> LineTemplate:
    return line_template("", f"$key{style.name}\0")


def test_text_is_decoded_as_java_decodes_it() -> None:
    inputs = [bytes.fromhex(each) for each, _ in ANSWERS]
    # Before it, so that it does not begin where a word does.
    text = lines_of(key_template(Style.TEXT), records_of([b"12345" + each for each in inputs]))
    assert text.decode() == "".join(f"12345{answer}\0" for _, answer in ANSWERS)


def test_text_is_decoded_as_the_reference_decodes_it() -> None:
    inputs = [*TEXTS, *all_short_inputs()]
    text = lines_of(key_template(Style.TEXT), records_of(inputs))
    assert text.decode() == "".join(decode_utf8(each) + "\0" for each in inputs)


def test_json_strings_are_the_text_or_an_object_with_the_bytes() -> None:
    for value, text in zip(
        TEXTS, lines_of(key_template(Style.JSON), records_of(TEXTS)).split(b"\0"), strict=False
    ):
        found = json.loads(text)
        try:
            assert found == value.decode(), value
        except UnicodeDecodeError:
            assert base64.b64decode(found["base64"], validate=True) == value


def test_json_strings_hold_nothing_that_a_terminal_acts_upon() -> None:
    value = "\x7f\u0085\u009f\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069"
    text = lines_of(key_template(Style.JSON), records_of([value.encode()])).rstrip(b"\0")
    assert text.isascii()
    assert json.loads(text) == value


def test_base64_is_padded_and_of_the_standard_alphabet() -> None:
    values = [bytes(range(256))[:size] for size in (0, 1, 2, 3, 4, 255, 256)]
    values += [b"\xfb\xff\xfe", b"\xff" * 100]
    text = lines_of(key_template(Style.BASE64), records_of(values))
    expected = [b'"' + base64.b64encode(value) + b'"\0' for value in values]
    assert text == b"".join(expected)


def test_numbers_are_in_decimal() -> None:
    template = line_template("$n ", columns=["n"])
    table = np.array([[number] for number in NUMBERS], dtype=np.int64)
    text = lines_of(template, records_of([]), table)
    assert text.decode().split() == list(map(str, NUMBERS))


@pytest.mark.parametrize("style", Style)
def test_lines_do_not_depend_on_how_much_fits_into_the_output(
    style: Style, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The last one is measured before it is written, byte by byte.
    worst = {
        Style.TEXT: b"\xff",
        Style.JSON: b"\n",
        Style.BASE64: b"x",
        Style.VERBATIM: b"x",
    }
    longest = worst[style] * 66_000
    values = [*TEXTS, longest]
    expected = lines_of(key_template(style), records_of(values))
    monkeypatch.setattr(line_writer, "OUTPUT_BYTES", 1)
    monkeypatch.setattr(line_writer, "_LEAST_OUTPUT_BYTES", 1)
    assert lines_of(key_template(style), records_of(values)) == expected


def test_what_is_a_lines_text_already_is_written_as_it_lies() -> None:
    assert lines_of(key_template(Style.VERBATIM), records_of(TEXTS)) == b"".join(
        each + b"\0" for each in TEXTS
    )
