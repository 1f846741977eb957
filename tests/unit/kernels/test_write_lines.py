"""Lines as bytes: held against Python's own text, JSON and base64."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pylog.dump_log import lines as line_writer
from pylog.dump_log.lines import Records, Style, line_template, write_lines
from pylog.dump_log.lines import records_of as as_records
from pylog.model import TimestampType
from pylog.record.java_utf8 import decode_utf8
from pylog.record.record import Record, RecordHeader
from tests.support.java_utf8 import ANSWERS, all_short_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pylog.dump_log.lines import LineTemplate

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


def records_of(values: Sequence[bytes | None]) -> Records:
    return as_records(
        [
            Record(offset, 0, TimestampType.CREATE_TIME, key=value, value=None)
            for offset, value in enumerate(values)
        ]
    )


def lines_of(
    template: LineTemplate, records: Records, table: npt.NDArray[np.int64] | None = None
) -> bytes:
    if table is None:
        table = np.zeros((1, 1), dtype=np.int64)
    rows = np.zeros(len(table), dtype=np.int64)
    rows[0] = records.rows
    return b"".join(bytes(part) for part in write_lines(template, table, rows, records))


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


def test_choices_and_conditions_go_by_columns_of_the_batch() -> None:
    template = line_template(
        "<$word$if7( seven$)>",
        columns=["word", "n"],
        words={"word": ("zero", "one")},
        conditions={"if7": ("n", 7)},
    )
    table = np.array([[0, 7], [1, 6], [2, 7], [-1, 0]], dtype=np.int64)
    assert lines_of(template, records_of([]), table) == b"<zero seven><one>< seven><>"


def test_null_and_empty_keys_are_told_apart() -> None:
    template = line_template("", "$keySize$ifKey( key: $keyTEXT$)$ifNoKey( null$);")
    assert lines_of(template, records_of([None, b"", b"k"])) == b"-1 null;0 key: ;1 key: k;"


def test_header_names_are_written_with_commas() -> None:
    records = as_records(
        [
            Record(0, 0, TimestampType.CREATE_TIME, None, None, headers)
            for headers in (
                (),
                (RecordHeader("a", b""), RecordHeader("", None), RecordHeader('é"', b"")),
                (RecordHeader("b", None),),
            )
        ]
    )
    template = line_template("", "[$headersTEXT][$headersJSON]")
    assert lines_of(template, records).decode() == '[][][a,,é"]["a","","é\\""][b]["b"]'


def test_sequences_wrap_from_the_highest_to_zero() -> None:
    template = line_template("", "$sequence ", columns=["baseSequence", "baseOffset"])
    for base, expected in ((2**31 - 2, [2**31 - 2, 2**31 - 1, 0]), (-1, [-1, -1, -1])):
        table = np.array([[base, 0]], dtype=np.int64)
        text = lines_of(template, records_of([b""] * 3), table)
        assert text.decode().split() == list(map(str, expected))


@pytest.mark.parametrize("style", Style)
def test_lines_do_not_depend_on_how_much_fits_into_the_output(
    style: Style, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The last one is measured before it is written, byte by byte.
    longest = {Style.TEXT: b"\xff", Style.JSON: b"\n", Style.BASE64: b"x"}[style] * 66_000
    values = [*TEXTS, longest]
    expected = lines_of(key_template(style), records_of(values))
    monkeypatch.setattr(line_writer, "OUTPUT_BYTES", 1)
    monkeypatch.setattr(line_writer, "_LEAST_OUTPUT_BYTES", 1)
    assert lines_of(key_template(style), records_of(values)) == expected


def test_the_line_of_a_batch_that_was_begun_is_not_written_again() -> None:
    template = line_template("batch;", "$offset;")
    table, rows = np.zeros((2, 1), dtype=np.int64), np.array([1, 1])
    records = records_of([b"", b""])
    parts = write_lines(template, table, rows, records, is_continued=True)
    assert b"".join(map(bytes, parts)) == b"0;batch;1;"


def test_records_that_are_not_those_of_the_batches_are_refused() -> None:
    template = line_template("", "$offset")
    with pytest.raises(ValueError, match="3 records for batches with 2"):
        list(
            write_lines(
                template, np.zeros((1, 1), dtype=np.int64), np.array([2]), records_of([b""] * 3)
            )
        )
